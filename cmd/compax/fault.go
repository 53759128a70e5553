package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

// usageError is a command that cannot be what its user meant.
type usageError struct {
	text string
	cmd  *cobra.Command // nil: no usage to show
}

func (e *usageError) Error() string { return e.text }

func usage(format string, args ...any) error { return &usageError{text: fmt.Sprintf(format, args...)} }

// reported is a failure that was shown already, with its exit code.
type reported struct{ exit int }

func (r *reported) Error() string { return "the failure was shown" }

// hinted is an error with what to do.
type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }

func hint(err error, format string, args ...any) error {
	return &hinted{err, fmt.Sprintf(format, args...)}
}

// explain says what an error means to who typed the command: its code and exit
// code, one sentence, and what to do.
func explain(err error) *local.Error {
	var shown *local.Error
	if errors.As(err, &shown) {
		return shown
	}
	var h *hinted
	e := classify(err)
	e.Kept = errors.Is(err, sdk.ErrKept)
	if e.Kept && e.Exit == exitOffline {
		kept := "the message is kept: the next command that reaches the service sends it"
		if e.Code == string(delivery.CodeSlowDown) {
			kept = e.Hint + "; " + kept
		}
		e.Hint = kept
	}
	if errors.As(err, &h) {
		e.Hint = h.hint
	}
	if errors.Is(err, sdk.ErrUnfinished) {
		e.Hint = strings.TrimPrefix(e.Hint+"; run it again with the same profile: it goes on with the device that was made", "; ")
	}
	switch {
	case errors.Is(err, sdk.ErrFailed) && errors.Is(err, sdk.ErrRevoked):
		e.Hint += "; this device can never send what was written: compax outbox shows it"
	case errors.Is(err, sdk.ErrFailed):
		e.Hint = strings.TrimPrefix(e.Hint+"; the message lies in the outbox (compax outbox): resend it later, or drop it", "; ")
	}
	return e
}

func classify(err error) *local.Error {
	var (
		misused  *usageError
		word     *phrase.WordError
		checksum *phrase.ChecksumError
		refusal  *delivery.Error
		path     *fs.PathError
	)
	switch {
	case errors.As(err, &misused):
		return &local.Error{Code: "usage", Exit: exitUsage, Detail: misused.text}
	case errors.As(err, &word):
		return &local.Error{Code: "phrase", Exit: exitUsage, Detail: tidy(word.Error()), Hint: wordHint(word)}
	case errors.As(err, &checksum):
		return &local.Error{Code: "phrase", Exit: exitUsage, Detail: tidy(checksum.Error()), Hint: repairHint(checksum)}
	}
	if e := engineFault(err); e != nil {
		return e
	}
	switch {
	case errors.As(err, &refusal):
		return refused(err, refusal)
	case errors.Is(err, client.ErrGarbage):
		return &local.Error{Code: "garbage", Exit: exitOffline, Detail: "what answers there is no Compax service: " + reason(err, client.ErrGarbage),
			Hint: "check the address; a Wi-Fi that wants a login, a proxy or another program may be answering in its place"}
	case errors.Is(err, client.ErrOffline), errors.Is(err, context.DeadlineExceeded):
		return offline(err)
	case errors.Is(err, local.ErrBusy):
		return &local.Error{Code: "locked", Exit: exitOffline, Detail: "another process holds this profile and does not answer",
			Hint: "end it (it may be stopped or hang), then try again"}
	case errors.Is(err, local.ErrVersion):
		return &local.Error{Code: "version", Exit: exitRefused, Detail: "another version of this program holds this profile", Hint: "end it first"}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &local.Error{Code: "disk_full", Exit: exitOffline, Detail: "the disk of this machine is full", Hint: "make room and try again: nothing is lost"}
	case errors.As(err, &path):
		return &local.Error{Code: "file", Exit: exitUsage, Detail: fmt.Sprintf("%s: %v", path.Path, path.Err)}
	case errors.Is(err, identity.ErrFormat), errors.Is(err, content.ErrLimit):
		return &local.Error{Code: "usage", Exit: exitUsage, Detail: tidy(err.Error())}
	case errors.Is(err, context.Canceled):
		return &local.Error{Code: "stopped", Exit: exitStopped, Detail: "interrupted"}
	}
	return &local.Error{Code: "failed", Exit: exitFailed, Detail: tidy(err.Error())}
}

// refused explains what a service said.
func refused(err error, r *delivery.Error) *local.Error {
	e := &local.Error{Code: string(r.Code), Exit: exitRefused, Detail: tidy(reason(err, r))}
	if r.Code.Temporary() {
		e.Exit = exitOffline
	}
	switch r.Code {
	case delivery.CodeBadRequest:
		e.Hint = "check that this machine's clock is right (date); else the service is of another version"
	case delivery.CodeLogIn:
		e.Exit, e.Hint = exitRefused, "the service does not know this device: is it the server where the account was made?"
	case delivery.CodeRevoked:
		e.Detail, e.Hint = "this device was revoked by its owner", "what it has can be read; a new device is made with the phrase: compax account restore"
	case delivery.CodeSlowDown:
		e.Detail = "too much in a short time: " + e.Detail
		e.Hint = "try again in a moment"
		if r.RetryAfter > 0 {
			e.RetryMS = r.RetryAfter.Milliseconds()
			e.Hint = fmt.Sprintf("try again in %s", max(r.RetryAfter.Round(time.Second), time.Second))
		}
	case delivery.CodeFull:
		e.Hint = "the service's disk is full: its operator has to make room; nothing is lost"
		if r.RetryAfter > 0 { // it is congested, and says so
			e.Hint = "send the file again later, or a smaller one"
		}
	case delivery.CodeHealing:
		e.Detail = "the service was restored from a backup and puts this chat together again, which waits for its members"
		e.Hint = "try again in a moment"
	case delivery.CodeGoElsewhere:
		e.Hint = "this chat lives at another service"
		if r.Home != nil {
			e.Hint += ", home " + r.Home.String()
		}
	case delivery.CodeTooLarge:
		e.Hint = "send less at once"
	case delivery.CodeRetry:
		e.Hint = "try again"
	}
	return e
}

// offline explains why no answer came.
func offline(err error) *local.Error {
	e := &local.Error{Code: "offline", Exit: exitOffline, Detail: "the service cannot be reached", Hint: "check the connection and the address"}
	var (
		dns     *net.DNSError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		e.Detail = "no such server: " + dns.Name
		e.Hint = "check the address"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		e.Detail = "the service's certificate is not valid at this time"
		e.Hint = "check this machine's clock (date); if it is right, tell the operator"
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid):
		e.Detail = "the service's certificate cannot be trusted"
		e.Hint = "check the address; somebody may be in between"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Detail = "nothing listens at the service's address"
		e.Hint = `check the address, or start the service: compax up`
	case errors.Is(err, context.DeadlineExceeded):
		e.Detail = "the service did not answer in time"
	}
	return e
}

// reason is what an error says beside the sentinel that it wraps.
func reason(err, sentinel error) string {
	text := strings.ReplaceAll(err.Error(), sentinel.Error(), "")
	var r *delivery.Error
	if errors.As(sentinel, &r) {
		text = strings.Trim(strings.TrimSpace(text), ":") + ": " + r.Detail
	}
	text = strings.ReplaceAll(text, ": :", ":")
	return strings.Trim(text, ": ")
}

// tidy takes the names of packages off the front of an error's text.
func tidy(text string) string {
	for _, prefix := range []string{"identity: ", "phrase: ", "sdk: ", "delivery: ", "content: ", "node: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// wordHint names the likely words. Who typed the phrase sees it and nobody else:
// it is the word that is wrong, not one that was right.
func wordHint(e *phrase.WordError) string {
	if len(e.Unknown) == 0 {
		return fmt.Sprintf("a recovery phrase is the %d words that account new printed, in their order", phrase.WordCount)
	}
	var parts []string
	for _, u := range e.Unknown {
		parts = append(parts, fmt.Sprintf("word %d: did you mean %s?", u.Position, strings.Join(u.Nearest, ", ")))
	}
	return strings.Join(parts, "; ")
}

// maxRepairsShown keeps the advice readable.
const maxRepairsShown = 4

func repairHint(e *phrase.ChecksumError) string {
	if len(e.Repairs) == 0 {
		return "compare every word and their order with what was written down"
	}
	var parts []string
	for _, r := range e.Repairs[:min(len(e.Repairs), maxRepairsShown)] {
		if r.Word == "" {
			parts = append(parts, fmt.Sprintf("words %d and %d may be exchanged", r.Position, r.Position+1))
			continue
		}
		parts = append(parts, fmt.Sprintf("word %d may be %q", r.Position, r.Word))
	}
	return strings.Join(parts, "; ")
}
