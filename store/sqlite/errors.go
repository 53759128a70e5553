package sqlite

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/askucher/compax-core/delivery"
)

// What Open and the methods return beside the errors of package delivery.
var (
	// ErrInUse: another process has the store open. Stop it, or use its address.
	ErrInUse = errors.New("sqlite: the store is in use by another process")
	// ErrLocked: a program that is not Compax holds a lock on the file and kept
	// it for five seconds. Close it; nothing was changed.
	ErrLocked = errors.New("sqlite: the database is locked by another program")
	// ErrCorrupt: the file is damaged or is no SQLite database. Restore a backup.
	ErrCorrupt = errors.New("sqlite: the file is damaged or not a database")
	// ErrForeign: a healthy SQLite database that Compax did not make. Name
	// another file.
	ErrForeign = errors.New("sqlite: the database belongs to another program")
	// ErrNewer: a newer Compax has migrated the file. Run that version, or
	// restore a backup from before.
	ErrNewer = errors.New("sqlite: the schema is newer than this program")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("sqlite: the store is closed")
	// ErrEnded: a RoomTx was used after its function returned.
	ErrEnded = errors.New("sqlite: the transaction has ended")
)

// translate gives the driver's errors their meaning, by result code.
func translate(err error) error {
	if err == nil {
		return nil // without the allocation of what follows
	}
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_IOERR:
		// Growing the index of the WAL fails on a full disk before a write does.
		if e.Code() == lib.SQLITE_IOERR_SHMSIZE {
			return fmt.Errorf("%w: %w", delivery.ErrFull, err)
		}
	case lib.SQLITE_FULL:
		return fmt.Errorf("%w: %w", delivery.ErrFull, err)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", ErrLocked, err)
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// unique reports whether a statement broke a UNIQUE or PRIMARY KEY constraint.
func unique(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code() == lib.SQLITE_CONSTRAINT_UNIQUE || e.Code() == lib.SQLITE_CONSTRAINT_PRIMARYKEY ||
		e.Code() == lib.SQLITE_CONSTRAINT_ROWID)
}

// exists turns a broken UNIQUE constraint into delivery.ErrExists.
func exists(err error) error {
	if unique(err) {
		return delivery.ErrExists
	}
	return err
}

// medium reports whether an error is the medium's and not the statement's:
// SQLite may have rolled the whole transaction back, so nothing that shared it
// may be taken as done.
func medium(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_CONSTRAINT, lib.SQLITE_ERROR, lib.SQLITE_MISMATCH, lib.SQLITE_RANGE, lib.SQLITE_TOOBIG:
		return false
	}
	return true
}
