package node

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/server"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/store/sqlite"
)

// Errors of restoring, which say what the operator did, or what the file is.
var (
	// ErrNotEmpty: the directory holds something. Name another, or move it away.
	ErrNotEmpty = errors.New("node: the directory is not empty")
	// ErrNotBackup: the file is none, is damaged, or ends early.
	ErrNotBackup = errors.New("node: not a whole backup")
	// ErrHalfRestored: a restore into the directory was cut off. Delete the
	// directory and restore again.
	ErrHalfRestored = errors.New("node: a restore into this directory was cut off")
)

// The marks of a restore in the data directory.
const (
	restoringName = "restoring" // while it is under way: nothing serves the directory
	restoredName  = "restored"  // until the first start: rooms wait for members from then on
)

// RestoreOptions say where a backup goes.
type RestoreOptions struct {
	Dir      string // must be empty, or not there
	Now      time.Time
	Progress func(what string, done, total int64) // may be nil
}

// Restored says what a restore made.
type Restored struct {
	Manifest    Manifest
	End         BackupEnd
	Rooms       int64
	Incarnation uint32
}

// Restore reads a backup into an empty directory, verifies all of it, and
// starts an incarnation. When it fails the directory is empty again.
func Restore(ctx context.Context, r io.Reader, o RestoreOptions) (out Restored, err error) {
	if err := mustBeEmpty(o.Dir); err != nil {
		return out, err
	}
	if err := makeDir(o.Dir); err != nil {
		return out, err
	}
	if err := writeFile(filepath.Join(o.Dir, restoringName), nil); err != nil {
		return out, err
	}
	// A first start that came in between has made its folder by now, or sees the mark.
	if err := mustHoldNothingElse(o.Dir); err != nil {
		return out, errors.Join(err, remove(o.Dir, restoringName))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(filepath.Join(o.Dir, "server")), remove(o.Dir, tokenName), remove(o.Dir, restoredName), remove(o.Dir, restoringName))
		}
	}()
	x := &extraction{r: tar.NewReader(r), dir: o.Dir, sum: sha256.New(), progress: o.Progress}
	if err := x.run(ctx); err != nil {
		return out, err
	}
	out.Manifest, out.End = x.manifest, x.end
	path := filepath.Join(o.Dir, filepath.FromSlash(databaseName))
	if out.Rooms, err = verifyDatabase(path, x.manifest); err != nil {
		return out, err
	}
	if out.Incarnation, err = startIncarnation(ctx, "", o.Dir, o.Now); err != nil {
		return out, err
	}
	if err := syncTree(o.Dir); err != nil {
		return out, err
	}
	return out, remove(o.Dir, restoringName)
}

// StartIncarnation declares the store of a configuration to be restored from a
// backup that other tools made: a Postgres dump, a copy of a disk. Nothing may
// serve it meanwhile. It returns how many restores there were.
func StartIncarnation(ctx context.Context, c Config) (uint32, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	if c.Database == "" {
		if _, err := os.Stat(filepath.Join(c.Dir, filepath.FromSlash(databaseName))); err != nil {
			return 0, fmt.Errorf("%w: %s", ErrNoData, c.Dir)
		}
	}
	return startIncarnation(ctx, c.Database, c.Dir, c.Now())
}

func startIncarnation(ctx context.Context, url, dir string, now time.Time) (n uint32, err error) {
	store, err := openStore(ctx, url, filepath.Join(dir, filepath.FromSlash(databaseName)))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := server.StartIncarnation(ctx, store, now); err != nil {
		return 0, fmt.Errorf("start the incarnation: %w", err)
	}
	if url == "" {
		if err := writeFile(filepath.Join(dir, restoredName), nil); err != nil && !errors.Is(err, fs.ErrExist) {
			return 0, err
		}
	}
	n, _, err = server.Incarnation(ctx, store)
	return n, err
}

// firstStart begins the wait for members of a store that was just restored: it
// counts from when they can come, not from the restore.
func firstStart(ctx context.Context, store delivery.Store, dir string, now time.Time) error {
	if _, err := os.Stat(filepath.Join(dir, restoredName)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := server.BeginHealing(ctx, store, now); err != nil {
		return err
	}
	return remove(dir, restoredName)
}

// extraction is a backup that is being read.
type extraction struct {
	r        *tar.Reader
	dir      string
	sum      hash.Hash
	progress func(string, int64, int64)
	manifest Manifest
	end      BackupEnd
	seen     BackupEnd
}

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNotBackup}, args...)...)
}

func (x *extraction) run(ctx context.Context) error {
	if err := x.object(manifestName, &x.manifest, nil); err != nil {
		return err
	}
	switch {
	case x.manifest.Format != backupFormat:
		return broken("its format is %d, this program reads %d: use the version that made it (%s)", x.manifest.Format, backupFormat, x.manifest.Program)
	case x.manifest.Schema > sqlite.SchemaVersion():
		return broken("its database has schema %d, this program knows %d: use a version as new as %s", x.manifest.Schema, sqlite.SchemaVersion(), x.manifest.Program)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := x.r.Next()
		if err != nil {
			return broken("it ends early: %w", err)
		}
		if h.Name == endName {
			return x.close(h)
		}
		if err := x.file(ctx, h); err != nil {
			return err
		}
	}
}

// maxObject bounds the JSON files of a backup, in bytes.
const maxObject = 64 << 10

// object reads a JSON file, whose header may have been read.
func (x *extraction) object(name string, into any, h *tar.Header) error {
	if h == nil {
		var err error
		if h, err = x.r.Next(); err != nil {
			return broken("it does not begin like one: %w", err)
		}
	}
	if h.Name != name || h.Typeflag != tar.TypeReg || h.Size > maxObject {
		return broken("it does not begin with %s", name)
	}
	text := make([]byte, h.Size)
	if _, err := io.ReadFull(x.r, text); err != nil {
		return broken("it ends early: %w", err)
	}
	if name == manifestName {
		hashName(x.sum, name, h.Size)
		_, _ = x.sum.Write(text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return broken("%s: %w", name, err)
	}
	return nil
}

// file takes one file out. Only the names that Backup writes become paths.
func (x *extraction) file(ctx context.Context, h *tar.Header) error {
	if h.Typeflag != tar.TypeReg || h.Size < 0 || !known(h.Name) {
		return broken("it holds %.100q, which no backup does", h.Name)
	}
	path := filepath.Join(x.dir, filepath.FromSlash(h.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return broken("it holds %s twice", h.Name)
	}
	if err != nil {
		return err
	}
	hashName(x.sum, h.Name, h.Size)
	n, err := io.Copy(io.MultiWriter(f, x.sum), &reporting{ctx: ctx, r: x.r, read: func(n int) {
		x.seen.Bytes += int64(n)
		if x.progress != nil {
			x.progress("restore", min(x.seen.Bytes, x.manifest.Bytes), x.manifest.Bytes)
		}
	}})
	if err == nil && n != h.Size || errors.Is(err, io.ErrUnexpectedEOF) {
		err = broken("it ends early, in %s", h.Name)
	}
	x.seen.Files++
	return errors.Join(err, f.Sync(), f.Close())
}

// reporting tells how much was read, and ends with its context.
type reporting struct {
	ctx  context.Context //nolint:containedctx // lives for one call of io.Copy
	r    io.Reader
	read func(n int)
}

func (r *reporting) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	r.read(n)
	return n, err
}

// close compares what came with what the end says.
func (x *extraction) close(h *tar.Header) error {
	x.seen.SHA256 = hex.EncodeToString(x.sum.Sum(nil))
	if err := x.object(endName, &x.end, h); err != nil {
		return err
	}
	x.seen.Missing = x.end.Missing
	if x.seen != x.end {
		return broken("it is damaged: %d files of %d bytes with hash %.16s… are in it, %d, %d and %.16s… are announced",
			x.seen.Files, x.seen.Bytes, x.seen.SHA256, x.end.Files, x.end.Bytes, x.end.SHA256)
	}
	if _, err := x.r.Next(); !errors.Is(err, io.EOF) {
		return broken("something follows its end")
	}
	return nil
}

// known reports whether a name is one that Backup writes.
func known(name string) bool {
	switch name {
	case databaseName, tokenName, markerName:
		return true
	}
	shard, file, ok := strings.Cut(strings.TrimPrefix(name, blobsName+"/"), "/")
	if !ok {
		return false
	}
	id, err := delivery.ParseBlobID(file)
	return err == nil && blobName(id) == name && len(shard) == 2
}

// verifyDatabase looks through a restored database before anything opens it.
func verifyDatabase(path string, m Manifest) (rooms int64, err error) {
	db, err := sqlite.OpenReader(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, broken("there is no database in it")
	}
	if err != nil {
		return 0, broken("its database cannot be opened: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	faults, err := db.Faults(1)
	if err != nil {
		return 0, err
	}
	if len(faults) > 0 {
		return 0, broken("its database is damaged: %s", faults[0])
	}
	home, err := db.Setting(settingHome)
	if err != nil {
		return 0, err
	}
	if len(home) != len(identity.Home{}) || identity.Home(home).String() != m.Home {
		return 0, broken("its database is of another home than it says")
	}
	rooms, _, err = db.Rooms()
	return rooms, err
}

// mustBeEmpty refuses a directory that holds anything. What a file system keeps
// for itself in a fresh volume does not count.
func mustBeEmpty(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Name() == restoringName {
			return fmt.Errorf("%w: %s", ErrHalfRestored, dir)
		}
		if e.Name() != "lost+found" {
			return fmt.Errorf("%w: %s holds %s", ErrNotEmpty, dir, e.Name())
		}
	}
	return nil
}

// mustHoldNothingElse is mustBeEmpty for a directory with this restore's own mark.
func mustHoldNothingElse(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Name() != restoringName && e.Name() != "lost+found" {
			return fmt.Errorf("%w: %s holds %s by now", ErrNotEmpty, dir, e.Name())
		}
	}
	return nil
}

// notHalfRestored refuses to serve what a restore did not finish.
func notHalfRestored(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, restoringName)); err == nil {
		return fmt.Errorf("%w: delete %s and restore again", ErrHalfRestored, dir)
	}
	return nil
}

func remove(dir, name string) error {
	err := os.Remove(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeFile makes a file of mode 0600 and writes it through.
func writeFile(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncTree writes the directories of a tree through; its files were.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return syncDir(path)
	})
}
