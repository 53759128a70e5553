// Package sqlitestore keeps a profile of package sdk in one SQLite file, without
// cgo: WAL, synchronous=FULL, mode 0600, a file lock so that there is one
// writer, and a trigram index for the search.
//
// It never interprets what it keeps. Begin reading at [Open].
package sqlitestore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"modernc.org/sqlite" // also the driver "sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/askucher/compax-core/sdk"
)

// ErrLocked: another process has the profile open.
var ErrLocked = errors.New("another process has this profile open")

// Version is the version of the schema that this build writes.
const Version = 1

//go:embed migrations/*.sql
var migrations embed.FS

// Store implements [sdk.Store].
type Store struct {
	db   *sql.DB
	lock *fileLock
	mu   sync.Mutex // one Update at a time
}

// Open opens the file at path, which it makes when it is not there, takes the
// lock path + ".lock" and brings the schema up to date. The lock is free when the
// process ends, however it ends (ErrLocked).
func Open(ctx context.Context, path string) (*Store, error) {
	lock, err := lockFile(path + ".lock")
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, path, lock)
	if err != nil {
		return nil, errors.Join(err, lock.release())
	}
	return s, nil
}

func open(ctx context.Context, path string, lock *fileLock) (*Store, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the profile's store: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open the profile's store: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, fmt.Errorf("close the profile's store to others: %w", err)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open the profile's store: %w", err)
	}
	dsn := "file:" + (&url.URL{Path: abs}).EscapedPath() + "?" + strings.Join([]string{
		"_pragma=busy_timeout(10000)", "_pragma=journal_mode(WAL)", "_pragma=synchronous(FULL)",
		"_pragma=secure_delete(ON)", "_pragma=temp_store(MEMORY)", "_txlock=immediate",
	}, "&")
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open the profile's store: %w", err)
	}
	db.SetMaxOpenConns(4)
	if err := migrate(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{db: db, lock: lock}, nil
}

// migrate runs the scripts above the file's version, each in a transaction.
func migrate(ctx context.Context, db *sql.DB) error {
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		if err = full(err); errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("the profile's store: %w", err)
		}
		return fmt.Errorf("the profile's store is damaged or no store: %w", err)
	}
	if version > Version {
		return fmt.Errorf("the profile was written by a newer program (schema %d, this build knows %d): update this one", version, Version)
	}
	for v := version + 1; v <= Version; v++ {
		script, err := migrations.ReadFile(fmt.Sprintf("migrations/%04d.sql", v))
		if err != nil {
			return fmt.Errorf("schema %d: %w", v, err)
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return fmt.Errorf("schema %d: %w", v, err)
		}
		if _, err = tx.ExecContext(ctx, string(script)); err == nil {
			_, err = tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", v))
		}
		if err != nil {
			return errors.Join(fmt.Errorf("schema %d: %w", v, err), tx.Rollback())
		}
		if err := tx.Commit(); err != nil {
			return fmt.Errorf("schema %d: %w", v, err)
		}
	}
	return nil
}

// Update implements [sdk.Store].
func (s *Store) Update(ctx context.Context, f func(sdk.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run(ctx, false, f)
}

// View implements [sdk.Store].
func (s *Store) View(ctx context.Context, f func(sdk.Tx) error) error { return s.run(ctx, true, f) }

func (s *Store) run(ctx context.Context, readOnly bool, f func(sdk.Tx) error) error {
	t, err := s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: readOnly})
	if err != nil {
		return fmt.Errorf("the profile's store: begin: %w", full(err))
	}
	if err := f(&tx{ctx: ctx, tx: t}); err != nil {
		return errors.Join(full(given(ctx, err)), given(ctx, t.Rollback()))
	}
	if readOnly {
		return given(ctx, t.Rollback())
	}
	if err := t.Commit(); err != nil {
		return fmt.Errorf("the profile's store: commit: %w", full(given(ctx, err)))
	}
	return nil
}

// given says why a transaction was over: database/sql rolls back those whose
// context ends, and whoever comes after that is told only that it was.
func given(ctx context.Context, err error) error {
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// full adds syscall.ENOSPC to what the driver says of a disk without room. Growing
// the index of the WAL fails on such a disk before any write does.
func full(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && (e.Code()&0xff == lib.SQLITE_FULL || e.Code() == lib.SQLITE_IOERR_SHMSIZE) {
		return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	}
	return err
}

// Close implements [sdk.Store].
func (s *Store) Close() error { return errors.Join(s.db.Close(), s.lock.release()) }
