package node

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/store/sqlite"
)

// A backup is one tar file: manifestName says what follows, then come the
// database, the metrics' token and the blobs that the database knows, and
// endName closes it with a hash over everything before. Whoever has it has the
// home's keys: it is as secret as the data directory.
const (
	manifestName = "compax-backup.json"
	endName      = "compax-backup-end.json"
	backupFormat = 1

	databaseName = "server/compax.db"
	tokenName    = "metrics.token"
	blobsName    = "server/blobs"
	markerName   = "server/blobs/location"
)

// Manifest is the first file of a backup.
type Manifest struct {
	Format    int       `json:"format"`
	Made      time.Time `json:"made"`
	Program   string    `json:"program"` // version that made it
	Home      string    `json:"home"`
	Schema    int       `json:"schema"`
	Blobs     int64     `json:"blobs"`
	BlobBytes int64     `json:"blob_bytes"`
	WithBlobs bool      `json:"with_blobs"` // false: their bytes are not in it
	Bytes     int64     `json:"bytes"`      // of all files, about
}

// BackupEnd is the last file of a backup.
type BackupEnd struct {
	Files   int64  `json:"files"` // between manifest and end
	Bytes   int64  `json:"bytes"` // in them
	Missing int64  `json:"missing"`
	SHA256  string `json:"sha256"` // over names, sizes and contents, manifest included
}

// BackupOptions say what to back up.
type BackupOptions struct {
	Dir          string // data directory, of a service that runs or not
	Scratch      string // folder for a copy of the database while it is written
	WithoutBlobs bool   // leave the bytes of files out
	Program      string // version, for the manifest
	Now          time.Time
	Progress     func(what string, done, total int64) // may be nil
}

// ErrNoData: there is no service's data in the directory.
var ErrNoData = errors.New("node: no service's data there")

// Backup writes a backup of the service in a data directory to w. The service
// may run: what is written is the state of one moment, and every blob that this
// state knows. Blobs whose bytes are gone are counted and left out.
func Backup(ctx context.Context, w io.Writer, o BackupOptions) (_ Manifest, _ BackupEnd, err error) {
	var m Manifest
	var end BackupEnd
	live, err := sqlite.OpenReader(filepath.Join(o.Dir, filepath.FromSlash(databaseName)))
	if errors.Is(err, fs.ErrNotExist) {
		return m, end, fmt.Errorf("%w: %s", ErrNoData, o.Dir)
	}
	if err != nil {
		return m, end, err
	}
	scratch, err := os.MkdirTemp(o.Scratch, ".compax-backup-*")
	if err != nil {
		return m, end, errors.Join(fmt.Errorf("a folder for the copy of the database: %w", err), live.Close())
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	copied := filepath.Join(scratch, "compax.db")
	err = watch(ctx, filepath.Join(o.Dir, filepath.FromSlash(databaseName)), copied, o.Progress, func() error { return live.CopyTo(ctx, copied) })
	if err = errors.Join(err, live.Close()); err != nil {
		return m, end, err
	}
	db, err := sqlite.OpenReader(copied)
	if err != nil {
		return m, end, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	b := &backup{w: tar.NewWriter(w), options: o, sum: sha256.New()}
	if m, err = b.manifest(db, copied); err != nil {
		return m, end, err
	}
	if err := b.file(ctx, databaseName, copied, -1); err != nil {
		return m, end, err
	}
	for _, name := range []string{tokenName, markerName} {
		err := b.file(ctx, name, filepath.Join(o.Dir, filepath.FromSlash(name)), -1)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return m, end, err
		}
	}
	if !o.WithoutBlobs {
		err := db.EachBlob(func(meta delivery.BlobMeta) error { return b.blob(ctx, meta) })
		if err != nil {
			return m, end, err
		}
	}
	end, err = b.end()
	return m, end, err
}

// backup is one that is being written.
type backup struct {
	w       *tar.Writer
	options BackupOptions
	sum     hash.Hash
	total   int64
	done    BackupEnd
}

func (b *backup) manifest(db *sqlite.Reader, copied string) (Manifest, error) {
	m := Manifest{Format: backupFormat, Made: b.options.Now.UTC(), Program: b.options.Program, Schema: db.Version(), WithBlobs: !b.options.WithoutBlobs}
	home, err := db.Setting(settingHome)
	if err != nil {
		return m, fmt.Errorf("the home label of %s cannot be read: was the service ever started? %w", b.options.Dir, err)
	}
	if len(home) != len(identity.Home{}) {
		return m, fmt.Errorf("the kept home label has %d bytes", len(home))
	}
	m.Home = identity.Home(home).String()
	if m.Blobs, m.BlobBytes, err = db.Blobs(); err != nil {
		return m, err
	}
	info, err := os.Stat(copied)
	if err != nil {
		return m, err
	}
	m.Bytes = info.Size()
	if m.WithBlobs {
		m.Bytes += m.BlobBytes
	}
	b.total = m.Bytes
	return m, b.object(manifestName, m)
}

// object writes a value as a JSON file. It counts towards the hash and is none
// of the files.
func (b *backup) object(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if err := b.header(name, int64(len(text))); err != nil {
		return err
	}
	_, _ = b.sum.Write(text) // never fails
	_, err = b.w.Write(text)
	return err
}

func (b *backup) header(name string, size int64) error {
	hashName(b.sum, name, size)
	return b.w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: b.options.Now})
}

// hashName begins a file in the hash over a backup.
func hashName(sum hash.Hash, name string, size int64) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(name)))
	_, _ = sum.Write(n[:])
	_, _ = sum.Write([]byte(name))
	binary.BigEndian.PutUint64(n[:], uint64(size))
	_, _ = sum.Write(n[:])
}

// file writes the first size bytes of a file, all of it when size is negative;
// fs.ErrNotExist when it is not there or shorter.
func (b *backup) file(ctx context.Context, name, path string, size int64) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if size < 0 {
		size = info.Size()
	}
	if info.Size() < size {
		return fmt.Errorf("%s has %d of %d bytes: %w", path, info.Size(), size, fs.ErrNotExist)
	}
	if err := b.header(name, size); err != nil {
		return err
	}
	into := io.MultiWriter(b.w, b.sum)
	buffer := make([]byte, 256<<10)
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(f, buffer[:min(left, int64(len(buffer)))])
		if err != nil {
			return fmt.Errorf("%s became shorter while it was read: %w", path, err)
		}
		if _, err := into.Write(buffer[:n]); err != nil {
			return err
		}
		left -= int64(n)
		b.done.Bytes += int64(n)
		if b.options.Progress != nil {
			b.options.Progress("backup", min(b.done.Bytes, b.total), b.total)
		}
	}
	b.done.Files++
	return nil
}

// blob writes what the copied database says a blob has.
func (b *backup) blob(ctx context.Context, m delivery.BlobMeta) error {
	if m.Received == 0 {
		return nil
	}
	name := blobName(m.ID)
	err := b.file(ctx, name, filepath.Join(b.options.Dir, filepath.FromSlash(name)), m.Received)
	if errors.Is(err, fs.ErrNotExist) {
		b.done.Missing++
		return nil
	}
	return err
}

// blobName is where blob/disk keeps a blob.
func blobName(id delivery.BlobID) string {
	h := id.String()
	return blobsName + "/" + h[:2] + "/" + h
}

func (b *backup) end() (BackupEnd, error) {
	b.done.SHA256 = hex.EncodeToString(b.sum.Sum(nil))
	if err := b.object(endName, b.done); err != nil {
		return b.done, err
	}
	return b.done, b.w.Close()
}

// watch tells progress how far the copy of a database is, until copying ends.
func watch(ctx context.Context, from, to string, progress func(string, int64, int64), run func() error) error {
	info, err := os.Stat(from)
	if progress == nil || err != nil {
		return run()
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(200 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if at, err := os.Stat(to); err == nil {
				progress("database", min(at.Size(), info.Size()), info.Size())
			}
		}
	}()
	defer func() {
		cancel()
		<-ended
	}()
	return run()
}
