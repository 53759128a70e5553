package policy

import (
	"slices"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// succeeding makes the room that goes on with another one.
func succeeding(t *testing.T, before *Room, creator person, others ...person) *Room {
	t.Helper()
	c := Creation{Room: delivery.RoomID{1, 2}, Kind: before.Kind, Domain: "b.example", SenderKey: make([]byte, 32), Creator: creator.id, Succeeds: before}
	for _, p := range others {
		c.Others = append(c.Others, p.id)
	}
	x, err := c.Extensions()
	if err != nil {
		t.Fatal(err)
	}
	room, err := RoomOf(x)
	if err != nil {
		t.Fatal(err)
	}
	return room
}

// TestSuccessionCarriesWhatWasDecided: roles, bans, base policy and revocations come
// over, also when it is a member who makes the room, and what its removals decided
// although nobody could commit them. A listing does not.
func TestSuccessionCarriesWhatWasDecided(t *testing.T) {
	ada, bob, cat, dan, eve := newPerson(1), newPerson(2), newPerson(3), newPerson(4), newPerson(5)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob, cat, dan, eve)
	room.Participants[4].Role = RoleBanned
	room.Base.MaxUsers, room.Base.Discoverable = 50, true
	lost := ada.device(t, 12)
	room.Revocations = Revocations{lost.revocation(t, ada)}
	a, b, c, c2, d := ada.device(t, 11), bob.device(t, 21), cat.device(t, 31), cat.device(t, 32), dan.device(t, 41)
	roster := rosterOf(t, a, b, c, c2, d)
	held := []Proposal{
		{Ref: []byte{1}, Sender: byMember(4), Proposal: selfRemove()}, // Dan leaves
		{Ref: []byte{2}, Sender: wire.Sender{SenderType: wire.SenderTypeExternal}, Proposal: remove(3), AuthenticatedData: HomeRemoval(c2.revocation(t, cat))},
	}
	settled := room.Settled(roster, held)
	if len(room.Participants) != 5 || len(room.Revocations) != 1 {
		t.Fatal("the room itself changed")
	}
	next := succeeding(t, settled, bob, ada, cat)
	for _, want := range []struct {
		who  person
		role Role
	}{{ada, RoleAdmin}, {bob, RoleMember}, {cat, RoleMember}, {dan, RoleNone}, {eve, RoleBanned}} {
		if got := next.Participants.Role(want.who.id); got != want.role {
			t.Errorf("role %d, not %d", got, want.role)
		}
	}
	if next.Base.MaxUsers != 50 || next.Base.Discoverable {
		t.Errorf("%+v", next.Base)
	}
	if !next.Revocations.Covers(ada.id, lost.cred.DeviceID()) || !next.Revocations.Covers(cat.id, c2.cred.DeviceID()) {
		t.Error("a revocation did not come over")
	}
	wantErr(t, CheckSuccession(room, roster, held, next), nil)
	wantErr(t, CheckSuccession(room, roster, nil, next), ErrSuccession) // Dan is there until he leaves
	wantErr(t, CheckSuccession(room, roster, held, succeeding(t, room, ada, bob, cat, dan)), ErrSuccession)
	wantErr(t, CheckSuccession(room, roster, held, succeeding(t, settled, bob, ada, cat, dan)), ErrSuccession)

	// A Remove by an admin counts as one who leaves; of a device that is revoked already
	// the rest of the identity stays.
	removal := []Proposal{{Ref: []byte{3}, Sender: byMember(0), Proposal: remove(1)}}
	if room.Settled(roster, removal).Participants.Role(bob.id) != RoleNone {
		t.Error("who is being removed comes along")
	}
	known := *room
	known.Revocations, _ = room.Revocations.Union(Revocations{c2.revocation(t, cat)})
	removal[0].Proposal = remove(3)
	if known.Settled(roster, removal).Participants.Role(cat.id) != RoleMember {
		t.Error("who lost a device is left behind")
	}
	direct, _ := newRoom(t, delivery.RoomDirect, ada, bob)
	if len(direct.Settled(rosterOf(t, a, b), []Proposal{{Ref: []byte{1}, Sender: byMember(1), Proposal: selfRemove()}}).Participants) != 2 {
		t.Error("the participants of a direct room changed")
	}
}

// TestSuccessionIsRefused: each way in which a successor can forget.
func TestSuccessionIsRefused(t *testing.T) {
	ada, bob, eve := newPerson(1), newPerson(2), newPerson(5)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob, eve)
	room.Participants[2].Role = RoleBanned
	room.Revocations = Revocations{ada.device(t, 12).revocation(t, ada)}
	roster := rosterOf(t, ada.device(t, 11), bob.device(t, 21))
	next := succeeding(t, room, ada, bob)
	wantErr(t, CheckSuccession(room, roster, nil, next), nil)
	role := func(i int, role Role) func(*Room) { return func(r *Room) { r.Participants[i].Role = role } }
	for name, c := range map[string]struct {
		edit func(*Room)
		want error
	}{
		"another kind":       {func(r *Room) { r.Kind = delivery.RoomDirect }, ErrSuccession},
		"other bounds":       {func(r *Room) { r.Base.MaxClients = 3 }, ErrSuccession},
		"listed":             {func(r *Room) { r.Base.Discoverable = true }, nil},
		"a member rises":     {role(1, RoleAdmin), ErrSuccession},
		"an admin falls":     {role(0, RoleMember), ErrSuccession},
		"a ban is lifted":    {role(2, RoleMember), ErrSuccession},
		"a ban is forgotten": {func(r *Room) { r.Participants = r.Participants[:2] }, ErrSuccession},
		"somebody is banned": {role(1, RoleBanned), ErrSuccession},
		"no revocations":     {func(r *Room) { r.Revocations = nil }, ErrSuccession},
		"a new member":       {func(r *Room) { r.Participants = append(r.Participants, Participant{newPerson(9).id, "a", RoleMember}) }, ErrSuccession},
		"a new ban":          {func(r *Room) { r.Participants = append(r.Participants, Participant{newPerson(9).id, "a", RoleBanned}) }, nil},
		"a new admin":        {func(r *Room) { r.Participants = append(r.Participants, Participant{newPerson(9).id, "a", RoleAdmin}) }, ErrSuccession},
	} {
		r := *next
		r.Participants = slices.Clone(next.Participants)
		c.edit(&r)
		if err := CheckSuccession(room, roster, nil, &r); (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		} else {
			wantErr(t, err, c.want)
		}
	}
}

// TestSuccessionKeepsUp: a successor that was begun before more was decided is brought
// to it by one commit.
func TestSuccessionKeepsUp(t *testing.T) {
	ada, bob, cat, dan, eve, fay := newPerson(1), newPerson(2), newPerson(3), newPerson(4), newPerson(5), newPerson(6)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob, cat, dan, eve)
	a, b, c, d := ada.device(t, 11), bob.device(t, 21), cat.device(t, 31), dan.device(t, 41)
	roster := rosterOf(t, a, b, c, d)
	next := succeeding(t, room, ada, bob, cat, dan, eve)
	if u, r, gone := SuccessionDue(room, roster, nil, next); u != nil || r != nil || gone != nil {
		t.Fatalf("due of nothing: %x, %x, %v", u, r, gone)
	}
	later := *room
	later.Participants = append(slices.Clone(room.Participants), Participant{fay.id, "a.example", RoleMember})
	later.Participants[1].Role, later.Participants[2].Role = RoleAdmin, RoleBanned
	next.Participants = append(next.Participants, Participant{newPerson(9).id, "a.example", RoleMember}) // who was removed meanwhile
	later.Revocations = Revocations{ada.device(t, 12).revocation(t, ada)}
	held := []Proposal{{Ref: []byte{1}, Sender: byMember(3), Proposal: selfRemove()}}
	wantErr(t, CheckSuccession(&later, roster, held, next), ErrSuccession)
	u, r, gone := SuccessionDue(&later, roster, held, next)
	if !slices.Equal(gone, []identity.PublicKey{cat.id, dan.id, newPerson(9).id}) {
		t.Errorf("gone: %v", gone)
	}
	kept := after(t, next, values(update(ComponentParticipants, u), update(ComponentRevocations, r)))
	wantErr(t, CheckSuccession(&later, roster, held, kept), nil)
}
