// Package disk keeps blobs as files of one directory: [delivery.BlobStore] for
// a service with a disk, its own or shared by its instances.
//
// A blob is a file named by its id in hex, under a directory named by the id's
// first byte, and nothing from outside ever becomes part of a path. Every
// acknowledged byte was written through to the medium. It holds ciphertext and
// never looks into it; whose a blob is, and when it may go, is the store's
// matter. Begin reading at [Store.Append].
package disk

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/askucher/compax-core/delivery"
)

// Store is an open directory.
type Store struct {
	dir      string
	root     *os.Root
	location string
	flush    func(dir *os.File) error  // writes a directory's names to the medium
	settle   func(blob *os.File) error // writes a file's bytes to the medium

	mu   sync.Mutex                // guards busy and made
	busy map[delivery.BlobID]int64 // under way: how much of it is durable
	made [256]bool                 // shards known to be on the medium
}

var _ delivery.BlobStore = (*Store)(nil)

// marker is the file that names the directory, so that two instances can tell
// whether they see the same one under whatever paths.
const marker = "location"

// Open opens the directory and makes it, with mode 0700, when it is not there.
func Open(dir string) (_ *Store, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Close())
		}
	}()
	s := &Store{dir: dir, root: root, flush: syncDir, settle: (*os.File).Sync, busy: make(map[delivery.BlobID]int64)}
	if s.location, err = s.name(); err != nil {
		return nil, fmt.Errorf("disk: name %s: %w", dir, err)
	}
	return s, nil
}

// name reads the directory's random name and gives it one at first.
func (s *Store) name() (string, error) {
	b, err := s.root.ReadFile(marker)
	if errors.Is(err, fs.ErrNotExist) {
		id := hex.AppendEncode(nil, random())
		// Written aside and linked: an instance that starts at the same moment
		// sees the whole name or none, and one of the two names stands.
		aside := marker + "." + string(id)
		if err := s.write(aside, id); err != nil {
			return "", err
		}
		if err := s.root.Link(aside, marker); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		if err := errors.Join(s.root.Remove(aside), s.sync(".")); err != nil {
			return "", err
		}
		b, err = s.root.ReadFile(marker)
	}
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(b))
	if _, err := hex.DecodeString(id); err != nil || len(id) != 32 {
		return "", fmt.Errorf("the file %q holds no name; restore it from a backup, or remove it when this is the only instance", marker)
	}
	return "disk:" + id, nil
}

func random() []byte {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return b
}

func (s *Store) write(name string, b []byte) error {
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// sync writes a directory through to the medium.
func (s *Store) sync(name string) error {
	d, err := s.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(s.flush(d), d.Close())
}

// Close lets go of the directory.
func (s *Store) Close() error { return s.root.Close() }

// Location is "disk:" and the directory's random name.
func (s *Store) Location() string { return s.location }

// path is where a blob lives, below the root.
func path(id delivery.BlobID) (shard, file string) {
	h := id.String()
	return h[:2], filepath.Join(h[:2], h)
}

// piece is how much is read at once: one system call for each, and little
// memory for each of many uploads.
const piece = 256 << 10

// Append writes r at the blob's end.
func (s *Store) Append(ctx context.Context, id delivery.BlobID, offset int64, r io.Reader) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if offset < 0 {
		return 0, delivery.ErrChanged
	}
	if !s.begin(id, offset) {
		return 0, fmt.Errorf("%w: the blob is being written", delivery.ErrChanged)
	}
	defer s.end(id)
	f, err := s.file(id, offset)
	if err != nil {
		return 0, full(err)
	}
	n, err := copyTo(ctx, f, offset, r)
	if e := s.settle(f); e != nil {
		// What reached the medium is not known: nothing was taken.
		return 0, full(errors.Join(err, e, f.Truncate(offset), f.Close()))
	}
	return n, full(errors.Join(err, f.Close()))
}

// begin marks a blob as being written.
func (s *Store) begin(id delivery.BlobID, durable int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, busy := s.busy[id]; busy {
		return false
	}
	s.busy[id] = durable
	return true
}

func (s *Store) end(id delivery.BlobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, id)
}

// file opens a blob of exactly size bytes for writing; a blob of no bytes need
// not exist. A new name is on the medium before the first byte is, also where an
// earlier try made the file and ended before it had flushed the name.
func (s *Store) file(id delivery.BlobID, size int64) (*os.File, error) {
	shard, name := path(id)
	f, err := s.root.OpenFile(name, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if size != 0 {
			return nil, delivery.ErrChanged
		}
		return s.create(id, shard, name)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != size {
		err = delivery.ErrChanged
	}
	if err == nil && size == 0 {
		err = s.sync(shard)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (s *Store) create(id delivery.BlobID, shard, name string) (*os.File, error) {
	if err := s.makeShard(id[0], shard); err != nil {
		return nil, err
	}
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // another instance was faster
		return nil, delivery.ErrChanged
	}
	if err != nil {
		return nil, err
	}
	if err := s.sync(shard); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (s *Store) makeShard(n byte, shard string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[n] {
		return nil
	}
	if err := s.root.Mkdir(shard, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := s.sync("."); err != nil {
		return err
	}
	s.made[n] = true
	return nil
}

// copyTo copies r to the file until it ends or the context does, and says how
// many bytes the file has taken.
func copyTo(ctx context.Context, f *os.File, offset int64, r io.Reader) (taken int64, err error) {
	buf := make([]byte, piece)
	for {
		if err := ctx.Err(); err != nil {
			return taken, err
		}
		n, errRead := r.Read(buf)
		if n > 0 {
			w, err := f.WriteAt(buf[:n], offset+taken)
			taken += int64(w)
			if err != nil {
				return taken, err
			}
		}
		switch {
		case errors.Is(errRead, io.EOF):
			return taken, nil
		case errRead != nil:
			return taken, errRead
		}
	}
}

// Open reads a part of a blob. What is being appended meanwhile is not in it.
func (s *Store) Open(ctx context.Context, id delivery.BlobID, offset, length int64) (io.ReadCloser, error) {
	size, _, err := s.length(ctx, id)
	if err != nil {
		return nil, err
	}
	if offset < 0 || length < 0 {
		return nil, errors.New("disk: a part of a blob begins at 0 and has a length")
	}
	_, name := path(id)
	f, err := s.root.Open(name)
	if err != nil {
		return nil, missing(err)
	}
	length = min(length, max(0, size-offset))
	return &part{Reader: io.NewSectionReader(f, offset, length), file: f}, nil
}

// part is a part of an open file.
type part struct {
	io.Reader
	file *os.File
}

func (p *part) Close() error { return p.file.Close() }

// Size is how much of a blob is durable. Of a file that nobody here is writing the
// end may be the work of a process that was killed before it had flushed, or of
// another instance: it is flushed before it counts.
func (s *Store) Size(ctx context.Context, id delivery.BlobID) (int64, error) {
	size, busy, err := s.length(ctx, id)
	if err != nil || busy {
		return size, err
	}
	_, name := path(id)
	f, err := s.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return 0, missing(err)
	}
	if err := errors.Join(s.settle(f), f.Close()); err != nil {
		return 0, full(err)
	}
	return size, nil
}

// length is how much of a blob can be read: while it is being written here, what was
// durable before.
func (s *Store) length(ctx context.Context, id delivery.BlobID) (size int64, busy bool, err error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	s.mu.Lock()
	durable, busy := s.busy[id]
	s.mu.Unlock()
	_, name := path(id)
	info, err := s.root.Stat(name)
	if err != nil {
		return 0, false, missing(err)
	}
	if busy {
		return durable, true, nil
	}
	return info.Size(), false, nil
}

// Delete removes a blob for good: once it returns, no loss of power brings the
// name back, so that the caller may forget the blob. One that is gone already is
// flushed, too: who removed it may have stopped before that. Readers that have it
// open read on.
func (s *Store) Delete(ctx context.Context, id delivery.BlobID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	shard, name := path(id)
	if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("disk: %w", err)
	}
	if err := s.sync(shard); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("disk: flush the removal: %w", err)
	}
	return nil
}

// Free is what the file system gives to ordinary users.
func (s *Store) Free(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n, err := free(s.dir)
	if err != nil {
		return 0, fmt.Errorf("disk: free space of %s: %w", s.dir, err)
	}
	return n, nil
}

func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return delivery.ErrNotFound
	}
	return fmt.Errorf("disk: %w", err)
}

// full gives a full medium its name.
func full(err error) error {
	switch {
	case err == nil:
		return nil
	case noSpace(err):
		return fmt.Errorf("%w: %w", delivery.ErrFull, err)
	}
	return fmt.Errorf("disk: %w", err)
}
