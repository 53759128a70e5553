package postgres

import (
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/askucher/compax-core/delivery"
)

// A group is one transaction with the work of many. It takes three round
// trips however many those are: lock the rows of all rooms, in the order of
// their ids; look for all duplicates; and, when the functions have run, send all
// appends as arrays together with the COMMIT.
//
// What a function appends stays in memory until then, so one that fails has
// nothing to undo; for anything else it gets a savepoint.

// group is a batch under way.
type group struct {
	ctx     context.Context
	conn    *pgx.Conn
	rooms   map[delivery.RoomID]*lockedRoom
	seen    map[seenAt]delivery.Accepted // answers to the questions asked ahead
	pending appends                      // of functions that succeeded, sent with the commit
	failed  error                        // broke the transaction outside of any savepoint
}

// seenAt is a dedupe key in a room.
type seenAt struct {
	room int64
	key  string
}

// lockedRoom is a room whose row the group holds.
type lockedRoom struct {
	n    int64 // rooms.n
	room delivery.Room
	held int64 // how many proposals the room holds

	saved     delivery.Room // as the last function that succeeded left it
	savedHeld int64
	dirty     bool // the row must be written
}

const roomColumns = "n, id, epoch, next_seq, first_seq, kind, status, incarnation, successor, created_ms, changed_ms"

func scanRoom(scan func(...any) error, more ...any) (n int64, r delivery.Room, err error) {
	var id, successor []byte
	err = scan(append([]any{&n, &id, &r.Epoch, &r.NextSeq, &r.FirstSeq, &r.Kind, &r.Status, &r.Incarnation, &successor, &r.CreatedMS, &r.ChangedMS}, more...)...)
	copy(r.ID[:], id)
	if successor != nil {
		r.Successor = new(delivery.RoomID)
		copy(r.Successor[:], successor)
	}
	return n, r, err
}

// begin opens the transaction and locks the rooms, in one round trip. The
// limits end a wait for a row that an instance holds which died or hangs.
func (g *group) begin(pieces []*piece) error {
	ids := make([][]byte, 0, len(pieces))
	for _, p := range pieces {
		if _, known := g.rooms[p.Work.id]; !known {
			g.rooms[p.Work.id] = nil
			ids = append(ids, p.Work.id[:])
		}
	}
	var b pgx.Batch
	b.Queue("BEGIN")
	b.Queue("SET LOCAL lock_timeout = '5s'")
	b.Queue("SET LOCAL idle_in_transaction_session_timeout = '30s'")
	b.Queue("SELECT "+roomColumns+", held FROM rooms WHERE id = ANY($1) ORDER BY id FOR UPDATE", ids)
	results := g.conn.SendBatch(g.ctx, &b)
	err := func() error {
		for range 3 {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		rows, err := results.Query()
		if err != nil {
			return err
		}
		return eachRow(rows, func(scan func(...any) error) error {
			var held int64
			n, r, err := scanRoom(scan, &held)
			if err != nil {
				return err
			}
			g.rooms[r.ID] = &lockedRoom{n: n, room: r, held: held, saved: r, savedHeld: held}
			return nil
		})
	}()
	return errors.Join(err, results.Close())
}

// unit is one function under way. It runs as a coroutine, so that what all of
// them ask first is asked in one query.
type unit struct {
	piece  *piece
	tx     *roomTx
	next   func() (question, bool) // runs it until it asks or ends
	stop   func()                  // ends it: its question is refused
	failed bool
}

// question is what a function asks before its turn: the dedupe key of its
// entry, or nothing but to wait.
type question struct{ key []byte }

// errAborted ends a function whose group has failed. It runs once more.
var errAborted = errors.New("postgres: the group has failed")

// run runs the functions, each in its turn. A function's own failure is its
// answer; the error that run returns is the whole group's.
func (g *group) run(pieces []*piece) error {
	units := make([]*unit, 0, len(pieces))
	for _, p := range pieces {
		locked := g.rooms[p.Work.id]
		if locked == nil {
			p.Err = delivery.ErrNotFound
			continue
		}
		u := &unit{piece: p, tx: &roomTx{g: g, locked: locked}}
		u.next, u.stop = iter.Pull(u.coroutine)
		defer u.stop()
		units = append(units, u)
	}
	if err := g.answer(units); err != nil {
		return err
	}
	for _, u := range units {
		u.tx.mine = true
		u.next()
		if err := g.end(u); err != nil {
			return err
		}
	}
	return nil
}

func (u *unit) coroutine(yield func(question) bool) {
	u.tx.ask = yield
	u.failed = true
	defer func() { u.piece.Panic = recover() }()
	u.piece.Err = u.piece.Work.run(u.tx)
	u.failed = u.piece.Err != nil
}

// answer runs each function until it asks something, and answers all dedupe
// questions with one query.
func (g *group) answer(units []*unit) error {
	var rooms []int64
	var keys [][]byte
	for _, u := range units {
		if q, asks := u.next(); asks && q.key != nil {
			rooms, keys = append(rooms, u.tx.locked.n), append(keys, q.key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	rows, err := g.conn.Query(g.ctx, `SELECT s.room, s.key, s.seq, s.epoch, s.accepted_ms FROM unnest($1::bigint[], $2::bytea[]) AS q(room, key)
		JOIN seen s ON s.room = q.room AND s.key = q.key`, rooms, keys)
	if err != nil {
		return err
	}
	g.seen = make(map[seenAt]delivery.Accepted)
	return eachRow(rows, func(scan func(...any) error) error {
		var room int64
		var key []byte
		a := delivery.Accepted{Duplicate: true}
		if err := scan(&room, &key, &a.Seq, &a.Epoch, &a.AcceptedMS); err != nil {
			return err
		}
		g.seen[seenAt{room, string(key)}] = a
		return nil
	})
}

// end takes over what a function did, or undoes it.
func (g *group) end(u *unit) error {
	tx, locked := u.tx, u.tx.locked
	if !u.failed && tx.broken != nil {
		u.piece.Err, u.failed = tx.broken, true
	}
	tx.broken = ErrEnded
	if g.failed != nil {
		return g.failed
	}
	if tx.saved {
		last := "RELEASE piece"
		if u.failed {
			last = "ROLLBACK TO piece; RELEASE piece"
		}
		if _, err := g.conn.Exec(g.ctx, last); err != nil {
			return err
		}
	}
	if u.failed {
		locked.room, locked.held = locked.saved, locked.savedHeld
		return nil
	}
	if tx.touched {
		locked.dirty, locked.saved, locked.savedHeld = true, locked.room, locked.held
	}
	g.pending.add(&tx.own)
	return nil
}

// commit sends what is pending, the rows of the rooms, and COMMIT, in one round
// trip.
func (g *group) commit() error {
	var b pgx.Batch
	g.pending.queue(&b)
	g.queueRooms(&b)
	b.Queue("COMMIT")
	tags, err := g.tags(&b)
	if err == nil && tags[len(tags)-1].String() != "COMMIT" {
		err = errors.New("postgres: the transaction was rolled back") // COMMIT of a broken one is no error there
	}
	return err
}

// tags sends a batch in one round trip and says what each statement did.
func (g *group) tags(b *pgx.Batch) ([]pgconn.CommandTag, error) {
	results := g.conn.SendBatch(g.ctx, b)
	tags := make([]pgconn.CommandTag, b.Len())
	for i := range tags {
		var err error
		if tags[i], err = results.Exec(); err != nil {
			return nil, errors.Join(err, results.Close())
		}
	}
	return tags, results.Close()
}

// queueRooms writes the rows of the rooms that changed.
func (g *group) queueRooms(b *pgx.Batch) {
	var ns, epochs, next, statuses, changed, held []int64
	var successors [][]byte
	for _, r := range g.rooms {
		if r == nil || !r.dirty {
			continue
		}
		ns = append(ns, r.n)
		epochs = append(epochs, int64(r.room.Epoch))
		next = append(next, int64(r.room.NextSeq))
		statuses = append(statuses, int64(r.room.Status))
		changed = append(changed, r.room.ChangedMS)
		held = append(held, r.held)
		successors = append(successors, idOrNull(r.room.Successor))
	}
	if len(ns) == 0 {
		return
	}
	// The log of a room was empty when its first kept seq is the next one: then
	// the oldest entry is one of ours, and so is its time.
	b.Queue(`UPDATE rooms SET epoch = v.epoch, next_seq = v.next_seq, status = v.status, changed_ms = v.changed_ms, successor = v.successor, held = v.held,
		first_ms = CASE WHEN rooms.first_seq = rooms.next_seq AND v.next_seq > rooms.next_seq
			THEN (SELECT l.accepted_ms FROM log l WHERE l.room = rooms.n AND l.seq = rooms.first_seq) ELSE rooms.first_ms END
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bigint[])
			AS v(n, epoch, next_seq, status, changed_ms, successor, held) WHERE rooms.n = v.n`,
		ns, epochs, next, statuses, changed, successors, held)
}
