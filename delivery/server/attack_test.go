package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// The named attacks on a delivery service. Each shows the refusal, and that
// what is stored did not change.

// Attack 1, ghost member: who gets a room's entries is read from the tree; no
// request can name a device that is not in it, nor leave one out.
func TestAttackGhostMember(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p[:2]...)
	ghost := p[2].connect(t)
	in2 := p[1].connect(t)
	p[0].say(id, "for two")
	if f, ok := in2.next().(*delivery.EntryFrame); !ok {
		t.Errorf("the member got %+v", f)
	}
	// The ghost's socket hears only what is said to it: its own mail.
	in.ring(t.Context(), []identity.DeviceID{p[2].id()}, delivery.Hint{Kind: delivery.HintMail})
	if f, ok := ghost.next().(*delivery.MailFrame); !ok {
		t.Errorf("the ghost got %+v", f)
	}
	for _, route := range []string{delivery.RouteLog, delivery.RouteGroupInfo, delivery.RouteTree, delivery.RouteRoom, delivery.RouteHeld} {
		_, err := p[2].call(route, nil, "", id.String())
		wantCode(t, err, delivery.CodeNotFound)
	}
	p[2].rooms[id] = &view{group: p[0].in(id).group}
	sealed := p[2].seal(id, "as a member")
	p[2].refused(id, delivery.AppendRequest{Entry: sealed}, delivery.CodeNotFound)
	// The store's members are the tree's leaves.
	members, err := in.store.Members(t.Context(), id)
	check(t, err)
	var stored, tree []identity.DeviceID
	for _, m := range members {
		stored = append(stored, m.Device)
	}
	for _, m := range p[0].in(id).group.Members() {
		u, err := identity.ParseCredential(m.Node.Credential.Identity)
		check(t, err)
		tree = append(tree, u.Attestation.DeviceID)
	}
	if !slices.Equal(stored, tree) {
		t.Errorf("stored %v, tree %v", stored, tree)
	}
}

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
	tbs := wire.FramedContentTBS{WireFormat: wire.WireFormatPublicMessage, Content: &w.PublicMessage.Content, Context: g.Context()}
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
func TestAttackPoisonCommit(t *testing.T) {
	in := newWorld(t).start()
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
	next := group(t, p[1], p[2])
	check(t, p[1].json(delivery.RouteSucceed, delivery.SucceedRequest{Successor: next}, nil, id.String()))
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

// Attack 5, key package drain and double claim: a hundred claims at once on two
// instances get a hundred different packages, then the last resort, and one
// requester's budget ends it.
func TestAttackKeyPackageDrain(t *testing.T) {
	w := newWorld(t)
	w.config.Limits.Buckets = map[string]Bucket{"drain": {Burst: 25, PerHour: 1}}
	one, two := w.start(), w.start()
	victim := one.member(newPerson("victim").attest(t, "victim"))
	victim.publish(100, false)
	victim.publish(1, true)
	var claimers []*member
	for i := range 4 {
		m := []*instance{one, two}[i%2].people(fmt.Sprint("claimer", i))[0]
		claimers = append(claimers, m)
	}
	room := claimers[0].create(delivery.RoomGroup)
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for _, m := range claimers {
		for range 25 {
			wg.Go(func() {
				var r delivery.ClaimResponse
				err := m.json(delivery.RouteClaim, delivery.ClaimRequest{Identity: victim.owner.id, Suite: uint16(testSuite), Room: room}, &r)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || len(r.Packages) != 1 {
					t.Errorf("%v %d packages", err, len(r.Packages))
					return
				}
				seen[string(r.Packages[0])]++
			})
		}
	}
	wg.Wait()
	if len(seen) != 100 {
		t.Errorf("%d different packages", len(seen))
	}
	for raw, n := range seen {
		if raw == string(victim.bundles[100].Message()) || n != 1 {
			t.Error("a package was given twice, or the last resort before its time")
		}
	}
	err := claimers[0].json(delivery.RouteClaim, delivery.ClaimRequest{Identity: victim.owner.id, Suite: uint16(testSuite), Room: room}, nil)
	wantCode(t, err, delivery.CodeSlowDown)
	fresh := one.people("fresh")[0]
	for range 2 {
		if got := fresh.claim(room, victim.owner.id); len(got) != 1 || !bytes.Equal(wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatKeyPackage, KeyPackage: got[0]}), victim.bundles[100].Message()) {
			t.Fatal("not the last resort")
		}
	}
	// The device was told to publish, once.
	one.work.Wait()
	two.work.Wait()
	var mail delivery.MailResponse
	check(t, victim.json(delivery.RouteMailbox, nil, &mail))
	if len(mail.Items) != 1 || mail.Items[0].Kind != delivery.MailLowKeys {
		t.Errorf("%+v", mail)
	}
}

// Attack 6, Welcome abuse: without its commit, swapped for another, for nobody
// whom the commit adds, or for a package that was never published here.
func TestAttackWelcomeAbuse(t *testing.T) {
	in := newWorld(t).start()
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

// Attack 7, identity bypass: a victim's credential beside one's own key is
// refused on every path by which a leaf can enter.
func TestAttackIdentityBypass(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p[:2]...)
	eve, victim := p[2], p[1].credential()

	// In a published key package.
	b := eve.bundle(func(k *mls.KeyPackageParams) { k.Credential = victim })
	wantCode(t, eve.json(delivery.RoutePublish, delivery.PublishRequest{Packages: [][]byte{b.Message()}}, nil), delivery.CodeRefused)
	// Somebody else's honest package.
	wantCode(t, eve.json(delivery.RoutePublish, delivery.PublishRequest{Packages: [][]byte{p[1].bundle().Message()}}, nil), delivery.CodeRefused)
	n, _, err := in.store.CountKeyPackages(t.Context(), eve.id(), uint16(testSuite), eve.now().UnixMilli())
	check(t, err)
	if n != 5 {
		t.Errorf("eve has %d packages", n)
	}
	// In an Add that a member makes of it, with an engine that checks nothing.
	careless := p[0].config
	careless.Credentials = nil
	p[0].rooms[id].group = reload(t, &careless, p[0].in(id).group)
	p[0].refused(id, request(p[0].prepare(id, mls.AddProposal(&b.KeyPackage))), delivery.CodeRefused)
	// In a member's own path.
	asVictim := func(g *mls.Group) *mls.Commit {
		c, err := g.Commit(mls.CommitParams{Random: rand.Reader, Now: p[0].now(), Leaf: mls.LeafChange{Credential: &victim}})
		check(t, err)
		return c
	}
	p[0].refused(id, request(asVictim(p[0].in(id).group)), delivery.CodeRefused)
	// In an external commit.
	info, err := p[1].call(delivery.RouteGroupInfo, nil, "", id.String())
	check(t, err)
	tree, err := p[1].call(delivery.RouteTree, nil, "", id.String())
	check(t, err)
	eve.config.Credentials = nil
	c := eve.externalWith(info, tree, func(x *mls.ExternalJoinParams) { x.Credential = victim })
	eve.refused(id, request(c), delivery.CodeRefused)
	// An honest stranger by external commit.
	eve.refused(id, request(eve.externalWith(info, tree)), delivery.CodeRefused)
	// A member's key under another device's session.
	eve.refused(id, request(p[1].externalWith(info, tree, func(x *mls.ExternalJoinParams) {
		leaf := p[1].in(id).group.OwnLeaf()
		x.Resync = &leaf
	})), delivery.CodeRefused)
	// A request signer of the victim's own identity.
	signer := p[1].owner.attest(t, "signer", func(a *identity.Attestation) { a.Role = identity.RoleBotSigner })
	roleOne := *eve
	cs, err := suite.Lookup(testSuite)
	check(t, err)
	roleOne.signer, err = cs.NewSignatureKey(signer.key.Seed())
	check(t, err)
	roleOne.config = mls.Config{Signers: []*suite.SignatureKey{roleOne.signer}, AppData: policy.ApplyUpdate}
	bySigner := roleOne.externalWith(info, tree, func(x *mls.ExternalJoinParams) {
		x.Signer, x.Credential = roleOne.signer, wire.BasicCredential(signer.cred.Bytes())
	})
	eve.refused(id, request(bySigner), delivery.CodeRefused)
}

func reload(t *testing.T, c *mls.Config, g *mls.Group) *mls.Group {
	t.Helper()
	out, err := c.Load(g.Records())
	check(t, err)
	return out
}

// Attack 8, stale authority: rules are judged against the committed state inside
// the room's lock, on every path, at every instance.
func TestAttackStaleAuthority(t *testing.T) {
	w := newWorld(t)
	one, two := w.start(), w.start()
	p := one.people("ada", "bob", "eve")
	id := group(t, p...)
	setRole := func(role policy.Role, who person) wire.Proposal {
		room, err := policy.RoomOf(p[0].in(id).group.Context().Extensions)
		check(t, err)
		u, needed := room.Participants.Assigning(role, who.id)
		if !needed {
			t.Fatal("nothing to change")
		}
		return mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes())
	}
	p[0].commit(id, setRole(policy.RoleAdmin, p[1].owner))
	p[1].sync(id)
	p[1].at = two
	_, err := two.follow(t.Context(), id) // the second instance has the old roster cached
	check(t, err)
	stale := p[1].prepare(id, mls.RemoveProposal(2))
	p[0].commit(id, setRole(policy.RoleMember, p[1].owner))
	p[1].refused(id, request(stale), delivery.CodeStaleEpoch)
	p[1].sync(id)
	p[1].refused(id, request(p[1].prepare(id, mls.RemoveProposal(2))), delivery.CodeRefused)
	byReference := func(x wire.Proposal) {
		t.Helper()
		s, err := p[1].in(id).group.Propose(mls.ProposeParams{Random: rand.Reader, Now: p[1].now(), Proposal: x})
		check(t, err)
		p[1].refused(id, delivery.AppendRequest{Entry: s.Message}, delivery.CodeRefused)
	}
	byReference(mls.RemoveProposal(2))
	byReference(setRole(policy.RoleAdmin, p[1].owner))
	byReference(mls.GroupContextExtensionsProposal(p[1].in(id).group.Context().Extensions))
	byReference(mls.ReInitProposal([]byte("x"), testSuite, nil))

	// Banned: removed, and not let back in by anybody's Add or its own commit.
	room, err := policy.RoomOf(p[0].in(id).group.Context().Extensions)
	check(t, err)
	ban, _ := room.Participants.Removing(true, p[2].owner.id)
	p[0].commit(id, mls.RemoveProposal(2), mls.AppDataUpdateProposal(policy.ComponentParticipants, ban.Bytes()))
	p[1].sync(id)
	add := mls.AddProposal(p[1].claim(id, p[2].owner.id)[0])
	p[1].refused(id, request(p[1].prepare(id, add)), delivery.CodeRefused)
	info, err := p[0].call(delivery.RouteGroupInfo, nil, "", id.String())
	check(t, err)
	tree, err := p[0].call(delivery.RouteTree, nil, "", id.String())
	check(t, err)
	p[2].refused(id, request(p[2].externalWith(info, tree)), delivery.CodeRefused)
}

// Attack 8, revoked: the device keeps neither session, packages nor mailbox at
// any instance, and comes into no room on any path.
func TestAttackRevokedDeviceLingers(t *testing.T) {
	w := newWorld(t)
	one, two := w.start(), w.start()
	p := one.people("ada", "bob")
	laptop := one.member(p[1].owner.attest(t, "laptop"))
	laptop.publish(3, false)
	claimed := p[0].create(delivery.RoomGroup)
	packages := p[0].claim(claimed, p[1].owner.id) // the phone's and the laptop's
	r := laptop.revocation(t, p[1].owner)
	laptop.at = two
	_, err := laptop.call(delivery.RouteDevices, nil, "")
	check(t, err) // the second instance has the session cached
	check(t, p[1].json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: r.Bytes()}, nil))
	w.clock.add(sessionFresh)
	_, err = laptop.call(delivery.RouteDevices, nil, "")
	wantCode(t, err, delivery.CodeLogIn)
	wantCode(t, laptop.login(), delivery.CodeNotFound)
	var left delivery.ClaimResponse
	check(t, p[0].json(delivery.RouteClaim, delivery.ClaimRequest{Identity: p[1].owner.id, Suite: uint16(testSuite), Room: claimed}, &left))
	if len(left.Packages) != 1 {
		t.Errorf("%d packages", len(left.Packages))
	}
	room, err := policy.RoomOf(p[0].in(claimed).group.Context().Extensions)
	check(t, err)
	u, _ := room.Participants.Adding(policy.RoleMember, "localhost", p[1].owner.id)
	proposals := []wire.Proposal{mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes())}
	for _, k := range packages {
		proposals = append(proposals, mls.AddProposal(k))
	}
	p[0].refused(claimed, request(p[0].prepare(claimed, proposals...)), delivery.CodeRefused)
}

// Attack 10 is in account_test.go (envelopes) and here: work is bound to its
// device and bytes.
func TestAttackWorkIsReused(t *testing.T) {
	w := newWorld(t)
	w.config.Limits.Work = WorkLimits{FreeMessages: 2, MaxBits: 6, Step: 1}
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	send := func(m *member, entry []byte, nonce []byte) error {
		method, target := path(delivery.RouteAppend, id.String())
		req, err := http.NewRequest(method, in.http.URL+target, bytes.NewReader((&delivery.AppendRequest{Entry: entry}).AppendTo(nil)))
		check(t, err)
		req.Header.Set("Authorization", "Bearer "+m.token)
		if nonce != nil {
			req.Header.Set(delivery.HeaderWork, fmt.Sprintf("%x", nonce))
		}
		_, err = do(req)
		return err
	}
	var demand *delivery.Error
	var entry []byte
	for range 20 {
		entry = p[0].seal(id, "more")
		if err := send(p[0], entry, nil); err != nil {
			if demand = wantCode(t, err, delivery.CodeSolveWork); demand.Work.Bits >= 4 {
				break
			}
			check(t, send(p[0], entry, solve(p[0], demand.Work, entry)))
		}
	}
	nonce := solve(p[0], demand.Work, entry)
	// Other bytes for which the nonce is worth nothing: so few bits come by chance,
	// under the seed of this hour or of the last one, which the server takes too.
	other := p[0].seal(id, "other bytes")
	for now := in.Now(); slices.ContainsFunc([]time.Time{now, now.Add(-time.Hour)}, func(at time.Time) bool {
		return delivery.WorkBits(in.seed(at), p[0].id(), sha(other), nonce) >= demand.Work.Bits-2
	}); {
		other = p[0].seal(id, "other bytes")
	}
	before := w.fingerprint(t, id)
	wantCode(t, send(p[0], other, nonce), delivery.CodeSolveWork)
	if w.fingerprint(t, id) != before {
		t.Error("a refused append changed the room")
	}
	check(t, send(p[0], entry, nonce))
	// Another device is within its free pace; a big entry costs it as much.
	check(t, send(p[1], p[1].seal(id, "hello"), nil))
	err := send(p[1], p[1].seal(id, strings.Repeat("x", 1<<20)), nil)
	wantCode(t, err, delivery.CodeSolveWork)
}

func solve(m *member, w *delivery.Work, entry []byte) []byte {
	for n := uint64(0); ; n++ {
		nonce := fmt.Appendf(nil, "%d", n)
		if delivery.WorkBits(w.Seed, m.id(), sha(entry), nonce) >= w.Bits {
			return nonce
		}
	}
}

// TestForgedHomeProposals: only the home's key signs the home's proposals, and a
// client cannot send even a genuine one.
func TestForgedHomeProposals(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	r := p[1].revocation(t, p[1].owner)
	genuine, err := mls.ExternalProposal(id[:], 1, 0, mls.RemoveProposal(1), policy.HomeRemoval(r), in.secrets.sender)
	check(t, err)
	forged, err := mls.ExternalProposal(id[:], 1, 0, mls.RemoveProposal(1), policy.HomeRemoval(r), p[0].signer)
	check(t, err)
	for _, entry := range [][]byte{genuine, forged} {
		p[0].refused(id, delivery.AppendRequest{Entry: entry}, delivery.CodeRefused)
	}
	add, err := mls.ExternalAdd(id[:], 1, p[1].bundle(), p[1].signer)
	check(t, err)
	p[0].refused(id, delivery.AppendRequest{Entry: add}, delivery.CodeRefused)
}

// TestHugeLengthsAndGarbageEntries: whatever the bytes, the room stays.
func TestGarbageEntries(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	good := p[0].seal(id, "x")
	commit := request(p[0].prepare(id))
	entries := map[string]delivery.AppendRequest{
		"empty":     {},
		"garbage":   {Entry: []byte("\x00\x01\x00\x02garbage")},
		"trailing":  {Entry: append(bytes.Clone(good), 1)},
		"a Welcome": {Entry: commit.GroupInfo},
		"version":   {Entry: append([]byte{0, 9}, good[2:]...)},
		"huge":      {Entry: []byte{0, 1, 0, 2, 0xbf, 0xff, 0xff, 0xff}},
		"cut":       {Entry: commit.Entry[:len(commit.Entry)/2], GroupInfo: commit.GroupInfo},
	}
	for name, r := range entries {
		t.Run(name, func(t *testing.T) {
			p[0].t = t
			p[0].refused(id, r, delivery.CodeBadRequest)
		})
	}
	p[0].t = t
	for cut := 1; cut < len(good); cut += 7 {
		_, err := p[0].post(id, delivery.AppendRequest{Entry: good[:cut]})
		wantCode(t, err, delivery.CodeBadRequest)
	}
	body := (&delivery.AppendRequest{Entry: good}).AppendTo(nil)
	for cut := range body {
		_, err := p[0].call(delivery.RouteAppend, body[:cut], "", id.String())
		wantCode(t, err, delivery.CodeBadRequest)
	}
	private := p[0].in(id).group
	s, err := private.Propose(mls.ProposeParams{Random: rand.Reader, Now: p[0].now(), Proposal: mls.RemoveProposal(1), Private: true})
	check(t, err)
	p[0].refused(id, delivery.AppendRequest{Entry: s.Message}, delivery.CodeBadRequest)
}

// slowReader is a body that never ends by itself.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, "{\"x\":\""), nil }

func TestBodiesAreBoundedBeforeTheyAreRead(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	for _, body := range []io.Reader{io.LimitReader(endless{}, 1<<30)} {
		req, err := http.NewRequestWithContext(context.Background(), "PUT", in.http.URL+"/v1/snapshot", body)
		check(t, err)
		req.Header.Set("Authorization", "Bearer "+d.token)
		_, err = do(req)
		if code := delivery.CodeOf(err); code != delivery.CodeTooLarge && err == nil {
			t.Errorf("%v", err)
		}
	}
}
