package policy

import (
	"bytes"
	"fmt"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// Change is a commit that is valid by RFC 9420, resolved: what it does to the
// tree and to the room.
type Change struct {
	Before, After *Room
	Committer     uint32     // its leaf; of an external commit the new one
	External      bool       // by a new_member_commit sender
	Proposals     []Proposal // all of the commit, in its order
	Removed       []uint32   // leaves that went
	Updated       []Leaf     // leaves that were replaced in place: Updates and the committer's path
	Added         []Leaf     // leaves that Adds put in
	Joined        *wire.LeafNode
	Held          []Proposal // what was held in the epoch that the commit ends
}

// CheckCommit decides whether a commit may be taken and gives the roster after
// it. Server and members ask with the same arguments and get the same answer
// (any Err variable but ErrHeld and ErrExtensions).
func CheckCommit(roster *Roster, c Change) (*Roster, error) {
	if err := checkReferences(c); err != nil {
		return nil, err
	}
	if c.External {
		if err := checkExternal(roster, c); err != nil {
			return nil, err
		}
	} else if err := checkMemberCommit(roster, c); err != nil {
		return nil, err
	}
	after, err := advance(roster, c)
	if err != nil {
		return nil, err
	}
	if err := checkComplete(roster, after, c); err != nil {
		return nil, err
	}
	return after, CheckRoster(c.After, after)
}

// checkReferences: every held Remove and SelfRemove is referenced; of an
// external commit only SelfRemoves can be (RFC 9420 §12.4.3.2 and the
// extensions draft §6.3), and the home issues its Removes again.
func checkReferences(c Change) error {
	for _, h := range c.Held {
		if !h.Must() || c.External && h.Proposal.ProposalType != wire.ProposalTypeSelfRemove {
			continue
		}
		found := false
		for _, p := range c.Proposals {
			found = found || p.Ref != nil && bytes.Equal(p.Ref, h.Ref)
		}
		if !found {
			return ErrLeftOut
		}
	}
	return nil
}

func checkMemberCommit(roster *Roster, c Change) error {
	committer, in := roster.At(c.Committer)
	if !in {
		return fmt.Errorf("%w: the committer has no leaf", ErrRoster)
	}
	if Going(roster, c.Held, c.Committer) {
		return ErrUnderRemoval
	}
	if c.Before.Participants.Role(committer.Identity) < RoleMember {
		return fmt.Errorf("%w: the committer is not a participant", ErrAuthority)
	}
	a := authority{c.Before, c.After.Revocations, roster, leaving(roster, c.Proposals)}
	for _, p := range c.Proposals {
		if p.Ref == nil {
			p.Sender = wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: c.Committer}
		}
		if err := checkOne(a, p); err != nil {
			return err
		}
		if r, err := homeRevocation(p); p.Sender.SenderType == wire.SenderTypeExternal && err == nil &&
			!c.After.Revocations.Covers(r.Fields().Identity, r.Fields().DeviceID) && len(c.After.Revocations) < maxRevocations {
			return fmt.Errorf("%w: a revocation that the home sent must enter the dictionary with the removal", ErrComponent)
		}
	}
	return nil
}

// checkExternal: a device whose identity is in the tree joins, or rejoins in
// place of its own old leaf; it changes nothing else. It cannot reference a held
// Remove and would make it void, so nobody comes in past one that a member made:
// not who goes by it, and nobody else before it was committed, except the identity
// that asked for it. The home's Removes are issued again, and lock nobody's other
// devices out.
func checkExternal(roster *Roster, c Change) error {
	cred, err := CheckLeaf(c.Joined)
	if err != nil {
		return err
	}
	if c.Before.Revocations.Covers(cred.Identity(), cred.DeviceID()) {
		return fmt.Errorf("%w: it cannot join", ErrRevoked)
	}
	if c.Before.Participants.Role(cred.Identity()) < RoleMember {
		return fmt.Errorf("%w: its identity is not a participant", ErrExternal)
	}
	if err := checkPastRemovals(roster, c, cred.Identity()); err != nil {
		return err
	}
	old, resync := roster.Device(cred.DeviceID())
	if resync {
		if UnderRemoval(c.Held, old.Leaf) {
			return ErrUnderRemoval
		}
		if _, err := old.successor(c.Joined); err != nil {
			return err
		}
	}
	for _, p := range c.Proposals {
		switch t := p.Proposal.ProposalType; {
		case t == wire.ProposalTypeExternalInit && p.Ref == nil:
		case t == wire.ProposalTypeRemove && p.Ref == nil && resync && p.Proposal.Remove.Removed == old.Leaf:
		case t == wire.ProposalTypeSelfRemove && p.Ref != nil:
		default:
			return fmt.Errorf("%w: it may only replace its own leaf and honour SelfRemoves, not %s", ErrExternal, t)
		}
	}
	if roster.Has(cred.Identity()) == 0 {
		return fmt.Errorf("%w: no device of its identity is in the room", ErrExternal)
	}
	return nil
}

// checkPastRemovals decides whether an identity may come in beside the removals
// that are held.
func checkPastRemovals(roster *Roster, c Change, who identity.PublicKey) error {
	if leaving(roster, c.Proposals)[who] { // every SelfRemove that is held is among them
		return fmt.Errorf("%w: its identity is leaving", ErrUnderRemoval)
	}
	first := false
	for _, h := range c.Held {
		if h.Proposal.ProposalType != wire.ProposalTypeRemove || h.Sender.SenderType != wire.SenderTypeMember {
			continue
		}
		target, _ := roster.At(h.Proposal.Remove.Removed)
		proposer, _ := roster.At(h.Sender.LeafIndex)
		switch {
		case c.Before.Revocations.Covers(target.Identity, target.Device):
			// Whoever comes in may commit it again: the revocation stands in the room.
		case target.Identity == who:
			return fmt.Errorf("%w: its identity is being removed", ErrUnderRemoval)
		case proposer.Identity != who:
			first = true
		}
	}
	if first {
		return ErrRemovalFirst
	}
	return nil
}

// advance applies the change to a copy of the roster.
func advance(roster *Roster, c Change) (*Roster, error) {
	after := roster.clone()
	for _, leaf := range c.Removed {
		after.drop(leaf)
	}
	for _, u := range c.Updated {
		m, in := roster.At(u.Index)
		if !in {
			return nil, fmt.Errorf("%w: leaf %d is blank", ErrRoster, u.Index)
		}
		if err := checkContent(u.Node); err != nil {
			return nil, err
		}
		cred, err := m.successor(u.Node)
		if err != nil {
			return nil, err
		}
		after.drop(u.Index)
		if err := after.put(u.Index, cred); err != nil {
			return nil, err
		}
	}
	joins := c.Added
	if c.Joined != nil {
		joins = append(joins[:len(joins):len(joins)], Leaf{c.Committer, c.Joined})
	}
	for _, a := range joins {
		c, err := CheckCredential(&a.Node.Credential, a.Node.SignatureKey)
		if err != nil {
			return nil, err
		}
		u := c.Unverified()
		if err := after.put(a.Index, &u); err != nil {
			return nil, err
		}
	}
	return after, nil
}

// checkComplete: an identity that loses a leaf by a member's commit loses all of
// them, judged by the tree that the commit makes, except for those whose devices
// were revoked. An external commit removes what it has to, its own old leaf and
// those of SelfRemoves, and can remove no more.
func checkComplete(before, after *Roster, c Change) error {
	if c.External {
		return nil
	}
	revoked := map[uint32]bool{} // with the home's word, which carries the revocation
	for _, p := range c.Proposals {
		if p.Sender.SenderType == wire.SenderTypeExternal && p.Proposal.ProposalType == wire.ProposalTypeRemove {
			revoked[p.Proposal.Remove.Removed] = true
		}
	}
	for _, leaf := range c.Removed {
		m, in := before.At(leaf)
		if in && !revoked[leaf] && !c.After.Revocations.Covers(m.Identity, m.Device) && after.Has(m.Identity) > 0 {
			return ErrPartial
		}
	}
	return nil
}

// Memberships are the changes that a commit makes to a room's members, in the
// store's terms: who is new, which devices went, who has another leaf. seq is
// where the commit stands in the log.
func Memberships(room delivery.RoomID, before, after *Roster) (added []delivery.Membership, removed []identity.DeviceID, updated []delivery.Membership) {
	for _, m := range after.byLeaf {
		switch old, in := before.Device(m.Device); {
		case !in:
			added = append(added, m.Membership(room))
		case old.Leaf != m.Leaf:
			updated = append(updated, m.Membership(room))
		}
	}
	for _, m := range before.byLeaf {
		if _, in := after.Device(m.Device); !in {
			removed = append(removed, m.Device)
		}
	}
	return added, removed, updated
}

// Membership is the member in the store's terms, from the room's beginning.
func (m Member) Membership(room delivery.RoomID) delivery.Membership {
	return delivery.Membership{Room: room, Device: m.Device, Identity: m.Identity, Leaf: m.Leaf}
}
