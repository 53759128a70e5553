// Package sqlite is the embedded store: [delivery.Store] in one file, pure Go,
// for a service of one process. Nobody else may write the file, and a second
// process is refused.
//
// Changes go through one goroutine that commits in groups (writer.go); reads
// run beside it on connections of their own and see everything acknowledged
// before they began. Journal mode is WAL with synchronous=FULL: what a method
// acknowledged survives the loss of power.
//
// It never decides what may enter a room, never reads a clock and never opens a
// payload. Begin reading at log.go, the way of one entry, with
// migrations/0001_first.sql beside it.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"modernc.org/sqlite"

	"github.com/askucher/compax-core/delivery"
)

// Store is an open database file.
type Store struct {
	path   string
	lock   *os.File
	writer *writer

	slots  chan struct{} // one for each reader that may exist
	mu     sync.Mutex    // guards idle and closed
	idle   []*conn
	closed bool
}

var _ delivery.Store = (*Store)(nil)

// Open opens the database at path and makes it, with mode 0600, when it is not
// there; its directory must exist. It brings an older schema up to date.
// Errors: ErrInUse, ErrLocked, ErrCorrupt, ErrForeign, ErrNewer,
// delivery.ErrFull, and what the file system says.
func Open(ctx context.Context, path string) (_ *Store, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	held, err := lock(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, held.Close())
		}
	}()
	// SQLite gives its WAL and index files the mode of the database file.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	// fdatasync writes all that is needed to read the data back; only time
	// stamps are left out. It is what SQLite itself uses on Linux. Systems
	// without it keep their stronger call.
	if _, err := sqlite.Fdatasync(true); err != nil && !errors.Is(err, sqlite.ErrFdatasyncUnavailable) {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	c, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	if err := prepare(ctx, c); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: open %s: %w", path, err), c.close())
	}
	t, err := loadTail(c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: open %s: %w", path, err), c.close())
	}
	return &Store{
		path:   path,
		lock:   held,
		writer: startWriter(c, t),
		slots:  make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0))),
	}, nil
}

var (
	// A checkpoint every 16 MiB of WAL instead of every 4: each one rewrites the
	// hot pages of the trees once, however often they changed meanwhile.
	writerPragmas = []string{
		"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(0)", "cache_size(-65536)",
		"wal_autocheckpoint(4096)", "journal_size_limit(67108864)", "temp_store(MEMORY)", "trusted_schema(0)",
	}
	readerPragmas = []string{"query_only(1)", "cache_size(-16384)", "temp_store(MEMORY)", "trusted_schema(0)"}
)

// prepare makes the connection the writer's and the schema the newest. It
// looks whose file this is before it changes anything.
func prepare(ctx context.Context, c *conn) error {
	version, err := schemaVersion(c)
	if err != nil {
		return err
	}
	for _, p := range writerPragmas {
		if _, err := c.exec("PRAGMA " + p); err != nil {
			return fmt.Errorf("PRAGMA %s: %w", p, err)
		}
	}
	return migrate(ctx, c, version)
}

// Path is the absolute path of the database file.
func (s *Store) Path() string { return s.path }

// write runs a change in the writer's next transaction.
func (s *Store) write(ctx context.Context, run func(*change) error) error {
	return s.writer.lane.Do(ctx, run)
}

// read lends a connection that sees all that is committed now.
func (s *Store) read(ctx context.Context, run func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.slots }()
	c, err := s.reader()
	if err != nil {
		return err
	}
	defer s.giveBack(c)
	return run(c)
}

// snapshot is read with all its statements on one state of the database.
func (s *Store) snapshot(ctx context.Context, run func(*conn) error) error {
	return s.read(ctx, func(c *conn) error {
		if _, err := c.exec("BEGIN"); err != nil {
			return err
		}
		c.broken = true // also when run panics; else until the transaction has ended
		err := run(c)
		_, e := c.exec("COMMIT")
		c.broken = e != nil
		return errors.Join(err, e)
	})
}

func (s *Store) reader() (*conn, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return c, nil
	}
	s.mu.Unlock()
	return open(s.path, readerPragmas...)
}

// giveBack keeps a reader for the next who reads; one that is broken is closed,
// which ends its transaction.
func (s *Store) giveBack(c *conn) {
	if c.broken {
		_ = c.close() // it was read from: nothing is lost
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, c)
}

// Ping reports whether the store can take a write now, by making one.
func (s *Store) Ping(ctx context.Context) error {
	return s.write(ctx, func(c *change) error {
		_, err := c.exec("INSERT INTO settings(key, value) VALUES('ping', x'') ON CONFLICT(key) DO UPDATE SET value = excluded.value")
		return err
	})
}

// Close finishes the changes under way, waits for the reads, writes the WAL
// back into the file and lets go of it. What comes later gets ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()

	s.writer.lane.Close()
	for range cap(s.slots) {
		s.slots <- struct{}{} // every reader is back
	}
	var errs []error
	for _, c := range s.idle {
		errs = append(errs, c.close())
	}
	s.idle = nil
	for range cap(s.slots) {
		<-s.slots // who comes now is told ErrClosed
	}
	// The last connection to close checkpoints and removes the WAL.
	errs = append(errs, s.writer.conn.close(), s.lock.Close())
	return errors.Join(errs...)
}
