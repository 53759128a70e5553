package sdk

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

var testHome = identity.Home{1, 2, 3}

// owner is an account whose devices are made as they are needed.
type owner struct {
	t   *testing.T
	key phrase.Key
}

func newOwner(t *testing.T) owner {
	t.Helper()
	key, err := phrase.GenerateKey(rand.Reader)
	must(t, err)
	return owner{t, key}
}

func (o owner) id() identity.PublicKey { return identity.PublicKey(o.key.PublicBytes()) }

func (o owner) device() *Engine {
	o.t.Helper()
	device, err := phrase.GenerateKey(rand.Reader)
	must(o.t, err)
	cred, err := identity.Attest(identity.Attestation{
		Home: testHome, Identity: o.id(), DevicePubkey: device.PublicBytes(), DeviceHPKE: identity.DeviceHPKEKey(bytes.Repeat([]byte{9}, 32)),
		Role: identity.RoleMember, Version: 1, IssuedAt: 1,
	}, o.key, device)
	must(o.t, err)
	e := newEngine(Config{Random: rand.Reader, Now: time.Now})
	must(o.t, e.begin(cred.Bytes(), device.Seed()))
	e.account.Identity, e.account.Device = cred.Identity(), cred.DeviceID()
	return e
}

func (o owner) revocation(of *Engine) identity.Revocation {
	o.t.Helper()
	r, err := identity.Revoke(identity.RevocationFields{Identity: o.id(), DeviceID: of.account.Device, IssuedAt: 1}, o.key)
	must(o.t, err)
	return r
}

// hall is one epoch of a room in which everybody is, with the home's key: Ada, who
// is its admin, Bob and Carl.
type hall struct {
	t      *testing.T
	now    time.Time
	home   *suite.SignatureKey
	room   delivery.RoomID
	groups map[*Engine]*mls.Group
	held   [][]byte // proposals that everybody holds
	look   *Engine  // whose state the verdicts are asked for
}

func newHall(t *testing.T, kind delivery.RoomKind, creator *Engine, others ...*Engine) *hall {
	t.Helper()
	h := &hall{t: t, now: time.Now(), groups: map[*Engine]*mls.Group{}, look: creator}
	var err error
	h.room, err = delivery.NewRoomID(testHome, rand.Reader)
	must(t, err)
	cs, err := suite.Lookup(policy.Suites[0])
	must(t, err)
	seed := make([]byte, 32)
	_, _ = rand.Read(seed)
	h.home, err = cs.NewSignatureKey(seed)
	must(t, err)
	c := policy.Creation{Room: h.room, Kind: kind, Domain: "home.example", SenderKey: h.home.Public(), Creator: creator.account.Identity, Suite: policy.Suites[0]}
	listed := map[identity.PublicKey]bool{c.Creator: true}
	for _, e := range others {
		if id := e.account.Identity; !listed[id] {
			listed[id] = true
			c.Others = append(c.Others, id)
		}
	}
	extensions, err := c.Extensions()
	must(t, err)
	step, err := creator.mls.Create(mls.CreateParams{
		Random: rand.Reader, Now: h.now, CipherSuite: policy.Suites[0], GroupID: h.room[:], Extensions: extensions,
		Leaf: mls.CreatorLeaf{
			Signer: creator.mls.Signers[0], Credential: creator.credential(), Capabilities: policy.Capabilities(), Extensions: policy.LeafExtensions(),
			NotBefore: h.now.Add(-clockSkew), NotAfter: h.now.Add(lifetime),
		},
	})
	must(t, err)
	var adds []wire.Proposal
	bundles := map[*Engine]*mls.KeyPackageBundle{}
	for _, e := range others {
		b, err := e.newBundle(policy.Suites[0], false)
		must(t, err)
		bundles[e], adds = b, append(adds, mls.AddProposal(&b.KeyPackage))
	}
	added, err := step.Next.Commit(mls.CommitParams{Random: rand.Reader, Now: h.now, Proposals: adds, TreeInWelcome: true})
	must(t, err)
	applied, err := added.Apply(step.Next, h.now)
	must(t, err)
	h.groups[creator] = applied.Next
	for e, b := range bundles {
		j, err := e.mls.Join(mls.JoinParams{Welcome: added.Welcome, Bundles: []*mls.KeyPackageBundle{b}, Now: h.now})
		must(t, err)
		h.groups[e] = j.Next
	}
	return h
}

func (h *hall) leaf(e *Engine) uint32 { return h.groups[e].OwnLeaf() }

// holds makes everybody hold a proposal.
func (h *hall) holds(message []byte) {
	h.t.Helper()
	for e, g := range h.groups {
		got, err := g.Process(message, mls.ProcessParams{Now: h.now})
		if errors.Is(err, mls.ErrOwnMessage) {
			continue
		}
		must(h.t, err)
		h.groups[e] = got.(*mls.ProposalReceived).Next
	}
	h.held = append(h.held, message)
}

func (h *hall) propose(e *Engine, p wire.Proposal) {
	h.t.Helper()
	s, err := h.groups[e].Propose(mls.ProposeParams{Random: rand.Reader, Now: h.now, Proposal: p})
	must(h.t, err)
	h.groups[e] = s.Next
	h.holds(s.Message)
}

// revoked: the home proposes the removal of a revoked device.
func (h *hall) revoked(e *Engine, r identity.Revocation) {
	h.t.Helper()
	m, err := mls.ExternalProposal(h.room[:], h.groups[h.look].Epoch(), policy.HomeSenderIndex, mls.RemoveProposal(h.leaf(e)), policy.HomeRemoval(r), h.home)
	must(h.t, err)
	h.holds(m)
}

func (h *hall) commit(e *Engine, list ...wire.Proposal) []byte {
	h.t.Helper()
	c, err := h.groups[e].Commit(mls.CommitParams{Random: rand.Reader, Now: h.now, Proposals: list})
	must(h.t, err)
	return c.Message
}

func (h *hall) external(e *Engine, selfRemoves ...[]byte) []byte {
	h.t.Helper()
	g := h.groups[h.look]
	info, err := g.GroupInfo(false, nil)
	must(h.t, err)
	p := mls.ExternalJoinParams{
		Random: rand.Reader, Now: h.now, GroupInfo: info, Tree: g.RatchetTree(), Signer: e.mls.Signers[0], Credential: e.credential(),
		Capabilities: policy.Capabilities(), LeafExtensions: policy.LeafExtensions(), SelfRemoves: selfRemoves,
	}
	if old, in := h.groups[e]; in {
		leaf := old.OwnLeaf()
		p.Resync = &leaf
	}
	c, err := e.mls.ExternalJoin(p)
	must(h.t, err)
	return c.Message
}

// member is what a member says of a commit.
func (h *hall) member(e *Engine, commit []byte) error {
	h.t.Helper()
	s, err := newState(h.groups[e])
	must(h.t, err)
	got, err := s.group.Process(commit, mls.ProcessParams{Now: h.now})
	must(h.t, err)
	_, err = judge(s, got.(*mls.StagedCommit))
	return err
}

// service is what the service says of it, which has the public half alone.
func (h *hall) service(commit []byte) error {
	h.t.Helper()
	g := h.groups[h.look]
	raw, err := g.GroupInfo(false, nil)
	must(h.t, err)
	var m wire.MLSMessage
	must(h.t, wire.Unmarshal(raw, &m))
	cs, err := suite.Lookup(policy.Suites[0])
	must(h.t, err)
	t, err := tree.ParseBytes(cs, g.RatchetTree())
	must(h.t, err)
	o := policy.Options()
	o.Now = h.now
	public, err := follower.Join(cs, m.GroupInfo, t, o)
	must(h.t, err)
	for _, raw := range h.held {
		var m wire.MLSMessage
		must(h.t, wire.Unmarshal(raw, &m))
		public = public.Restore(follower.Authenticated(m.PublicMessage))
	}
	var c wire.MLSMessage
	must(h.t, wire.Unmarshal(commit, &c))
	st, err := public.StageCommit(follower.Authenticated(c.PublicMessage), o)
	must(h.t, err)
	room, err := policy.RoomOf(public.Context().Extensions)
	must(h.t, err)
	roster, err := policy.NewRoster(policy.Leaves(public))
	must(h.t, err)
	change, err := policy.ChangeOf(room, st)
	must(h.t, err)
	change.Held = policy.HeldOf(public)
	_, err = policy.CheckCommit(roster, change)
	return err
}

// verdict asks the service and every member but the committer; want nil means that
// all of them take it.
func (h *hall) verdict(what string, committer *Engine, commit []byte, want error) {
	h.t.Helper()
	if err := h.service(commit); !errors.Is(err, want) {
		h.t.Errorf("%s: the service says %v, want %v", what, err, want)
	}
	for e := range h.groups {
		if e == committer {
			continue
		}
		if err := h.member(e, commit); !errors.Is(err, want) {
			h.t.Errorf("%s: the member at leaf %d says %v, want %v", what, h.leaf(e), err, want)
		}
	}
}

// TestAttackComingInPastARemoval: a member's removal of an identity is held. None of
// its devices comes in past it by external commit, which would make the removal
// void, and nobody else does before it was committed. The service and every member
// say the same.
func TestAttackComingInPastARemoval(t *testing.T) {
	adaKey, bobKey, carlKey := newOwner(t), newOwner(t), newOwner(t)
	ada, bob, carl := adaKey.device(), bobKey.device(), carlKey.device()
	h := newHall(t, delivery.RoomGroup, ada, bob, carl)
	h.verdict("a further device, with nothing held", nil, h.external(bobKey.device()), nil)
	h.propose(ada, mls.RemoveProposal(h.leaf(bob)))
	h.verdict("another device of who is removed", nil, h.external(bobKey.device()), policy.ErrUnderRemoval)
	h.verdict("who is removed, again", bob, h.external(bob), policy.ErrUnderRemoval)
	h.verdict("somebody else's further device", nil, h.external(carlKey.device()), policy.ErrRemovalFirst)
	h.verdict("somebody else, again", carl, h.external(carl), policy.ErrRemovalFirst)
	h.verdict("the one who asked for it", nil, h.external(adaKey.device()), nil)
	h.verdict("the removal itself", carl, h.commit(carl), nil)
}

// TestRevokedDeviceLocksNobodyOut: the home's removal of one lost device keeps
// neither its owner's other devices out nor anybody else; the home proposes it again.
func TestRevokedDeviceLocksNobodyOut(t *testing.T) {
	adaKey, bobKey := newOwner(t), newOwner(t)
	ada, bob, lost := adaKey.device(), bobKey.device(), bobKey.device()
	h := newHall(t, delivery.RoomGroup, ada, bob, lost)
	h.revoked(lost, bobKey.revocation(lost))
	h.verdict("its owner's further device", nil, h.external(bobKey.device()), nil)
	h.verdict("its owner's other device, again", bob, h.external(bob), nil)
	h.verdict("somebody else, again", ada, h.external(ada), nil)
	h.verdict("the lost device", lost, h.external(lost), policy.ErrUnderRemoval)
}

// TestAttackRemovingOneDevice: no commit takes some devices of an identity out and
// leaves others in, unless their owner revoked them: neither an admin's, nor one's
// own, nor one that honours the SelfRemove of one of them. What counts is the tree
// that the commit makes.
func TestAttackRemovingOneDevice(t *testing.T) {
	adaKey, bobKey := newOwner(t), newOwner(t)
	ada, ada2, bob, bob2 := adaKey.device(), adaKey.device(), bobKey.device(), bobKey.device()
	people := func(kind delivery.RoomKind) *hall { return newHall(t, kind, ada, ada2, bob, bob2) }
	h := people(delivery.RoomGroup)
	one, two := mls.RemoveProposal(h.leaf(bob)), mls.RemoveProposal(h.leaf(bob2))
	h.verdict("one of two", ada, h.commit(ada, one), policy.ErrPartial)
	h.verdict("both", ada, h.commit(ada, one, two), nil)
	third, err := bobKey.device().newBundle(policy.Suites[0], false)
	must(t, err)
	h.verdict("both, and a third comes", ada, h.commit(ada, one, two, mls.AddProposal(&third.KeyPackage)), policy.ErrPartial)
	h.verdict("one's own other", bob, h.commit(bob, two), policy.ErrPartial)
	rev := mls.AppDataUpdateProposal(policy.ComponentRevocations, policy.RevocationsUpdate(bobKey.revocation(bob2)))
	h.verdict("one's own other, revoked", bob, h.commit(bob, rev, two), nil)
	h.verdict("somebody's, revoked", ada2, h.commit(ada2, rev, two), nil)
	foreign := mls.AppDataUpdateProposal(policy.ComponentRevocations, policy.RevocationsUpdate(adaKey.revocation(bob2)))
	h.verdict("revoked by somebody else", ada, h.commit(ada, foreign, two), policy.ErrPartial)

	for _, kind := range []delivery.RoomKind{delivery.RoomGroup, delivery.RoomDirect} {
		h = people(kind)
		h.propose(bob, mls.SelfRemoveProposal())
		two = mls.RemoveProposal(h.leaf(bob2))
		h.verdict("who leaves, with one device", ada, h.commit(ada), policy.ErrPartial)
		h.verdict("who leaves, with both", ada2, h.commit(ada2, two), nil)
		h.verdict("the other device of who leaves", bob2, h.commit(bob2), policy.ErrUnderRemoval)
		h.verdict("a further device of who leaves", nil, h.external(bobKey.device(), h.held...), policy.ErrUnderRemoval)
		h.verdict("somebody who comes in again", ada2, h.external(ada2, h.held...), nil)
	}
}
