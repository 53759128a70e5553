package delivery

import (
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/askucher/compax-core/identity"
)

// Code tells the receiver of a refusal what to do now.
type Code string

// The codes. status gives each its HTTP status.
const (
	// CodeBadRequest: the request is malformed or breaks the protocol. Give up; sending it again cannot help.
	CodeBadRequest Code = "bad_request"
	// CodeLogIn: no session, or one that ended. Log in and ask again.
	CodeLogIn Code = "log_in"
	// CodeRefused: understood and not allowed. Give up.
	CodeRefused Code = "refused"
	// CodeRevoked: this device was revoked by its owner, for good.
	CodeRevoked Code = "revoked"
	// CodeNotFound: no such thing, or the asker may not know of it.
	CodeNotFound Code = "not_found"
	// CodeStaleEpoch: the room is at Error.Epoch. Catch up from the log and encrypt anew.
	CodeStaleEpoch Code = "stale_epoch"
	// CodeCommitFirst: the room holds proposals (RFC 9420 §12.4). Commit them, then send.
	CodeCommitFirst Code = "commit_first"
	// CodeConflict: the thing exists already, or changed since it was read. Read it again.
	CodeConflict Code = "conflict"
	// CodeTrimmed: what was asked for is past retention; Error.Seq is the first kept. Resync.
	CodeTrimmed Code = "trimmed"
	// CodeTooLarge: over a limit that the detail names. Give up or send less.
	CodeTooLarge Code = "too_large"
	// CodeGoElsewhere: another home (Error.Home) orders this room. Ask there.
	CodeGoElsewhere Code = "go_elsewhere"
	// CodeSolveWork: solve Error.Work over these bytes and send once more.
	CodeSolveWork Code = "solve_work"
	// CodeSlowDown: a budget is spent; wait Error.RetryAfter.
	CodeSlowDown Code = "slow_down"
	// CodeHealing: the room is being put together again after a restore. Offer kept entries, wait, retry.
	CodeHealing Code = "healing"
	// CodeSucceeded: the room has a successor and takes no more entries.
	CodeSucceeded Code = "succeeded"
	// CodeFull: the service's disk is full. Nothing was kept; retry later.
	CodeFull Code = "full"
	// CodeRetry: the service could not answer now. Send the same bytes again.
	CodeRetry Code = "retry"
)

// status is the one table from code to HTTP status.
var status = map[Code]int{
	CodeBadRequest: 400, CodeLogIn: 401, CodeRefused: 403, CodeRevoked: 403, CodeNotFound: 404,
	CodeStaleEpoch: 409, CodeCommitFirst: 409, CodeConflict: 409, CodeTrimmed: 410, CodeSucceeded: 410,
	CodeTooLarge: 413, CodeGoElsewhere: 421, CodeSolveWork: 428, CodeSlowDown: 429,
	CodeHealing: 503, CodeRetry: 503, CodeFull: 507,
}

// Codes lists every code, for documents and tests.
func Codes() map[Code]int {
	out := make(map[Code]int, len(status))
	for c, s := range status {
		out[c] = s
	}
	return out
}

// Status is the HTTP status of the code; 500 for one that is not in the table.
func (c Code) Status() int {
	if s, ok := status[c]; ok {
		return s
	}
	return 500
}

// Temporary reports whether the same bytes may succeed later.
func (c Code) Temporary() bool {
	switch c {
	case CodeSlowDown, CodeHealing, CodeRetry, CodeFull, CodeLogIn, CodeSolveWork:
		return true
	}
	return false
}

// Work is a proof-of-work demand; [WorkBits] says what answers it.
type Work struct {
	Seed []byte `json:"seed"` // the service's rotating seed
	Bits int    `json:"bits"` // leading zero bits of SHA-256
}

// Error is a refusal: an RFC 9457 problem document on the wire, the same value
// at both ends.
type Error struct {
	Code       Code
	Detail     string         // one sentence for a person; names no person, device, room or token
	Epoch      uint64         // the room's epoch, with CodeStaleEpoch and CodeCommitFirst
	Seq        uint64         // the room's last seq, or the first kept one with CodeTrimmed
	Home       *identity.Home // with CodeGoElsewhere
	RetryAfter time.Duration  // with the temporary codes; 0 = the caller's own back-off
	Work       *Work          // with CodeSolveWork
}

// Refuse makes an [*Error] with a code and a sentence.
func Refuse(code Code, detail string) *Error { return &Error{Code: code, Detail: detail} }

// Error is the code and the sentence.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Detail }

// CodeOf is the code of the [*Error] in err's chain, or "" when there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// ProblemType is the media type of a refusal.
const ProblemType = "application/problem+json"

// Problem is the JSON form of an [*Error].
type Problem struct {
	Type         string         `json:"type"`   // "urn:compax:problem:" + code
	Status       int            `json:"status"` // the HTTP status
	Code         Code           `json:"code"`
	Detail       string         `json:"detail"`
	Epoch        string         `json:"epoch,omitempty"` // decimal
	Seq          string         `json:"seq,omitempty"`   // decimal
	Home         *identity.Home `json:"home,omitempty"`
	RetryAfterMS int64          `json:"retry_after_ms,omitempty"`
	Work         *Work          `json:"work,omitempty"`
}

// Problem gives e its wire form.
func (e *Error) Problem() Problem {
	p := Problem{
		Type: "urn:compax:problem:" + url.PathEscape(string(e.Code)), Status: e.Code.Status(), Code: e.Code,
		Detail: e.Detail, Home: e.Home, RetryAfterMS: e.RetryAfter.Milliseconds(), Work: e.Work,
	}
	if e.Epoch != 0 || e.Code == CodeStaleEpoch || e.Code == CodeCommitFirst {
		p.Epoch = strconv.FormatUint(e.Epoch, 10)
	}
	if e.Seq != 0 {
		p.Seq = strconv.FormatUint(e.Seq, 10)
	}
	return p
}

// Err gives a problem that came over the wire its error form. A code that this
// build does not know becomes what its status class demands: 5xx [CodeRetry],
// everything else [CodeRefused].
func (p Problem) Err() *Error {
	e := &Error{Code: p.Code, Detail: p.Detail, Home: p.Home, RetryAfter: time.Duration(p.RetryAfterMS) * time.Millisecond, Work: p.Work}
	if _, known := status[p.Code]; !known {
		e.Code = CodeRefused
		if p.Status >= 500 {
			e.Code = CodeRetry
		}
	}
	e.Epoch, _ = strconv.ParseUint(p.Epoch, 10, 64)
	e.Seq, _ = strconv.ParseUint(p.Seq, 10, 64)
	return e
}
