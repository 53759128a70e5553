package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/askucher/compax-core/delivery"
)

// Group commit. Rooms are spread over a few lanes, each one goroutine. A lane
// takes what waits and commits it as one transaction (group.go). Nobody is
// answered before the commit is.
//
// When the database refuses the group (a conflict with another instance, a full
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
	if err := g.run(batch); err != nil {
		return err
	}
	return g.commit()
}
