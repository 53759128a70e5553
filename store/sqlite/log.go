package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// WithRoom runs fn in the writer's next transaction. There is no lock to wait
// for: the writer is the only one who changes rooms, and fn runs on its
// goroutine. See delivery.Rooms.
func (s *Store) WithRoom(ctx context.Context, id delivery.RoomID, fn func(delivery.RoomTx) error) error {
	return s.write(ctx, func(c *change) error {
		of, err := c.heads.of(c, id)
		if err != nil {
			return err
		}
		delete(c.heads, id) // comes back when all went well
		tx := &roomTx{c: c, head: of}
		defer func() { tx.broken = ErrEnded }()
		if err := fn(tx); err != nil {
			if !c.saved { // nothing was changed
				c.heads.put(of)
			}
			return err
		}
		if tx.broken == nil {
			c.heads.put(tx.head)
		}
		return tx.broken
	})
}

// roomTx is a room under way on the writer's goroutine.
type roomTx struct {
	c *change
	head
	// broken is the error that left a change half made, or ErrEnded. It refuses
	// what comes after, and the commit too, when fn does not pass it on.
	broken error
	// unseen is the key of the last entry that was looked for and not found.
	unseen []byte
}

// halfway notes an error from the midst of a change.
func (t *roomTx) halfway(err error) error {
	if err != nil && t.broken == nil {
		t.broken = err
	}
	return err
}

func (t *roomTx) Room() delivery.Room { return t.room }

const seenKeySize = 16

// seenKey names an entry for the dedupe table without naming its sender.
func seenKey(device identity.DeviceID, hash [32]byte) []byte {
	var b [16 + 32]byte
	copy(b[:], device[:])
	copy(b[16:], hash[:])
	sum := sha256.Sum256(b[:])
	return sum[:seenKeySize]
}

func (t *roomTx) Duplicate(device identity.DeviceID, hash [32]byte) (delivery.Accepted, bool, error) {
	if t.broken != nil {
		return delivery.Accepted{}, false, t.broken
	}
	return t.seen(seenKey(device, hash))
}

func (t *roomTx) seen(key []byte) (delivery.Accepted, bool, error) {
	acc, found := t.c.tail.find(t.n, key)
	if !found {
		may, err := t.c.tail.known.mayHave(t.c.conn, t.n, key)
		if err != nil {
			return delivery.Accepted{}, false, err
		}
		if !may {
			t.unseen = key
			return delivery.Accepted{}, false, nil
		}
		r, placed, err := t.c.first("SELECT seq, epoch, accepted_ms FROM seen WHERE room = ? AND key = ?", t.n, key)
		if err != nil {
			return delivery.Accepted{}, false, err
		}
		if !placed {
			t.unseen = key
			return delivery.Accepted{}, false, nil
		}
		acc = delivery.Accepted{Seq: r.uint(0), Epoch: r.uint(1), AcceptedMS: r.int(2)}
	}
	acc.Duplicate = true
	return acc, true, nil
}

func (t *roomTx) Member(device identity.DeviceID) (delivery.Membership, error) {
	if t.broken != nil {
		return delivery.Membership{}, t.broken
	}
	r, err := t.c.one("SELECT device, identity, leaf, from_seq, until_seq FROM memberships WHERE room = ? AND device = ? AND until_seq = 0",
		t.n, device[:])
	if err != nil {
		return delivery.Membership{}, err
	}
	return membership(t.room.ID, r), nil
}

func (t *roomTx) Proposals() ([]delivery.HeldProposal, error) {
	if t.broken != nil {
		return nil, t.broken
	}
	if t.idle {
		return nil, nil
	}
	list, err := held(t.c.conn, t.n)
	t.idle = err == nil && len(list) == 0
	return list, err
}

func (t *roomTx) Append(e delivery.NewEntry) (delivery.Accepted, error) {
	if t.broken != nil {
		return delivery.Accepted{}, t.broken
	}
	for _, blob := range e.Blobs {
		if _, err := t.c.one("SELECT 1 FROM blobs WHERE id = ? AND received = size AND dead = 0", blob[:]); err != nil {
			return delivery.Accepted{}, err
		}
	}
	acc := delivery.Accepted{Seq: t.room.NextSeq, Epoch: t.room.Epoch, AcceptedMS: e.AcceptedMS}
	if e.Kind == delivery.KindCommit {
		acc.Epoch = e.Epoch + 1
	}
	return acc, t.halfway(t.insert(e, acc))
}

func (t *roomTx) insert(e delivery.NewEntry, acc delivery.Accepted) error {
	key := seenKey(e.Device, e.Hash)
	if !bytes.Equal(key, t.unseen) {
		switch _, found, err := t.seen(key); {
		case err != nil:
			return err
		case found:
			return delivery.ErrExists
		}
	}
	t.unseen = nil
	at := t.c.tail.give()
	_, err := t.c.exec("INSERT INTO log(at, room, seq, epoch, kind, accepted_ms, bytes, key) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
		at, t.n, int64(acc.Seq), int64(e.Epoch), int64(e.Kind), e.AcceptedMS, e.Bytes, key)
	if err != nil {
		return err
	}
	t.c.tail.pending = append(t.c.tail.pending, unplaced{
		place: place{seq: acc.Seq, at: at, acceptedMS: acc.AcceptedMS}, id: t.room.ID, room: t.n, epoch: acc.Epoch, key: key,
	})
	for _, blob := range e.Blobs {
		added, err := t.c.exec("INSERT INTO blob_refs(room, seq, blob) VALUES(?, ?, ?) ON CONFLICT DO NOTHING", t.n, acc.Seq, blob[:])
		if err != nil {
			return err
		}
		if _, err := t.c.exec("UPDATE blobs SET refs = refs + ? WHERE id = ?", added, blob[:]); err != nil {
			return err
		}
	}
	if t.room.FirstSeq == t.room.NextSeq { // the log was empty
		if _, err := t.c.exec("UPDATE rooms SET first_ms = ? WHERE n = ?", e.AcceptedMS, t.n); err != nil {
			return err
		}
	}
	t.room.NextSeq++
	t.room.ChangedMS = e.AcceptedMS
	return nil
}

func (t *roomTx) Hold(p delivery.HeldProposal) error {
	if t.broken != nil {
		return t.broken
	}
	if p.Epoch != t.room.Epoch {
		return delivery.ErrChanged
	}
	t.idle = false
	added, err := t.c.exec("INSERT INTO proposals(room, ref, seq, epoch, proposer, must, bytes) VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		t.n, p.Ref, p.Seq, p.Epoch, p.Proposer, p.Must, p.Bytes)
	if err != nil {
		return t.halfway(err)
	}
	if added == 0 {
		return delivery.ErrExists
	}
	return nil
}

func (t *roomTx) Unhold(refs ...[]byte) error {
	if t.broken != nil {
		return t.broken
	}
	for _, ref := range refs {
		if _, err := t.c.exec("DELETE FROM proposals WHERE room = ? AND ref = ?", t.n, ref); err != nil {
			return t.halfway(err)
		}
	}
	return nil
}

func (t *roomTx) SetGroupInfo(info []byte) error {
	if t.broken != nil {
		return t.broken
	}
	_, err := t.c.exec("UPDATE group_infos SET bytes = ? WHERE room = ? AND epoch = ?", info, t.n, t.room.Epoch)
	return t.halfway(err)
}

func (t *roomTx) SetStatus(status delivery.RoomStatus, successor *delivery.RoomID) error {
	if t.broken != nil {
		return t.broken
	}
	if successor != nil && status != delivery.RoomSucceeded {
		return errors.New("sqlite: only a succeeded room has a successor")
	}
	if _, err := t.c.exec("UPDATE rooms SET status = ?, successor = ? WHERE n = ?", status, idOrNull(successor), t.n); err != nil {
		return t.halfway(err)
	}
	t.room.Status, t.room.Successor = status, successor
	return nil
}

// Log reads entries. An entry that does not fit MaxBytes any more ends the page
// unless it is the first.
func (s *Store) Log(ctx context.Context, id delivery.RoomID, want delivery.LogRange) (entries []delivery.Entry, err error) {
	after, upto, limit, left := want.Page()
	tail := s.writer.tail.view()
	err = s.snapshot(ctx, func(c *conn) error {
		n, err := roomNumber(c, id)
		if err != nil {
			return err
		}
		full := false
		take := func(r row) error {
			e := delivery.Entry{Seq: r.uint(0), Epoch: r.uint(1), Kind: delivery.EntryKind(r.int(2)), AcceptedMS: r.int(3), Bytes: r.blob(4)}
			if left -= len(e.Bytes); left < 0 && len(entries) > 0 {
				full = true
				return errStop
			}
			entries, after = append(entries, e), int64(e.Seq)
			full = len(entries) == limit
			return nil
		}
		err = c.query(`SELECT p.seq, l.epoch, l.kind, l.accepted_ms, l.bytes FROM places p CROSS JOIN log l ON l.at = p.at
			WHERE p.room = ? AND p.seq > ? AND p.seq <= ? ORDER BY p.seq LIMIT ?`, take, n, after, upto, limit)
		if err != nil {
			return err
		}
		for _, p := range tail.after(id, uint64(after)) {
			if full || int64(p.seq) > upto {
				break
			}
			if err := c.query("SELECT seq, epoch, kind, accepted_ms, bytes FROM log WHERE at = ?", take, p.at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sqlite: read a log: %w", err)
	}
	return entries, nil
}
