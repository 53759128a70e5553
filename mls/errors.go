package mls

import (
	"errors"
	"fmt"
)

// What went wrong, and so what to do next. Errors of this package wrap one of
// these or one of the errors of package follower; test with errors.Is. None of
// them carries a secret, and none leaves a changed group.
var (
	// ErrMalformed: bytes are not the structure they should be. Drop them.
	ErrMalformed = errors.New("mls: malformed")
	// ErrOtherGroup: the message is of another group. Route it there.
	ErrOtherGroup = errors.New("mls: message of another group")
	// ErrPastEpoch: a handshake of an epoch that is over, or an application
	// message of one whose keys are no longer kept. Drop it.
	ErrPastEpoch = errors.New("mls: message of a past epoch")
	// ErrFutureEpoch: a commit is missing before this message. Read on in order,
	// then process it again.
	ErrFutureEpoch = errors.New("mls: message of a future epoch")
	// ErrWireFormat: a message is protected in a way its kind forbids, such as
	// application data as PublicMessage (RFC 9420 Section 6). Drop it.
	ErrWireFormat = errors.New("mls: wire format not allowed for this message")
	// ErrUnknownSender: the sender is no member, or a blank leaf. Drop it.
	ErrUnknownSender = errors.New("mls: unknown sender")
	// ErrMembershipTag: the message was not made by somebody who holds the
	// membership key of the epoch. Drop it.
	ErrMembershipTag = errors.New("mls: membership tag does not verify")
	// ErrSignature: a signature of a member, a new member or an external sender
	// does not verify. Drop it.
	ErrSignature = errors.New("mls: signature does not verify")
	// ErrConfirmationTag: the commit's tag does not confirm the epoch that this
	// member computes: a forged tag or a different history. Drop it; if the
	// order accepted it, rejoin.
	ErrConfirmationTag = errors.New("mls: confirmation tag does not verify")
	// ErrDecrypt: the ciphertext does not open under the key it names. Drop it.
	ErrDecrypt = errors.New("mls: decryption failed")
	// ErrKeyConsumed: the key of this generation was used already or was too old
	// to keep: a replay, or a message outside the window. Drop it.
	ErrKeyConsumed = errors.New("mls: message key already used or no longer kept")
	// ErrOwnMessage: the message is from this client's own leaf, and its key was used
	// up when it was sent: an [*OwnMessageError]. Take the content from what was sent.
	// A commit that was not kept is one as well, once its signature verified. Whoever
	// did not send it has another copy of this state in use beside: replace the leaf.
	ErrOwnMessage = errors.New("mls: own message")
	// ErrGenerationLimit: a generation is further ahead than Limits allow, or a
	// ratchet is used up. Drop it, or commit.
	ErrGenerationLimit = errors.New("mls: generation out of bounds")
	// ErrPath: the commit's path does not give this member the secrets it
	// announces (a malicious or broken committer). Report it and rejoin.
	ErrPath = errors.New("mls: update path does not fit its public keys")
	// ErrMissingPSK: a pre-shared key is not at hand. Provide it, then retry.
	ErrMissingPSK = errors.New("mls: pre-shared key not available")
	// ErrPendingProposals: a valid proposal waits; commit before sending
	// application data (RFC 9420 Section 12.4).
	ErrPendingProposals = errors.New("mls: proposals must be committed first")
	// ErrRemoved: this client was removed from the group. Only late messages of
	// past epochs can still be opened.
	ErrRemoved = errors.New("mls: no longer a member")
	// ErrForgotten: a step from this group was taken and [Step.Forget] wiped its
	// secrets. Use the group that the step led to.
	ErrForgotten = errors.New("mls: the group was left by a step and its secrets are wiped")
	// ErrReInit: the group was closed by a ReInit; the successor group goes on
	// (RFC 9420 Section 11.2).
	ErrReInit = errors.New("mls: group was reinitialised")
	// ErrNotForUs: a Welcome holds no secrets for this key package.
	ErrNotForUs = errors.New("mls: welcome is not for this key package")
	// ErrGroupInfo: a GroupInfo does not verify, or lacks what the operation
	// needs. Fetch another.
	ErrGroupInfo = errors.New("mls: group info not usable")
	// ErrTree: a ratchet tree is missing or is not the one the group names.
	ErrTree = errors.New("mls: ratchet tree not usable")
	// ErrState: stored state is damaged, incomplete or of an unknown version.
	ErrState = errors.New("mls: stored state not usable")
	// ErrParams: the caller asked for something that the protocol forbids.
	ErrParams = errors.New("mls: invalid parameters")
)

// OwnMessageError says which key of this client an application message used. It wraps
// ErrOwnMessage. Its signature cannot be verified any more, so that any member could
// have made a message that looks like this.
type OwnMessageError struct {
	Generation uint32 // in this client's ratchet
}

// Error names the generation.
func (e *OwnMessageError) Error() string {
	return fmt.Sprintf("%v: generation %d", ErrOwnMessage, e.Generation)
}

// Unwrap gives ErrOwnMessage.
func (e *OwnMessageError) Unwrap() error { return ErrOwnMessage }

// EpochError says which epoch a message is of and which epoch the group is in.
// It wraps ErrPastEpoch or ErrFutureEpoch.
type EpochError struct {
	Message uint64 // epoch of the message
	Group   uint64 // epoch of the group
}

// Error names both epochs.
func (e *EpochError) Error() string {
	return fmt.Sprintf("%v: message of epoch %d, group in epoch %d", e.Unwrap(), e.Message, e.Group)
}

// Unwrap gives ErrPastEpoch or ErrFutureEpoch.
func (e *EpochError) Unwrap() error {
	if e.Message < e.Group {
		return ErrPastEpoch
	}
	return ErrFutureEpoch
}
