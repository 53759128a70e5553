package node

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/server"
	"github.com/askucher/compax-core/store/sqlite"
)

// withBlobs is the directory of a stopped node that knows three blobs: one whole,
// one half uploaded, one whose bytes are gone.
func withBlobs(t *testing.T) (dir string, whole, half, gone delivery.BlobID) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	n, stop := run(t, testConfig(dir))
	whole, half, gone = delivery.BlobID{1}, delivery.BlobID{2}, delivery.BlobID{3}
	for id, size := range map[delivery.BlobID]int64{whole: 100_000, half: 70_000, gone: 10} {
		check(t, n.store.CreateBlob(t.Context(), delivery.BlobMeta{ID: id, Size: max(size, 100), CreatedMS: 1}, 1<<20))
		_, err := n.blobs.Append(t.Context(), id, 0, bytes.NewReader(make([]byte, size)))
		check(t, err)
		if id == half {
			size = 50_000 // the rest was written after the backup's moment
		}
		check(t, n.store.AdvanceBlob(t.Context(), id, 0, size))
	}
	check(t, n.blobs.Delete(t.Context(), gone))
	stop()
	return dir, whole, half, gone
}

func backupOf(t *testing.T, dir string, without bool) ([]byte, Manifest, BackupEnd) {
	t.Helper()
	var out bytes.Buffer
	m, end, err := Backup(t.Context(), &out, BackupOptions{Dir: dir, Scratch: t.TempDir(), WithoutBlobs: without, Now: time.Now(), Program: "test"})
	check(t, err)
	return out.Bytes(), m, end
}

func TestBackupComesBack(t *testing.T) {
	dir, whole, half, gone := withBlobs(t)
	n, stop := run(t, testConfig(dir)) // it runs meanwhile
	home, token := n.Home(), n.MetricsToken()
	saved, m, end := backupOf(t, dir, false)
	stop()
	if m.Home != home.String() || m.Blobs != 3 || !m.WithBlobs || end.Missing != 1 || end.Files != 5 {
		t.Errorf("%+v %+v", m, end)
	}

	into := filepath.Join(t.TempDir(), "restored")
	began := time.Now()
	r, err := Restore(t.Context(), bytes.NewReader(saved), RestoreOptions{Dir: into, Now: began})
	check(t, err)
	if r.Incarnation != 1 || r.End != end {
		t.Errorf("%+v", r)
	}
	check(t, filepath.WalkDir(into, func(path string, e fs.DirEntry, err error) error {
		info, errInfo := e.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[e.IsDir()]; errInfo == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return errors.Join(err, errInfo)
	}))
	c := testConfig(into)
	later := began.Add(3 * time.Hour)
	c.Now = func() time.Time { return later }
	n, stop = run(t, c)
	if n.Home() != home || n.MetricsToken() != token {
		t.Error("another home or token after the restore")
	}
	for id, want := range map[delivery.BlobID]int64{whole: 100_000, half: 50_000} {
		size, err := n.blobs.Size(t.Context(), id)
		check(t, err)
		if size != want {
			t.Errorf("blob %s has %d bytes, want %d", id, size, want)
		}
	}
	if _, err := n.blobs.Size(t.Context(), gone); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("%v", err)
	}
	// Members are waited for from the first start on, however long after the restore it is.
	if count, since, err := server.Incarnation(t.Context(), n.store); err != nil || count != 1 || since.UnixMilli() != later.UnixMilli() {
		t.Errorf("incarnation %d since %s: %v", count, since, err)
	}
	stop()
	later = later.Add(time.Hour)
	n, stop = run(t, c)
	if _, since, err := server.Incarnation(t.Context(), n.store); err != nil || since.UnixMilli() == later.UnixMilli() {
		t.Errorf("the second start after a restore began the wait again: %s %v", since, err)
	}
	stop()
}

func TestBackupWithoutBlobs(t *testing.T) {
	dir, whole, _, _ := withBlobs(t)
	saved, _, end := backupOf(t, dir, true)
	if end.Files != 3 || end.Missing != 0 {
		t.Errorf("%+v", end)
	}
	into := t.TempDir()
	r, err := Restore(t.Context(), bytes.NewReader(saved), RestoreOptions{Dir: into, Now: time.Now()})
	check(t, err)
	if r.Manifest.WithBlobs {
		t.Error("it says that blobs are in it")
	}
	if _, err := os.Stat(filepath.Join(into, filepath.FromSlash(blobName(whole)))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestDamagedBackupsRestoreNothing flips, cuts, and forges.
func TestDamagedBackupsRestoreNothing(t *testing.T) {
	dir, _, _, _ := withBlobs(t)
	saved, _, _ := backupOf(t, dir, false)
	refused := func(name string, raw []byte, want error) {
		t.Helper()
		into := filepath.Join(t.TempDir(), "into")
		_, err := Restore(t.Context(), bytes.NewReader(raw), RestoreOptions{Dir: into, Now: time.Now()})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(into); err != nil || len(left) > 0 {
			t.Errorf("%s left %v (%v)", name, left, err)
		}
	}
	for i := 600; i < len(saved)-2048; i += len(saved) / 60 {
		flipped := bytes.Clone(saved)
		flipped[i] ^= 1
		if _, err := Restore(t.Context(), bytes.NewReader(flipped), RestoreOptions{Dir: t.TempDir(), Now: time.Now()}); err == nil && !padding(t, saved, i) {
			t.Errorf("byte %d flipped was not noticed", i)
		}
	}
	for _, n := range []int{0, 100, 511, 512, 5000, len(saved) / 2, len(saved) - 2048, len(saved) - 3000} {
		refused("cut", saved[:n], ErrNotBackup)
	}
	refused("text", []byte(strings.Repeat("this is no backup\n", 100)), ErrNotBackup)
	for name, h := range map[string]tar.Header{
		"outside":   {Name: "../evil", Typeflag: tar.TypeReg},
		"absolute":  {Name: "/etc/evil", Typeflag: tar.TypeReg},
		"link":      {Name: tokenName, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		"hard link": {Name: tokenName, Typeflag: tar.TypeLink, Linkname: "/etc/passwd"},
		"folder":    {Name: "server/", Typeflag: tar.TypeDir},
		"blob":      {Name: "server/blobs/00/../../../evil", Typeflag: tar.TypeReg},
		"shard":     {Name: "server/blobs/ff/01000000000000000000000000000000", Typeflag: tar.TypeReg},
		"twice":     {Name: databaseName, Typeflag: tar.TypeReg},
		"marks":     {Name: restoredName, Typeflag: tar.TypeReg},
	} {
		refused(name, forged(t, saved, h), ErrNotBackup)
	}
}

// padding reports whether a byte of a tar stream belongs to no file and no
// header's text: it carries nothing.
func padding(t *testing.T, raw []byte, at int) bool {
	t.Helper()
	in := bytes.NewReader(raw)
	r := tar.NewReader(in)
	for {
		h, err := r.Next()
		if err != nil {
			return true
		}
		start := len(raw) - in.Len()
		if at >= start-512 && at < start {
			return true // modes and owners are not used; names and sizes are hashed
		}
		if at >= start && at < start+int(h.Size) {
			return false
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			return true
		}
	}
}

// forged is a backup with one more header behind the database.
func forged(t *testing.T, raw []byte, h tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	r, w := tar.NewReader(bytes.NewReader(raw)), tar.NewWriter(&out)
	for range 2 {
		at, err := r.Next()
		check(t, err)
		check(t, w.WriteHeader(at))
		_, err = io.Copy(w, r)
		check(t, err)
	}
	check(t, w.WriteHeader(&h))
	check(t, w.Close())
	return out.Bytes()
}

func TestRestoreNeverOverwrites(t *testing.T) {
	dir, _, _, _ := withBlobs(t)
	saved, _, _ := backupOf(t, dir, false)
	if _, err := Restore(t.Context(), bytes.NewReader(saved), RestoreOptions{Dir: dir, Now: time.Now()}); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("%v", err)
	}
	_, stop := run(t, testConfig(dir))
	stop()

	// A restore that a loss of power cut off serves nobody and is not gone on with.
	half := t.TempDir()
	check(t, writeFile(filepath.Join(half, restoringName), nil))
	if _, err := New(t.Context(), testConfig(half)); !errors.Is(err, ErrHalfRestored) {
		t.Errorf("%v", err)
	}
	if _, err := Restore(t.Context(), bytes.NewReader(saved), RestoreOptions{Dir: half, Now: time.Now()}); !errors.Is(err, ErrHalfRestored) {
		t.Errorf("%v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	into := t.TempDir()
	if _, err := Restore(ctx, bytes.NewReader(saved), RestoreOptions{Dir: into, Now: time.Now()}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(into); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}

func TestIncarnationOfWhatOthersRestored(t *testing.T) {
	dir, _, _, _ := withBlobs(t)
	c := testConfig(dir)
	for want := uint32(1); want < 3; want++ {
		if n, err := StartIncarnation(t.Context(), c); err != nil || n != want {
			t.Errorf("%d %v", n, err)
		}
	}
	if _, err := StartIncarnation(t.Context(), testConfig(t.TempDir())); !errors.Is(err, ErrNoData) {
		t.Errorf("%v", err)
	}
	_, stop := run(t, c)
	if _, err := StartIncarnation(t.Context(), c); !errors.Is(err, ErrInUse) {
		t.Errorf("beside a running service: %v", err)
	}
	stop()
}

func TestBackupOfWhatIsNoService(t *testing.T) {
	if _, _, err := Backup(t.Context(), io.Discard, BackupOptions{Dir: t.TempDir()}); !errors.Is(err, ErrNoData) {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, "server"), 0o700))
	path := filepath.Join(dir, filepath.FromSlash(databaseName))
	check(t, os.WriteFile(path, bytes.Repeat([]byte("garbage "), 1000), 0o600))
	if _, _, err := Backup(t.Context(), io.Discard, BackupOptions{Dir: dir}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
	check(t, os.Remove(path))
	s, err := sqlite.Open(t.Context(), path) // never served: it has no home
	check(t, err)
	check(t, s.Close())
	if _, _, err := Backup(t.Context(), io.Discard, BackupOptions{Dir: dir, Scratch: dir, Now: time.Now()}); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
