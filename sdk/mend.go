package sdk

import (
	"context"
	"errors"
	"fmt"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls"
)

// errBroken is a commit that was ordered and cannot be processed here.
type errBroken struct {
	entry  delivery.Entry
	reason string // a code of delivery.ReportRequest
	err    error
}

func (b *errBroken) Error() string {
	return fmt.Sprintf("the change of epoch %d at %d cannot be processed: %v", b.entry.Epoch, b.entry.Seq, b.err)
}
func (b *errBroken) Unwrap() error { return b.err }

// mend deals with a commit that cannot be processed: it is reported, and this
// leaf is renewed when that is allowed, which it is when the room went on without
// us. A commit against the rules is never followed.
func (e *Engine) mend(ctx context.Context, r *room, b *errBroken) error {
	if b.reason == reasonCopied {
		mine, err := e.madeHere(ctx, r, b.entry)
		if err != nil {
			return err
		}
		if mine {
			if err := e.mustRenew(ctx, r, whyUnheard); err != nil {
				return err
			}
			return e.rejoin(ctx, r, whyUnheard)
		}
		if err := e.copied(ctx, whyWritten); err != nil {
			return err
		}
		return e.rejoin(ctx, r, whyWritten)
	}
	if b.reason == "policy" {
		if err := e.rewrite(ctx, r, func(rec *Room) { rec.Status = StatusStuck }); err != nil {
			return err
		}
	} else if r.rec.Lost > 0 {
		// The restored room went on from before what this device has followed.
		if err := e.mustRenew(ctx, r, earlierState); err != nil {
			return err
		}
		return e.rejoin(ctx, r, earlierState)
	}
	if err := e.client.Report(ctx, r.rec.ID, delivery.ReportRequest{Seq: b.entry.Seq, Epoch: b.entry.Epoch, Reason: b.reason}); err != nil {
		return errors.Join(b, err)
	}
	if b.reason == "policy" {
		return fmt.Errorf("%w: %w", ErrStuck, b)
	}
	return e.comeIn(ctx, r, r.rec.ID, fmt.Sprintf("the change of epoch %d could not be read here", b.entry.Epoch), groundBroken)
}

// reasonCopied is no reason to report: the commit is right, and another copy of this
// profile made it, or this one, which has given it up since.
const reasonCopied = "copied"

// reason is the code under which a broken commit is reported.
func reason(err error) string {
	switch {
	case errors.Is(err, mls.ErrPath):
		return "path_secret"
	case errors.Is(err, mls.ErrConfirmationTag):
		return "confirmation_tag"
	case errors.Is(err, mls.ErrSignature), errors.Is(err, mls.ErrMembershipTag):
		return "signature"
	case errors.Is(err, mls.ErrTree):
		return "parent_hash"
	}
	return "other"
}
