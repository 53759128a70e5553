package server

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
)

// decided is a room of Ada (admin), Bob (admin), Cat (who has a second device that
// was revoked), Dan and Eve, who is banned.
func decided(t *testing.T, w *world) (p []*member, id delivery.RoomID) {
	t.Helper()
	in := w.start()
	p = in.people("ada", "bob", "cat", "dan", "eve")
	id = group(t, p...)
	list := func(of func(policy.Participants) (policy.ParticipantsUpdate, bool)) []byte {
		room, err := policy.RoomOf(p[0].sync(id).group.Context().Extensions)
		check(t, err)
		u, _ := of(room.Participants)
		return u.Bytes()
	}
	rises := list(func(l policy.Participants) (policy.ParticipantsUpdate, bool) {
		return l.Assigning(policy.RoleAdmin, p[1].owner.id)
	})
	p[0].commit(id, mls.AppDataUpdateProposal(policy.ComponentParticipants, rises))
	ban := list(func(l policy.Participants) (policy.ParticipantsUpdate, bool) { return l.Removing(true, p[4].owner.id) })
	p[0].commit(id, mls.AppDataUpdateProposal(policy.ComponentParticipants, ban), mls.RemoveProposal(p[4].in(id).group.OwnLeaf()))
	lost := p[2].owner.attest(t, "lost")
	p[0].commit(id, mls.AppDataUpdateProposal(policy.ComponentRevocations, policy.RevocationsUpdate(lost.revocation(t, p[2].owner))))
	return p[:4], id
}

// TestSuccessorKeepsWhatWasDecided: the room that an admin makes to go on in has the
// roles, bans and revocations of the old one, and is taken.
func TestSuccessorKeepsWhatWasDecided(t *testing.T) { eachSuite(t, successorKeepsWhatWasDecided) }

func successorKeepsWhatWasDecided(t *testing.T, w *world) {
	p, id := decided(t, w)
	ada, bob := p[0], p[1]
	bob.sync(id)
	next := bob.successor(id)
	check(t, bob.succeed(id, next))
	h := ada.head(id)
	if h.Status != delivery.RoomSucceeded || h.Successor == nil || *h.Successor != next {
		t.Fatalf("%+v", h)
	}
	room, err := policy.RoomOf(bob.in(next).group.Context().Extensions)
	check(t, err)
	for i, want := range []policy.Role{policy.RoleAdmin, policy.RoleAdmin, policy.RoleMember, policy.RoleMember} {
		if got := room.Participants.Role(p[i].owner.id); got != want {
			t.Errorf("participant %d has role %d, not %d", i, got, want)
		}
	}
	if room.Participants.Role(newPerson("eve").id) != policy.RoleBanned || len(room.Revocations) != 1 {
		t.Errorf("%+v", room)
	}

	// Once it has a successor it gets no other, and stays as it is.
	ada.sync(id)
	other := ada.successor(id)
	before, beside := w.fingerprint(t, id), w.fingerprint(t, other)
	wantCode(t, ada.succeed(id, other), delivery.CodeConflict)
	if w.fingerprint(t, id) != before || w.fingerprint(t, other) != beside {
		t.Error("the refusal changed a room")
	}
	check(t, bob.succeed(id, next)) // the same again is no error
	if w.fingerprint(t, id) != before {
		t.Error("asking again changed the room")
	}
}

// TestAttackSuccessorThatForgets: who moves a room brings nobody back and raises
// nobody by it, not even an admin. Nothing of either room changes by the refusal.
func TestAttackSuccessorThatForgets(t *testing.T) {
	w := newWorld(t)
	p, id := decided(t, w)
	ada := p[0]
	ada.sync(id)
	eve := newPerson("eve")
	forget := func(f func(r *policy.Room)) func(c *policy.Creation) {
		return func(c *policy.Creation) {
			r := *c.Succeeds
			r.Participants = append(policy.Participants(nil), r.Participants...)
			f(&r)
			c.Succeeds = &r
		}
	}
	role := func(who identity.PublicKey, role policy.Role) func(*policy.Room) {
		return func(r *policy.Room) {
			for i := range r.Participants {
				if r.Participants[i].Identity == who {
					r.Participants[i].Role = role
				}
			}
		}
	}
	drop := func(who identity.PublicKey) func(*policy.Room) {
		return func(r *policy.Room) {
			var left policy.Participants
			for _, x := range r.Participants {
				if x.Identity != who {
					left = append(left, x)
				}
			}
			r.Participants = left
		}
	}
	for name, edit := range map[string]func(*policy.Creation){
		"everything":     func(c *policy.Creation) { c.Succeeds = nil },
		"the ban":        forget(drop(eve.id)),
		"that it bans":   forget(role(eve.id, policy.RoleMember)),
		"an admin":       forget(role(p[1].owner.id, policy.RoleMember)),
		"who is none":    forget(role(p[2].owner.id, policy.RoleAdmin)),
		"somebody":       forget(drop(p[3].owner.id)),
		"the revocation": forget(func(r *policy.Room) { r.Revocations = nil }),
		"its bounds":     forget(func(r *policy.Room) { r.Base.MaxUsers = 7 }),
		"that it is complete": forget(func(r *policy.Room) {
			r.Participants = append(r.Participants, policy.Participant{Identity: newPerson("new").id, Domain: "localhost", Role: policy.RoleMember})
		}),
	} {
		next := ada.successor(id, edit)
		before, beside := w.fingerprint(t, id), w.fingerprint(t, next)
		err := ada.succeed(id, next)
		if e := wantCode(t, err, delivery.CodeRefused); !strings.Contains(e.Detail, "successor") {
			t.Errorf("it forgets %s: %q", name, e.Detail)
		}
		if w.fingerprint(t, id) != before || w.fingerprint(t, next) != beside {
			t.Errorf("it forgets %s: the refusal changed a room", name)
		}
	}
	check(t, ada.succeed(id, ada.successor(id))) // and it goes on all the same
}

// TestSuccessorHonoursHeldRemovals: a room that cannot be committed in any more holds
// removals. They count in its successor: who leaves is not listed there, who revoked a
// device finds it revoked, and who goes does not move the room.
func TestSuccessorHonoursHeldRemovals(t *testing.T) {
	w := newWorld(t)
	w.still = true
	in := w.start()
	p := in.people("ada", "bob", "cat", "dan")
	id := group(t, p...)
	bob, dan := p[1], p[3]
	for _, m := range p {
		m.sync(id)
	}
	second := in.member(p[2].owner.attest(t, "cat's second"))
	check(t, second.enter(id, second.external(id)))
	for _, m := range p {
		m.sync(id)
	}
	before := p[0].successor(id)
	_, err := bob.propose(id, mls.SelfRemoveProposal())
	check(t, err)
	check(t, p[2].json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: second.revocation(t, p[2].owner).Bytes()}, nil))
	check(t, in.ProposeRemovals(t.Context()))
	ada := p[0]
	ada.sync(id)
	if held := ada.in(id).group.Proposals(); len(held) != 2 {
		t.Fatalf("%d proposals are held", len(held))
	}
	print := w.fingerprint(t, id)
	wantCode(t, ada.succeed(id, before), delivery.CodeRefused) // made before, it forgets them
	bob.sync(id)
	wantCode(t, bob.succeed(id, bob.successor(id)), delivery.CodeRefused)
	if w.fingerprint(t, id) != print {
		t.Error("a refusal changed the room")
	}
	next := ada.successor(id)
	room, err := policy.RoomOf(ada.in(next).group.Context().Extensions)
	check(t, err)
	if room.Participants.Role(bob.owner.id) != policy.RoleNone || !room.Revocations.Covers(p[2].owner.id, second.id()) {
		t.Errorf("%+v", room)
	}
	check(t, ada.succeed(id, next))
	if h := dan.head(id); h.Successor == nil || *h.Successor != next {
		t.Errorf("%+v", h)
	}
}

// TestAttackForeignSuccessor: a room that its mover is not in, or that does not exist,
// succeeds nothing; nor does a stranger move a room, nor who was removed from it.
func TestAttackForeignSuccessor(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob", "eve", "out")
	id := group(t, p[0], p[1], p[3])
	p[0].commit(id, mls.RemoveProposal(p[3].in(id).group.OwnLeaf()))
	eves := p[2].create(delivery.RoomGroup)
	nobodys, err := delivery.NewRoomID(testHome, rand.Reader)
	check(t, err)
	before, beside := w.fingerprint(t, id), w.fingerprint(t, eves)
	for name, c := range map[string]struct {
		by   *member
		next delivery.RoomID
		want delivery.Code
	}{
		"a room of others":         {p[0], eves, delivery.CodeRefused},
		"no room":                  {p[0], nobodys, delivery.CodeRefused},
		"itself":                   {p[0], id, delivery.CodeBadRequest},
		"by a stranger":            {p[2], eves, delivery.CodeNotFound},
		"by somebody who was here": {p[3], p[3].create(delivery.RoomGroup), delivery.CodeNotFound},
	} {
		if err := c.by.succeed(id, c.next); delivery.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if w.fingerprint(t, id) != before || w.fingerprint(t, eves) != beside {
		t.Error("a refusal changed a room")
	}
}
