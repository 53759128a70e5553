package sdk

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/askucher/compax-core/delivery"
)

// A commit is in flight from the moment it is kept until there is a definite answer:
// it was read in the log, or it was refused. What was sent is kept meanwhile, so that
// the same bytes can be sent again to hear which.

func flyingPrefix(id delivery.RoomID) string { return "flying." + id.String() + "." }

func keepFlying(tx Tx, id delivery.RoomID, a delivery.AppendRequest) error {
	return tx.Put(TableSetting, flyingPrefix(id)+fmt.Sprintf("%x", sha256.Sum256(a.Entry)), a.AppendTo(nil))
}

func flying(tx Tx, id delivery.RoomID) (keys []string, list []delivery.AppendRequest, err error) {
	err = tx.Scan(TableSetting, flyingPrefix(id), "", func(key string, value []byte) (bool, error) {
		a, err := delivery.ParseAppend(value)
		if err != nil {
			return false, fmt.Errorf("sdk: a change that was sent: %w", err)
		}
		keys, list = append(keys, key), append(list, a)
		return true, nil
	})
	return keys, list, err
}

// forgetFlying forgets what is in flight, but for its hashes: a restored service may yet
// be given by others what it refused.
func forgetFlying(tx Tx, id delivery.RoomID) error {
	keys, list, err := flying(tx, id)
	for i, key := range keys {
		if err == nil {
			err = keepMade(tx, id, list[i].Entry)
		}
		if err == nil {
			err = tx.Delete(TableSetting, key)
		}
	}
	return err
}

// definite reports whether a refusal says that the service does not have what was
// sent. One that may go away does not: the answer of an earlier try may be lost, and
// what stands before a service speaks for it while it works.
func definite(code delivery.Code) bool {
	return code != "" && !code.Temporary() && code != delivery.CodeRevoked
}

// discard forgets commits of this device that were definitely refused.
func (e *Engine) discard(ctx context.Context, r *room) error {
	return e.advance(ctx, r, *r.state.group.Discard(), func(tx Tx) error { return forgetFlying(tx, r.rec.ID) })
}

// settleFlight gets a definite answer for every commit of this device that is in flight.
// Without one, and when one was taken, this device replaces its leaf on no account:
// the state that its own commit made would be shown to it as proof that the room
// went on.
func (e *Engine) settleFlight(ctx context.Context, r *room) error {
	if r.state.group == nil || r.state.group.Kept() == 0 {
		return nil
	}
	var list []delivery.AppendRequest
	err := e.Store.View(ctx, func(tx Tx) (err error) {
		_, list, err = flying(tx, r.rec.ID)
		return err
	})
	if err != nil {
		return err
	}
	for _, a := range list {
		_, err := e.client.Append(ctx, r.rec.ID, a)
		switch {
		case err == nil:
			return goesOn("a change by this device was taken: it is read in the log before anything else")
		case !definite(delivery.CodeOf(err)):
			return e.fail(ctx, err)
		}
	}
	return e.discard(ctx, r)
}
