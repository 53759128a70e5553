package local

import "errors"

var (
	// ErrStop ends a stream from its callback; the row that it answered was taken.
	ErrStop = errors.New("enough")
	// ErrBusy: the profile's store is locked by a process that does not answer on
	// its socket, or stopped answering. What it was asked for it may still do.
	ErrBusy = errors.New("another process holds this profile and does not answer")
	// ErrVersion: the process that holds the profile is another build.
	ErrVersion = errors.New("another version of this program holds this profile")
	// ErrFrame: what came over the socket is no frame of this protocol.
	ErrFrame = errors.New("sdk/local: not a frame of this protocol")
	// errLost: the process that held the profile ended before it answered. It is not
	// known whether the call was carried out: it is made again.
	errLost = errors.New("the process that held this profile ended before it answered")
)

// Error is an error as it is shown: what went wrong, and what to do. It is the
// form in which errors cross the socket, so that a program ends with the same
// words and exit code whichever process met the fault.
type Error struct {
	Code   string `json:"code"`           // for programs: a delivery.Code or one of the program's own
	Exit   int    `json:"exit"`           // the program's exit code
	Detail string `json:"error"`          // one sentence
	Hint   string `json:"hint,omitempty"` // what to do, when there is something
	// Kept: what was to be said is in the outbox and goes out by itself. It is not to
	// be said again.
	Kept bool `json:"kept"`
	// RetryMS is after how many milliseconds to try again, when the service says so.
	RetryMS int64 `json:"retry_after_ms,omitempty"`
}

func (e *Error) Error() string { return e.Detail }
