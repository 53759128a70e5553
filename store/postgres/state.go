package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Advance moves the room to its next epoch, in one round trip.
func (t *roomTx) Advance(a delivery.Advance) error {
	if err := t.turn(); err != nil {
		return err
	}
	if a.Epoch != t.locked.room.Epoch+1 {
		return delivery.ErrChanged
	}
	if err := t.savepoint(); err != nil {
		return t.halfway(err)
	}
	return t.halfway(t.advance(a))
}

func (t *roomTx) advance(a delivery.Advance) error {
	n, epoch, seq := t.locked.n, int64(a.Epoch), int64(t.locked.room.NextSeq-1)
	var removed, joining, refs [][]byte
	for i := range a.Removed {
		removed = append(removed, a.Removed[i][:])
	}
	devices, identities, leaves := arrays(a.Updated)

	// Who leaves, who moves, who comes, in this order, so that a device may leave
	// and come back in one commit.
	var b pgx.Batch
	b.Queue("UPDATE memberships SET until_seq = $1 WHERE room = $2 AND device = ANY($3) AND until_seq = 0", seq, n, removed)
	b.Queue(`UPDATE memberships m SET leaf = v.leaf, identity = v.identity FROM unnest($1::bytea[], $2::bytea[], $3::bigint[]) AS v(device, identity, leaf)
		WHERE m.room = $4 AND m.device = v.device AND m.until_seq = 0`, devices, identities, leaves, n)
	queueMembers(&b, n, a.Added, uint64(seq))
	b.Queue("INSERT INTO deltas(room, epoch, delta) VALUES($1, $2, $3)", n, epoch, notNull(a.Delta))
	b.Queue("INSERT INTO group_infos(room, epoch, bytes) VALUES($1, $2, $3)", n, epoch, notNull(a.GroupInfo))
	if a.Welcome != nil {
		for i := range a.Joiners {
			joining, refs = append(joining, a.Joiners[i].Device[:]), append(refs, notNull(a.Joiners[i].Ref))
		}
		b.Queue("INSERT INTO welcomes(room, epoch, created_ms, bytes) VALUES($1, $2, $3, $4)", n, epoch, t.locked.room.ChangedMS, a.Welcome)
		b.Queue(`INSERT INTO joiners(room, epoch, device, ref, start_seq) SELECT $1, $2, v.device, v.ref, $3
			FROM unnest($4::bytea[], $5::bytea[]) WITH ORDINALITY AS v(device, ref, i) ORDER BY v.i`, n, epoch, seq, joining, refs)
	}
	b.Queue("DELETE FROM proposals WHERE room = $1", n)
	b.Queue("DELETE FROM reports WHERE room = $1", n)
	b.Queue(dropGroupInfos, n, epoch)
	tags, err := t.g.tags(&b)
	if err != nil {
		return err
	}
	if tags[0].RowsAffected() != int64(len(a.Removed)) || tags[1].RowsAffected() != int64(len(a.Updated)) {
		return delivery.ErrNotFound
	}
	t.locked.room.Epoch, t.locked.held = a.Epoch, 0
	t.touched = true
	return nil
}

// dropGroupInfos deletes those of epochs before the previous one, except where
// a Welcome is unacknowledged; $2 is the current epoch.
const dropGroupInfos = `DELETE FROM group_infos g WHERE room = $1 AND epoch < $2::bigint - 1
	AND NOT EXISTS (SELECT 1 FROM joiners j WHERE j.room = g.room AND j.epoch = g.epoch)`

// State reads the nearest base and the deltas from it, in one statement and so
// at one moment.
func (s *Store) State(ctx context.Context, id delivery.RoomID, epoch uint64) (st delivery.StoredState, err error) {
	next, known := uint64(0), false
	err = s.list(ctx, `WITH base AS (SELECT b.room, b.epoch, b.state FROM bases b JOIN rooms r ON r.n = b.room
			WHERE r.id = $1 AND b.epoch <= $2 ORDER BY b.epoch DESC LIMIT 1)
		SELECT epoch, state FROM base UNION ALL
		SELECT d.epoch, d.delta FROM deltas d, base WHERE d.room = base.room AND d.epoch > base.epoch AND d.epoch <= $2
		ORDER BY epoch`, []any{id[:], int64(epoch)}, func(scan func(...any) error) error {
		var e uint64
		var bytes []byte
		if err := scan(&e, &bytes); err != nil {
			return err
		}
		switch {
		case !known:
			known, st.BaseEpoch, st.Base = true, e, bytes
		case e != next:
			return delivery.ErrNotFound
		default:
			st.Deltas = append(st.Deltas, bytes)
		}
		next = e + 1
		return nil
	})
	if err == nil && (!known || next != epoch+1) {
		err = delivery.ErrNotFound
	}
	if err != nil {
		return delivery.StoredState{}, err
	}
	return st, nil
}

// Rebase puts one base at epoch in the place of what led there.
func (s *Store) Rebase(ctx context.Context, id delivery.RoomID, epoch uint64, base []byte) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		n, room, err := lockRoom(ctx, tx, id)
		if err != nil {
			return err
		}
		var kept bool // a base, and each delta from it
		err = tx.QueryRow(ctx, `WITH base AS (SELECT epoch FROM bases WHERE room = $1 AND epoch <= $2 ORDER BY epoch DESC LIMIT 1)
			SELECT EXISTS (SELECT 1 FROM base) AND (SELECT count(*) FROM deltas d, base WHERE d.room = $1 AND d.epoch > base.epoch AND d.epoch <= $2)
				= $2 - (SELECT epoch FROM base)`, n, int64(epoch)).Scan(&kept)
		if err != nil {
			return err
		}
		if !kept {
			return delivery.ErrNotFound
		}
		_, err = tx.Exec(ctx, "INSERT INTO bases(room, epoch, state) VALUES($1, $2, $3) ON CONFLICT(room, epoch) DO UPDATE SET state = excluded.state",
			n, int64(epoch), notNull(base))
		if err != nil {
			return err
		}
		_, err = dropStates(ctx, tx, n, room.Epoch)
		return err
	})
}

// dropStates deletes bases and deltas that lead to no needed epoch: what is
// older than the nearest base at or below the oldest one needed, which is the
// previous epoch or that of the oldest unacknowledged Welcome.
func dropStates(ctx context.Context, tx pgx.Tx, n int64, current uint64) (dropped int64, err error) {
	needed := int64(current)
	if needed > 0 {
		needed--
	}
	var base *int64
	err = tx.QueryRow(ctx, `SELECT max(epoch) FROM bases WHERE room = $1
		AND epoch <= least($2::bigint, (SELECT min(epoch) FROM joiners WHERE room = $1))`, n, needed).Scan(&base)
	if err != nil || base == nil {
		return 0, err
	}
	for query, arg := range map[string]int64{
		"DELETE FROM bases WHERE room = $1 AND epoch < $2":   *base,
		"DELETE FROM deltas WHERE room = $1 AND epoch <= $2": *base,
		dropGroupInfos: int64(current),
	} {
		tag, err := tx.Exec(ctx, query, n, arg)
		if err != nil {
			return 0, err
		}
		dropped += tag.RowsAffected()
	}
	return dropped, nil
}

// GroupInfo reads the GroupInfo of an epoch.
func (s *Store) GroupInfo(ctx context.Context, id delivery.RoomID, epoch uint64) (info []byte, err error) {
	err = s.read(ctx, "SELECT g.bytes FROM group_infos g JOIN rooms r ON r.n = g.room WHERE r.id = $1 AND g.epoch = $2",
		[]any{id[:], int64(epoch)}, &info)
	return info, err
}

// Welcome reads the Welcome of an epoch for a joiner that has not acknowledged.
func (s *Store) Welcome(ctx context.Context, id delivery.RoomID, epoch uint64, device identity.DeviceID) (welcome []byte, err error) {
	err = s.read(ctx, `SELECT w.bytes FROM rooms r JOIN joiners j ON j.room = r.n JOIN welcomes w ON w.room = j.room AND w.epoch = j.epoch
		WHERE r.id = $1 AND j.epoch = $2 AND j.device = $3`, []any{id[:], int64(epoch), device[:]}, &welcome)
	return welcome, err
}

// Report notes who could not process the newest commit.
func (s *Store) Report(ctx context.Context, id delivery.RoomID, epoch uint64, who identity.PublicKey) (identities int, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		identities = 0
		n, room, err := lockRoom(ctx, tx, id)
		if err != nil || room.Epoch != epoch {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO reports(room, identity) VALUES($1, $2) ON CONFLICT DO NOTHING", n, who[:]); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT count(*) FROM reports WHERE room = $1", n).Scan(&identities)
	})
	if err != nil {
		return 0, err
	}
	return identities, nil
}

// PendingRelays reads the mailbox pointers that are owed.
func (s *Store) PendingRelays(ctx context.Context, limit int) (list []delivery.Relay, err error) {
	err = s.list(ctx, `SELECT r.id, j.epoch, j.device, j.ref, j.start_seq FROM joiners j JOIN rooms r ON r.n = j.room
		WHERE NOT j.relayed ORDER BY j.n LIMIT $1`, []any{int64(limit)}, func(scan func(...any) error) error {
		var room, device []byte
		var r delivery.Relay
		if err := scan(&room, &r.Epoch, &device, &r.Ref, &r.StartSeq); err != nil {
			return err
		}
		copy(r.Room[:], room)
		copy(r.Device[:], device)
		list = append(list, r)
		return nil
	})
	return list, err
}

// FinishRelay marks the pointer as given.
func (s *Store) FinishRelay(ctx context.Context, r delivery.Relay) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE joiners SET relayed = true WHERE room = (SELECT n FROM rooms WHERE id = $1) AND epoch = $2 AND device = $3",
			r.Room[:], int64(r.Epoch), r.Device[:])
		return err
	})
}

// AckWelcome forgets the joiner, and with the last one the Welcome.
func (s *Store) AckWelcome(ctx context.Context, id delivery.RoomID, epoch uint64, device identity.DeviceID) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		n, room, err := lockRoom(ctx, tx, id)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, "DELETE FROM joiners WHERE room = $1 AND epoch = $2 AND device = $3", n, int64(epoch), device[:])
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		_, err = freeWelcomes(ctx, tx, n, room.Epoch)
		return err
	})
}

// freeWelcomes deletes the room's Welcomes that nobody waits for, and the
// states that were kept for them.
func freeWelcomes(ctx context.Context, tx pgx.Tx, n int64, current uint64) (states int64, err error) {
	tag, err := tx.Exec(ctx, `DELETE FROM welcomes w WHERE room = $1
		AND NOT EXISTS (SELECT 1 FROM joiners j WHERE j.room = w.room AND j.epoch = w.epoch)`, n)
	if err != nil || tag.RowsAffected() == 0 {
		return 0, err
	}
	return dropStates(ctx, tx, n, current)
}
