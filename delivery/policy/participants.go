package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// Role is a participant's role_index (MIMI room policy §3).
type Role uint32

const (
	RoleNone   Role = 0 // not a participant
	RoleBanned Role = 1 // may not be in the tree nor be added
	RoleMember Role = 2
	RoleAdmin  Role = 3 // removes others, changes roles and the base policy
)

// MaxParticipants is how many people a room lists at most, banned ones included.
const MaxParticipants = 10_000

const maxUserURI = 512

// Participant is a UserRolePair (MIMI protocol §6.3).
type Participant struct {
	Identity identity.PublicKey
	Domain   string // the authority of the user's mimi:// name; never compared
	Role     Role
}

// URI is the user's name, mimi://domain/u/identity.
func (p Participant) URI() string { return "mimi://" + p.Domain + "/u/" + p.Identity.String() }

func participant(uri []byte, role uint32) (Participant, error) {
	var p Participant
	if len(uri) > maxUserURI {
		return p, fmt.Errorf("%w: a user's URI of %d bytes", ErrComponent, len(uri))
	}
	domain, id, _ := strings.Cut(strings.TrimPrefix(string(uri), "mimi://"), "/u/") // that it has both is seen below
	if strings.ContainsAny(domain, "/?# ") {
		return p, fmt.Errorf("%w: a user's URI is not mimi://domain/u/identity", ErrComponent)
	}
	key, err := identity.ParsePublicKey(id)
	if err != nil {
		return p, fmt.Errorf("%w: a user's URI names no identity: %w", ErrComponent, err)
	}
	if Role(role) < RoleBanned || Role(role) > RoleAdmin {
		return p, fmt.Errorf("%w: role %d is not one of a room", ErrComponent, role)
	}
	p = Participant{Identity: key, Domain: domain, Role: Role(role)}
	if p.URI() != string(uri) {
		return Participant{}, fmt.Errorf("%w: a user's URI is not in its one form", ErrComponent)
	}
	return p, nil
}

// Participants is a room's ParticipantListData, in its order, each identity once.
type Participants []Participant

// ParseParticipants decodes ParticipantListData (ErrComponent).
func ParseParticipants(data []byte) (Participants, error) {
	r := wire.NewReader(data)
	list := readPairs(r)
	if err := r.Finish(); err != nil {
		return nil, fmt.Errorf("%w: participant list: %w", ErrComponent, err)
	}
	return Participants(nil).add(list)
}

type pair struct {
	uri  []byte
	role uint32
}

func readPairs(r *wire.Reader) []pair {
	var list []pair
	outer := r.EnterVector()
	for r.More() {
		list = append(list, pair{r.Opaque(), r.Uint32()})
	}
	r.LeaveVector(outer)
	return list
}

func (l Participants) add(pairs []pair) (Participants, error) {
	if len(l)+len(pairs) > MaxParticipants {
		return nil, fmt.Errorf("%w: more than %d participants", ErrComponent, MaxParticipants)
	}
	seen := make(map[identity.PublicKey]struct{}, len(l)+len(pairs))
	for _, p := range l {
		seen[p.Identity] = struct{}{}
	}
	out := slices.Clone(l)
	for _, raw := range pairs {
		p, err := participant(raw.uri, raw.role)
		if err != nil {
			return nil, err
		}
		if _, twice := seen[p.Identity]; twice {
			return nil, fmt.Errorf("%w: a participant is listed twice", ErrComponent)
		}
		seen[p.Identity] = struct{}{}
		out = append(out, p)
	}
	return out, nil
}

// Bytes encodes ParticipantListData.
func (l Participants) Bytes() []byte { return appendPairs(nil, l) }

func appendPairs(b []byte, l []Participant) []byte {
	b, mark := wire.OpenVector(b)
	for _, p := range l {
		b = wire.AppendUint32(wire.AppendOpaque(b, p.URI()), uint32(p.Role))
	}
	return wire.CloseVector(b, mark)
}

// Role is the identity's role, RoleNone when it is not listed.
func (l Participants) Role(id identity.PublicKey) Role {
	if i := l.index(id); i >= 0 {
		return l[i].Role
	}
	return RoleNone
}

func (l Participants) index(id identity.PublicKey) int {
	return slices.IndexFunc(l, func(p Participant) bool { return p.Identity == id })
}

// ParticipantsUpdate is a ParticipantListUpdate (MIMI protocol §6.3). Indices
// count in the list as it was before the update; one entry is touched once.
type ParticipantsUpdate struct {
	Changed []RoleChange
	Removed []uint32
	Added   []Participant
}

// RoleChange is a UserindexRolePair.
type RoleChange struct {
	Index uint32
	Role  Role
}

// ParseParticipantsUpdate decodes one (ErrComponent).
func ParseParticipantsUpdate(data []byte) (ParticipantsUpdate, error) {
	var u ParticipantsUpdate
	r := wire.NewReader(data)
	outer := r.EnterVector()
	for r.More() {
		u.Changed = append(u.Changed, RoleChange{r.Uint32(), Role(r.Uint32())})
	}
	r.LeaveVector(outer)
	u.Removed = wire.ReadUint32Vector[uint32](r)
	pairs := readPairs(r)
	if err := r.Finish(); err != nil {
		return ParticipantsUpdate{}, fmt.Errorf("%w: participant list update: %w", ErrComponent, err)
	}
	added, err := Participants(nil).add(pairs)
	u.Added = added
	return u, err
}

// Bytes encodes it.
func (u ParticipantsUpdate) Bytes() []byte {
	b := wire.AppendVarint(nil, 8*len(u.Changed))
	for _, c := range u.Changed {
		b = wire.AppendUint32(wire.AppendUint32(b, c.Index), uint32(c.Role))
	}
	b = wire.AppendUint32Vector(b, u.Removed)
	return appendPairs(b, u.Added)
}

// Apply gives the list after the update; l is not changed (ErrComponent).
func (l Participants) Apply(u ParticipantsUpdate) (Participants, error) {
	touched := make(map[uint32]bool, len(u.Changed)+len(u.Removed))
	touch := func(i uint32) error {
		if int64(i) >= int64(len(l)) || touched[i] {
			return fmt.Errorf("%w: participant %d does not exist or is touched twice", ErrComponent, i)
		}
		touched[i] = true
		return nil
	}
	out := slices.Clone(l)
	for _, c := range u.Changed {
		if err := touch(c.Index); err != nil {
			return nil, err
		}
		if c.Role < RoleBanned || c.Role > RoleAdmin {
			return nil, fmt.Errorf("%w: role %d is not one of a room", ErrComponent, c.Role)
		}
		out[c.Index].Role = c.Role
	}
	for _, i := range u.Removed {
		if err := touch(i); err != nil {
			return nil, err
		}
		out[i].Role = RoleNone
	}
	out = slices.DeleteFunc(out, func(p Participant) bool { return p.Role == RoleNone })
	pairs := make([]pair, len(u.Added))
	for i, p := range u.Added {
		pairs[i] = pair{[]byte(p.URI()), uint32(p.Role)}
	}
	return out.add(pairs)
}

// Adding makes the update that lists the given people; those who are listed
// already and not banned are left out. Empty means that nothing is to be done.
func (l Participants) Adding(role Role, domain string, ids ...identity.PublicKey) (u ParticipantsUpdate, needed bool) {
	for _, id := range ids {
		if l.index(id) < 0 {
			u.Added = append(u.Added, Participant{Identity: id, Domain: domain, Role: role})
		}
	}
	return u, len(u.Added) > 0
}

// Removing makes the update that strikes people off the list, or bans them.
func (l Participants) Removing(ban bool, ids ...identity.PublicKey) (u ParticipantsUpdate, needed bool) {
	for _, id := range ids {
		i := l.index(id)
		switch {
		case i < 0:
		case ban && l[i].Role != RoleBanned:
			u.Changed = append(u.Changed, RoleChange{uint32(i), RoleBanned})
		case !ban:
			u.Removed = append(u.Removed, uint32(i))
		}
	}
	return u, len(u.Changed)+len(u.Removed) > 0
}

// Assigning makes the update that gives a participant another role.
func (l Participants) Assigning(role Role, id identity.PublicKey) (u ParticipantsUpdate, needed bool) {
	if i := l.index(id); i >= 0 && l[i].Role != role {
		u.Changed = []RoleChange{{uint32(i), role}}
	}
	return u, len(u.Changed) > 0
}
