package policy

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

var home = identity.Home{0xa1, 0xb2, 0xc3}

type person struct {
	key ed25519.PrivateKey
	id  identity.PublicKey
}

type device struct {
	owner person
	key   ed25519.PrivateKey
	cred  identity.Credential
}

func newPerson(seed byte) person {
	k := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32))
	return person{k, identity.PublicKey(k.Public().(ed25519.PublicKey))}
}

func (p person) device(t *testing.T, seed byte, edit ...func(*identity.Attestation)) device {
	t.Helper()
	k := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32))
	a := identity.Attestation{Home: home, Identity: p.id, DevicePubkey: identity.DevicePublicKey(k.Public().(ed25519.PublicKey)), Version: 1}
	for _, f := range edit {
		f(&a)
	}
	c, err := identity.Attest(a, p.key, k)
	if err != nil {
		t.Fatal(err)
	}
	return device{p, k, c}
}

func (d device) revocation(t *testing.T, by person) identity.Revocation {
	t.Helper()
	r, err := identity.Revoke(identity.RevocationFields{Identity: by.id, DeviceID: d.cred.DeviceID(), IssuedAt: 1}, by.key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (d device) leaf() *wire.LeafNode {
	a := d.cred.Attestation()
	return &wire.LeafNode{
		SignatureKey: a.DevicePubkey[:], Credential: wire.BasicCredential(d.cred.Bytes()),
		Capabilities: Capabilities(), Extensions: LeafExtensions(), LeafNodeSource: wire.LeafNodeSourceKeyPackage,
	}
}

func rosterOf(t *testing.T, devices ...device) *Roster {
	t.Helper()
	leaves := map[uint32]*wire.LeafNode{}
	for i, d := range devices {
		leaves[uint32(i)] = d.leaf()
	}
	r, err := NewRoster(maps.All(leaves))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newRoom(t *testing.T, kind delivery.RoomKind, people ...person) (*Room, wire.GroupContext) {
	t.Helper()
	id, err := delivery.NewRoomID(home, bytes.NewReader(make([]byte, 16)))
	if err != nil {
		t.Fatal(err)
	}
	c := Creation{Room: id, Kind: kind, Domain: "a.example", SenderKey: make([]byte, 32), Creator: people[0].id, Suite: 1}
	for _, p := range people[1:] {
		c.Others = append(c.Others, p.id)
	}
	x, err := c.Extensions()
	if err != nil {
		t.Fatal(err)
	}
	ctx := wire.GroupContext{CipherSuite: 1, GroupID: id[:], Extensions: x}
	room, err := CheckContext(&ctx, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	return room, ctx
}

func byMember(leaf uint32) wire.Sender {
	return wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: leaf}
}

func add(d device) *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeAdd, Add: &wire.Add{KeyPackage: wire.KeyPackage{LeafNode: *d.leaf()}}}
}

func remove(leaf uint32) *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeRemove, Remove: &wire.Remove{Removed: leaf}}
}

func selfRemove() *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeSelfRemove, SelfRemove: &wire.SelfRemove{}}
}

func update(id wire.ComponentID, data []byte) *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeAppDataUpdate, AppDataUpdate: &wire.AppDataUpdate{ComponentID: id, Op: wire.AppDataUpdateOperationUpdate, Update: data}}
}

// after applies the AppDataUpdates of a commit to a room.
func after(t *testing.T, room *Room, proposals []Proposal) *Room {
	t.Helper()
	d := room.Dictionary()
	for _, p := range proposals {
		if u := p.Proposal.AppDataUpdate; u != nil {
			old, _ := d.Get(u.ComponentID)
			data, err := ApplyUpdate(u.ComponentID, old, [][]byte{u.Update})
			if err != nil {
				t.Fatal(err)
			}
			d = d.With(u.ComponentID, data)
		}
	}
	r, err := ParseDictionary(&d)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func values(list ...*wire.Proposal) []Proposal {
	out := make([]Proposal, len(list))
	for i, p := range list {
		out[i].Proposal = p
	}
	return out
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestLeafIsAttested(t *testing.T) {
	ada, eve := newPerson(1), newPerson(2)
	good := ada.device(t, 11)
	if _, err := CheckLeaf(good.leaf()); err != nil {
		t.Fatal(err)
	}
	foreignKey := good.leaf()
	foreignKey.SignatureKey = eve.device(t, 12).leaf().SignatureKey
	flipped := good.leaf()
	flipped.Credential.Identity = bytes.Clone(flipped.Credential.Identity)
	flipped.Credential.Identity[identity.CredentialSize-1] ^= 1
	x509 := good.leaf()
	x509.Credential = wire.Credential{CredentialType: wire.CredentialTypeX509}
	signer := ada.device(t, 13, func(a *identity.Attestation) { a.Role = identity.RoleBotSigner }).leaf()
	poor := good.leaf()
	poor.Capabilities.Proposals = nil
	for _, c := range []struct {
		name string
		leaf *wire.LeafNode
		want error
	}{
		{"victim's credential, own key", foreignKey, ErrCredential}, {"flipped signature", flipped, ErrCredential},
		{"x509", x509, ErrCredential}, {"role 1", signer, ErrRole}, {"no SelfRemove", poor, ErrCapabilities},
	} {
		_, err := CheckLeaf(c.leaf)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestSuccessorKeepsDeviceAndVersion(t *testing.T) {
	ada := newPerson(1)
	v2 := ada.device(t, 11, func(a *identity.Attestation) { a.Version = 2 })
	v3 := ada.device(t, 11, func(a *identity.Attestation) { a.Version = 3 })
	other := ada.device(t, 12, func(a *identity.Attestation) { a.Version = 3 })
	key := v2.leaf().SignatureKey
	check := func(was, is device) error {
		_, err := CheckSuccessor(&was.leaf().Credential, &is.leaf().Credential, key)
		return err
	}
	wantErr(t, check(v2, v2), nil)
	wantErr(t, check(v2, v3), nil)
	wantErr(t, check(v3, v2), ErrCredential)
	wantErr(t, check(v2, other), ErrCredential)
}

func TestContextOfARoom(t *testing.T) {
	ada, bob := newPerson(1), newPerson(2)
	room, ctx := newRoom(t, delivery.RoomDirect, ada, bob)
	if room.Participants.Role(ada.id) != RoleAdmin || room.Participants.Role(bob.id) != RoleMember || !room.Base.FixedMembership {
		t.Fatalf("%+v", room)
	}
	edit := func(f func(c *wire.GroupContext)) wire.GroupContext {
		c := ctx
		c.Extensions = ctx.Extensions.Clone()
		f(&c)
		return c
	}
	for _, c := range []struct {
		name string
		ctx  wire.GroupContext
		want error
	}{
		{"no required capabilities", edit(func(c *wire.GroupContext) { c.Extensions = c.Extensions[1:] }), ErrCapabilities},
		{"no external senders", edit(func(c *wire.GroupContext) { c.Extensions = slices.Delete(c.Extensions, 1, 2) }), ErrExtensions},
		{"no dictionary", edit(func(c *wire.GroupContext) { c.Extensions = c.Extensions[:2] }), ErrComponent},
		{"suite 2", edit(func(c *wire.GroupContext) { c.CipherSuite = 2 }), ErrExtensions},
		{"other room", edit(func(c *wire.GroupContext) { c.GroupID = bytes.Clone(c.GroupID); c.GroupID[15] ^= 1 }), ErrComponent},
		{"a future version of the rules", edit(func(c *wire.GroupContext) { c.GroupID = bytes.Clone(c.GroupID); c.GroupID[0]++ }), ErrExtensions},
	} {
		_, err := CheckContext(&c.ctx, make([]byte, 32))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	_, err := CheckContext(&ctx, bytes.Repeat([]byte{1}, 32))
	wantErr(t, err, ErrExtensions)
	three := Creation{Room: delivery.RoomID{1}, Kind: delivery.RoomDirect, Domain: "a", SenderKey: make([]byte, 32), Creator: ada.id, Others: []identity.PublicKey{bob.id, newPerson(3).id}}
	_, err = three.Extensions()
	wantErr(t, err, ErrComponent)
}

func TestDirectRoomRefusesAThird(t *testing.T) {
	ada, bob, eve := newPerson(1), newPerson(2), newPerson(3)
	room, _ := newRoom(t, delivery.RoomDirect, ada, bob)
	a, e := ada.device(t, 11), eve.device(t, 31)
	r := rosterOf(t, a, bob.device(t, 21))
	ps := values(add(e))
	_, err := CheckCommit(r, Change{Before: room, After: room, Proposals: ps, Added: []Leaf{{2, e.leaf()}}})
	wantErr(t, err, ErrRoster)
	u, _ := room.Participants.Adding(RoleMember, "a.example", eve.id)
	_, err = CheckProposal(room, r, nil, Proposal{Ref: []byte{1}, Sender: byMember(0), Proposal: update(ComponentParticipants, u.Bytes())})
	wantErr(t, err, ErrAuthority)
	_, err = CheckProposal(room, r, nil, Proposal{Ref: []byte{1}, Sender: byMember(0), Proposal: remove(1)})
	wantErr(t, err, ErrAuthority)
}

func TestGroupAddsAndRemoves(t *testing.T) {
	ada, bob, eve := newPerson(1), newPerson(2), newPerson(3)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob)
	a, b, b2, e := ada.device(t, 11), bob.device(t, 21), bob.device(t, 22), eve.device(t, 31)
	r := rosterOf(t, a, b, b2)

	u, _ := room.Participants.Adding(RoleMember, "a.example", eve.id)
	ps := values(add(e), update(ComponentParticipants, u.Bytes()))
	next, err := CheckCommit(r, Change{Before: room, After: after(t, room, ps), Committer: 1, Proposals: ps, Added: []Leaf{{3, e.leaf()}}})
	wantErr(t, err, nil)
	if m, ok := next.At(3); !ok || m.Identity != eve.id || next.Len() != 4 || r.Len() != 3 {
		t.Error("the roster after the Add is wrong, or the one before it changed")
	}
	ps = values(add(e))
	_, err = CheckCommit(r, Change{Before: room, After: room, Committer: 1, Proposals: ps, Added: []Leaf{{3, e.leaf()}}})
	wantErr(t, err, ErrRoster)

	ps = values(remove(1))
	_, err = CheckCommit(r, Change{Before: room, After: room, Proposals: ps, Removed: []uint32{1}})
	wantErr(t, err, ErrPartial)
	ps = values(remove(1), remove(2))
	_, err = CheckCommit(r, Change{Before: room, After: room, Proposals: ps, Removed: []uint32{1, 2}})
	wantErr(t, err, nil)
	ps = values(remove(0))
	_, err = CheckCommit(r, Change{Before: room, After: room, Committer: 1, Proposals: ps, Removed: []uint32{0}})
	wantErr(t, err, ErrAuthority)
	ps = values(remove(2))
	_, err = CheckCommit(r, Change{Before: room, After: room, Committer: 1, Proposals: ps, Removed: []uint32{2}})
	wantErr(t, err, ErrPartial) // one's own other device, without its revocation
}

func TestBannedIdentityStaysOut(t *testing.T) {
	ada, bob := newPerson(1), newPerson(2)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob)
	a, b := ada.device(t, 11), bob.device(t, 21)
	r := rosterOf(t, a, b)
	ban, _ := room.Participants.Removing(true, bob.id)
	ps := values(update(ComponentParticipants, ban.Bytes()))
	_, err := CheckCommit(r, Change{Before: room, After: after(t, room, ps), Proposals: ps})
	wantErr(t, err, ErrRoster) // banned and still in the tree
	ps = values(remove(1), update(ComponentParticipants, ban.Bytes()))
	banned := after(t, room, ps)
	r, err = CheckCommit(r, Change{Before: room, After: banned, Proposals: ps, Removed: []uint32{1}})
	wantErr(t, err, nil)
	ps = values(add(b))
	_, err = CheckCommit(r, Change{Before: banned, After: banned, Proposals: ps, Added: []Leaf{{1, b.leaf()}}})
	wantErr(t, err, ErrRoster)
	self, _ := room.Participants.Assigning(RoleAdmin, bob.id)
	_, err = CheckProposal(room, rosterOf(t, a, b), nil, Proposal{Ref: []byte{1}, Sender: byMember(1), Proposal: update(ComponentParticipants, self.Bytes())})
	wantErr(t, err, ErrAuthority)
}

func TestExternalCommit(t *testing.T) {
	ada, bob, eve := newPerson(1), newPerson(2), newPerson(3)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob)
	a, a2, b, e := ada.device(t, 11), ada.device(t, 12), bob.device(t, 21), eve.device(t, 31)
	r := rosterOf(t, a, b)
	init := &wire.Proposal{ProposalType: wire.ProposalTypeExternalInit, ExternalInit: &wire.ExternalInit{}}
	join := func(d device, leaf uint32, held []Proposal, removed []uint32, ps ...Proposal) error {
		_, err := CheckCommit(r, Change{Before: room, After: room, Committer: leaf, External: true, Joined: d.leaf(),
			Removed: removed, Proposals: append(values(init), ps...), Held: held})
		return err
	}
	wantErr(t, join(a2, 2, nil, nil), nil)                                                // a further device
	wantErr(t, join(a, 0, nil, []uint32{0}, Proposal{Proposal: remove(0)}), nil)          // resync
	wantErr(t, join(a, 2, nil, nil), ErrRoster)                                           // without removing its old leaf
	wantErr(t, join(e, 2, nil, nil), ErrExternal)                                         // a stranger
	wantErr(t, join(a2, 1, nil, []uint32{1}, Proposal{Proposal: remove(1)}), ErrExternal) // removing another
	wantErr(t, join(ada.device(t, 13, func(x *identity.Attestation) { x.Role = identity.RoleBotSigner }), 2, nil, nil), ErrRole)

	leave := Proposal{Ref: []byte{7}, Sender: byMember(0), Proposal: selfRemove()}
	wantErr(t, join(a2, 2, []Proposal{leave}, nil), ErrLeftOut)
	wantErr(t, join(a2, 2, []Proposal{leave}, []uint32{0}, leave), ErrUnderRemoval) // it is leaving
	wantErr(t, join(a, 0, []Proposal{leave}, []uint32{0}, Proposal{Proposal: remove(0)}, leave), ErrUnderRemoval)

	revoked := Proposal{Ref: []byte{8}, Sender: wire.Sender{SenderType: wire.SenderTypeExternal}, Proposal: remove(0), AuthenticatedData: HomeRemoval(a.revocation(t, ada))}
	wantErr(t, join(a, 0, []Proposal{revoked}, []uint32{0}, Proposal{Proposal: remove(0)}), ErrUnderRemoval)
	wantErr(t, join(a2, 2, []Proposal{revoked}, nil), nil) // Removes wait for the next epoch
}

func TestHomeRemovesOnlyWithTheOwnersRevocation(t *testing.T) {
	ada, bob := newPerson(1), newPerson(2)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob)
	a, b := ada.device(t, 11), bob.device(t, 21)
	r := rosterOf(t, a, b)
	sender := wire.Sender{SenderType: wire.SenderTypeExternal}
	check := func(p Proposal) error { _, err := CheckProposal(room, r, nil, p); return err }
	good := Proposal{Ref: []byte{1}, Sender: sender, Proposal: remove(1), AuthenticatedData: HomeRemoval(b.revocation(t, bob))}
	wantErr(t, check(good), nil)
	wantErr(t, check(Proposal{Ref: []byte{1}, Sender: sender, Proposal: remove(1)}), ErrProposal)
	wantErr(t, check(Proposal{Ref: []byte{1}, Sender: sender, Proposal: remove(1), AuthenticatedData: HomeRemoval(a.revocation(t, ada))}), ErrProposal)
	wantErr(t, check(Proposal{Ref: []byte{1}, Sender: sender, Proposal: remove(1), AuthenticatedData: HomeRemoval(b.revocation(t, ada))}), ErrProposal)
	wantErr(t, check(Proposal{Ref: []byte{1}, Sender: sender, Proposal: add(b), AuthenticatedData: HomeRemoval(b.revocation(t, bob))}), ErrProposal)

	held := []Proposal{good}
	commit := func(ps ...Proposal) error {
		_, err := CheckCommit(r, Change{Before: room, After: after(t, room, ps), Proposals: ps, Removed: []uint32{1}, Held: held})
		return err
	}
	wantErr(t, commit(), ErrLeftOut)
	wantErr(t, commit(good), ErrComponent) // the revocation does not enter the dictionary
	due := RevocationsDue(room, held)
	wantErr(t, commit(good, Proposal{Proposal: update(ComponentRevocations, due)}), nil)
	own := []Proposal{good, {Proposal: update(ComponentRevocations, due)}}
	_, err := CheckCommit(r, Change{Before: room, After: after(t, room, own), Committer: 1, Held: held, Proposals: own, Removed: []uint32{1}})
	wantErr(t, err, ErrUnderRemoval)
	// Once it stands in the room, the device comes in on no path.
	ps := []Proposal{{Proposal: update(ComponentRevocations, due)}}
	after := after(t, room, ps)
	only := rosterOf(t, a)
	_, err = CheckCommit(only, Change{Before: after, After: after, Proposals: values(add(b)), Added: []Leaf{{1, b.leaf()}}})
	wantErr(t, err, ErrRevoked)
	b2 := bob.device(t, 22)
	_, err = CheckCommit(rosterOf(t, a, b2), Change{Before: after, After: after, External: true, Committer: 2, Joined: b.leaf()})
	wantErr(t, err, ErrRevoked)
}

// TestFullDictionaryStopsNoRemoval: somebody fills the room's revocations with
// devices of their own that never were. The home's removals are committed all the
// same; otherwise the room would be stuck for good.
func TestFullDictionaryStopsNoRemoval(t *testing.T) {
	ada, bob := newPerson(1), newPerson(2)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob)
	a, b := ada.device(t, 11), bob.device(t, 21)
	junk := make([]identity.Revocation, 4096)
	for i := range junk {
		f := identity.RevocationFields{Identity: bob.id, DeviceID: identity.DeviceID{0xff, byte(i >> 8), byte(i)}, IssuedAt: 1}
		var err error
		if junk[i], err = identity.Revoke(f, bob.key); err != nil {
			t.Fatal(err)
		}
	}
	fill := func(n int) *Room {
		list, err := Revocations(nil).Union(junk[:n])
		if err != nil {
			t.Fatal(err)
		}
		full := *room
		full.Revocations = list
		return &full
	}
	good := Proposal{
		Ref: []byte{1}, Sender: wire.Sender{SenderType: wire.SenderTypeExternal}, Proposal: remove(1),
		AuthenticatedData: HomeRemoval(b.revocation(t, bob)),
	}
	commit := func(before, after *Room, ps ...Proposal) error {
		_, err := CheckCommit(rosterOf(t, a, b), Change{Before: before, After: after, Proposals: ps, Removed: []uint32{1}, Held: []Proposal{good}})
		return err
	}
	full := fill(4096)
	if due := RevocationsDue(full, []Proposal{good}); due != nil {
		t.Error("a full dictionary is given more")
	}
	wantErr(t, commit(full, full, good), nil)
	// With a place left it has to enter.
	almost := fill(4095)
	wantErr(t, commit(almost, almost, good), ErrComponent)
	due := Proposal{Proposal: update(ComponentRevocations, RevocationsDue(almost, []Proposal{good}))}
	with := *almost
	var err error
	if with.Revocations, err = almost.Revocations.Union(Revocations{b.revocation(t, bob)}); err != nil {
		t.Fatal(err)
	}
	wantErr(t, commit(almost, &with, good, due), nil)
}

func TestForeignRevocationRevokesNobody(t *testing.T) {
	ada, bob := newPerson(1), newPerson(2)
	b := bob.device(t, 21)
	list, err := ParseRevocations(RevocationsUpdate(b.revocation(t, ada)))
	if err != nil {
		t.Fatal(err)
	}
	if list.Covers(bob.id, b.cred.DeviceID()) {
		t.Error("ada's signature revoked bob's device")
	}
	both, err := list.Union(Revocations{b.revocation(t, bob)})
	if err != nil || len(both) != 2 || !both.Covers(bob.id, b.cred.DeviceID()) {
		t.Errorf("%v %v", both, err)
	}
}

func TestOneProposalForEachLeaf(t *testing.T) {
	ada, bob := newPerson(1), newPerson(2)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob)
	r := rosterOf(t, ada.device(t, 11), bob.device(t, 21), bob.device(t, 22))
	upd := Proposal{Ref: []byte{1}, Sender: byMember(1), Proposal: &wire.Proposal{ProposalType: wire.ProposalTypeUpdate, Update: &wire.Update{LeafNode: *bob.device(t, 21).leaf()}}}
	drop, err := CheckProposal(room, r, nil, upd)
	wantErr(t, err, nil)
	if drop != nil {
		t.Error("dropped something")
	}
	again := upd
	again.Ref = []byte{2}
	_, err = CheckProposal(room, r, []Proposal{upd}, again)
	wantErr(t, err, ErrHeld)
	leave := Proposal{Ref: []byte{3}, Sender: byMember(1), Proposal: selfRemove()}
	drop, err = CheckProposal(room, r, []Proposal{upd}, leave)
	wantErr(t, err, nil)
	if len(drop) != 1 || !bytes.Equal(drop[0], upd.Ref) {
		t.Error("the Update stays beside the SelfRemove")
	}
	_, err = CheckProposal(room, r, []Proposal{leave}, again)
	wantErr(t, err, ErrUnderRemoval)
	_, err = CheckProposal(room, r, nil, Proposal{Ref: []byte{4}, Sender: byMember(0), Proposal: remove(1)})
	wantErr(t, err, ErrPartial) // bob has two leaves
	gce := &wire.Proposal{ProposalType: wire.ProposalTypeGroupContextExtensions, GroupContextExtensions: &wire.GroupContextExtensions{}}
	_, err = CheckProposal(room, r, nil, Proposal{Ref: []byte{5}, Sender: byMember(0), Proposal: gce})
	wantErr(t, err, ErrProposal)
	reinit := &wire.Proposal{ProposalType: wire.ProposalTypeReInit, ReInit: &wire.ReInit{}}
	_, err = CheckCommit(r, Change{Before: room, After: room, Proposals: values(reinit)})
	wantErr(t, err, ErrProposal)
}

func TestKindAndURINeverChange(t *testing.T) {
	ada := newPerson(1)
	room, _ := newRoom(t, delivery.RoomGroup, ada)
	r := rosterOf(t, ada.device(t, 11))
	for _, id := range []wire.ComponentID{ComponentKind, ComponentRoomURI, 0x9999} {
		_, err := CheckProposal(room, r, nil, Proposal{Ref: []byte{1}, Sender: byMember(0), Proposal: update(id, []byte{2})})
		wantErr(t, err, ErrComponent)
		_, err = ApplyUpdate(id, []byte{1}, [][]byte{{2}})
		wantErr(t, err, ErrComponent)
	}
}

func TestEncodingsRoundTrip(t *testing.T) {
	ada, bob := newPerson(1), newPerson(2)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob)
	room.Base.MaxClients, room.Base.MaxUsers, room.Base.Discoverable = 9, 8, true
	d := room.Dictionary()
	again, err := ParseDictionary(&d)
	if err != nil {
		t.Fatal(err)
	}
	d2 := again.Dictionary()
	if !bytes.Equal(wire.Marshal(&d), wire.Marshal(&d2)) {
		t.Error("dictionary changed")
	}
	u := ParticipantsUpdate{Changed: []RoleChange{{0, RoleMember}}, Removed: []uint32{1}, Added: []Participant{{newPerson(3).id, "c", RoleMember}}}
	u2, err := ParseParticipantsUpdate(u.Bytes())
	if err != nil || !bytes.Equal(u.Bytes(), u2.Bytes()) {
		t.Errorf("%v", err)
	}
	list, err := room.Participants.Apply(u)
	if err != nil || len(list) != 2 || list[0].Role != RoleMember || list[1].Identity != newPerson(3).id {
		t.Errorf("%v %v", list, err)
	}
	for _, bad := range []ParticipantsUpdate{
		{Changed: []RoleChange{{7, RoleMember}}}, {Removed: []uint32{0, 0}}, {Added: []Participant{{ada.id, "x", RoleMember}}},
		{Changed: []RoleChange{{0, 9}}}, {Changed: []RoleChange{{0, RoleNone}}},
	} {
		if _, err := room.Participants.Apply(bad); !errors.Is(err, ErrComponent) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func FuzzDictionary(f *testing.F) {
	room := &Room{Kind: delivery.RoomSelf, URI: "mimi://a/r/x", Base: BasePolicy{FixedMembership: true}}
	d := room.Dictionary()
	f.Add(wire.Marshal(&d))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d wire.AppDataDictionary
		if wire.Unmarshal(data, &d) != nil {
			return
		}
		r, err := ParseDictionary(&d)
		if err != nil {
			return
		}
		for _, c := range Components() {
			was, _ := d.Get(c)
			got := r.Dictionary()
			if is, _ := got.Get(c); !bytes.Equal(was, is) {
				t.Errorf("component %#04x changed in a round trip", uint16(c))
			}
		}
	})
}

func FuzzUpdates(f *testing.F) {
	u := ParticipantsUpdate{Changed: []RoleChange{{0, RoleMember}}, Removed: []uint32{1}}
	f.Add(uint16(ComponentParticipants), Participants(nil).Bytes(), u.Bytes())
	f.Add(uint16(ComponentBasePolicy), BasePolicy{}.Bytes(), BasePolicy{MaxUsers: 3}.Bytes())
	f.Add(uint16(ComponentRevocations), Revocations(nil).Bytes(), Revocations(nil).Bytes())
	f.Fuzz(func(t *testing.T, id uint16, current, update []byte) {
		data, err := ApplyUpdate(wire.ComponentID(id), current, [][]byte{update})
		if err != nil {
			if !errors.Is(err, ErrComponent) {
				t.Errorf("refused with %v", err)
			}
			return
		}
		// What was accepted is in the form that everybody reads.
		switch wire.ComponentID(id) {
		case ComponentParticipants:
			l, err := ParseParticipants(data)
			if err != nil || !bytes.Equal(l.Bytes(), data) {
				t.Errorf("%v", err)
			}
		case ComponentBasePolicy:
			p, err := ParseBasePolicy(data)
			if err != nil || !bytes.Equal(p.Bytes(), data) {
				t.Errorf("%v", err)
			}
		case ComponentRevocations:
			l, err := ParseRevocations(data)
			if err != nil || !bytes.Equal(l.Bytes(), data) {
				t.Errorf("%v", err)
			}
		}
	})
}
