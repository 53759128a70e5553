package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/askucher/compax-core/delivery"
)

// Reader reads a database file beside whoever serves it, and changes nothing:
// what the operator's tools look through. It takes no lock, and it migrates
// nothing.
type Reader struct {
	path    string
	c       *conn
	version int
}

// OpenReader opens the file at path. Errors: fs.ErrNotExist, ErrCorrupt,
// ErrForeign, ErrNewer, ErrLocked.
func OpenReader(path string) (_ *Reader, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	if _, err := os.Stat(path); err != nil { // opening would make it
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	c, err := open(path, readerPragmas...)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	r := &Reader{path: path, c: c}
	if r.version, err = schemaVersion(c); err == nil && r.version > SchemaVersion() {
		err = fmt.Errorf("%w: version %d, this program knows %d", ErrNewer, r.version, SchemaVersion())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: open %s: %w", path, err), c.close())
	}
	return r, nil
}

// Close lets go of the file.
func (r *Reader) Close() error { return r.c.close() }

// Version is the schema's; [SchemaVersion] is the newest.
func (r *Reader) Version() int { return r.version }

// SchemaVersion is the newest schema version that this program knows.
func SchemaVersion() int {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		panic(err) // embedded: it is there or the program would not have built
	}
	return len(files)
}

// CopyTo writes the state of this moment to a new file of mode 0600 at into,
// while others go on writing. The copy is one plain file, without gaps. A file
// that is already there is an error.
func (r *Reader) CopyTo(ctx context.Context, into string) error {
	f, err := os.OpenFile(into, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	// To SQLite the new file is a write, too; of the old one nothing changes.
	if _, err := r.c.exec("PRAGMA query_only(0)"); err != nil {
		return err
	}
	s, err := r.c.prepare("VACUUM INTO ?")
	if err != nil {
		return err
	}
	if _, err := s.ExecContext(ctx, []driver.NamedValue{{Ordinal: 1, Value: into}}); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // the statement was interrupted
		}
		return fmt.Errorf("sqlite: copy %s: %w", r.path, translate(err))
	}
	_, err = r.c.exec("PRAGMA query_only(1)")
	return err
}

// Faults says what is wrong with the file itself: damaged pages, indexes that
// do not agree with their tables; at most most lines. It reads all of it.
func (r *Reader) Faults(most int) (faults []string, err error) {
	err = r.c.query(fmt.Sprintf("PRAGMA integrity_check(%d)", most), func(row row) error {
		if text := row.text(0); text != "ok" {
			faults = append(faults, text)
		}
		return nil
	})
	if errors.Is(err, ErrCorrupt) { // too damaged to be looked through
		return append(faults, err.Error()), nil
	}
	return faults, err
}

// Setting reads a value of the deployment; delivery.ErrNotFound when unset.
func (r *Reader) Setting(key string) ([]byte, error) {
	row, err := r.c.one("SELECT value FROM settings WHERE key = ?", key)
	if err != nil {
		return nil, err
	}
	return row.blob(0), nil
}

// EachBlob calls fn for every blob whose bytes are wanted, by id. fn must not
// use r.
func (r *Reader) EachBlob(fn func(delivery.BlobMeta) error) error {
	return r.c.query("SELECT id, size, received, created_ms FROM blobs WHERE dead = 0 ORDER BY id", func(row row) error {
		m := delivery.BlobMeta{Size: row.int(1), Received: row.int(2), CreatedMS: row.int(3)}
		row.bytes(0, m.ID[:])
		return fn(m)
	})
}

// Blobs counts the blobs that EachBlob gives, and the bytes that they have.
func (r *Reader) Blobs() (count, bytes int64, err error) {
	row, err := r.c.one("SELECT count(*), coalesce(sum(received), 0) FROM blobs WHERE dead = 0")
	if err != nil {
		return 0, 0, err
	}
	return row.int(0), row.int(1), nil
}

// Rooms counts the rooms and the entries that are kept.
func (r *Reader) Rooms() (rooms, entries int64, err error) {
	row, err := r.c.one("SELECT (SELECT count(*) FROM rooms), (SELECT count(*) FROM log)")
	if err != nil {
		return 0, 0, err
	}
	return row.int(0), row.int(1), nil
}
