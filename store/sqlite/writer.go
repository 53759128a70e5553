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
// A piece that fails leaves nothing and disturbs nobody. Nearly all succeed, or fail
// before they change anything, so they run one behind the other as they are. When
// one fails after it changed something, the transaction is begun anew and its pieces
// run again, each under a savepoint, which costs every piece two statements and a
// copy of each page that it touches: a fifth of an append. When the medium itself
// fails (a full disk), or the shared commit does, SQLite may have rolled back
// everything: then each piece runs once more in a transaction of its own.

// maxBatch bounds the work of one transaction and so the wait of its first
// member: 256 appends take about 15 ms.
const maxBatch = 256

// work is what a caller wants done.
type work func(*change) error

// change is a piece of work under way. Reads may use conn at once; whatever
// changes something calls exec.
type change struct {
	*conn
	heads   heads
	tail    *tail
	careful bool // it has a savepoint from its first change on
	saved   bool // that savepoint stands
	changed bool // a statement was run that may have changed something
}

// exec runs a statement, under a savepoint where the piece is to have one. A
// statement that fails leaves nothing by itself.
func (c *change) exec(query string, args ...any) (int64, error) {
	if c.careful && !c.saved {
		if _, err := c.conn.exec("SAVEPOINT piece"); err != nil {
			return 0, err
		}
		c.saved = true
	}
	n, err := c.conn.exec(query, args...)
	c.changed = c.changed || err == nil
	return n, err
}

// writer commits with the connection that writes.
type writer struct {
	conn  *conn
	heads heads
	tail  *tail
	lane  *batch.Lane[work]
}

func startWriter(c *conn, t *tail) *writer {
	w := &writer{conn: c, heads: make(heads), tail: t}
	w.lane = batch.Start[work](w, maxBatch, ErrClosed)
	return w
}

// Together runs the batch in one transaction. It grows while it runs.
func (w *writer) Together(b *batch.Batch[work]) error {
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		b.Next().Err = err // the next batch may find the file free
		return nil
	}
	careful := false
	for p := b.Next(); p != nil; p = b.Next() {
		err := w.piece(p, careful)
		if errors.Is(err, errHalfway) {
			careful = true
			err = w.again(b.Pieces())
		}
		if err != nil {
			w.rollback()
			return err
		}
	}
	if err := w.tail.placeSome(w.conn.exec); err != nil {
		w.rollback()
		return err
	}
	return w.commit()
}

// commit ends the transaction.
func (w *writer) commit() error {
	w.tail.launch()
	if _, err := w.conn.exec("COMMIT"); err != nil {
		w.rollback()
		return err
	}
	w.tail.committed()
	return nil
}

// again begins the transaction anew and runs these pieces under savepoints.
func (w *writer) again(pieces []*batch.Piece[work]) error {
	w.rollback()
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, p := range pieces {
		if err := w.piece(p, true); err != nil {
			return err
		}
	}
	return nil
}

// Alone runs one piece in its own transaction.
func (w *writer) Alone(p *batch.Piece[work]) { p.Err = w.alone(p) }

func (w *writer) alone(p *batch.Piece[work]) error {
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := w.piece(p, false)
	if err == nil || errors.Is(err, errHalfway) {
		err = p.Err
	}
	if err != nil || p.Panic != nil {
		w.rollback()
		return err
	}
	return w.commit()
}

// rollback ends the transaction if SQLite has not done so itself.
func (w *writer) rollback() {
	clear(w.heads)
	w.tail.rollback()
	_, _ = w.conn.exec("ROLLBACK")
}

// errHalfway: the piece failed after it had changed something, and had no
// savepoint.
var errHalfway = errors.New("sqlite: a piece failed halfway")

// piece runs one piece and sets its Err and Panic. Afterwards its changes are part
// of the transaction, or there are none; else it returns why not: errHalfway, or
// what the medium says.
func (w *writer) piece(p *batch.Piece[work], careful bool) error {
	c := &change{conn: w.conn, heads: w.heads, tail: w.tail, careful: careful}
	pending, settled := w.tail.mark()
	p.Err, p.Panic = nil, nil
	func() {
		defer func() {
			p.Panic = recover()
		}()
		p.Err = p.Work(c)
	}()
	failed := p.Err != nil || p.Panic != nil
	if failed {
		w.tail.cut(pending, settled)
	}
	switch {
	case p.Err != nil && medium(p.Err):
		return p.Err
	case failed && c.changed && !c.saved:
		return errHalfway
	case failed && c.saved:
		if _, err := w.conn.exec("ROLLBACK TO piece"); err != nil {
			return err
		}
	}
	if c.saved {
		if _, err := w.conn.exec("RELEASE piece"); err != nil {
			return err
		}
	}
	return nil
}
