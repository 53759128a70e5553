package sdk

import (
	"errors"

	"github.com/askucher/compax-core/delivery"
)

// What an operation can fail with, beside [*delivery.Error], client.ErrOffline
// and client.ErrGarbage. Test with errors.Is.
var (
	// ErrNoRoom: this profile has no such room, and the service tells it of none.
	ErrNoRoom = errors.New("no such chat in this profile")
	// ErrNoMessage: the room has no message with this number here.
	ErrNoMessage = errors.New("no message with this number in this chat")
	// ErrNotMessage: what has this number is no message of a person.
	ErrNotMessage = errors.New("this number is no message that somebody said")
	// ErrRequest: the room is a request: accept it first.
	ErrRequest = errors.New("this chat is a request: accept or decline it first")
	// ErrOut: this device is no longer in the room.
	ErrOut = errors.New("this device is not in the chat any more")
	// ErrAuthor: only the sender of a message edits or deletes it.
	ErrAuthor = errors.New("only its sender may edit or delete a message")
	// ErrNobody: nobody of this name or identity can be reached.
	ErrNobody = errors.New("nobody by this name can be reached here")
	// ErrSuite: rooms are not made with this cipher suite, or somebody's devices
	// have no key package of it.
	ErrSuite = errors.New("this cipher suite cannot be used here")
	// ErrRevoked: this device was revoked by its owner. Its profile can be read
	// and does nothing more.
	ErrRevoked = errors.New("this device was revoked")
	// ErrNoKey: the step needs the recovery phrase, which this device never had.
	ErrNoKey = errors.New("this device does not hold the account's key: type the recovery phrase")
	// ErrNoAccount: the store holds no finished account.
	ErrNoAccount = errors.New("no account in this profile")
	// ErrAccount: the store holds an account already.
	ErrAccount = errors.New("this profile has an account already")
	// ErrSeal: what was sealed does not open: the key file is not the one that
	// belongs to this profile.
	ErrSeal = errors.New("the profile's secrets do not open with its key file")
	// ErrChanged: a username belongs to another identity than when it was first
	// seen here.
	ErrChanged = errors.New("this username belongs to somebody else than before: compare safety numbers")
	// ErrStuck: the room's last commit breaks the rules or cannot be read.
	ErrStuck = errors.New("the chat is stuck: its last change cannot be processed here")
	// ErrYourself: it is about somebody else, and names this account.
	ErrYourself = errors.New("that is this account itself")
	// ErrDirect: a direct room has exactly two people.
	ErrDirect = errors.New("a direct chat has exactly two people")
	// ErrNoFile: the message carries no file.
	ErrNoFile = errors.New("this message carries no file")
	// ErrKept: besides the reason, the message is in the outbox: it goes out with
	// the next call that reaches the service, and is not to be written again.
	ErrKept = errors.New("the message is kept and goes out later")
	// ErrFailed: besides the reason, the message was refused for good. It lies in the
	// outbox with its cause, until a person sends it again or drops it.
	ErrFailed = errors.New("the message cannot be sent")
	// ErrNotWaiting: no message with this id waits or has failed.
	ErrNotWaiting = errors.New("no such message in the outbox")
	// ErrSending: the message may be on its way already.
	ErrSending = errors.New("this message may have been sent already: it can only be sent to its end")
	// ErrNotListed: no public room has this id.
	ErrNotListed = errors.New("no such room in the public list")
	// ErrText: an empty message or one over content.MaxText bytes.
	ErrText = errors.New("a message has 1 to 65536 bytes of text, or a file")
)

// goesOnError is about one room, which goes on faster than this device follows. All the
// others may be well.
type goesOnError struct{ refusal error }

func goesOn(detail string) error { return &goesOnError{delivery.Refuse(delivery.CodeRetry, detail)} }

func (g *goesOnError) Error() string { return g.refusal.Error() }
func (g *goesOnError) Unwrap() error { return g.refusal }
