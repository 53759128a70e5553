// Package policy holds the rules of a room that the service and every member
// check alike: who may be a leaf, what stands in the room's GroupContext, what
// a proposal and a commit may do, and who may do it. A commit that one of them
// accepts, all of them accept; otherwise a room would be stuck.
//
// RFC 9420 itself is checked elsewhere (mls/follower, mls): this package looks
// at what they found valid, namely leaves, proposals, extensions and the roster
// change, and adds what our rooms ask for beyond the RFC.
//
// It is pure: no clock, no randomness, no I/O. Who is in a room is read from
// the ratchet tree ([Roster]); the participant list of the GroupContext says
// who may be in it and with which role. Its errors wrap one of the Err
// variables; the text of the variable names nobody, what it wraps may.
//
// Begin reading at [Creation] and [Room], then [CheckLeaf], then [CheckCommit].
package policy

import "errors"

// What a leaf, a proposal, a commit or a room can break.
var (
	// ErrCredential: a leaf's credential is no attested credential of the key
	// that signs for the leaf, or an unfit successor of the one before it.
	ErrCredential = errors.New("policy: the leaf's credential does not attest its key")
	// ErrRole: a request signer (role 1) never becomes a leaf.
	ErrRole = errors.New("policy: only a member's device may become a leaf")
	// ErrRevoked: the device was revoked by its owner.
	ErrRevoked = errors.New("policy: the device is revoked")
	// ErrCapabilities: a leaf or a room lacks what every room requires.
	ErrCapabilities = errors.New("policy: a required capability is missing")
	// ErrLeafSize: a leaf holds more than [MaxLeafExtensions] or [MaxLeafCapabilities].
	ErrLeafSize = errors.New("policy: a leaf holds too much")
	// ErrExtensions: the GroupContext is not that of one of our rooms.
	ErrExtensions = errors.New("policy: the group context is not that of a room")
	// ErrComponent: a component's data or update is malformed or not allowed.
	ErrComponent = errors.New("policy: a component of the room is malformed or may not change so")
	// ErrRoster: an identity in the tree is not a participant, or a device is in
	// the tree twice.
	ErrRoster = errors.New("policy: the roster does not match the participants")
	// ErrExternal: this device may not join by an external commit.
	ErrExternal = errors.New("policy: the device may not join by external commit")
	// ErrProposal: a proposal of this kind is not taken, or not from this sender.
	ErrProposal = errors.New("policy: the proposal is not allowed")
	// ErrHeld: another proposal about the same leaf is held already.
	ErrHeld = errors.New("policy: a proposal about this leaf is held already")
	// ErrLeftOut: a commit leaves out a Remove or SelfRemove that is held.
	ErrLeftOut = errors.New("policy: the commit leaves out a held removal")
	// ErrUnderRemoval: a leaf that a held proposal removes may not commit or rejoin.
	ErrUnderRemoval = errors.New("policy: a leaf under removal may not commit")
	// ErrRemovalFirst: a member's Remove is held. It is committed before anybody
	// comes in by external commit, which could not reference it.
	ErrRemovalFirst = errors.New("policy: a held removal has to be committed first")
	// ErrAuthority: the sender's role does not allow this.
	ErrAuthority = errors.New("policy: the sender's role does not allow this")
	// ErrPartial: some devices of an identity are to go and not all, and their
	// owner did not revoke them.
	ErrPartial = errors.New("policy: an identity is removed with all its devices or not at all")
	// ErrSuccession: a room does not keep what the one decided that it is to succeed.
	ErrSuccession = errors.New("policy: the successor has other roles, bans, rules or revocations, or leaves a removal out")
)

// Causes lists the Err variables, for those who must not repeat what an error
// wraps.
func Causes() []error {
	return []error{
		ErrRevoked, ErrRole, ErrCredential, ErrCapabilities, ErrLeafSize, ErrExtensions, ErrComponent, ErrRoster, ErrExternal,
		ErrHeld, ErrLeftOut, ErrUnderRemoval, ErrRemovalFirst, ErrAuthority, ErrPartial, ErrProposal,
		ErrSuccession,
	}
}
