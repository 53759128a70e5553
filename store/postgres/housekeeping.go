package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/store/sweep"
)

// sweepRooms bounds how many rooms one transaction of housekeeping holds: each
// takes three round trips, so the first is held for about as long as a group of
// appends holds it.
const sweepRooms = 16

func sweepSteps() []sweep.Step[pgx.Tx] {
	steps := []sweep.Step[pgx.Tx]{sweepLog, sweepWelcomes}
	for _, rows := range sweep.ByAge {
		steps = append(steps, dropRows(rows))
	}
	return append(steps, markUploads, nameBlobs)
}

// Sweep drops what the plan allows. Each room's log is trimmed from its
// beginning, so what is kept stays without a gap: an entry older than the plan
// allows waits behind one that a wrong clock made younger. It passes over rooms
// that somebody holds; the next call finds them.
func (s *Store) Sweep(ctx context.Context, plan delivery.SweepPlan) (delivery.SweepCounts, error) {
	return sweep.Run(ctx, plan, sweepSteps(), s.write)
}

// dropRows is a step that deletes rows by their time.
func dropRows(rows sweep.Aged) sweep.Step[pgx.Tx] {
	done := ""
	if rows.Done {
		done = "acked AND "
	}
	query := fmt.Sprintf("DELETE FROM %[1]s WHERE (%[2]s) IN (SELECT %[2]s FROM %[1]s WHERE %[3]s%[4]s $1 LIMIT $2 FOR UPDATE SKIP LOCKED)", rows.Table, rows.Key, done, rows.Old)
	return func(ctx context.Context, tx pgx.Tx, plan *delivery.SweepPlan, limit int64, counts *delivery.SweepCounts) (more bool, err error) {
		tag, err := tx.Exec(ctx, query, rows.Before(plan), limit)
		count := rows.Count(counts)
		*count = tag.RowsAffected()
		return *count == limit, err
	}
}

// sweepLog trims rooms whose oldest entry is too old, those first.
func sweepLog(ctx context.Context, tx pgx.Tx, plan *delivery.SweepPlan, limit int64, counts *delivery.SweepCounts) (more bool, err error) {
	for rooms := 0; ; rooms++ {
		if counts.Entries == limit || rooms == sweepRooms {
			return true, nil // perhaps: to look would lock one more
		}
		var room, first, next int64
		err := row(tx.QueryRow(ctx, "SELECT n, first_seq, next_seq FROM rooms WHERE first_ms < $1 ORDER BY first_ms LIMIT 1 FOR UPDATE SKIP LOCKED", plan.LogBefore), &room, &first, &next)
		if errors.Is(err, delivery.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		gone, err := trim(ctx, tx, room, first, next, plan.LogBefore, limit-counts.Entries)
		if err != nil {
			return false, err
		}
		counts.Entries += gone
	}
}

const (
	// forgetSeen finds the rows of seen by their keys: it has no order by seq.
	forgetSeen = "DELETE FROM seen s USING log l WHERE l.room = $1 AND l.seq < $2 AND s.room = $1 AND s.key = l.key"
	// forgetOldSeen looks through the room, when there are entries from before log had keys.
	forgetOldSeen = `DELETE FROM seen WHERE room = $1 AND seq < $2
		AND EXISTS (SELECT 1 FROM log WHERE room = $1 AND seq < $2 AND key IS NULL AND kind <> $3)`
)

// trim drops at most limit of a room's oldest entries older than before.
func trim(ctx context.Context, tx pgx.Tx, room, first, next, before, limit int64) (gone int64, err error) {
	rows, err := tx.Query(ctx, "SELECT seq, accepted_ms FROM log WHERE room = $1 AND seq >= $2 ORDER BY seq LIMIT $3", room, first, limit+1)
	if err != nil {
		return 0, err
	}
	keep, found := next, false // the oldest seq that stays
	var keepMS *int64
	err = eachRow(rows, func(scan func(...any) error) error {
		var seq, ms int64
		if err := scan(&seq, &ms); err != nil || found {
			return err
		}
		if ms >= before || gone == limit {
			keep, keepMS, found = seq, &ms, true
			return nil
		}
		gone++
		return nil
	})
	if err != nil {
		return 0, err
	}
	var b pgx.Batch
	b.Queue(forgetSeen, room, keep)
	b.Queue(forgetOldSeen, room, keep, int64(delivery.KindIncarnation))
	for _, query := range []string{
		`UPDATE blobs SET refs = refs - gone.k, dead = (refs = gone.k)
			FROM (SELECT blob, count(*) AS k FROM blob_refs WHERE room = $1 AND seq < $2 GROUP BY blob) AS gone WHERE id = gone.blob`,
		"DELETE FROM blob_refs WHERE room = $1 AND seq < $2",
		"DELETE FROM log WHERE room = $1 AND seq < $2",
	} {
		b.Queue(query, room, keep)
	}
	b.Queue("UPDATE rooms SET first_seq = $1, first_ms = $2 WHERE n = $3", keep, keepMS, room)
	return gone, tx.SendBatch(ctx, &b).Close()
}

// sweepWelcomes gives up Welcomes that nobody acknowledged for long.
func sweepWelcomes(ctx context.Context, tx pgx.Tx, plan *delivery.SweepPlan, limit int64, counts *delivery.SweepCounts) (more bool, err error) {
	type welcome struct {
		room, epoch int64
		current     uint64
	}
	var old []welcome
	limit = min(limit, sweepRooms)
	rows, err := tx.Query(ctx, `SELECT w.room, w.epoch, r.epoch FROM welcomes w JOIN rooms r ON r.n = w.room WHERE w.created_ms < $1
		LIMIT $2 FOR UPDATE OF r SKIP LOCKED`, plan.WelcomesBefore, limit)
	if err != nil {
		return false, err
	}
	err = eachRow(rows, func(scan func(...any) error) error {
		var w welcome
		err := scan(&w.room, &w.epoch, &w.current)
		old = append(old, w)
		return err
	})
	if err != nil {
		return false, err
	}
	for _, w := range old {
		if _, err := tx.Exec(ctx, "DELETE FROM joiners WHERE room = $1 AND epoch = $2", w.room, w.epoch); err != nil {
			return false, err
		}
		states, err := freeWelcomes(ctx, tx, w.room, w.current)
		if err != nil {
			return false, err
		}
		counts.States += states
	}
	counts.Welcomes = int64(len(old))
	return counts.Welcomes == limit, nil
}

// markUploads marks old uploads that nothing refers to.
func markUploads(ctx context.Context, tx pgx.Tx, plan *delivery.SweepPlan, limit int64, _ *delivery.SweepCounts) (more bool, err error) {
	tag, err := tx.Exec(ctx, `UPDATE blobs SET dead = true WHERE id IN (
		SELECT id FROM blobs WHERE refs = 0 AND NOT dead AND created_ms < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`, plan.UploadsBefore, limit)
	return tag.RowsAffected() == limit, err
}

// nameBlobs names the blobs that are marked: those stay until DeleteBlob says
// that their bytes are gone.
func nameBlobs(ctx context.Context, tx pgx.Tx, plan *delivery.SweepPlan, limit int64, counts *delivery.SweepCounts) (more bool, err error) {
	rows, err := tx.Query(ctx, "SELECT id FROM blobs WHERE dead AND id > $1 ORDER BY id LIMIT $2", plan.BlobsAfter[:], limit)
	if err != nil {
		return false, err
	}
	counts.Blobs = nil
	err = eachRow(rows, func(scan func(...any) error) error {
		var id []byte
		if err := scan(&id); err != nil {
			return err
		}
		counts.Blobs = append(counts.Blobs, delivery.BlobID(id))
		return nil
	})
	return int64(len(counts.Blobs)) == limit, err
}

// StartIncarnation jumps every room's seq behind a marker, drops what a restored
// copy must not use, and notes what settings says of it.
func (s *Store) StartIncarnation(ctx context.Context, sinceMS, nowMS int64, settings func(delivery.Marker) (map[string][]byte, error)) (marker delivery.Marker, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "LOCK TABLE rooms IN EXCLUSIVE MODE"); err != nil {
			return err
		}
		var newest int64
		if err := tx.QueryRow(ctx, "SELECT coalesce(max(changed_ms), 0) FROM rooms").Scan(&newest); err != nil {
			return err
		}
		marker = delivery.NewMarker(max(newest, sinceMS), nowMS)
		set, err := settings(marker)
		if err != nil {
			return err
		}
		for _, q := range []struct {
			query string
			args  []any
		}{
			{`INSERT INTO log(room, seq, epoch, kind, accepted_ms, bytes) SELECT n, next_seq + $1, epoch, $2, $3, $4 FROM rooms`,
				[]any{int64(marker.Jump), int64(delivery.KindIncarnation), nowMS, marker.Bytes()}},
			// first_seq stays, also where nothing is kept: who has read up to there has
			// read everything before the marker.
			{`UPDATE rooms SET first_ms = coalesce(first_ms, $2), next_seq = next_seq + $1 + 1, incarnation = incarnation + 1, changed_ms = $2,
				status = CASE WHEN status = $3 THEN status ELSE $4 END`,
				[]any{int64(marker.Jump), nowMS, int64(delivery.RoomSucceeded), int64(delivery.RoomHealing)}},
			{"DELETE FROM sessions", nil},
			// Their refs stay known: a package that was handed out after the backup
			// must not come in again.
			{"UPDATE key_packages SET claimed = true, bytes = '' WHERE NOT last_resort AND NOT claimed", nil},
			{"UPDATE devices SET counter = NULL", nil},
		} {
			if _, err := tx.Exec(ctx, q.query, q.args...); err != nil {
				return err
			}
		}
		for key, value := range set {
			if _, err := tx.Exec(ctx, putSetting, key, notNull(value)); err != nil {
				return err
			}
		}
		return nil
	})
	return marker, err
}
