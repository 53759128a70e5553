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

// offerAtMost bounds how many kept entries are offered.
const offerAtMost = 2000

// offer gives the service the entries that it may have lost, in their order, and
// the GroupInfo of the epoch behind the last of them. healed says that the room is
// open again.
func (e *Engine) offer(ctx context.Context, r *room) (healed bool, err error) {
	entries, err := e.kept(ctx, r.rec.ID, offerAtMost)
	if err != nil {
		return false, err
	}
	size := 0
	for i := len(entries) - 1; i >= 0; i-- {
		if size += len(entries[i].Bytes) + 32; size > delivery.MaxLogPage {
			entries = entries[i+1:]
			break
		}
	}
	offer, commits := delivery.HealRequest{}, false
	for _, entry := range entries {
		if entry.Kind != delivery.KindIncarnation {
			offer.Entries = append(offer.Entries, entry)
			commits = commits || entry.Kind == delivery.KindCommit
		}
	}
	if commits && r.state.group != nil && r.state.group.Active() {
		if offer.GroupInfo, err = r.state.group.GroupInfo(false, nil); err != nil {
			return false, fmt.Errorf("sdk: offer kept entries: %w", err)
		}
	}
	got, err := e.client.Heal(ctx, r.rec.ID, offer)
	if err == nil && got.Status == delivery.RoomHealing && got.Taken < len(offer.Entries) {
		// The rest does not fit behind what others brought: this device has nothing more.
		got, err = e.client.Heal(ctx, r.rec.ID, delivery.HealRequest{})
	}
	return err == nil && got.Status != delivery.RoomHealing, e.fail(ctx, err)
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
