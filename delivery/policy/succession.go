package policy

import (
	"fmt"
	"slices"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// Settled is the room as it is once the removals that it holds are committed: who
// goes by one is struck off, and what the home removes stands among the revocations.
// In a room whose commits cannot be processed they never are committed, and they
// count all the same in the room that succeeds it. The participants of direct and
// self rooms stay.
func (r *Room) Settled(roster *Roster, held []Proposal) *Room {
	out, going := *r, map[identity.PublicKey]bool{}
	for _, h := range held {
		leaf, about := h.Leaf()
		target, in := roster.At(leaf)
		switch {
		case !h.Must() || !about || !in:
		case h.Sender.SenderType == wire.SenderTypeExternal:
			if revocation, err := homeRevocation(h); err == nil {
				if more, err := out.Revocations.Union(Revocations{revocation}); err == nil { // else the list is full
					out.Revocations = more
				}
			}
		case !r.Revocations.Covers(target.Identity, target.Device):
			going[target.Identity] = true
		}
	}
	if r.Kind == delivery.RoomGroup {
		out.Participants = slices.DeleteFunc(slices.Clone(r.Participants), func(p Participant) bool {
			return going[p.Identity] && p.Role >= RoleMember
		})
	}
	return &out
}

// CheckSuccession decides whether a room may go on in another one: nobody rises,
// falls, is dropped, comes in, comes back from a ban or past a removal that is held, or
// brings a revoked device in because the conversation moved (ErrSuccession).
func CheckSuccession(before *Room, roster *Roster, held []Proposal, next *Room) error {
	want := before.Settled(roster, held)
	if next.Kind != want.Kind {
		return fmt.Errorf("%w: it is of another kind", ErrSuccession)
	}
	base := want.Base
	base.Discoverable = next.Base.Discoverable // a listing stays with the room that was listed
	if next.Base != base {
		return fmt.Errorf("%w: its base policy is another", ErrSuccession)
	}
	there := make(map[identity.PublicKey]Role, len(next.Participants))
	for _, p := range next.Participants {
		there[p.Identity] = p.Role
	}
	known := make(map[identity.PublicKey]bool, len(want.Participants))
	for _, p := range want.Participants {
		if known[p.Identity] = true; there[p.Identity] != p.Role {
			return fmt.Errorf("%w: somebody of role %d has role %d there", ErrSuccession, p.Role, there[p.Identity])
		}
	}
	for _, p := range next.Participants {
		if !known[p.Identity] && p.Role >= RoleMember {
			return fmt.Errorf("%w: somebody is listed there who is not here, or whose removal is held", ErrSuccession)
		}
	}
	for _, r := range want.Revocations {
		if !next.Revocations.Covers(r.Fields().Identity, r.Fields().DeviceID) {
			return fmt.Errorf("%w: a revoked device is not revoked there", ErrSuccession)
		}
	}
	return nil
}

// SuccessionDue are the updates by which a room that was begun as a successor keeps
// up with what was decided meanwhile where it comes from, for AppDataUpdates by value
// of [ComponentParticipants] and [ComponentRevocations]; nil: none is due. Who is
// banned or struck off by it, gone, is removed in the same commit.
func SuccessionDue(before *Room, roster *Roster, held []Proposal, next *Room) (participants, revocations []byte, gone []identity.PublicKey) {
	want := before.Settled(roster, held)
	var u ParticipantsUpdate
	for _, p := range want.Participants {
		switch i := next.Participants.index(p.Identity); {
		case i < 0:
			u.Added = append(u.Added, p)
		case next.Participants[i].Role != p.Role:
			u.Changed = append(u.Changed, RoleChange{uint32(i), p.Role})
			if p.Role == RoleBanned {
				gone = append(gone, p.Identity)
			}
		}
	}
	for i, p := range next.Participants {
		if want.Participants.index(p.Identity) < 0 && p.Role >= RoleMember {
			u.Removed, gone = append(u.Removed, uint32(i)), append(gone, p.Identity)
		}
	}
	if len(u.Added)+len(u.Changed)+len(u.Removed) > 0 {
		participants = u.Bytes()
	}
	var due []identity.Revocation
	for _, r := range want.Revocations {
		if !next.Revocations.Covers(r.Fields().Identity, r.Fields().DeviceID) {
			due = append(due, r)
		}
	}
	if len(due) > 0 {
		revocations = RevocationsUpdate(due...)
	}
	return participants, revocations, gone
}
