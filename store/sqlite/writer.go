package sqlite

import (
	"errors"

	"github.com/askucher/compax-core/store/batch"
)

// Group commit (package batch). One goroutine owns the only connection that
// writes. It runs what waits inside one SQLite transaction, and answers nobody
// before that transaction's single fsync is done. With 64 senders this is four
// to five times the throughput of a commit each.
//
// Each piece has a savepoint from its first change on, so one that fails leaves
// nothing and disturbs nobody. When the medium itself fails (a full disk), or
// the shared commit does, SQLite may have rolled back everything: then each
// piece runs once more in a transaction of its own.

// maxBatch bounds the work of one transaction and so the wait of its first
// member: 256 appends take about 15 ms.
const maxBatch = 256

// work is what a caller wants done.
type work func(*change) error

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

// writer commits with the connection that writes.
type writer struct {
	conn  *conn
	heads heads
	lane  *batch.Lane[work]
}

func startWriter(c *conn) *writer {
	w := &writer{conn: c, heads: make(heads)}
	w.lane = batch.Start[work](w, maxBatch, ErrClosed)
	return w
}

// Together runs the batch in one transaction. It grows while it runs.
func (w *writer) Together(b *batch.Batch[work]) error {
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		b.Next().Err = err // the next batch may find the file free
		return nil
	}
	for p := b.Next(); p != nil; p = b.Next() {
		p.Err = w.piece(p)
		if p.Err != nil && medium(p.Err) {
			w.rollback()
			return p.Err
		}
	}
	if _, err := w.conn.exec("COMMIT"); err != nil {
		w.rollback()
		return err
	}
	return nil
}

// Alone runs one piece in its own transaction.
func (w *writer) Alone(p *batch.Piece[work]) { p.Err = w.alone(p) }

func (w *writer) alone(p *batch.Piece[work]) error {
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := w.piece(p); err != nil {
		w.rollback()
		return err
	}
	if p.Panic != nil {
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

// piece runs one piece; afterwards its changes are part of the transaction, or
// there are none.
func (w *writer) piece(p *batch.Piece[work]) (err error) {
	c := &change{conn: w.conn, heads: w.heads}
	failed := true
	func() {
		defer func() {
			p.Panic = recover()
		}()
		err = p.Work(c)
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
