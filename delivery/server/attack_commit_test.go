package server

import (
	"bytes"
	"crypto/rand"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// Attacks with commits and what travels with them: path secrets, GroupInfo,
// Welcomes. Each shows the refusal, and that what is stored did not change.

// poison garbles the path secrets of a commit and signs it again, as a
// malicious committer can: every public check passes.
func poison(t *testing.T, m *member, id delivery.RoomID) delivery.AppendRequest {
	t.Helper()
	c := m.prepare(id)
	var w wire.MLSMessage
	check(t, wire.Unmarshal(c.Message, &w))
	for _, n := range w.PublicMessage.Content.Commit.Path.Nodes {
		for _, e := range n.EncryptedPathSecret {
			_, err := rand.Read(e.Ciphertext)
			check(t, err)
		}
	}
	return resign(t, m, id, &w)
}

// resign signs a changed commit, and the GroupInfo that follows from it. The
// membership tag and the confirmation tag stay what they were: no server sees
// that they are wrong.
func resign(t *testing.T, m *member, id delivery.RoomID, w *wire.MLSMessage) delivery.AppendRequest {
	t.Helper()
	g := m.in(id).group
	tbs := wire.FramedContentTBS{WireFormat: wire.WireFormatPublicMessage, Content: &w.PublicMessage.Content, Context: g.Public().EncodedContext()}
	var err error
	w.PublicMessage.Auth.Signature, err = m.signer.SignWithLabel("FramedContentTBS", wire.Marshal(&tbs))
	check(t, err)
	f, err := m.at.follow(t.Context(), id)
	check(t, err)
	held, err := m.at.held(t.Context(), id)
	check(t, err)
	st, err := f.stage(w.PublicMessage, held, m.now())
	check(t, err)
	info := wire.GroupInfo{
		GroupContext: *st.Context(), ConfirmationTag: w.PublicMessage.Auth.ConfirmationTag, Signer: g.OwnLeaf(),
		Extensions: wire.Extensions{wire.NewExtension(wire.ExtensionTypeExternalPub, &wire.ExternalPub{ExternalPub: g.Member(g.OwnLeaf()).Node.EncryptionKey})},
	}
	info.Signature, err = m.signer.SignWithLabel("GroupInfoTBS", wire.Marshal((*wire.GroupInfoTBS)(&info)))
	check(t, err)
	return delivery.AppendRequest{
		Entry:     wire.Marshal(w),
		GroupInfo: wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatGroupInfo, GroupInfo: &info}),
	}
}

// Attack 2, poison commit: the service cannot see it; members report, and the
// room goes on in a successor without an operator, from the epoch before, whose
// public state is kept.
func TestAttackPoisonCommit(t *testing.T) { eachSuite(t, attackPoisonCommit) }

func attackPoisonCommit(t *testing.T, w *world) {
	in := w.start()
	p := in.people("eve", "ada", "bob") // eve, the creator and admin, is the attacker
	id := group(t, p...)
	a, err := p[0].post(id, poison(t, p[0], id))
	check(t, err)
	for _, victim := range p[1:] {
		page, err := victim.log(id, a.Seq-1)
		check(t, err)
		if err := victim.process(victim.in(id), page.Entries[0]); err == nil {
			t.Fatal("the victim processed garbage")
		}
		check(t, victim.json(delivery.RouteReport, delivery.ReportRequest{Seq: a.Seq, Epoch: 1, Reason: "path_secret"}, nil, id.String()))
		_, err = victim.call(delivery.RouteGroupInfo, nil, "?epoch=1", id.String())
		check(t, err)
		_, err = victim.call(delivery.RouteTree, nil, "?epoch=1", id.String())
		check(t, err)
	}
	next := p[1].successor(id) // lists eve as the admin that she was: the others need not add her
	p[1].commit(next, p[1].adding(next, p[2].owner)...)
	p[2].join()
	check(t, p[1].succeed(id, next))
	p[1].say(next, "here we go on")
	agree(t, next, p[1], p[2])
}

// Attack 3, corrupt or old GroupInfo: refused at upload, whatever is wrong.
func TestAttackCorruptGroupInfo(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	old, err := p[0].call(delivery.RouteGroupInfo, nil, "", id.String())
	check(t, err)
	c := p[0].prepare(id)
	edit := func(f func(*wire.GroupInfo), sign bool) []byte {
		var w wire.MLSMessage
		check(t, wire.Unmarshal(c.GroupInfo, &w))
		f(w.GroupInfo)
		if sign {
			w.GroupInfo.Signature, err = p[0].signer.SignWithLabel("GroupInfoTBS", wire.Marshal((*wire.GroupInfoTBS)(w.GroupInfo)))
			check(t, err)
		}
		return wire.Marshal(&w)
	}
	for name, info := range map[string][]byte{
		"none":                     nil,
		"garbage":                  []byte("garbage"),
		"truncated":                c.GroupInfo[:len(c.GroupInfo)-3],
		"trailing bytes":           append(bytes.Clone(c.GroupInfo), 0),
		"the old epoch's":          old,
		"a commit instead":         c.Message,
		"signature flipped":        edit(func(g *wire.GroupInfo) { g.Signature[0] ^= 1 }, false),
		"other epoch":              edit(func(g *wire.GroupInfo) { g.GroupContext.Epoch++ }, true),
		"other tree hash":          edit(func(g *wire.GroupInfo) { g.GroupContext.TreeHash[0] ^= 1 }, true),
		"other transcript":         edit(func(g *wire.GroupInfo) { g.GroupContext.ConfirmedTranscriptHash[0] ^= 1 }, true),
		"other extensions":         edit(func(g *wire.GroupInfo) { g.GroupContext.Extensions = nil }, true),
		"other confirmation tag":   edit(func(g *wire.GroupInfo) { g.ConfirmationTag[0] ^= 1 }, true),
		"signer that is not there": edit(func(g *wire.GroupInfo) { g.Signer = 7 }, true),
		"another's signature":      edit(func(g *wire.GroupInfo) { g.Signer = 1 }, true),
		"no external_pub":          edit(func(g *wire.GroupInfo) { g.Extensions = nil }, true),
	} {
		t.Run(name, func(t *testing.T) {
			p[0].t = t
			p[0].refused(id, delivery.AppendRequest{Entry: c.Message, GroupInfo: info}, delivery.CodeBadRequest)
		})
	}
	p[0].t = t
	_, err = p[0].post(id, request(c))
	check(t, err)
}

// Attack 4, forced rejoin: a commit that the service made up, or that a member
// did not sign, never enters the log, so nobody can be driven out of an epoch by
// it; and a device that keeps rejoining is held back.
func TestAttackForcedRejoin(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p...)
	c := p[0].prepare(id)
	flip := func(f func(*wire.PublicMessage)) []byte {
		var w wire.MLSMessage
		check(t, wire.Unmarshal(c.Message, &w))
		f(w.PublicMessage)
		return wire.Marshal(&w)
	}
	for name, entry := range map[string][]byte{
		"signature":    flip(func(m *wire.PublicMessage) { m.Auth.Signature[0] ^= 1 }),
		"path key":     flip(func(m *wire.PublicMessage) { m.Content.Commit.Path.Nodes[0].EncryptionKey[0] ^= 1 }),
		"parent hash":  flip(func(m *wire.PublicMessage) { m.Content.Commit.Path.LeafNode.ParentHash[0] ^= 1 }),
		"leaf":         flip(func(m *wire.PublicMessage) { m.Content.Commit.Path.LeafNode.Signature[0] ^= 1 }),
		"tag length":   flip(func(m *wire.PublicMessage) { m.Auth.ConfirmationTag = m.Auth.ConfirmationTag[:4] }),
		"no path":      flip(func(m *wire.PublicMessage) { m.Content.Commit.Path = nil }),
		"another room": flip(func(m *wire.PublicMessage) { m.Content.GroupID[15] ^= 1 }),
	} {
		t.Run(name, func(t *testing.T) {
			p[0].t = t
			p[0].refused(id, delivery.AppendRequest{Entry: entry, GroupInfo: c.GroupInfo}, delivery.CodeBadRequest)
		})
	}
	p[0].t = t
	// Another member's device cannot send it either.
	p[1].refused(id, request(c), delivery.CodeRefused)
}

// Attack 6, Welcome abuse: without its commit, swapped for another, for nobody
// whom the commit adds, or for a package that was never published here.
func TestAttackWelcomeAbuse(t *testing.T) { eachSuite(t, attackWelcomeAbuse) }

func attackWelcomeAbuse(t *testing.T, w *world) {
	in := w.start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p[0])
	adding := p[0].adding(id, p[1].owner)
	c := p[0].prepare(id, adding...)
	other := p[0].prepare(id, p[0].adding(id, p[2].owner)...)
	text := p[0].seal(id, "x")
	p[0].refused(id, delivery.AppendRequest{Entry: text, Welcome: c.Welcome}, delivery.CodeBadRequest)
	p[0].refused(id, delivery.AppendRequest{Entry: c.Message, GroupInfo: c.GroupInfo}, delivery.CodeBadRequest)
	p[0].refused(id, delivery.AppendRequest{Entry: c.Message, GroupInfo: c.GroupInfo, Welcome: other.Welcome}, delivery.CodeBadRequest)
	p[0].refused(id, delivery.AppendRequest{Entry: c.Message, GroupInfo: c.GroupInfo, Welcome: c.Welcome[:20]}, delivery.CodeBadRequest)
	empty := p[0].prepare(id)
	p[0].refused(id, delivery.AppendRequest{Entry: empty.Message, GroupInfo: empty.GroupInfo, Welcome: c.Welcome}, delivery.CodeBadRequest)
	unpublished := p[1].bundle().KeyPackage
	forged := p[0].prepare(id, mls.AddProposal(&unpublished), adding[len(adding)-1])
	p[0].refused(id, request(forged), delivery.CodeRefused)
	welcomes := func(m *member) int {
		t.Helper()
		_, err := in.Relay(t.Context())
		check(t, err)
		var mail delivery.MailResponse
		check(t, m.json(delivery.RouteMailbox, nil, &mail))
		n := 0
		for _, item := range mail.Items {
			if item.Kind == delivery.MailWelcome {
				n++
			}
		}
		return n
	}
	for _, m := range p[1:] {
		if n := welcomes(m); n != 0 {
			t.Errorf("%d Welcomes of refused commits", n)
		}
	}
	// Replayed: the same commit again puts nothing a second time.
	for range 3 {
		_, err := p[0].post(id, request(c))
		check(t, err)
		if n := welcomes(p[1]); n != 1 {
			t.Errorf("%d Welcomes", n)
		}
	}
	if got := p[1].join(); len(got) != 1 {
		t.Error("not joined")
	}
	_, err := p[0].post(id, request(c)) // acknowledged for good
	check(t, err)
	if n := welcomes(p[1]); n != 0 {
		t.Errorf("%d Welcomes after the acknowledgement", n)
	}
}
