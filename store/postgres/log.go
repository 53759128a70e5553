package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// WithRoom runs fn in a transaction that holds the room's row, which it may
// share with other rooms'. See delivery.Rooms.
func (s *Store) WithRoom(ctx context.Context, id delivery.RoomID, fn func(delivery.RoomTx) error) error {
	return s.lanes.do(ctx, id, fn)
}

// roomTx is a room under way on its lane's goroutine.
type roomTx struct {
	g       *group
	locked  *lockedRoom
	ask     func(question) bool // waits for the turn; false: the group has failed
	mine    bool                // it is this function's turn
	own     appends             // of this function
	touched bool                // the room's row changed
	saved   bool                // there is a savepoint: something was sent
	// broken is the error that left a change half made, or ErrEnded. It refuses
	// what comes after, and the commit too, when fn does not pass it on.
	broken error
}

// appends are entries as arrays, one insert for many.
type appends struct {
	room, seq, epoch, kind, ms, after []int64
	bytes, key                        [][]byte
	blobRoom, blobSeq                 []int64
	blob                              [][]byte
}

func (a *appends) len() int { return len(a.seq) }

func (a *appends) add(o *appends) {
	a.room, a.seq, a.epoch = append(a.room, o.room...), append(a.seq, o.seq...), append(a.epoch, o.epoch...)
	a.kind, a.ms, a.after = append(a.kind, o.kind...), append(a.ms, o.ms...), append(a.after, o.after...)
	a.bytes, a.key = append(a.bytes, o.bytes...), append(a.key, o.key...)
	a.blobRoom, a.blobSeq, a.blob = append(a.blobRoom, o.blobRoom...), append(a.blobSeq, o.blobSeq...), append(a.blob, o.blob...)
}

// find looks an entry up by its dedupe key.
func (a *appends) find(room int64, key []byte) (delivery.Accepted, bool) {
	for i, k := range a.key {
		if a.room[i] == room && bytes.Equal(k, key) {
			return delivery.Accepted{Seq: uint64(a.seq[i]), Epoch: uint64(a.after[i]), AcceptedMS: a.ms[i], Duplicate: true}, true
		}
	}
	return delivery.Accepted{}, false
}

func (a *appends) queue(b *pgx.Batch) {
	if a.len() == 0 {
		return
	}
	b.Queue(`INSERT INTO log(room, seq, epoch, kind, accepted_ms, bytes, key)
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[])`,
		a.room, a.seq, a.epoch, a.kind, a.ms, a.bytes, a.key)
	b.Queue(`INSERT INTO seen(room, key, seq, epoch, accepted_ms)
		SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bigint[], $5::bigint[])`,
		a.room, a.key, a.seq, a.after, a.ms)
	if len(a.blob) > 0 {
		b.Queue(`WITH added AS (INSERT INTO blob_refs(room, seq, blob)
			SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) ON CONFLICT DO NOTHING RETURNING blob)
			UPDATE blobs SET refs = refs + a.k FROM (SELECT blob, count(*) AS k FROM added GROUP BY blob) AS a WHERE id = a.blob`,
			a.blobRoom, a.blobSeq, a.blob)
	}
}

// halfway notes an error from the midst of a change.
func (t *roomTx) halfway(err error) error {
	if err == nil || t.broken != nil {
		return err
	}
	if !t.saved && t.g.failed == nil {
		t.g.failed = err
	}
	t.broken = translate(err)
	return t.broken
}

// exec sends a statement that changes something beside the log.
func (t *roomTx) exec(query string, args ...any) (pgconn.CommandTag, error) {
	if err := t.savepoint(); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.g.conn.Exec(t.g.ctx, query, args...)
}

func (t *roomTx) savepoint() error {
	if t.saved {
		return nil
	}
	_, err := t.g.conn.Exec(t.g.ctx, "SAVEPOINT piece")
	t.saved = err == nil
	return err
}

// turn waits until the functions before this one have ended.
func (t *roomTx) turn() error {
	if t.broken == nil && !t.mine && !t.ask(question{}) {
		t.broken = errAborted
	}
	return t.broken
}

func (t *roomTx) Room() delivery.Room {
	_ = t.turn() // a transaction that has ended shows its last state
	return t.locked.room
}

// seenKey names an entry for the dedupe table without naming its sender.
func seenKey(device identity.DeviceID, hash [32]byte) []byte {
	var b [16 + 32]byte
	copy(b[:], device[:])
	copy(b[16:], hash[:])
	sum := sha256.Sum256(b[:])
	return sum[:16]
}

func (t *roomTx) Duplicate(device identity.DeviceID, hash [32]byte) (delivery.Accepted, bool, error) {
	key := seenKey(device, hash)
	ahead := t.broken == nil && !t.mine
	if ahead && !t.ask(question{key: key}) {
		t.broken = errAborted
	}
	if t.broken != nil {
		return delivery.Accepted{}, false, t.broken
	}
	for _, memory := range []*appends{&t.own, &t.g.pending} {
		if a, found := memory.find(t.locked.n, key); found {
			return a, true, nil
		}
	}
	if ahead {
		a, found := t.g.seen[seenAt{t.locked.n, string(key)}]
		return a, found, nil
	}
	a := delivery.Accepted{Duplicate: true}
	err := row(t.g.conn.QueryRow(t.g.ctx, "SELECT seq, epoch, accepted_ms FROM seen WHERE room = $1 AND key = $2", t.locked.n, key),
		&a.Seq, &a.Epoch, &a.AcceptedMS)
	if errors.Is(err, delivery.ErrNotFound) {
		return delivery.Accepted{}, false, nil
	}
	return a, err == nil, t.halfway(err)
}

func (t *roomTx) Member(device identity.DeviceID) (delivery.Membership, error) {
	if err := t.turn(); err != nil {
		return delivery.Membership{}, err
	}
	rows, err := t.g.conn.Query(t.g.ctx, `SELECT $3::bytea, device, identity, leaf, from_seq, until_seq FROM memberships
		WHERE room = $1 AND device = $2 AND until_seq = 0`, t.locked.n, device[:], t.locked.room.ID[:])
	if err != nil {
		return delivery.Membership{}, t.halfway(err)
	}
	var found []delivery.Membership
	if err := eachRow(rows, memberships(&found)); err != nil {
		return delivery.Membership{}, t.halfway(err)
	}
	if len(found) == 0 {
		return delivery.Membership{}, delivery.ErrNotFound
	}
	return found[0], nil
}

func (t *roomTx) Proposals() (list []delivery.HeldProposal, err error) {
	if err := t.turn(); err != nil || t.locked.held == 0 {
		return nil, err
	}
	rows, err := t.g.conn.Query(t.g.ctx, "SELECT ref, seq, epoch, proposer, must, bytes FROM proposals WHERE room = $1 ORDER BY seq, n", t.locked.n)
	if err != nil {
		return nil, t.halfway(err)
	}
	return list, t.halfway(eachRow(rows, heldProposals(&list)))
}

func (t *roomTx) Append(e delivery.NewEntry) (delivery.Accepted, error) {
	if err := t.turn(); err != nil {
		return delivery.Accepted{}, err
	}
	for _, blob := range e.Blobs {
		// The lock keeps it from being deleted before the reference is there.
		var one int
		err := row(t.g.conn.QueryRow(t.g.ctx, "SELECT 1 FROM blobs WHERE id = $1 AND received = size AND NOT dead FOR UPDATE", blob[:]), &one)
		if errors.Is(err, delivery.ErrNotFound) {
			return delivery.Accepted{}, err
		}
		if err != nil {
			return delivery.Accepted{}, t.halfway(err)
		}
	}
	r := &t.locked.room
	acc := delivery.Accepted{Seq: r.NextSeq, Epoch: r.Epoch, AcceptedMS: e.AcceptedMS}
	if e.Kind == delivery.KindCommit {
		acc.Epoch = e.Epoch + 1
	}
	own, n := &t.own, t.locked.n
	own.room, own.seq, own.epoch = append(own.room, n), append(own.seq, int64(acc.Seq)), append(own.epoch, int64(e.Epoch))
	own.kind, own.ms, own.after = append(own.kind, int64(e.Kind)), append(own.ms, e.AcceptedMS), append(own.after, int64(acc.Epoch))
	own.bytes, own.key = append(own.bytes, notNull(e.Bytes)), append(own.key, seenKey(e.Device, e.Hash))
	for _, blob := range e.Blobs {
		own.blobRoom, own.blobSeq, own.blob = append(own.blobRoom, n), append(own.blobSeq, int64(acc.Seq)), append(own.blob, blob[:])
	}
	r.NextSeq++
	r.ChangedMS = e.AcceptedMS
	t.touched = true
	return acc, nil
}

// notNull makes nil the empty value: NULL means that there is none.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (t *roomTx) Hold(p delivery.HeldProposal) error {
	if err := t.turn(); err != nil {
		return err
	}
	if p.Epoch != t.locked.room.Epoch {
		return delivery.ErrChanged
	}
	tag, err := t.exec("INSERT INTO proposals(room, ref, seq, epoch, proposer, must, bytes) VALUES($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
		t.locked.n, notNull(p.Ref), int64(p.Seq), int64(p.Epoch), int64(p.Proposer), p.Must, notNull(p.Bytes))
	if err != nil {
		return t.halfway(err)
	}
	if tag.RowsAffected() == 0 {
		return delivery.ErrExists
	}
	t.locked.held++
	t.touched = true
	return nil
}

func (t *roomTx) Unhold(refs ...[]byte) error {
	if err := t.turn(); err != nil {
		return err
	}
	if len(refs) == 0 {
		return nil
	}
	tag, err := t.exec("DELETE FROM proposals WHERE room = $1 AND ref = ANY($2)", t.locked.n, refs)
	if err != nil {
		return t.halfway(err)
	}
	t.locked.held -= tag.RowsAffected()
	t.touched = true
	return nil
}

func (t *roomTx) SetGroupInfo(info []byte) error {
	if err := t.turn(); err != nil {
		return err
	}
	_, err := t.exec("UPDATE group_infos SET bytes = $1 WHERE room = $2 AND epoch = $3", notNull(info), t.locked.n, int64(t.locked.room.Epoch))
	return t.halfway(err)
}

func (t *roomTx) SetStatus(status delivery.RoomStatus, successor *delivery.RoomID) error {
	if err := t.turn(); err != nil {
		return err
	}
	if successor != nil && status != delivery.RoomSucceeded {
		return errors.New("postgres: only a succeeded room has a successor")
	}
	t.locked.room.Status, t.locked.room.Successor = status, successor
	t.touched = true
	return nil
}

// Log reads entries. An entry that does not fit MaxBytes any more ends the page
// unless it is the first.
func (s *Store) Log(ctx context.Context, id delivery.RoomID, want delivery.LogRange) (entries []delivery.Entry, err error) {
	after, upto, limit, left := want.Page()
	known := false
	// The database adds the sizes up, so that no entry is sent to be thrown away.
	// A room without such entries gives one row without a seq.
	err = s.list(ctx, `SELECT l.seq, l.epoch, l.kind, l.accepted_ms, l.bytes FROM rooms r LEFT JOIN LATERAL (
			SELECT *, sum(size) OVER (ORDER BY seq) AS total, min(seq) OVER () AS head FROM (
				SELECT seq, epoch, kind, accepted_ms, bytes, octet_length(bytes) AS size FROM log
				WHERE room = r.n AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4) AS page
		) AS l ON l.total <= $5 OR l.seq = l.head WHERE r.id = $1 ORDER BY l.seq`,
		[]any{id[:], after, upto, int64(limit), int64(left)}, func(scan func(...any) error) error {
			known = true
			var seq, epoch, kind, ms *int64
			var e delivery.Entry
			if err := scan(&seq, &epoch, &kind, &ms, &e.Bytes); err != nil || seq == nil {
				return err
			}
			e.Seq, e.Epoch, e.Kind, e.AcceptedMS = uint64(*seq), uint64(*epoch), delivery.EntryKind(*kind), *ms
			entries = append(entries, e)
			return nil
		})
	if err == nil && !known {
		err = delivery.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("postgres: read a log: %w", err)
	}
	return entries, nil
}
