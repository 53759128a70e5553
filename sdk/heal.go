package sdk

import (
	"context"
	"fmt"

	"github.com/askucher/compax-core/delivery"
)

// ensure logs in when there is no session. A service that was restored to a time
// before this device enrolled is told of it again.
func (e *Engine) ensure(ctx context.Context) error {
	err := e.client.Ensure(ctx)
	if delivery.CodeOf(err) == delivery.CodeNotFound {
		if err := e.client.Enrol(ctx, e.cred.Bytes()); err != nil {
			return e.fail(ctx, err)
		}
		if err := e.client.Ensure(ctx); err != nil {
			return e.fail(ctx, err)
		}
		return e.bringBack(ctx)
	}
	return e.fail(ctx, err)
}

// bringBack gives a restored service what it lost of this account: revocations,
// key packages and the public profile.
func (e *Engine) bringBack(ctx context.Context) error {
	var revocations [][]byte
	var profile []byte
	err := e.Store.View(ctx, func(tx Tx) error {
		var err error
		if profile, err = tx.Get(TableSetting, settingProfile); err != nil {
			return err
		}
		return tx.Scan(TableRevoked, e.account.Identity.String()+"/", "", func(_ string, raw []byte) (bool, error) {
			revocations = append(revocations, raw)
			return true, nil
		})
	})
	if err != nil {
		return err
	}
	for _, rev := range revocations {
		if err := e.client.Revoke(ctx, rev); err != nil {
			return e.fail(ctx, err)
		}
	}
	if profile != nil {
		if err := e.client.PutProfile(ctx, profile); err != nil && delivery.CodeOf(err) != delivery.CodeConflict {
			return e.fail(ctx, err)
		}
	}
	return e.publishKeys(ctx, moreKeys)
}

// heal offers what this device kept of a room to a service that was restored, and
// waits a little for the others to do the same.
func (e *Engine) heal(ctx context.Context, r *room, cause error) error {
	healed, err := e.offer(ctx, r)
	if err != nil || healed {
		return err
	}
	return e.pause(ctx, 0, cause)
}

// offerAtMost bounds how many kept entries go into one offer; a room may need many.
const offerAtMost = delivery.MaxLogEntries / 2

// offer gives the service the entries that it may have lost, in their order and
// in as many pieces as they need, and with the last commit the GroupInfo of the
// epoch behind it. healed says that the room is open again.
func (e *Engine) offer(ctx context.Context, r *room) (healed bool, err error) {
	from, last, err := e.lost(ctx, r.rec.ID)
	if err != nil {
		return false, err
	}
	got := delivery.HealResponse{Status: delivery.RoomHealing}
	for {
		piece, next, err := e.keptAfter(ctx, r.rec.ID, from)
		if err != nil {
			return false, err
		}
		offer := delivery.HealRequest{Entries: piece}
		for _, entry := range piece {
			if entry.Kind == delivery.KindCommit && entry.Seq == last && r.state.group != nil && r.state.group.Active() {
				if offer.GroupInfo, err = r.state.group.GroupInfo(false, nil); err != nil {
					return false, fmt.Errorf("sdk: offer kept entries: %w", err)
				}
			}
		}
		if got, err = e.client.Heal(ctx, r.rec.ID, offer); err != nil {
			return false, e.fail(ctx, err)
		}
		if got.Status != delivery.RoomHealing || len(piece) == 0 {
			break
		}
		if got.Taken < len(piece) {
			from = ^uint64(0) // the rest does not fit behind what others brought: say that there is nothing more
			continue
		}
		from = next
	}
	return got.Status != delivery.RoomHealing, nil
}

// lost tells from where on the service may have lost entries of a room: behind
// the seq that the latest incarnation entry jumped from, and which kept entry is
// the last commit. Without an incarnation entry everything that is kept is offered.
func (e *Engine) lost(ctx context.Context, id delivery.RoomID) (after, lastCommit uint64, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		return tx.Scan(TableRaw, roomKey(id, ""), "", func(_ string, value []byte) (bool, error) {
			entry, err := parseRaw(value)
			switch {
			case err != nil:
				return false, err
			case entry.Kind == delivery.KindIncarnation && entry.Seq > delivery.IncarnationJump:
				after = entry.Seq - delivery.IncarnationJump - 1
			case entry.Kind == delivery.KindCommit:
				lastCommit = entry.Seq
			}
			return true, nil
		})
	})
	return after, lastCommit, err
}

// restored is called when a room's log tells of a restore: what the service lost
// beside the log is given to it again, then what it lost of the log.
func (e *Engine) restored(ctx context.Context, r *room) error {
	if err := e.bringBack(ctx); err != nil {
		return err
	}
	_, err := e.offer(ctx, r)
	return err
}
