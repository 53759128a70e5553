package sqlite

import (
	"context"
	"fmt"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/store/sweep"
)

// sweepRooms bounds how many rooms one transaction of housekeeping looks at: each
// costs some ten statements, and appends wait behind all of them.
const sweepRooms = 64

func sweepSteps() []sweep.Step[*change] {
	steps := []sweep.Step[*change]{sweepLog, sweepWelcomes}
	for _, rows := range sweep.ByAge {
		steps = append(steps, dropRows(rows))
	}
	return append(steps, markUploads, nameBlobs)
}

// Sweep drops what the plan allows. Each room's log is trimmed from its
// beginning, so what is kept stays without a gap: an entry older than the plan
// allows waits behind one that a wrong clock made younger.
func (s *Store) Sweep(ctx context.Context, plan delivery.SweepPlan) (delivery.SweepCounts, error) {
	return sweep.Run(ctx, plan, sweepSteps(), func(ctx context.Context, run func(*change) error) error {
		return s.write(ctx, func(c *change) error {
			clear(c.heads)
			return run(c)
		})
	})
}

// dropRows is a step that deletes rows by their time.
func dropRows(rows sweep.Aged) sweep.Step[*change] {
	done := ""
	if rows.Done {
		done = "acked = 1 AND "
	}
	query := fmt.Sprintf("DELETE FROM %[1]s WHERE (%[2]s) IN (SELECT %[2]s FROM %[1]s WHERE %[3]s%[4]s ? LIMIT ?)", rows.Table, rows.Key, done, rows.Old)
	return func(_ context.Context, c *change, plan *delivery.SweepPlan, limit int64, counts *delivery.SweepCounts) (more bool, err error) {
		count := rows.Count(counts)
		*count, err = c.exec(query, rows.Before(plan), limit)
		return *count == limit, err
	}
}

// sweepLog trims rooms whose oldest entry is too old, those first.
func sweepLog(_ context.Context, c *change, plan *delivery.SweepPlan, limit int64, counts *delivery.SweepCounts) (more bool, err error) {
	for rooms := 0; ; rooms++ {
		r, found, err := c.first("SELECT n, first_seq, next_seq FROM rooms WHERE first_ms < ? ORDER BY first_ms LIMIT 1", plan.LogBefore)
		if err != nil || !found {
			return false, err
		}
		if rooms == 0 {
			if err := c.tail.placeAll(c.exec); err != nil {
				return false, err
			}
			continue // next_seq may be another now
		}
		if counts.Entries == limit || rooms > sweepRooms {
			return true, nil
		}
		gone, err := trim(c, r.int(0), r.int(1), r.int(2), plan.LogBefore, limit-counts.Entries)
		if err != nil {
			return false, err
		}
		counts.Entries += gone
	}
}

// forgetSeen finds the rows of seen by their keys: it has no order by seq, which each
// append would have to write.
const forgetSeen = `DELETE FROM seen WHERE room = ? AND key IN
	(SELECT l.key FROM places p CROSS JOIN log l ON l.at = p.at WHERE p.room = ? AND p.seq < ?)`

// forget drops the dedupe rows of a room's entries before keep.
func forget(c *change, room, keep int64) error {
	if _, err := c.exec(forgetSeen, room, room, keep); err != nil {
		return err
	}
	_, old, err := c.first(`SELECT 1 FROM places p CROSS JOIN log l ON l.at = p.at
		WHERE p.room = ? AND p.seq < ? AND l.key IS NULL AND l.kind <> ? LIMIT 1`, room, keep, delivery.KindIncarnation)
	if err == nil && old { // from before log had keys
		_, err = c.exec("DELETE FROM seen WHERE room = ? AND seq < ?", room, keep)
	}
	return err
}

// trim drops at most limit of a room's oldest entries older than before.
func trim(c *change, room, first, next, before, limit int64) (gone int64, err error) {
	keep := first // the oldest seq that stays
	var keepMS any
	err = c.query(`SELECT p.seq, l.accepted_ms FROM places p CROSS JOIN log l ON l.at = p.at
		WHERE p.room = ? AND p.seq >= ? ORDER BY p.seq LIMIT ?`, func(r row) error {
		keep, keepMS = r.int(0), r.int(1)
		if r.int(1) >= before || gone == limit {
			return errStop
		}
		gone++
		keep, keepMS = next, nil
		return nil
	}, room, first, limit+1)
	if err != nil {
		return 0, err
	}
	if keepMS == nil {
		keep = next
	}
	if err := forget(c, room, keep); err != nil {
		return 0, err
	}
	for _, query := range []string{
		`UPDATE blobs SET refs = refs - gone.k, dead = (refs = gone.k)
			FROM (SELECT blob, count(*) AS k FROM blob_refs WHERE room = ? AND seq < ? GROUP BY blob) AS gone WHERE id = gone.blob`,
		"DELETE FROM blob_refs WHERE room = ? AND seq < ?",
		"DELETE FROM log WHERE at IN (SELECT at FROM places WHERE room = ? AND seq < ?)",
		"DELETE FROM places WHERE room = ? AND seq < ?",
	} {
		if _, err := c.exec(query, room, keep); err != nil {
			return 0, err
		}
	}
	_, err = c.exec("UPDATE rooms SET first_seq = ?, first_ms = ? WHERE n = ?", keep, keepMS, room)
	return gone, err
}

// sweepWelcomes gives up Welcomes that nobody acknowledged for long.
func sweepWelcomes(_ context.Context, c *change, plan *delivery.SweepPlan, limit int64, counts *delivery.SweepCounts) (more bool, err error) {
	type welcome struct{ room, epoch, current int64 }
	var old []welcome
	limit = min(limit, sweepRooms)
	err = c.query("SELECT w.room, w.epoch, r.epoch FROM welcomes w JOIN rooms r ON r.n = w.room WHERE w.created_ms < ? LIMIT ?", func(r row) error {
		old = append(old, welcome{r.int(0), r.int(1), r.int(2)})
		return nil
	}, plan.WelcomesBefore, limit)
	if err != nil {
		return false, err
	}
	for _, w := range old {
		if _, err := c.exec("DELETE FROM joiners WHERE room = ? AND epoch = ?", w.room, w.epoch); err != nil {
			return false, err
		}
		states, err := freeWelcomes(c, w.room, uint64(w.current))
		if err != nil {
			return false, err
		}
		counts.States += states
	}
	counts.Welcomes = int64(len(old))
	return counts.Welcomes == limit, nil
}

// markUploads marks old uploads that nothing refers to.
func markUploads(_ context.Context, c *change, plan *delivery.SweepPlan, limit int64, _ *delivery.SweepCounts) (more bool, err error) {
	n, err := c.exec("UPDATE blobs SET dead = 1 WHERE id IN (SELECT id FROM blobs WHERE refs = 0 AND dead = 0 AND created_ms < ? LIMIT ?)", plan.UploadsBefore, limit)
	return n == limit, err
}

// nameBlobs names the blobs that are marked: those stay until DeleteBlob says
// that their bytes are gone.
func nameBlobs(_ context.Context, c *change, plan *delivery.SweepPlan, limit int64, counts *delivery.SweepCounts) (more bool, err error) {
	counts.Blobs = nil
	err = c.query("SELECT id FROM blobs WHERE dead = 1 AND id > ? ORDER BY id LIMIT ?", func(r row) error {
		var id delivery.BlobID
		r.bytes(0, id[:])
		counts.Blobs = append(counts.Blobs, id)
		return nil
	}, plan.BlobsAfter[:], limit)
	return int64(len(counts.Blobs)) == limit, err
}

// StartIncarnation jumps every room's seq behind a marker, drops what a restored
// copy must not use, and notes what settings says of it.
func (s *Store) StartIncarnation(ctx context.Context, sinceMS, nowMS int64, settings func(delivery.Marker) (map[string][]byte, error)) (marker delivery.Marker, err error) {
	err = s.write(ctx, func(c *change) error {
		clear(c.heads)
		if err := c.tail.placeAll(c.exec); err != nil {
			return err
		}
		newest := sinceMS
		if err := c.query("SELECT coalesce(max(changed_ms), 0) FROM rooms", func(r row) error {
			newest = max(newest, r.int(0))
			return nil
		}); err != nil {
			return err
		}
		marker = delivery.NewMarker(newest, nowMS)
		set, err := settings(marker)
		if err != nil {
			return err
		}
		upto := c.tail.next - 1
		for _, q := range []struct {
			query string
			args  []any
		}{
			{`INSERT INTO log(at, room, seq, epoch, kind, accepted_ms, bytes)
				SELECT ? + row_number() OVER (ORDER BY n), n, next_seq + ?, epoch, ?, ?, ? FROM rooms ORDER BY n`,
				[]any{upto, marker.Jump, delivery.KindIncarnation, nowMS, marker.Bytes()}},
			{"INSERT INTO places(room, seq, at) SELECT room, seq, at FROM log WHERE at > ? ORDER BY room, seq", []any{upto}},
			{"UPDATE placed SET upto = max(upto, coalesce((SELECT max(at) FROM log), 0))", nil},
			// first_seq stays, also where nothing is kept: who has read up to there has
			// read everything before the marker.
			{`UPDATE rooms SET first_ms = coalesce(first_ms, ?), next_seq = next_seq + ? + 1, incarnation = incarnation + 1, changed_ms = ?,
				status = CASE WHEN status = ? THEN status ELSE ? END`,
				[]any{nowMS, marker.Jump, nowMS, delivery.RoomSucceeded, delivery.RoomHealing}},
			{"DELETE FROM sessions", nil},
			// Their refs stay known: a package that was handed out after the backup
			// must not come in again.
			{"UPDATE key_packages SET claimed = 1, bytes = x'' WHERE last_resort = 0 AND claimed = 0", nil},
			{"UPDATE devices SET counter = NULL", nil},
		} {
			if _, err := c.exec(q.query, q.args...); err != nil {
				return err
			}
		}
		for key, value := range set {
			if err := putSetting(c, key, value); err != nil {
				return err
			}
		}
		r, err := c.one("SELECT upto FROM placed")
		if err == nil {
			c.tail.next = max(c.tail.next, r.int(0)+1)
		}
		return err
	})
	return marker, err
}
