package follower

import (
	"errors"
	"fmt"
)

// ErrInvalid: the message, package or tree breaks a rule of the protocol. Every
// refusal of this package is an [*InvalidError] and wraps it; drop what was
// refused. What the tree refuses also wraps the errors of package tree.
var ErrInvalid = errors.New("mls/follower: not valid")

// Rules that an [*InvalidError] can name.
var (
	// ErrOtherGroup: the message is of another group.
	ErrOtherGroup = errors.New("the message is of another group")
	// ErrEpoch: the message is of another epoch than the group's current one.
	ErrEpoch = errors.New("the message is of another epoch")
	// ErrContent: the content or its protection is not what belongs here, such as
	// a proposal where a commit is expected (§6, §12.4.3.2).
	ErrContent = errors.New("the content does not belong here")
	// ErrSender: no member, external sender or new member can send this (§6.1,
	// §12.1.8).
	ErrSender = errors.New("the sender may not send this")
	// ErrSignature: a signature does not verify (§6.1, §10.1, §12.4.3).
	ErrSignature = errors.New("the signature does not verify")
	// ErrKeyPackage: a key package is not valid (§10.1).
	ErrKeyPackage = errors.New("the key package is not valid")
	// ErrProposal: a proposal is not valid by itself (§12.1).
	ErrProposal = errors.New("the proposal is not valid")
	// ErrUnsupported: a proposal's type is not supported by all (§12.2).
	ErrUnsupported = errors.New("the proposal type is not supported")
	// ErrUnknownProposal: the commit refers to a proposal that is not held. Get
	// it, hold it, and try again.
	ErrUnknownProposal = errors.New("the commit refers to an unknown proposal")
	// ErrProposalList: the proposals may not be committed together, or not by
	// this committer (§12.2).
	ErrProposalList = errors.New("the list of proposals is not valid")
	// ErrPathRequired: the commit needs a path and has none (§12.4).
	ErrPathRequired = errors.New("the commit lacks the path it needs")
	// ErrPath: the path does not fit the tree (§7.5, §7.6, §12.4.2).
	ErrPath = errors.New("the update path is not valid")
	// ErrTree: the ratchet tree is not valid, or would not be after the commit
	// (§7.3, §12.2, §12.4.3.1).
	ErrTree = errors.New("the ratchet tree is not valid")
	// ErrExtensions: the extensions of a GroupContext are malformed, or a change
	// of them is not allowed (§12.1.7, extensions draft §4.7).
	ErrExtensions = errors.New("the group context extensions are not valid")
	// ErrGroupInfo: the GroupInfo is not one of the epoch (§12.4.3).
	ErrGroupInfo = errors.New("the group info is not of this epoch")
	// ErrWelcome: the Welcome is not for those whom the commit adds (§12.4.3.1).
	ErrWelcome = errors.New("the welcome does not match the commit")
	// ErrClosed: a ReInit closed the group, or its epochs are used up; go on in
	// its successor (§11.2).
	ErrClosed = errors.New("the group is closed")
)

// ErrState: stored bytes are damaged, of an unknown version, or a change does
// not follow on the state it is applied to. It is never a refusal of a message.
var ErrState = errors.New("mls/follower: the stored state is not usable")

// InvalidError says which rule is broken and how. It carries no bytes of what
// was refused but indices, types and sizes.
type InvalidError struct {
	Rule   error // one of the Err variables of this package
	Detail error // what exactly; may wrap an error of package tree, suite or wire
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("mls/follower: %v: %v", e.Rule, e.Detail)
}

// Unwrap gives ErrInvalid, the rule and the detail.
func (e *InvalidError) Unwrap() []error { return []error{ErrInvalid, e.Rule, e.Detail} }

// invalid is the refusal by a rule.
func invalid(rule error, format string, args ...any) error {
	return &InvalidError{Rule: rule, Detail: fmt.Errorf(format, args...)}
}
