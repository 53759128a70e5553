package follower

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// TestEveryProposalType commits each type of proposal, by value and by reference
// where both are allowed, and looks at what changes.
func TestEveryProposalType(t *testing.T) {
	w := grown(t, 5)

	update := w.hold(w.propose(1, w.update(1)))
	s := w.apply(w.commit(member(0), []wire.ProposalOrRef{update}, bad{}))
	if !slices.Equal(s.Updated, []tree.LeafIndex{1}) || len(s.Added)+len(s.Removed) != 0 {
		t.Errorf("Update: %v %v %v", s.Updated, s.Added, s.Removed)
	}

	refs := []wire.ProposalOrRef{w.hold(w.propose(2, selfRemove())), w.hold(w.propose(1, remove(3)))}
	s = w.apply(w.commit(member(0), refs, bad{}))
	if !slices.Equal(s.Removed, []tree.LeafIndex{2, 3}) || !s.Removes(2) || s.Removes(1) {
		t.Errorf("removed %v", s.Removed)
	}

	x := wire.Sender{SenderType: wire.SenderTypeExternal}
	c := w.client("by the home")
	added := w.hold(w.proposeAs(x, w.outside, c.add()))
	n := w.client("by itself")
	own := w.hold(w.proposeAs(wire.Sender{SenderType: wire.SenderTypeNewMemberProposal}, n.signer, n.add()))
	s = w.apply(w.commit(member(1), []wire.ProposalOrRef{added, own}, bad{noPath: true}))
	if !slices.Equal(s.Added, []tree.LeafIndex{2, 3}) {
		t.Errorf("added %v", s.Added)
	}
	w.signers[2], w.signers[3] = c.signer, n.signer

	list := values(w.psk(), appUpdate(testComponent, "b"), appUpdate(testComponent, "c"),
		&wire.Proposal{ProposalType: wire.ProposalTypeAppEphemeral, AppEphemeral: &wire.AppEphemeral{ComponentID: testComponent}})
	s = w.apply(w.commit(member(2), list, bad{noPath: true}))
	if data, _ := w.g.Dictionary().Get(testComponent); string(data) != "abc" || len(s.PSKs) != 1 {
		t.Errorf("the component holds %q, %d PSKs", data, len(s.PSKs))
	}
	w.apply(w.commit(member(3), values(appRemove(testComponent)), bad{}))
	if _, found := w.g.Dictionary().Get(testComponent); found {
		t.Error("the component is still there")
	}

	extensions := append(w.g.Context().Extensions.Clone(), wire.Extension{ExtensionType: testExtension})
	s = w.apply(w.commit(member(4), values(gce(extensions)), bad{}))
	if _, found := w.g.Context().Extensions.Find(testExtension); !found || !s.PathRequired {
		t.Error("the extensions were not replaced")
	}

	s = w.apply(w.commit(member(0), values(w.reinit()), bad{noPath: true}))
	if s.ReInit == nil || !w.g.Closed() {
		t.Error("ReInit did not close the group")
	}
	if _, err := w.g.StageCommit(w.commit(member(0), nil, bad{}), w.options); !errors.Is(err, ErrClosed) {
		t.Errorf("a commit after ReInit: %v", err)
	}
	if _, err := w.g.HoldProposal(w.propose(1, remove(2)), w.options); !errors.Is(err, ErrClosed) {
		t.Errorf("a proposal after ReInit: %v", err)
	}
	if _, err := w.g.Draft(member(0), nil, w.options); !errors.Is(err, ErrClosed) {
		t.Errorf("a draft after ReInit: %v", err)
	}
	again, err := Unmarshal(w.g.Marshal())
	w.must(err)
	if !again.Closed() {
		t.Error("a stored group forgets that it is closed")
	}
}

// TestLastEpoch: the last epoch that can be counted takes no commit; the one before does.
func TestLastEpoch(t *testing.T) {
	w := grown(t, 4)
	for epoch, open := range map[uint64]bool{math.MaxUint64 - 1: true, math.MaxUint64: false} {
		g := *w.g
		g.context.Epoch = epoch
		if _, err := g.Draft(member(0), nil, w.options); open && err != nil || !open && !errors.Is(err, ErrClosed) {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
}

// TestExternalCommits joins, and resyncs with references to SelfRemoves.
func TestExternalCommits(t *testing.T) {
	w := grown(t, 4)
	joiner := wire.Sender{SenderType: wire.SenderTypeNewMemberCommit}
	s := w.apply(w.commit(joiner, values(w.externalInit(), w.psk(), appUpdate(testComponent, "x")), bad{}))
	if !s.External || s.Committer != 4 || w.g.Tree().Members() != 5 || w.g.Tree().Width() != 8 {
		t.Errorf("joined at %d of %d", s.Committer, w.g.Tree().Members())
	}
	self := w.hold(w.propose(1, selfRemove()))
	list := append(values(w.externalInit(), remove(2)), self)
	s = w.apply(w.commit(joiner, list, bad{}))
	if s.Former == nil || s.Committer != 1 || w.g.Tree().Members() != 4 {
		t.Errorf("resync: at %d, %d members", s.Committer, w.g.Tree().Members())
	}
}

// TestResyncOfTheOnlyMember lets the only member of a group replace itself.
func TestResyncOfTheOnlyMember(t *testing.T) {
	w := newWorld(t)
	s := w.apply(w.commit(wire.Sender{SenderType: wire.SenderTypeNewMemberCommit}, values(w.externalInit(), remove(0)), bad{}))
	if s.Committer != 0 || w.g.Tree().Members() != 1 || w.g.Tree().Width() != 1 {
		t.Errorf("at %d, %d members", s.Committer, w.g.Tree().Members())
	}
}

// TestGroupInfoAndWelcome holds what travels with a commit against it.
func TestGroupInfoAndWelcome(t *testing.T) {
	w := grown(t, 3)
	a, b := w.client("a"), w.client("b")
	s := w.enter(1, a, b)
	info := w.groupInfo(w.g, 1)
	w.must(s.CheckGroupInfo(info))
	w.must(s.Apply().CheckGroupInfo(w.groupInfo(w.g, s.Added[0])))
	for name, spoil := range map[string]func(*wire.GroupInfo){
		"another epoch": func(i *wire.GroupInfo) { i.GroupContext.Epoch++ },
		"another tag":   func(i *wire.GroupInfo) { i.ConfirmationTag = w.tag() },
		"a shorter tag": func(i *wire.GroupInfo) { i.ConfirmationTag = i.ConfirmationTag[:16] },
		"no member":     func(i *wire.GroupInfo) { i.Signer = 77 },
		"somebody else": func(i *wire.GroupInfo) { i.Signer = 2 },
		"an extension twice": func(i *wire.GroupInfo) {
			i.Extensions = wire.Extensions{{ExtensionType: 0x5a5a}, {ExtensionType: 0x5a5a}}
		},
		"a bad external_pub": func(i *wire.GroupInfo) {
			i.Extensions = wire.Extensions{wire.NewExtension(wire.ExtensionTypeExternalPub, &wire.ExternalPub{ExternalPub: make([]byte, 32)})}
		},
		"external_pub that is none": func(i *wire.GroupInfo) {
			i.Extensions = wire.Extensions{{ExtensionType: wire.ExtensionTypeExternalPub, ExtensionData: []byte{9}}}
		},
	} {
		forged := *info
		spoil(&forged)
		w.signInfo(&forged, w.signers[1])
		if err := s.CheckGroupInfo(&forged); !errors.Is(err, ErrGroupInfo) && !errors.Is(err, ErrSignature) {
			t.Errorf("a group info of %s: %v", name, err)
		}
	}
	forged := *info
	forged.Signature = bytes.Clone(info.Signature)
	forged.Signature[3] ^= 1
	if err := s.CheckGroupInfo(&forged); !errors.Is(err, ErrSignature) {
		t.Errorf("a flipped signature: %v", err)
	}

	entry := func(c *client) wire.EncryptedGroupSecrets {
		return wire.EncryptedGroupSecrets{NewMember: w.cs.KeyPackageRef(c.kp)}
	}
	welcome := func(list ...wire.EncryptedGroupSecrets) *wire.Welcome {
		return &wire.Welcome{CipherSuite: w.cs.ID(), Secrets: list}
	}
	w.must(s.CheckWelcome(welcome(entry(a), entry(b))))
	w.must(s.CheckWelcome(welcome(entry(b)), welcome(entry(a))))
	other := welcome(entry(a), entry(b))
	other.CipherSuite = 3
	for name, list := range map[string][]*wire.Welcome{
		"none":          {},
		"one missing":   {welcome(entry(a))},
		"one twice":     {welcome(entry(a), entry(b), entry(a))},
		"a stranger":    {welcome(entry(a), entry(b), entry(w.client("c")))},
		"another suite": {other},
	} {
		if err := s.CheckWelcome(list...); !errors.Is(err, ErrWelcome) {
			t.Errorf("welcome for %s: %v", name, err)
		}
	}
}

// TestJoin begins to follow a group from its GroupInfo and tree, and goes on to
// the same states as the group that was followed from the start.
func TestJoin(t *testing.T) {
	w := grown(t, 9)
	u, err := tree.ParseBytes(w.cs, w.g.Tree().Marshal())
	w.must(err)
	joined, err := Join(w.cs, w.groupInfo(w.g, 4), u, w.options)
	w.must(err)
	if !bytes.Equal(joined.Marshal(), w.g.Marshal()) {
		t.Fatal("another state")
	}
	ac := w.commit(member(7), values(remove(2)), bad{})
	a, err := joined.StageCommit(ac, w.options)
	w.must(err)
	w.apply(ac)
	if !bytes.Equal(a.Apply().Marshal(), w.g.Marshal()) {
		t.Error("the states part after a commit")
	}
	for name, spoil := range map[string]func(*wire.GroupInfo){
		"another suite":     func(i *wire.GroupInfo) { i.GroupContext.CipherSuite = 3 },
		"another tree hash": func(i *wire.GroupInfo) { i.GroupContext.TreeHash = w.bytes(32) },
		"a short tag":       func(i *wire.GroupInfo) { i.ConfirmationTag = i.ConfirmationTag[1:] },
		"a blank signer":    func(i *wire.GroupInfo) { i.Signer = 2 },
		"a signer too far":  func(i *wire.GroupInfo) { i.Signer = 1 << 31 },
		"another group id":  func(i *wire.GroupInfo) { i.GroupContext.GroupID = []byte("other") },
		"a doubled extension": func(i *wire.GroupInfo) {
			i.GroupContext.Extensions = append(i.GroupContext.Extensions.Clone(), i.GroupContext.Extensions[0])
		},
		"an extension nobody supports": func(i *wire.GroupInfo) {
			i.GroupContext.Extensions = append(i.GroupContext.Extensions.Clone(), wire.Extension{ExtensionType: 0xf0f0})
		},
	} {
		info := w.groupInfo(w.g, 4)
		spoil(info)
		w.signInfo(info, w.signers[4])
		u, err := tree.ParseBytes(w.cs, w.g.Tree().Marshal())
		w.must(err)
		if _, err := Join(w.cs, info, u, w.options); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefuseBeginnings: what no group begins with, and whom no draft is for.
func TestRefuseBeginnings(t *testing.T) {
	w := grown(t, 3)
	create := func(x wire.Extensions, spoil func(*wire.LeafNode)) error {
		signer := w.signer()
		leaf := w.leaf("creator", wire.LeafNodeSourceKeyPackage, signer)
		spoil(leaf)
		w.signLeaf(leaf, 0, signer)
		_, err := Create(w.cs, []byte("group"), x, leaf, w.tag(), w.options)
		return err
	}
	nothing := func(*wire.LeafNode) {}
	w.must(create(w.extensions(), nothing))
	mallory := wire.ExternalSenders{{SignatureKey: w.outside.Public(), Credential: wire.BasicCredential([]byte("mallory"))}}
	refused := w.extensions().With(wire.NewExtension(wire.ExtensionTypeExternalSenders, &mallory))
	for name, err := range map[string]error{
		"an extension twice":            create(append(w.extensions(), w.extensions()[0]), nothing),
		"an extension it lacks":         create(append(w.extensions(), wire.Extension{ExtensionType: 0xf0f0}), nothing),
		"a leaf of another source":      create(w.extensions(), func(l *wire.LeafNode) { l.LeafNodeSource = wire.LeafNodeSourceCommit }),
		"a refused external sender":     create(refused, nothing),
		"capabilities that it requires": create(w.extensions(), func(l *wire.LeafNode) { l.Capabilities.Proposals = nil }),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("Create with %s: %v", name, err)
		}
	}

	join := func(info *wire.GroupInfo) error {
		u, err := tree.ParseBytes(w.cs, w.g.Tree().Marshal())
		w.must(err)
		_, err = Join(w.cs, info, u, w.options)
		return err
	}
	info := w.groupInfo(w.g, 1)
	w.must(join(info))
	info.Signature[0] ^= 1
	if err := join(info); !errors.Is(err, ErrSignature) {
		t.Errorf("Join with a flipped signature: %v", err)
	}
	info = w.groupInfo(w.g, 1)
	info.GroupContext.Extensions = info.GroupContext.Extensions.With(refused[1])
	w.signInfo(info, w.signers[1])
	if err := join(info); !errors.Is(err, ErrExtensions) {
		t.Errorf("Join with a refused external sender: %v", err)
	}

	for _, s := range []wire.Sender{member(3), member(1 << 31), {SenderType: wire.SenderTypeExternal}, {SenderType: wire.SenderTypeNewMemberProposal}, {}} {
		if _, err := w.g.Draft(s, nil, w.options); !errors.Is(err, ErrSender) {
			t.Errorf("a draft for %+v: %v", s, err)
		}
	}
}
