package policy

import (
	"fmt"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// Proposal is a proposal with who makes it. By value (in a commit) it has no
// Ref and its sender is the committer.
type Proposal struct {
	Ref               []byte // ProposalRef; nil for a proposal by value
	Sender            wire.Sender
	Proposal          *wire.Proposal
	AuthenticatedData []byte // of the message that carried it; nil by value
}

// ProposalOf reads the proposal that a PublicMessage carries; nil content when
// it carries something else.
func ProposalOf(ref []byte, m *wire.PublicMessage) Proposal {
	return Proposal{Ref: ref, Sender: m.Content.Sender, Proposal: m.Content.Proposal, AuthenticatedData: m.Content.AuthenticatedData}
}

// Leaf is the leaf that the proposal replaces or removes.
func (p Proposal) Leaf() (leaf uint32, affected bool) {
	switch p.Proposal.ProposalType {
	case wire.ProposalTypeUpdate, wire.ProposalTypeSelfRemove:
		return p.Sender.LeafIndex, p.Sender.SenderType == wire.SenderTypeMember
	case wire.ProposalTypeRemove:
		return p.Proposal.Remove.Removed, true
	}
	return 0, false
}

// Must reports whether the next commit has to reference it: Remove and SelfRemove.
func (p Proposal) Must() bool {
	t := p.Proposal.ProposalType
	return t == wire.ProposalTypeRemove || t == wire.ProposalTypeSelfRemove
}

// UnderRemoval reports whether a held proposal removes the leaf.
func UnderRemoval(held []Proposal, leaf uint32) bool {
	for _, h := range held {
		if l, ok := h.Leaf(); ok && l == leaf && h.Must() {
			return true
		}
	}
	return false
}

// leaving are the identities that leave by a SelfRemove among the proposals.
func leaving(roster *Roster, list []Proposal) map[identity.PublicKey]bool {
	var out map[identity.PublicKey]bool
	for _, p := range list {
		if p.Proposal.ProposalType != wire.ProposalTypeSelfRemove || p.Sender.SenderType != wire.SenderTypeMember {
			continue
		}
		if m, in := roster.At(p.Sender.LeafIndex); in {
			if out == nil {
				out = map[identity.PublicKey]bool{}
			}
			out[m.Identity] = true
		}
	}
	return out
}

// Going reports whether a held proposal takes the leaf out of the room: it removes
// it, or another leaf of the same identity leaves for all of them. Such a leaf does
// not commit, nor come in again.
func Going(roster *Roster, held []Proposal, leaf uint32) bool {
	if UnderRemoval(held, leaf) {
		return true
	}
	m, in := roster.At(leaf)
	return in && leaving(roster, held)[m.Identity]
}

// RemovalsDue are the leaves that a commit which references these proposals must
// remove by value: an identity that leaves by one leaf's SelfRemove goes with all
// its leaves.
func RemovalsDue(roster *Roster, referenced []Proposal) (leaves []uint32) {
	going := leaving(roster, referenced)
	if len(going) == 0 {
		return nil
	}
	for _, m := range roster.Members() {
		if going[m.Identity] && !UnderRemoval(referenced, m.Leaf) {
			leaves = append(leaves, m.Leaf)
		}
	}
	return leaves
}

// CheckProposal decides whether a proposal by reference, valid by RFC 9420, may
// be held beside those that are. At most one is held about a leaf, and a
// removal drives an Update out: drop names what goes. Of the kinds that are
// about no leaf one sender has at most one held for each kind and component
// (ErrProposal, ErrAuthority, ErrRevoked, ErrCredential, ErrRole, ErrHeld,
// ErrComponent).
func CheckProposal(room *Room, roster *Roster, held []Proposal, p Proposal) (drop [][]byte, err error) {
	if p.Sender.SenderType == wire.SenderTypeMember && p.Proposal.ProposalType != wire.ProposalTypeSelfRemove &&
		Going(roster, held, p.Sender.LeafIndex) {
		return nil, fmt.Errorf("%w: nor propose", ErrUnderRemoval)
	}
	if err := checkOne(authority{room: room, revoked: room.Revocations, roster: roster}, p); err != nil {
		return nil, err
	}
	if p.Proposal.ProposalType == wire.ProposalTypeRemove && p.Sender.SenderType == wire.SenderTypeMember {
		// A held Remove must be committed, and an identity goes with all its
		// leaves: one Remove can only stand for an identity with one leaf.
		target, _ := roster.At(p.Proposal.Remove.Removed)
		if roster.Has(target.Identity) > 1 && !room.Revocations.Covers(target.Identity, target.Device) {
			return nil, fmt.Errorf("%w: commit the removals by value", ErrPartial)
		}
	}
	leaf, about := p.Leaf()
	for _, h := range held {
		l, ok := h.Leaf()
		switch {
		case about && ok && l == leaf && (h.Must() || !p.Must()):
			return nil, ErrHeld
		case about && ok && l == leaf:
			drop = append(drop, h.Ref)
		case !about && !ok && h.Sender == p.Sender && sameSubject(h.Proposal, p.Proposal):
			return nil, ErrHeld
		}
	}
	return drop, nil
}

func sameSubject(a, b *wire.Proposal) bool {
	if a.ProposalType != b.ProposalType {
		return false
	}
	return a.ProposalType != wire.ProposalTypeAppDataUpdate || a.AppDataUpdate.ComponentID == b.AppDataUpdate.ComponentID
}

// authority is what a proposal is judged by.
type authority struct {
	room    *Room
	revoked Revocations // those that count, the commit's own included
	roster  *Roster
	leaving map[identity.PublicKey]bool // who leaves by the same commit
}

// checkOne checks one proposal of a member or of the home for what it is about.
func checkOne(a authority, p Proposal) error {
	room, revoked, roster := a.room, a.revoked, a.roster
	byReference := p.Ref != nil
	if p.Sender.SenderType == wire.SenderTypeExternal {
		return checkHomeRemoval(roster, p)
	}
	if p.Sender.SenderType != wire.SenderTypeMember {
		return fmt.Errorf("%w: only members and the home propose", ErrProposal)
	}
	sender, in := roster.At(p.Sender.LeafIndex)
	if !in {
		return fmt.Errorf("%w: its sender has no leaf", ErrProposal)
	}
	switch t := p.Proposal.ProposalType; {
	case t == wire.ProposalTypeAdd:
		leaf := &p.Proposal.Add.KeyPackage.LeafNode
		c, err := CheckLeaf(leaf)
		if err != nil {
			return err
		}
		if revoked.Covers(c.Identity(), c.DeviceID()) {
			return fmt.Errorf("%w: it cannot be added", ErrRevoked)
		}
		return nil
	case t == wire.ProposalTypeRemove:
		return mayRemove(a, sender, p.Proposal.Remove.Removed)
	case t == wire.ProposalTypeAppDataUpdate:
		return mayUpdate(room, roster, sender, p.Proposal.AppDataUpdate)
	case t == wire.ProposalTypeUpdate && byReference:
		leaf := &p.Proposal.Update.LeafNode
		if err := checkContent(leaf); err != nil {
			return err
		}
		_, err := sender.successor(leaf)
		return err
	case t == wire.ProposalTypeSelfRemove && byReference:
		if room.Kind == delivery.RoomSelf {
			return fmt.Errorf("%w: nobody leaves their own room: revoke the device", ErrPartial)
		}
		return nil
	default:
		return fmt.Errorf("%w: %s", ErrProposal, t)
	}
}

// successor checks the leaf that is to replace m's and gives its credential.
func (m Member) successor(leaf *wire.LeafNode) (*identity.UnverifiedCredential, error) {
	if leaf.Credential.CredentialType == wire.CredentialTypeBasic && string(leaf.SignatureKey) == string(m.Key[:]) &&
		string(leaf.Credential.Identity) == string(m.credential.Bytes()) {
		return m.credential, nil // the very bytes that were verified before
	}
	c, err := CheckCredential(&leaf.Credential, leaf.SignatureKey)
	if err != nil {
		return nil, err
	}
	old, err := m.Credential()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredential, err)
	}
	if err := old.CheckSuccessor(c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredential, err)
	}
	u := c.Unverified()
	return &u, nil
}

// HomeRemoval is the authenticated_data of a Remove by the home: the device's
// revocation, by which members verify that its owner wanted it.
func HomeRemoval(r identity.Revocation) []byte { return r.Bytes() }

// checkHomeRemoval checks a proposal of the home: a Remove, whose
// authenticated_data is the revocation of the device at that leaf.
func checkHomeRemoval(roster *Roster, p Proposal) error {
	if p.Ref == nil || p.Sender.SenderIndex != HomeSenderIndex || p.Proposal.ProposalType != wire.ProposalTypeRemove {
		return fmt.Errorf("%w: the home proposes removals only", ErrProposal)
	}
	m, in := roster.At(p.Proposal.Remove.Removed)
	if !in {
		return fmt.Errorf("%w: the leaf to remove is blank", ErrProposal)
	}
	r, err := homeRevocation(p)
	if err != nil {
		return err
	}
	if f := r.Fields(); f.Identity != m.Identity || f.DeviceID != m.Device {
		return fmt.Errorf("%w: the revocation is for another device than the leaf's", ErrProposal)
	}
	return nil
}

func homeRevocation(p Proposal) (identity.Revocation, error) {
	r, err := verified.verify(p.AuthenticatedData)
	if err != nil {
		return identity.Revocation{}, fmt.Errorf("%w: no revocation in authenticated_data: %w", ErrProposal, err)
	}
	return r, nil
}

// RevocationsDue are the revocations that a commit which references these
// proposals of the home must put into the room's dictionary, as the update of
// an AppDataUpdate by value for [ComponentRevocations]; nil when none is. What a
// full dictionary has no place for is left out.
func RevocationsDue(room *Room, referenced []Proposal) []byte {
	var due []identity.Revocation
	for _, p := range referenced {
		if p.Sender.SenderType != wire.SenderTypeExternal {
			continue
		}
		if r, err := homeRevocation(p); err == nil && !room.Revocations.Covers(r.Fields().Identity, r.Fields().DeviceID) {
			due = append(due, r)
		}
	}
	if due = due[:min(len(due), maxRevocations-len(room.Revocations))]; len(due) == 0 {
		return nil
	}
	return RevocationsUpdate(due...)
}

// IsAdmin reports whether m decides about others: it is an admin, or no admin
// has a leaf any more, so that a room never gets stuck.
func IsAdmin(room *Room, roster *Roster, m Member) bool {
	if room.Participants.Role(m.Identity) == RoleAdmin {
		return true
	}
	for _, p := range room.Participants {
		if p.Role == RoleAdmin && roster.Has(p.Identity) > 0 {
			return false
		}
	}
	return true
}

// mayRemove: a revoked device, the other devices of somebody who leaves by the same
// commit, or, in groups and by an admin, anybody else with all devices (see
// checkComplete). A single device is ended by its owner's revocation alone, also
// one's own.
func mayRemove(a authority, sender Member, leaf uint32) error {
	target, in := a.roster.At(leaf)
	if !in {
		return fmt.Errorf("%w: the leaf to remove is blank", ErrProposal)
	}
	switch {
	case a.revoked.Covers(target.Identity, target.Device), a.leaving[target.Identity]:
		return nil
	case target.Identity == sender.Identity:
		return fmt.Errorf("%w: revoke one device, or leave with all", ErrPartial)
	case a.room.Kind != delivery.RoomGroup:
		return fmt.Errorf("%w: nobody removes the other from a direct room", ErrAuthority)
	case !IsAdmin(a.room, a.roster, sender):
		return fmt.Errorf("%w: only an admin removes others", ErrAuthority)
	}
	return nil
}

// mayUpdate decides about an AppDataUpdate by its effect on the room as it is.
func mayUpdate(room *Room, roster *Roster, sender Member, u *wire.AppDataUpdate) error {
	if u.Op != wire.AppDataUpdateOperationUpdate {
		return fmt.Errorf("%w: no component of a room is ever removed", ErrComponent)
	}
	switch u.ComponentID {
	case ComponentRevocations:
		list, err := ParseRevocations(u.Update)
		if err != nil {
			return err
		}
		for _, r := range list {
			if room.Participants.Role(r.Fields().Identity) == RoleNone && roster.Has(r.Fields().Identity) == 0 {
				return fmt.Errorf("%w: a revocation of somebody who is not a participant", ErrComponent)
			}
		}
		return nil
	case ComponentBasePolicy:
		if !IsAdmin(room, roster, sender) {
			return fmt.Errorf("%w: only an admin changes the base policy", ErrAuthority)
		}
		_, err := ParseBasePolicy(u.Update)
		return err
	case ComponentParticipants:
		change, err := ParseParticipantsUpdate(u.Update)
		if err != nil {
			return err
		}
		return mayChangeParticipants(room, roster, sender, change)
	}
	return fmt.Errorf("%w: component %#04x never changes or is not known", ErrComponent, uint16(u.ComponentID))
}

func mayChangeParticipants(room *Room, roster *Roster, sender Member, u ParticipantsUpdate) error {
	if room.Kind != delivery.RoomGroup {
		return fmt.Errorf("%w: the participants of this room are fixed", ErrAuthority)
	}
	if _, err := room.Participants.Apply(u); err != nil {
		return err
	}
	if IsAdmin(room, roster, sender) {
		return nil
	}
	if len(u.Changed) > 0 {
		return fmt.Errorf("%w: only an admin changes roles", ErrAuthority)
	}
	for _, i := range u.Removed {
		p := room.Participants[i]
		if p.Identity != sender.Identity && (p.Role == RoleBanned || roster.Has(p.Identity) > 0) {
			return fmt.Errorf("%w: only an admin strikes others off", ErrAuthority)
		}
	}
	for _, p := range u.Added {
		if p.Role != RoleMember {
			return fmt.Errorf("%w: only an admin lists somebody as more than a member", ErrAuthority)
		}
	}
	return nil
}
