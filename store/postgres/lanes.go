package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/askucher/compax-core/delivery"
)

// Group commit. Rooms are spread over a few lanes, each one goroutine. A lane
// takes what waits, locks the rows of all its rooms in one statement, in the
// order of their ids, runs the functions one after the other, and sends what
// they appended as arrays together with the COMMIT. Nobody is answered before
// the commit is.
//
// What a function appends stays in memory until then, so one that fails has
// nothing to undo; where it needs more than appends it gets a savepoint. When
// the database refuses the group (a conflict with another instance, a full
// disk), each piece runs once more in a transaction of its own and gets its own
// answer.

const (
	laneCount = 4  // measured on two cores: more lanes fight for them, fewer wait for flushes
	maxBatch  = 64 // bounds how long rows stay locked, about 10 ms
)

// work is one caller's transaction on one room.
type work struct {
	id    delivery.RoomID
	run   func(delivery.RoomTx) error
	state atomic.Int32 // waiting, then taken or withdrawn
	done  chan struct{}

	err   error
	panic any // what run panicked with; goes on in the caller's goroutine
}

const (
	waiting int32 = iota
	taken
	withdrawn
)

type lanes struct {
	pool  *pgxpool.Pool
	queue [laneCount]chan *work
	wg    sync.WaitGroup

	closing sync.RWMutex // held shared while sending to a queue
	closed  bool         // guarded by closing
}

func startLanes(pool *pgxpool.Pool) *lanes {
	l := &lanes{pool: pool}
	for i := range l.queue {
		l.queue[i] = make(chan *work, maxBatch)
		l.wg.Go(func() { l.loop(l.queue[i]) })
	}
	return l
}

// do runs a piece of work and returns once it is committed, or has changed
// nothing. A context that ends takes back what has not begun; what has begun
// is waited for, because its outcome matters.
func (l *lanes) do(ctx context.Context, id delivery.RoomID, run func(delivery.RoomTx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &work{id: id, run: run, done: make(chan struct{})}
	if err := l.send(ctx, w); err != nil {
		return err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if w.state.CompareAndSwap(waiting, withdrawn) {
			return ctx.Err()
		}
		<-w.done
	}
	if w.panic != nil {
		panic(w.panic)
	}
	return w.err
}

func (l *lanes) send(ctx context.Context, w *work) error {
	l.closing.RLock()
	defer l.closing.RUnlock()
	if l.closed {
		return ErrClosed
	}
	select {
	case l.queue[w.id[15]%laneCount] <- w: // the last byte of a room id is random
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close refuses new work, finishes what was accepted, and ends the lanes.
func (l *lanes) close() {
	l.closing.Lock()
	if !l.closed {
		l.closed = true
		for _, q := range l.queue {
			close(q)
		}
	}
	l.closing.Unlock()
	l.wg.Wait()
}

func (l *lanes) loop(queue chan *work) {
	var batch []*work
	for w := range queue {
		batch = gather(batch[:0], w, queue)
		if len(batch) == 0 {
			continue
		}
		if err := l.commit(batch); err != nil {
			l.singly(batch)
		}
		for _, w := range batch {
			close(w.done)
		}
		clear(batch)
	}
}

// gather takes first and what waits behind it.
func gather(batch []*work, first *work, queue chan *work) []*work {
	for w := first; w != nil; {
		if w.state.CompareAndSwap(waiting, taken) {
			batch = append(batch, w)
		}
		w = nil
		if len(batch) < maxBatch {
			select {
			case w = <-queue: // nil once closed and empty
			default:
			}
		}
	}
	return batch
}

// singly gives each piece a transaction of its own.
func (l *lanes) singly(batch []*work) {
	for i, w := range batch {
		for try := 1; ; try++ {
			w.err, w.panic = nil, nil
			err := l.commit(batch[i : i+1])
			if err != nil {
				w.err, w.panic = translate(err), nil
			}
			if try == tries || !conflict(err) {
				break
			}
		}
	}
}

// commit runs the batch in one transaction. An error means that nothing of it
// was committed.
func (l *lanes) commit(batch []*work) (err error) {
	ctx, cancel := lasting(context.Background())
	defer cancel()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // which closes a connection that is still in a transaction
	g := &group{ctx: ctx, conn: conn.Conn(), rooms: make(map[delivery.RoomID]*lockedRoom, len(batch))}
	defer func() {
		if err != nil && !g.conn.IsClosed() {
			_, e := g.conn.Exec(ctx, "ROLLBACK")
			err = errors.Join(err, e)
		}
	}()
	if err := g.begin(batch); err != nil {
		return err
	}
	for _, w := range batch {
		if err := g.run(w); err != nil {
			return err
		}
	}
	return g.commit()
}

// group is a batch under way.
type group struct {
	ctx     context.Context
	conn    *pgx.Conn
	rooms   map[delivery.RoomID]*lockedRoom
	pending appends // of functions that succeeded, not sent yet
	failed  error   // broke the transaction outside of any savepoint
}

// lockedRoom is a room whose row the group holds.
type lockedRoom struct {
	n     int64 // rooms.n
	room  delivery.Room
	saved delivery.Room // as the last function that succeeded left it
	dirty bool          // the row must be written
	queue bool          // has entries in group.pending
}

const roomColumns = "n, id, epoch, next_seq, first_seq, kind, status, incarnation, successor, created_ms, changed_ms"

func scanRoom(scan func(...any) error) (n int64, r delivery.Room, err error) {
	var id, successor []byte
	err = scan(&n, &id, &r.Epoch, &r.NextSeq, &r.FirstSeq, &r.Kind, &r.Status, &r.Incarnation, &successor, &r.CreatedMS, &r.ChangedMS)
	copy(r.ID[:], id)
	if successor != nil {
		r.Successor = new(delivery.RoomID)
		copy(r.Successor[:], successor)
	}
	return n, r, err
}

// begin opens the transaction and locks the rooms, in one round trip. The
// limits end a wait for a row that an instance holds which died or hangs.
func (g *group) begin(batch []*work) error {
	ids := make([][]byte, 0, len(batch))
	for _, w := range batch {
		if _, known := g.rooms[w.id]; !known {
			g.rooms[w.id] = nil
			ids = append(ids, w.id[:])
		}
	}
	var b pgx.Batch
	b.Queue("BEGIN")
	b.Queue("SET LOCAL lock_timeout = '5s'")
	b.Queue("SET LOCAL idle_in_transaction_session_timeout = '30s'")
	b.Queue("SELECT "+roomColumns+" FROM rooms WHERE id = ANY($1) ORDER BY id FOR UPDATE", ids)
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
			n, r, err := scanRoom(scan)
			if err != nil {
				return err
			}
			g.rooms[r.ID] = &lockedRoom{n: n, room: r, saved: r}
			return nil
		})
	}()
	return errors.Join(err, results.Close())
}

// run runs one function. Its own failure is its answer; the error that run
// returns is the whole group's.
func (g *group) run(w *work) error {
	locked := g.rooms[w.id]
	if locked == nil {
		w.err = delivery.ErrNotFound
		return nil
	}
	tx := &roomTx{g: g, locked: locked}
	failed := true
	func() {
		defer func() { w.panic = recover() }()
		w.err = w.run(tx)
		failed = w.err != nil
	}()
	if !failed && tx.broken != nil {
		w.err, failed = tx.broken, true
	}
	tx.broken = ErrEnded
	if g.failed != nil {
		return g.failed
	}
	if failed {
		locked.room = locked.saved
		if tx.saved {
			_, err := g.conn.Exec(g.ctx, "ROLLBACK TO piece; RELEASE piece")
			return err
		}
		return nil
	}
	if tx.saved {
		if _, err := g.conn.Exec(g.ctx, "RELEASE piece"); err != nil {
			return err
		}
	}
	if tx.touched {
		locked.dirty, locked.saved = true, locked.room
	}
	if tx.own.len() > 0 {
		g.pending.add(&tx.own)
		locked.queue = true
	}
	return nil
}

// flush sends the pending appends, because somebody is about to read them.
func (g *group) flush() error {
	if g.pending.len() == 0 {
		return nil
	}
	var b pgx.Batch
	g.pending.queue(&b)
	g.pending = appends{}
	for _, r := range g.rooms {
		if r != nil {
			r.queue = false
		}
	}
	if err := g.send(&b); err != nil {
		g.failed = err
		return err
	}
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

func (g *group) send(b *pgx.Batch) error {
	_, err := g.tags(b)
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
	var ns, epochs, next, statuses, changed []int64
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
		successors = append(successors, idOrNull(r.room.Successor))
	}
	if len(ns) == 0 {
		return
	}
	// The log of a room was empty when its first kept seq is the next one: then
	// the oldest entry is one of ours, and so is its time.
	b.Queue(`UPDATE rooms SET epoch = v.epoch, next_seq = v.next_seq, status = v.status, changed_ms = v.changed_ms, successor = v.successor,
		first_ms = CASE WHEN rooms.first_seq = rooms.next_seq AND v.next_seq > rooms.next_seq
			THEN (SELECT l.accepted_ms FROM log l WHERE l.room = rooms.n AND l.seq = rooms.first_seq) ELSE rooms.first_ms END
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[])
			AS v(n, epoch, next_seq, status, changed_ms, successor) WHERE rooms.n = v.n`,
		ns, epochs, next, statuses, changed, successors)
}
