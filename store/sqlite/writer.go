package sqlite

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Group commit. One goroutine owns the only connection that writes. It takes
// what waits, runs each piece of work inside one SQLite transaction, and
// answers nobody before that transaction's single fsync is done. With 64
// senders this is four to five times the throughput of a commit each.
//
// Each piece has a savepoint from its first change on, so one that fails leaves
// nothing and disturbs nobody. When the medium itself fails (a full disk), or
// the shared commit does, SQLite may have rolled back everything: then each
// piece runs once more in a transaction of its own, and gets its own answer.

// maxBatch bounds the work of one transaction and so the wait of its first
// member: 256 appends take about 15 ms.
const maxBatch = 256

// work is one caller's change.
type work struct {
	run   func(*change) error
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

// change is a piece of work under way. Reads may use conn at once; whatever
// changes something calls begin first, which exec does.
type change struct {
	*conn
	heads heads
	saved bool
}

// exec opens the savepoint when it is the first change, then runs a statement.
func (c *change) exec(query string, args ...any) (int64, error) {
	if !c.saved {
		if _, err := c.conn.exec("SAVEPOINT piece"); err != nil {
			return 0, err
		}
		c.saved = true
	}
	return c.conn.exec(query, args...)
}

// writer is the goroutine and its queue.
type writer struct {
	conn  *conn
	heads heads
	queue chan *work
	batch []*work // scratch

	closing sync.RWMutex // held shared while sending to queue
	closed  bool         // guarded by closing
	ended   chan struct{}
}

func startWriter(c *conn) *writer {
	w := &writer{conn: c, heads: make(heads), queue: make(chan *work, maxBatch), ended: make(chan struct{})}
	go w.loop()
	return w
}

// do runs a piece of work and returns once it is durable, or has changed
// nothing. A context that ends takes back what has not begun; what has begun
// is waited for, because its outcome matters.
func (w *writer) do(ctx context.Context, run func(*change) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := &work{run: run, done: make(chan struct{})}
	if err := w.send(ctx, p); err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		if p.state.CompareAndSwap(waiting, withdrawn) {
			return ctx.Err()
		}
		<-p.done
	}
	if p.panic != nil {
		panic(p.panic)
	}
	return p.err
}

func (w *writer) send(ctx context.Context, p *work) error {
	w.closing.RLock()
	defer w.closing.RUnlock()
	if w.closed {
		return ErrClosed
	}
	select {
	case w.queue <- p:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close refuses new work, finishes what was accepted, and ends the goroutine.
func (w *writer) close() {
	w.closing.Lock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
	w.closing.Unlock()
	<-w.ended
}

func (w *writer) loop() {
	defer close(w.ended)
	for p := range w.queue {
		w.batch = w.batch[:0]
		err := w.shared(p)
		if err != nil {
			for _, p := range w.batch {
				p.err = w.alone(p)
			}
		}
		for _, p := range w.batch {
			close(p.done)
		}
		clear(w.batch)
	}
}

// shared runs first and what waits behind it in one transaction. An error
// means that nothing of it is durable.
func (w *writer) shared(first *work) error {
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		if w.take(first) {
			first.err = err
		}
		return nil
	}
	for p, ok := first, true; ok; {
		if w.take(p) {
			p.err = w.piece(p)
			if p.err != nil && medium(p.err) {
				w.rollback()
				return p.err
			}
		}
		p = nil
		if len(w.batch) < maxBatch {
			select {
			case p = <-w.queue: // nil once closed and empty
			default:
			}
		}
		ok = p != nil
	}
	if _, err := w.conn.exec("COMMIT"); err != nil {
		w.rollback()
		return err
	}
	return nil
}

// alone runs one piece in its own transaction.
func (w *writer) alone(p *work) error {
	p.panic = nil // of the run that came to nothing
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := w.piece(p); err != nil {
		w.rollback()
		return err
	}
	if p.panic != nil {
		w.rollback()
		return nil
	}
	if _, err := w.conn.exec("COMMIT"); err != nil {
		w.rollback()
		return err
	}
	return nil
}

// rollback ends the transaction if SQLite has not done so itself.
func (w *writer) rollback() {
	clear(w.heads)
	_, _ = w.conn.exec("ROLLBACK")
}

// take claims a piece unless its caller has withdrawn it.
func (w *writer) take(p *work) bool {
	if !p.state.CompareAndSwap(waiting, taken) {
		return false
	}
	w.batch = append(w.batch, p)
	return true
}

// piece runs one piece; afterwards its changes are part of the transaction, or
// there are none.
func (w *writer) piece(p *work) (err error) {
	c := &change{conn: w.conn, heads: w.heads}
	p.panic = nil
	failed := true
	func() {
		defer func() {
			p.panic = recover()
		}()
		err = p.run(c)
		failed = err != nil
	}()
	if !c.saved {
		return err
	}
	if failed {
		if _, e := w.conn.exec("ROLLBACK TO piece"); e != nil {
			return errors.Join(err, e)
		}
	}
	if _, e := w.conn.exec("RELEASE piece"); e != nil {
		return errors.Join(err, e)
	}
	return err
}
