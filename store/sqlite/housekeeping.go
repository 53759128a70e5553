package sqlite

import (
	"context"

	"github.com/askucher/compax-core/delivery"
)

// Sweep drops what the plan allows. Each room's log is trimmed from its
// beginning, so what is kept stays without a gap: an entry older than the plan
// allows waits behind one that a wrong clock made younger.
func (s *Store) Sweep(ctx context.Context, plan delivery.SweepPlan) (counts delivery.SweepCounts, err error) {
	limit := plan.Limit
	if limit <= 0 {
		limit = 1000
	}
	err = s.write(ctx, func(c *change) error {
		counts = delivery.SweepCounts{}
		clear(c.heads)
		if err := sweepLog(c, plan.LogBefore, limit, &counts); err != nil {
			return err
		}
		if err := sweepWelcomes(c, plan.WelcomesBefore, limit, &counts); err != nil {
			return err
		}
		for _, t := range []struct {
			count  *int64
			query  string
			before int64
		}{
			{&counts.Sessions, "DELETE FROM sessions WHERE token IN (SELECT token FROM sessions WHERE expires_ms <= ? LIMIT ?)", plan.NowMS},
			{&counts.KeyPackages, "DELETE FROM key_packages WHERE n IN (SELECT n FROM key_packages WHERE not_after_ms <= ? LIMIT ?)", plan.NowMS},
			{&counts.Nonces, "DELETE FROM nonces WHERE (key, nonce) IN (SELECT key, nonce FROM nonces WHERE expires_ms <= ? LIMIT ?)", plan.NowMS},
			{&counts.Mail, "DELETE FROM mail WHERE (device, id) IN (SELECT device, id FROM mail WHERE acked = 1 AND created_ms < ? LIMIT ?)", plan.MailKeysBefore},
			{&counts.Archive, "DELETE FROM archive WHERE n IN (SELECT n FROM archive WHERE created_ms < ? LIMIT ?)", plan.ArchiveBefore},
		} {
			if *t.count, err = c.exec(t.query, t.before, limit); err != nil {
				return err
			}
			counts.More = counts.More || *t.count == int64(limit)
		}
		return sweepBlobs(c, plan.UploadsBefore, limit, &counts)
	})
	if err != nil {
		return delivery.SweepCounts{}, err
	}
	return counts, nil
}

// sweepLog trims rooms whose oldest entry is too old, those first.
func sweepLog(c *change, before int64, limit int, counts *delivery.SweepCounts) error {
	for left := int64(limit); ; {
		r, found, err := c.first("SELECT n, first_seq, next_seq FROM rooms WHERE first_ms < ? ORDER BY first_ms LIMIT 1", before)
		if err != nil || !found {
			return err
		}
		if left <= 0 {
			counts.More = true
			return nil
		}
		gone, err := trim(c, r.int(0), r.int(1), r.int(2), before, left)
		if err != nil {
			return err
		}
		counts.Entries += gone
		left -= gone
	}
}

// trim drops at most limit of a room's oldest entries older than before.
func trim(c *change, room, first, next, before, limit int64) (gone int64, err error) {
	keep := first // the oldest seq that stays
	var keepMS any
	err = c.query("SELECT seq, accepted_ms FROM log WHERE room = ? AND seq >= ? ORDER BY seq LIMIT ?", func(r row) error {
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
	for _, query := range []string{
		`UPDATE blobs SET refs = refs - gone.k, dead = (refs = gone.k)
			FROM (SELECT blob, count(*) AS k FROM blob_refs WHERE room = ? AND seq < ? GROUP BY blob) AS gone WHERE id = gone.blob`,
		"DELETE FROM blob_refs WHERE room = ? AND seq < ?",
		"DELETE FROM seen WHERE room = ? AND seq < ?",
		"DELETE FROM log WHERE room = ? AND seq < ?",
	} {
		if _, err := c.exec(query, room, keep); err != nil {
			return 0, err
		}
	}
	_, err = c.exec("UPDATE rooms SET first_seq = ?, first_ms = ? WHERE n = ?", keep, keepMS, room)
	return gone, err
}

// sweepWelcomes gives up Welcomes that nobody acknowledged for long.
func sweepWelcomes(c *change, before int64, limit int, counts *delivery.SweepCounts) error {
	type welcome struct{ room, epoch, current int64 }
	var old []welcome
	err := c.query("SELECT w.room, w.epoch, r.epoch FROM welcomes w JOIN rooms r ON r.n = w.room WHERE w.created_ms < ? LIMIT ?", func(r row) error {
		old = append(old, welcome{r.int(0), r.int(1), r.int(2)})
		return nil
	}, before, limit)
	if err != nil {
		return err
	}
	for _, w := range old {
		if _, err := c.exec("DELETE FROM joiners WHERE room = ? AND epoch = ?", w.room, w.epoch); err != nil {
			return err
		}
		states, err := freeWelcomes(c, w.room, uint64(w.current))
		if err != nil {
			return err
		}
		counts.States += states
	}
	counts.Welcomes = int64(len(old))
	counts.More = counts.More || len(old) == limit
	return nil
}

// sweepBlobs marks old uploads that nothing refers to, and names all blobs that
// are marked: those stay until DeleteBlob says that their bytes are gone.
func sweepBlobs(c *change, before int64, limit int, counts *delivery.SweepCounts) error {
	n, err := c.exec("UPDATE blobs SET dead = 1 WHERE id IN (SELECT id FROM blobs WHERE refs = 0 AND dead = 0 AND created_ms < ? LIMIT ?)", before, limit)
	if err != nil {
		return err
	}
	err = c.query("SELECT id FROM blobs WHERE dead = 1 ORDER BY id LIMIT ?", func(r row) error {
		var id delivery.BlobID
		r.bytes(0, id[:])
		counts.Blobs = append(counts.Blobs, id)
		return nil
	}, limit)
	counts.More = counts.More || n == int64(limit) || len(counts.Blobs) == limit
	return err
}

// StartIncarnation jumps every room's seq behind a marker and drops what a
// restored copy must not use.
func (s *Store) StartIncarnation(ctx context.Context, nowMS int64) error {
	return s.write(ctx, func(c *change) error {
		clear(c.heads)
		for _, q := range []struct {
			query string
			args  []any
		}{
			{"INSERT INTO log(room, seq, epoch, kind, accepted_ms, bytes) SELECT n, next_seq + ?, epoch, ?, ?, x'' FROM rooms ORDER BY n",
				[]any{delivery.IncarnationJump, delivery.KindIncarnation, nowMS}},
			// first_seq stays, also where nothing is kept: who has read up to there has
			// read everything before the marker.
			{`UPDATE rooms SET first_ms = coalesce(first_ms, ?), next_seq = next_seq + ? + 1, incarnation = incarnation + 1, changed_ms = ?,
				status = CASE WHEN status = ? THEN status ELSE ? END`,
				[]any{nowMS, delivery.IncarnationJump, nowMS, delivery.RoomSucceeded, delivery.RoomHealing}},
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
		return nil
	})
}
