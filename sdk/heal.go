package sdk

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls/wire"
)

// ensure logs in when there is no session. A service that was restored to a time
// before this device enrolled is told of it again.
func (e *Engine) ensure(ctx context.Context) error {
	err := e.client.Ensure(ctx)
	if delivery.CodeOf(err) == delivery.CodeNotFound {
		if err := e.Store.Update(ctx, oweBack); err != nil { // before the service knows this device
			return err
		}
		if err := e.client.Enrol(ctx, e.cred.Bytes()); err != nil {
			return e.fail(ctx, err)
		}
		if err := e.client.Ensure(ctx); err != nil {
			return e.fail(ctx, err)
		}
		return e.settleBack(ctx)
	}
	return e.fail(ctx, err)
}

// settingOwed is set from when this device sees that the service was restored until it
// has given back what the service lost of this account.
const settingOwed = "restored.owed"

// oweBack is stored with what tells of the restore: that is read once only.
func oweBack(tx Tx) error { return tx.Put(TableSetting, settingOwed, []byte{1}) }

// settleBack is bringBack while that is owed.
func (e *Engine) settleBack(ctx context.Context) error {
	var owed []byte
	err := e.Store.View(ctx, func(tx Tx) (err error) {
		owed, err = tx.Get(TableSetting, settingOwed)
		return err
	})
	if err != nil || owed == nil {
		return err
	}
	if err := e.bringBack(ctx); err != nil {
		return err
	}
	return e.Store.Update(ctx, func(tx Tx) error { return tx.Delete(TableSetting, settingOwed) })
}

// bringBack gives a restored service what it lost of this account: revocations,
// key packages and the public profile.
func (e *Engine) bringBack(ctx context.Context) error {
	revocations := map[string][]byte{}
	var profile []byte
	err := e.Store.View(ctx, func(tx Tx) error {
		var err error
		if profile, err = tx.Get(TableSetting, settingProfile); err != nil {
			return err
		}
		return tx.Scan(TableRevoked, e.account.Identity.String()+"/", "", func(key string, raw []byte) (bool, error) {
			revocations[key] = raw
			return true, nil
		})
	})
	if err != nil {
		return err
	}
	for key, raw := range revocations {
		if err := e.tellRevocation(ctx, key, raw); err != nil {
			return err
		}
	}
	if profile != nil {
		if err := e.client.PutProfile(ctx, profile); err != nil && delivery.CodeOf(err) != delivery.CodeConflict {
			return e.fail(ctx, err)
		}
	}
	return e.publishKeys(ctx, moreKeys, policy.Suites...)
}

// healTries and healPause bound how long who says something waits for a room that is
// being put together again: about ten seconds. It may take the others a quarter of an
// hour, and what is kept until then is sent when the room is read next.
const (
	healTries = 2
	healPause = 5 * time.Second
)

// heal is called when the service says that a room is being put together again:
// this device gives what it holds of it, and waits a little for the others.
func (e *Engine) heal(ctx context.Context, r *room, try int, cause error) error {
	if err := e.catchUp(ctx, r); err != nil || r.rec.Lost == 0 {
		return err
	}
	if try >= healTries {
		return cause
	}
	return e.pauseAtMost(ctx, try, cause, healPause)
}

// offerAtMost bounds how many kept entries go into one offer; a room may need many.
const offerAtMost = delivery.MaxLogEntries / 2

// offer gives the service the entries that it may have lost, in their order and
// in as many pieces as they need: first with what the room was made by, if this
// device made it, and at last with the GroupInfo of this device's epoch.
func (e *Engine) offer(ctx context.Context, r *room) (got delivery.HealResponse, err error) {
	founding, err := e.founding(ctx, r.rec.ID)
	if err != nil {
		return got, err
	}
	from, missing, dropped := max(r.given, r.rec.Lost-min(r.rec.Lost, 1)), 0, 0
	for {
		piece, next, more, err := e.keptAfter(ctx, r.rec.ID, from, r.rec.anew())
		if err != nil {
			return got, err
		}
		offer := delivery.HealRequest{Entries: piece, Founding: founding, More: more}
		if got, err = e.offerPiece(ctx, r, offer); err != nil {
			return got, err
		}
		missing, dropped = missing+got.Missing, dropped+got.Dropped
		if got.Status == delivery.RoomHealing && got.Taken < len(piece) {
			// The rest is behind something that others may have: this is all for now.
			if more {
				offer.Entries, offer.More = piece[got.Taken:got.Taken+1], false
				if got, err = e.offerPiece(ctx, r, offer); err != nil {
					return got, err
				}
			}
			break
		}
		if got.Status != delivery.RoomHealing || !more {
			break
		}
		from, r.given, founding = next, next, nil
	}
	if missing > r.told.missing {
		e.Warn("%d files of a chat are gone: the service was restored and has lost their bytes", missing)
	}
	if dropped > r.told.dropped {
		e.Warn("%d entries that this device kept fit nowhere in the restored chat any more", dropped)
	}
	r.told.missing, r.told.dropped = max(r.told.missing, missing), max(r.told.dropped, dropped)
	return got, nil
}

func (e *Engine) offerPiece(ctx context.Context, r *room, offer delivery.HealRequest) (got delivery.HealResponse, err error) {
	if !offer.More && r.state.group != nil && r.state.group.Active() {
		if offer.GroupInfo, err = r.state.group.GroupInfo(false, nil); err != nil {
			return got, fmt.Errorf("sdk: offer kept entries: %w", err)
		}
	}
	if got, err = e.client.Heal(ctx, r.rec.ID, offer); err != nil {
		return got, e.fail(ctx, err)
	}
	if got.Taken < 0 || got.Taken > len(offer.Entries) {
		return got, fmt.Errorf("%w: it took %d of %d entries", client.ErrGarbage, got.Taken, len(offer.Entries))
	}
	return got, nil
}

// anew is the seq from which on entries were given theirs since the restore.
func (r Room) anew() uint64 { return cmp.Or(r.Anew, r.Lost+delivery.IncarnationJump) }

// noteRestore notes when the log says that the service was restored. Who came into
// the room after the backup sees the jump alone: everything since it came in may
// be lost.
func (e *Engine) noteRestore(tx Tx, r *room, entry delivery.Entry) error {
	switch {
	case entry.Kind == delivery.KindIncarnation:
		if err := oweBack(tx); err != nil {
			return err
		}
		m := delivery.MarkerOf(entry)
		r.restored(entry.Seq-m.Jump, entry.Seq)
		return e.forgotten(tx, r, entry.Seq-1, entry.AcceptedMS, m.BackupMS)
	case entry.Seq > r.rec.Cursor+delivery.IncarnationJump/2:
		if err := oweBack(tx); err != nil {
			return err
		}
		r.restored(max(r.rec.Joined, 1), entry.Seq)
		if err := r.siblingsRead(tx, entry.Seq-1); err != nil {
			return err
		}
		return e.forgotten(tx, r, entry.Seq-1, e.nowMS(), 0)
	}
	return nil
}

// restored: what this device holds from lost on is to be offered, and what it read from
// anew on is of the restored service.
func (r *room) restored(lost, anew uint64) {
	r.rec.Lost, r.rec.Anew, r.rec.Apart = lost, anew, 0
	r.given, r.told = 0, told{}
}

// gapsAtMost is how many gaps a room has at most by what the service shows alone.
const gapsAtMost = 256

// siblingsRead notes up to where others may have brought back what this device, which is
// not its account's first, never read: they stand before the entry by which it came in.
func (r *room) siblingsRead(tx Tx, to uint64) error {
	if r.rec.Past == 0 || len(r.rec.Gaps) >= gapsAtMost {
		return nil
	}
	r.rec.Gaps = r.rec.Gaps.with(Span{r.rec.Cursor + 1, to})
	return wantHistory(tx)
}

// forgotten leaves one line when messages may be gone that nobody can bring back: those
// that are newer than the backup, that were past retention when the service was restored,
// and that this device had not read by then, see [Room.Caught]. Whoever kept them has
// forgotten them. They count as not read, so that no other device of the account takes
// this one's archive for a proof that nothing was said there. to is the last seq that one
// of them may have had; a backup of 0 is of unknown age.
func (e *Engine) forgotten(tx Tx, r *room, to uint64, restoredMS, backupMS int64) error {
	limit := restoredMS - retention.Milliseconds()
	from := max(r.rec.Caught, backupMS)
	if from >= limit || to <= r.rec.Cursor {
		return nil
	}
	if len(r.rec.Gaps) < gapsAtMost {
		r.rec.Gaps = r.rec.Gaps.with(Span{r.rec.Cursor + 1, to})
		if err := wantHistory(tx); err != nil {
			return err
		}
	}
	day := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }
	return tx.PutLine(Line{
		Room: r.rec.ID, Seq: to, TimeMS: e.nowMS(), Kind: LineGap, GapFrom: r.rec.Cursor + 1, ID: eventID(r.rec.ID, r.rec.Cursor+1, "gap", 0),
		Cause: fmt.Sprintf("the service was restored from a backup: what was said from %s to %s is gone where everybody has forgotten it; %d to %d", day(from), day(limit), r.rec.Cursor+1, to),
	})
}

// pastRestore is noteRestore for a device that has nothing to read behind the
// restore: its own entry into the room, brought back by others, is the last one.
func (e *Engine) pastRestore(ctx context.Context, r *room, head uint64) error {
	if head <= r.rec.Cursor+delivery.IncarnationJump/2 {
		return nil
	}
	before := r.rec
	err := e.Store.Update(ctx, func(tx Tx) error {
		if err := oweBack(tx); err != nil {
			return err
		}
		r.restored(max(r.rec.Joined, 1), r.rec.Cursor+1)
		if err := r.siblingsRead(tx, head-1); err != nil {
			return err
		}
		if err := e.forgotten(tx, r, head, e.nowMS(), 0); err != nil {
			return err
		}
		r.rec.Cursor = head
		return r.save(tx)
	})
	if err != nil {
		r.rec = before
	}
	return err
}

// First and longest wait between offers of a room that the service does not know.
const (
	callAgain   = 10 * time.Second
	callAtLeast = 10 * time.Minute
)

// unknown deals with a room that the service does not know, or not this device in
// it: it was restored from a backup. What is kept of the room is offered, now and
// then again; back says that this device is in it once more.
func (e *Engine) unknown(ctx context.Context, r *room) (back bool, err error) {
	now := e.Now()
	if now.Before(r.calls) {
		return false, nil
	}
	// It may be this device that the service does not know.
	if err := e.ensure(ctx); err != nil {
		return false, err
	}
	r.waits = min(max(2*r.waits, callAgain), callAtLeast)
	r.calls = now.Add(r.waits)
	if r.rec.Lost == 0 || r.rec.Lapse.SinceMS == 0 {
		if r.rec.Lost == 0 {
			r.restored(max(r.rec.Joined, 1), math.MaxUint64) // it has read nothing since
		}
		r.lapsed(e.nowMS())
		if err := e.Store.Update(ctx, r.save); err != nil {
			return false, err
		}
	}
	_, err = e.offer(ctx, r)
	if delivery.CodeOf(err) == delivery.CodeNotFound {
		back, err = e.besides(ctx, r)
	} else {
		back = err == nil
	}
	if back {
		r.waits, r.rec.Lapse.SinceMS = 0, 0
		err = e.Store.Update(ctx, r.save)
	}
	return back, err
}

// besides enters a room anew in which another device of this account is, when nobody
// could bring back how this one came in: its leaf is gone, and not by anybody's will.
func (e *Engine) besides(ctx context.Context, r *room) (bool, error) {
	list, err := e.client.Rooms(ctx)
	if err != nil {
		return false, e.fail(ctx, err)
	}
	if !slices.ContainsFunc(list, func(v delivery.RoomView) bool { return v.Room == r.rec.ID && !v.Member }) {
		return false, nil
	}
	err = e.rejoin(ctx, r, earlierState)
	if aboutRoom(err) {
		return false, nil // it waits for its members: later
	}
	return err == nil, err
}

// regain gives a room that the restored service may have lost entries of what this
// device holds of them. When the room is open and read to its end, what this
// device had said and what nobody brought back is said again: the same message,
// with the same id. head is up to where the log was read, more says that there is
// something behind it now.
func (e *Engine) regain(ctx context.Context, r *room, head uint64) (more bool, err error) {
	if r.rec.Lost == 0 || r.rec.Status != StatusOpen || r.state.group == nil || !r.state.group.Active() {
		return false, nil
	}
	got, err := e.offer(ctx, r)
	if delivery.CodeOf(err) == delivery.CodeNotFound {
		return false, nil // it was removed meanwhile, which it reads in the log
	}
	if err != nil || got.Head > max(head, r.rec.Cursor) {
		return err == nil, err
	}
	if got.Status == delivery.RoomHealing {
		return false, nil
	}
	elsewhere, err := e.wentElsewhere(ctx, r, got.Epoch)
	if err != nil {
		return false, err
	}
	if elsewhere {
		// Nothing is said until it is back in; what it lacks there is said again then.
		if err := e.mustRenew(ctx, r, earlierState); err != nil {
			return false, err
		}
		return true, e.rejoin(ctx, r, earlierState)
	}
	before := r.rec
	err = e.Store.Update(ctx, func(tx Tx) error {
		if err := e.sayAgain(tx, r); err != nil {
			return err
		}
		r.rec.Lost, r.rec.Anew, r.rec.Apart = 0, 0, 0
		return r.save(tx)
	})
	if err != nil {
		r.rec = before
	}
	return false, err
}

// earlierState is why a device comes in again whose state nobody brought back.
const earlierState = "the service was restored to an earlier state"

// wentElsewhere reports whether a room that was restored and is open again, at an epoch
// and read to its end, is not in this device's state: nobody brought a change back that
// this device has made or followed, because all who could have forgotten it, and the
// room has gone on from before it, or will. What is said there this device never reads
// and would take for old. An epoch above its own is none of this: it is in the log.
func (e *Engine) wentElsewhere(ctx context.Context, r *room, epoch uint64) (bool, error) {
	own := r.state.group.Epoch()
	if epoch != own {
		return epoch < own, nil
	}
	info, err := e.shown(ctx, r.rec.ID, &outside{})
	if err != nil {
		return false, err
	}
	shown := &info.GroupContext
	return shown.Epoch < own || shown.Epoch == own && !bytes.Equal(wire.Marshal(shown), wire.Marshal(r.state.group.Context())), nil
}
