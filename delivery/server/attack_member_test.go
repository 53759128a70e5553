package server

import (
	"crypto/rand"
	"slices"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// Attacks on who is in a room and who speaks for whom. Each shows the refusal, and
// that what is stored did not change.

// Attack 1, ghost member: who gets a room's entries is read from the tree; no
// request can name a device that is not in it, nor leave one out.
func TestAttackGhostMember(t *testing.T) { eachSuite(t, attackGhostMember) }

func attackGhostMember(t *testing.T, w *world) {
	in := w.start()
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
	n, _, err := in.store.CountKeyPackages(t.Context(), eve.id(), uint16(in.w.suite), eve.now().UnixMilli())
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
	cs, err := suite.Lookup(eve.at.w.suite)
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
func TestAttackStaleAuthority(t *testing.T) { eachSuite(t, attackStaleAuthority) }

func attackStaleAuthority(t *testing.T, w *world) {
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
	byReference(mls.ReInitProposal([]byte("x"), p[0].at.w.suite, nil))

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
	check(t, p[0].json(delivery.RouteClaim, delivery.ClaimRequest{Identity: p[1].owner.id, Suite: uint16(p[0].at.w.suite), Room: claimed}, &left))
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

// TestForgedHomeProposals: only the home's key signs the home's proposals, and a
// client cannot send even a genuine one.
func TestForgedHomeProposals(t *testing.T) { eachSuite(t, forgedHomeProposals) }

func forgedHomeProposals(t *testing.T, w *world) {
	in := w.start()
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
