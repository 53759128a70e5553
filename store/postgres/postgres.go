// Package postgres is the store of a deployed service: [delivery.Store] on a
// PostgreSQL database that any number of instances share.
//
// Order comes from the lock on a room's row. Each instance commits in groups
// (lanes.go): appends that wait for the database together share one
// transaction, its locks and its flush. It uses at most 16 connections and no
// state of a session: no prepared statement outlives its transaction, no
// session lock, no LISTEN, no SET without LOCAL, so it works through a pooler
// in transaction mode.
//
// It never decides what may enter a room, never reads a clock and never opens a
// payload. Begin reading at log.go, the way of one entry, with
// migrations/0001_first.sql beside it.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/askucher/compax-core/delivery"
)

// MaxConns is how many connections an instance uses at most.
const MaxConns = 16

// What Open and the methods return beside the errors of package delivery.
var (
	// ErrNewer: a newer Compax has migrated the database. Run that version, or
	// restore a backup from before.
	ErrNewer = errors.New("postgres: the schema is newer than this program")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("postgres: the store is closed")
	// ErrEnded: a RoomTx was used after its function returned.
	ErrEnded = errors.New("postgres: the transaction has ended")
)

// Store is a pool of connections to one database.
type Store struct {
	pool   *pgxpool.Pool
	lanes  *lanes
	closed atomic.Bool
}

var _ delivery.Store = (*Store)(nil)

// Open connects to url, a PostgreSQL connection URL, and brings the schema up
// to date; instances that start together wait for the one that migrates. The
// URL's password appears in no error.
func Open(ctx context.Context, url string) (*Store, error) {
	return open(ctx, url, func(*pgxpool.Config) {})
}

func open(ctx context.Context, url string, adjust func(*pgxpool.Config)) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("postgres: the database URL is malformed: want postgres://user:password@host:port/database")
	}
	config.MaxConns = MaxConns
	// Statements are described once and their description kept on our side; each
	// execution is one round trip with an unnamed statement and binary values.
	// Nothing of it stays in the session, and unlike the simple protocol no value
	// is ever written into the text of a statement.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	config.ConnConfig.StatementCacheCapacity = 0
	config.ConnConfig.DescriptionCacheCapacity = 512
	adjust(config)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if err := migrate(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return &Store{pool: pool, lanes: startLanes(pool)}, nil
}

// Close finishes the transactions under way and closes the connections. What
// comes later gets ErrClosed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.lanes.close()
	s.pool.Close()
	return nil
}

// Ping reports whether the store can take a write now, by making one.
func (s *Store) Ping(ctx context.Context) error {
	return s.PutSetting(ctx, "ping", nil)
}

// tries is how often a transaction that the database gave up (a deadlock, a
// conflict) is run.
const tries = 5

// write runs fn in a transaction. Only what was committed is acknowledged: a
// context that ends before the commit undoes everything, during it nothing.
func (s *Store) write(ctx context.Context, fn func(pgx.Tx) error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	for try := 1; ; try++ {
		err := s.once(ctx, fn)
		if try == tries || !conflict(err) {
			return translate(err)
		}
	}
}

func (s *Store) once(ctx context.Context, fn func(pgx.Tx) error) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return err
	}
	done, cancel := lasting(ctx)
	defer cancel()
	if err := fn(tx); err != nil {
		return errors.Join(err, ended(tx.Rollback(done)))
	}
	if err := ctx.Err(); err != nil {
		return errors.Join(err, ended(tx.Rollback(done)))
	}
	return tx.Commit(done)
}

// lasting is a context for what must be known to its end, with a limit for a
// database that does not answer any more.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
}

// ended drops the complaint about a transaction whose connection is gone: it
// is rolled back already.
func ended(err error) error {
	if errors.Is(err, pgx.ErrTxClosed) {
		return nil
	}
	return err
}

// row scans one row; delivery.ErrNotFound when there is none.
func row(r pgx.Row, into ...any) error {
	return noRows(r.Scan(into...))
}

// read scans one row outside of a transaction.
func (s *Store) read(ctx context.Context, query string, args []any, into ...any) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return translate(row(s.pool.QueryRow(ctx, query, args...), into...))
}

// list calls each with every row's scan function.
func (s *Store) list(ctx context.Context, query string, args []any, each func(scan func(...any) error) error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return translate(err)
	}
	return translate(eachRow(rows, each))
}

func eachRow(rows pgx.Rows, each func(scan func(...any) error) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// state is the SQLSTATE of an error of the database, or "".
func state(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// conflict reports whether the same transaction may succeed when run again at
// once: serialization failure, deadlock. A lock that was not free within its
// timeout is not among them: whoever holds it keeps it for longer than a retry.
func conflict(err error) bool {
	switch state(err) {
	case "40001", "40P01":
		return true
	}
	return false
}

// translate gives the database's errors their meaning, by SQLSTATE.
func translate(err error) error {
	switch state(err) {
	case "":
		return err
	case "23505":
		return fmt.Errorf("%w: %w", delivery.ErrExists, err)
	case "53100":
		return fmt.Errorf("%w: %w", delivery.ErrFull, err)
	}
	return fmt.Errorf("postgres: %w", err)
}

// noRows is delivery.ErrNotFound for a query without a row.
func noRows(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return delivery.ErrNotFound
	}
	return err
}
