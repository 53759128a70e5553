package sdk

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls"
)

// Accept enters a room that a stranger invited to. Accepting a room twice is no
// error. An invitation that cannot be used any more is forgotten (ErrNoRoom).
func (e *Engine) Accept(ctx context.Context, id delivery.RoomID) error {
	if err := e.ReadMail(ctx); err != nil {
		return err
	}
	q, found, err := e.request(ctx, id)
	if err != nil {
		return err
	}
	if !found {
		r, done, err := e.writable(ctx, id)
		if err != nil {
			return err
		}
		defer done()
		return e.greet(ctx, r)
	}
	joined, s, err := e.openRequest(ctx, q)
	if err != nil {
		return err
	}
	if err := e.befriend(ctx, q.From); err != nil { // first: once in the room nothing is left to accept
		return err
	}
	if err := e.join(ctx, id, q.StartSeq, q.TimeMS, joined, s); err != nil {
		return err
	}
	if err := e.movedInto(ctx, id); err != nil {
		return err
	}
	if err := e.client.AckMail(ctx, q.Mail); err != nil {
		return e.fail(ctx, err)
	}
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if err := e.greet(ctx, r); err != nil {
		return err
	}
	return e.flushSnapshot(ctx)
}

// greet begins with a room that was accepted: its people are no strangers, and are told
// who came.
func (e *Engine) greet(ctx context.Context, r *room) error {
	if err := e.meet(ctx, r); err != nil {
		return err
	}
	if err := e.catchUp(ctx, r); err != nil {
		return err
	}
	return e.announce(ctx, r)
}

// openRequest opens the Welcome of a request. One that can never be opened is forgotten,
// as it would be had it come now (ErrNoRoom): the device that invites was revoked since,
// or the key package has ended. What the service shows beside it is no such reason: it
// may show another tree tomorrow.
func (e *Engine) openRequest(ctx context.Context, q Request) (*mls.Joined, state, error) {
	inviter, _, err := e.peek(ctx, q.Room, q.Epoch, q.Welcome)
	switch {
	case useless(err):
		return nil, state{}, e.forgetRequest(ctx, q, err)
	case err != nil:
		return nil, state{}, err
	}
	return e.tryWelcome(ctx, q.Room, q.Epoch, q.Welcome, inviter)
}

// forgetRequest forgets a request that cannot be accepted any more, and says why.
func (e *Engine) forgetRequest(ctx context.Context, q Request, why error) error {
	if err := e.client.AckMail(ctx, q.Mail); err != nil {
		return e.fail(ctx, err)
	}
	if err := e.Store.Update(ctx, func(tx Tx) error { return tx.Delete(TableRequest, q.Room.String()) }); err != nil {
		return err
	}
	return fmt.Errorf("%w: the invitation cannot be used any more, and somebody has to remove this account there and invite it again: %w", ErrNoRoom, why)
}

// Decline forgets a request. Nothing is sent to the room; the service learns that
// the invitation is no longer waited for.
func (e *Engine) Decline(ctx context.Context, id delivery.RoomID) error {
	if err := e.ReadMail(ctx); err != nil {
		return err
	}
	q, found, err := e.request(ctx, id)
	if err != nil {
		return err
	}
	if !found {
		return e.declinedBefore(ctx, id)
	}
	if err := e.client.AckMail(ctx, q.Mail); err != nil {
		return e.fail(ctx, err)
	}
	return e.Store.Update(ctx, func(tx Tx) error {
		if err := tx.Put(TableSetting, "declined."+id.String(), []byte{1}); err != nil {
			return err
		}
		return tx.Delete(TableRequest, id.String())
	})
}

// declinedBefore: declining twice is no error, unless the room was entered since.
func (e *Engine) declinedBefore(ctx context.Context, id delivery.RoomID) error {
	return e.Store.View(ctx, func(tx Tx) error {
		declined, err := tx.Get(TableSetting, "declined."+id.String())
		if err != nil {
			return err
		}
		entered, err := tx.Get(TableRoom, id.String())
		if err == nil && (declined == nil || entered != nil) {
			err = ErrNoRoom
		}
		return err
	})
}

func (e *Engine) request(ctx context.Context, id delivery.RoomID) (q Request, found bool, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		found, err = get(tx, TableRequest, id.String(), &q)
		return err
	})
	return q, found, err
}

// Requests lists what strangers invite to.
func (e *Engine) Requests(ctx context.Context) (out []Request, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		out, err = scan[Request](tx, TableRequest, "")
		return err
	})
	slices.SortFunc(out, func(a, b Request) int { return cmp.Compare(a.TimeMS, b.TimeMS) })
	return out, err
}
