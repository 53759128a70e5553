package sqlite

import (
	"context"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Advance moves the room to its next epoch.
func (t *roomTx) Advance(a delivery.Advance) error {
	if t.broken != nil {
		return t.broken
	}
	if a.Epoch != t.room.Epoch+1 {
		return delivery.ErrChanged
	}
	return t.halfway(t.advance(a))
}

func (t *roomTx) advance(a delivery.Advance) error {
	if _, err := t.c.exec("INSERT INTO deltas(room, epoch, delta) VALUES(?, ?, ?)", t.n, a.Epoch, a.Delta); err != nil {
		return err
	}
	if _, err := t.c.exec("INSERT INTO group_infos(room, epoch, bytes) VALUES(?, ?, ?)", t.n, a.Epoch, a.GroupInfo); err != nil {
		return err
	}
	if err := t.changeRoster(a, t.room.NextSeq-1); err != nil {
		return err
	}
	if a.Welcome != nil {
		_, err := t.c.exec("INSERT INTO welcomes(room, epoch, created_ms, bytes) VALUES(?, ?, ?, ?)", t.n, a.Epoch, t.room.ChangedMS, a.Welcome)
		if err != nil {
			return err
		}
		for _, j := range a.Joiners {
			_, err := t.c.exec("INSERT INTO joiners(room, epoch, device, ref, start_seq) VALUES(?, ?, ?, ?, ?)",
				t.n, a.Epoch, j.Device[:], j.Ref, t.room.NextSeq-1)
			if err != nil {
				return exists(err)
			}
		}
	}
	for _, query := range []string{"DELETE FROM proposals WHERE room = ?", "DELETE FROM reports WHERE room = ?"} {
		if _, err := t.c.exec(query, t.n); err != nil {
			return err
		}
	}
	// Nobody who reads an epoch reads a log that ends before its commit.
	_, err := t.c.exec("UPDATE rooms SET epoch = ?, next_seq = ?, changed_ms = ? WHERE n = ?", a.Epoch, t.room.NextSeq, t.room.ChangedMS, t.n)
	if err != nil {
		return err
	}
	t.room.Epoch = a.Epoch
	t.idle = true
	_, err = dropGroupInfos(t.c, t.n, a.Epoch)
	return err
}

// changeRoster applies a commit that stands at seq: who leaves, who moves, who
// comes, in this order, so that a device may leave and come back in one commit.
func (t *roomTx) changeRoster(a delivery.Advance, seq uint64) error {
	for _, device := range a.Removed {
		n, err := t.c.exec("UPDATE memberships SET until_seq = ? WHERE room = ? AND device = ? AND until_seq = 0", seq, t.n, device[:])
		if err := onlyOne(n, err); err != nil {
			return err
		}
	}
	for _, m := range a.Updated {
		n, err := t.c.exec("UPDATE memberships SET leaf = ?, identity = ? WHERE room = ? AND device = ? AND until_seq = 0",
			m.Leaf, m.Identity[:], t.n, m.Device[:])
		if err := onlyOne(n, err); err != nil {
			return err
		}
	}
	for _, m := range a.Added {
		if err := addMember(t.c, t.n, m, seq); err != nil {
			return err
		}
	}
	return nil
}

// onlyOne is delivery.ErrNotFound when a statement found no row to change.
func onlyOne(n int64, err error) error {
	if err == nil && n == 0 {
		return delivery.ErrNotFound
	}
	return err
}

// State reads the nearest base and the deltas from it.
func (s *Store) State(ctx context.Context, id delivery.RoomID, epoch uint64) (st delivery.StoredState, err error) {
	err = s.snapshot(ctx, func(c *conn) error {
		n, err := roomNumber(c, id)
		if err != nil {
			return err
		}
		st, err = state(c, n, epoch)
		return err
	})
	return st, err
}

func state(c *conn, n int64, epoch uint64) (delivery.StoredState, error) {
	r, err := c.one("SELECT epoch, state FROM bases WHERE room = ? AND epoch <= ? ORDER BY epoch DESC LIMIT 1", n, epoch)
	if err != nil {
		return delivery.StoredState{}, err
	}
	st := delivery.StoredState{BaseEpoch: r.uint(0), Base: r.blob(1)}
	next := st.BaseEpoch + 1
	err = c.query("SELECT epoch, delta FROM deltas WHERE room = ? AND epoch > ? AND epoch <= ? ORDER BY epoch", func(r row) error {
		if r.uint(0) != next {
			return delivery.ErrNotFound
		}
		next++
		st.Deltas = append(st.Deltas, r.blob(1))
		return nil
	}, n, st.BaseEpoch, epoch)
	if err == nil && next != epoch+1 {
		err = delivery.ErrNotFound
	}
	if err != nil {
		return delivery.StoredState{}, err
	}
	return st, nil
}

// Rebase puts one base at epoch in the place of what led there.
func (s *Store) Rebase(ctx context.Context, id delivery.RoomID, epoch uint64, base []byte) error {
	return s.write(ctx, func(c *change) error {
		n, room, err := roomByID(c.conn, id)
		if err != nil {
			return err
		}
		if _, err := state(c.conn, n, epoch); err != nil {
			return err
		}
		_, err = c.exec("INSERT INTO bases(room, epoch, state) VALUES(?, ?, ?) ON CONFLICT(room, epoch) DO UPDATE SET state = excluded.state", n, epoch, base)
		if err != nil {
			return err
		}
		_, err = dropStates(c, n, room.Epoch)
		return err
	})
}

// oldestNeeded is the lowest epoch whose state must stay: the previous one, or
// that of the oldest unacknowledged Welcome.
func oldestNeeded(c *conn, n int64, current uint64) (uint64, error) {
	if current > 0 {
		current--
	}
	r, err := c.one("SELECT min(epoch) FROM joiners WHERE room = ?", n)
	if err == nil && !r.null(0) {
		current = min(current, r.uint(0))
	}
	return current, err
}

// dropStates deletes bases and deltas that lead to no needed epoch: what is
// older than the nearest base at or below the oldest one needed.
func dropStates(c *change, n int64, current uint64) (dropped int64, err error) {
	needed, err := oldestNeeded(c.conn, n, current)
	if err != nil {
		return 0, err
	}
	r, err := c.one("SELECT max(epoch) FROM bases WHERE room = ? AND epoch <= ?", n, needed)
	if err != nil || r.null(0) {
		return 0, err
	}
	for _, query := range []string{
		"DELETE FROM bases WHERE room = ? AND epoch < ?",
		"DELETE FROM deltas WHERE room = ? AND epoch <= ?",
	} {
		k, err := c.exec(query, n, r.uint(0))
		if err != nil {
			return 0, err
		}
		dropped += k
	}
	k, err := dropGroupInfos(c, n, current)
	return dropped + k, err
}

// dropGroupInfos deletes those of epochs before the previous one, except where
// a Welcome is unacknowledged.
func dropGroupInfos(c *change, n int64, current uint64) (int64, error) {
	return c.exec(`DELETE FROM group_infos WHERE room = ? AND epoch < ?
		AND NOT EXISTS (SELECT 1 FROM joiners j WHERE j.room = group_infos.room AND j.epoch = group_infos.epoch)`, n, int64(current)-1)
}

// GroupInfo reads the GroupInfo of an epoch.
func (s *Store) GroupInfo(ctx context.Context, id delivery.RoomID, epoch uint64) (info []byte, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one("SELECT g.bytes FROM group_infos g JOIN rooms r ON r.n = g.room WHERE r.id = ? AND g.epoch = ?", id[:], epoch)
		if err == nil {
			info = r.blob(0)
		}
		return err
	})
	return info, err
}

// Welcome reads the Welcome of an epoch for a joiner that has not acknowledged.
func (s *Store) Welcome(ctx context.Context, id delivery.RoomID, epoch uint64, device identity.DeviceID) (welcome []byte, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one(`SELECT w.bytes FROM rooms r JOIN joiners j ON j.room = r.n JOIN welcomes w ON w.room = j.room AND w.epoch = j.epoch
			WHERE r.id = ? AND j.epoch = ? AND j.device = ?`, id[:], epoch, device[:])
		if err == nil {
			welcome = r.blob(0)
		}
		return err
	})
	return welcome, err
}

// Report notes who could not process the newest commit.
func (s *Store) Report(ctx context.Context, id delivery.RoomID, epoch uint64, who identity.PublicKey) (identities int, err error) {
	err = s.write(ctx, func(c *change) error {
		identities = 0
		n, room, err := roomByID(c.conn, id)
		if err != nil || room.Epoch != epoch {
			return err
		}
		if _, err := c.exec("INSERT INTO reports(room, identity) VALUES(?, ?) ON CONFLICT DO NOTHING", n, who[:]); err != nil {
			return err
		}
		r, err := c.one("SELECT count(*) FROM reports WHERE room = ?", n)
		if err == nil {
			identities = int(r.int(0))
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return identities, nil
}

// PendingRelays reads the mailbox pointers that are owed.
func (s *Store) PendingRelays(ctx context.Context, limit int) (list []delivery.Relay, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query(`SELECT r.id, j.epoch, j.device, j.ref, j.start_seq FROM joiners j JOIN rooms r ON r.n = j.room
			WHERE j.relayed = 0 ORDER BY j.n LIMIT ?`, func(r row) error {
			relay := delivery.Relay{Epoch: r.uint(1), Ref: r.blob(3), StartSeq: r.uint(4)}
			r.bytes(0, relay.Room[:])
			r.bytes(2, relay.Device[:])
			list = append(list, relay)
			return nil
		}, limit)
	})
	return list, err
}

// FinishRelay marks the pointer as given.
func (s *Store) FinishRelay(ctx context.Context, r delivery.Relay) error {
	return s.write(ctx, func(c *change) error {
		_, err := c.exec("UPDATE joiners SET relayed = 1 WHERE room = (SELECT n FROM rooms WHERE id = ?) AND epoch = ? AND device = ?",
			r.Room[:], r.Epoch, r.Device[:])
		return err
	})
}

// AckWelcome forgets the joiner, and with the last one the Welcome.
func (s *Store) AckWelcome(ctx context.Context, id delivery.RoomID, epoch uint64, device identity.DeviceID) error {
	return s.write(ctx, func(c *change) error {
		n, room, err := roomByID(c.conn, id)
		if err != nil {
			return err
		}
		gone, err := c.exec("DELETE FROM joiners WHERE room = ? AND epoch = ? AND device = ?", n, epoch, device[:])
		if err != nil || gone == 0 {
			return err
		}
		_, err = freeWelcomes(c, n, room.Epoch)
		return err
	})
}

// freeWelcomes deletes the room's Welcomes that nobody waits for, and the
// states that were kept for them.
func freeWelcomes(c *change, n int64, current uint64) (states int64, err error) {
	gone, err := c.exec(`DELETE FROM welcomes WHERE room = ?
		AND NOT EXISTS (SELECT 1 FROM joiners j WHERE j.room = welcomes.room AND j.epoch = welcomes.epoch)`, n)
	if err != nil || gone == 0 {
		return 0, err
	}
	return dropStates(c, n, current)
}
