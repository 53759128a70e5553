package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"

	"modernc.org/sqlite"

	"github.com/askucher/compax-core/delivery"
)

// conn is one connection with every statement it ever ran prepared. It is used
// by one goroutine at a time. It speaks the driver's interface and not
// database/sql: the writer runs seven statements for each append, and the
// pool's bookkeeping around each would cost as much as the statement.
type conn struct {
	raw    driver.Conn
	stmts  map[string]statement
	args   []driver.NamedValue // scratch
	broken bool                // a transaction may be open: nobody else may use it
}

// statement is what the driver's statements are, beside driver.Stmt.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// patience is how long a connection waits for a lock that another program
// holds, in milliseconds.
const patience = 5000

// open connects to path. A full disk, a lock of another program and a corrupt
// file show only at the first use.
func open(path string, pragmas ...string) (*conn, error) {
	q := url.Values{"_pragma": append([]string{fmt.Sprintf("busy_timeout(%d)", patience)}, pragmas...)}
	raw, err := (&sqlite.Driver{}).Open((&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, translate(err)
	}
	return &conn{raw: raw, stmts: make(map[string]statement)}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}

func (c *conn) prepare(query string) (statement, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	raw, err := c.raw.Prepare(query)
	if err != nil {
		return nil, fmt.Errorf("sqlite: prepare %q: %w", query, translate(err))
	}
	s, ok := raw.(statement)
	if !ok {
		return nil, fmt.Errorf("sqlite: the driver's %T cannot run with arguments", raw)
	}
	c.stmts[query] = s
	return s, nil
}

// bind fills the scratch arguments. Arrays of the protocol's ids are passed as
// slices by the callers; numbers of every width become int64. Where it matters the
// caller passes int64: a number is put on the heap for each interface it is put into.
func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: value(a)})
	}
	return c.args
}

func value(a any) driver.Value {
	switch a := a.(type) {
	case nil, int64, string:
		return a
	case []byte:
		if a == nil {
			return []byte{} // NULL is written as nil, never as an empty slice
		}
		return a
	case uint64:
		return int64(a)
	case int:
		return int64(a)
	case uint32:
		return int64(a)
	case uint16:
		return int64(a)
	case bool:
		if a {
			return int64(1)
		}
		return int64(0)
	case delivery.EntryKind:
		return int64(a)
	case delivery.RoomKind:
		return int64(a)
	case delivery.RoomStatus:
		return int64(a)
	case delivery.MailKind:
		return int64(a)
	}
	panic(fmt.Sprintf("sqlite: no column holds a %T", a))
}

// exec runs a statement that returns no rows and says how many it changed.
func (c *conn) exec(query string, args ...any) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	// Without a deadline: a statement here is short, and an interrupted one
	// would end its neighbours of the same batch too.
	r, err := s.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, translate(err)
	}
	n, err := r.RowsAffected()
	return n, translate(err)
}

// errStop ends a query early from within scan.
var errStop = errors.New("sqlite: enough rows")

// query calls scan for each row; errStop from scan ends it without an error.
func (c *conn) query(query string, scan func(row) error, args ...any) (err error) {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return translate(err)
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = translate(e)
		}
	}()
	r := make(row, len(rows.Columns()))
	for {
		switch err := rows.Next(r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return translate(err)
		}
		switch err := scan(r); {
		case errors.Is(err, errStop):
			return nil
		case err != nil:
			return err
		}
	}
}

// first reads one row; found is false when there is none.
func (c *conn) first(query string, args ...any) (r row, found bool, err error) {
	err = c.query(query, func(got row) error {
		r, found = got, true
		return errStop
	}, args...)
	return r, found, err
}

// one reads one row; delivery.ErrNotFound when there is none.
func (c *conn) one(query string, args ...any) (row, error) {
	r, found, err := c.first(query, args...)
	if err == nil && !found {
		err = delivery.ErrNotFound
	}
	return r, err
}

// row is a result row. The getters trust the schema: it is STRICT, so a column
// holds its declared type or NULL.
type row []driver.Value

func (r row) int(i int) int64 {
	n, _ := r[i].(int64)
	return n
}
func (r row) uint(i int) uint64 { return uint64(r.int(i)) }
func (r row) bool(i int) bool   { return r.int(i) != 0 }
func (r row) null(i int) bool   { return r[i] == nil }
func (r row) text(i int) string {
	s, _ := r[i].(string)
	return s
}

// blob is the row's own copy; empty and NULL are both nil.
func (r row) blob(i int) []byte {
	b, _ := r[i].([]byte)
	return b
}

// bytes copies a blob column of fixed size, such as an id, into dst.
func (r row) bytes(i int, dst []byte) { copy(dst, r.blob(i)) }
