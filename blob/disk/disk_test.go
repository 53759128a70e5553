package disk_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/askucher/compax-core/blob/blobtest"
	"github.com/askucher/compax-core/blob/disk"
	"github.com/askucher/compax-core/delivery"
)

func open(t testing.TB, dir string) *disk.Store {
	t.Helper()
	s, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestContract(t *testing.T) {
	blobtest.Run(t, func(t testing.TB) func() (delivery.BlobStore, error) {
		dir := filepath.Join(t.TempDir(), "blobs")
		return func() (delivery.BlobStore, error) { return open(t, dir), nil }
	})
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	s := open(t, dir)
	if _, err := s.Append(t.Context(), delivery.BlobID{0xff, 1}, 0, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		found = found || path == filepath.Join(dir, "ff", "ff010000000000000000000000000000")
		return nil
	})
	if err != nil || !found {
		t.Fatalf("the blob is not where it should be: %v", err)
	}
}

func TestLocationsDiffer(t *testing.T) {
	if a, b := open(t, t.TempDir()).Location(), open(t, t.TempDir()).Location(); a == b {
		t.Fatalf("two directories are both %s", a)
	}
}

func TestInstancesStartingTogetherAgreeOnTheLocation(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	names := make([]string, 16)
	for i := range names {
		wg.Go(func() { names[i] = open(t, dir).Location() })
	}
	wg.Wait()
	for _, n := range names {
		if n != names[0] {
			t.Fatalf("locations are %q", names)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Fatalf("left in the directory: %v, %v", left, err)
	}
}

func TestADamagedLocationIsNotGuessed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "location"), []byte("zz"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Open(dir); err == nil {
		t.Fatal("it opened")
	}
}

func TestASymbolicLinkLeadsNowhere(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	s := open(t, dir)
	if err := os.Symlink(outside, filepath.Join(dir, "ab")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), delivery.BlobID{0xab}, 0, strings.NewReader("x")); err == nil {
		t.Fatal("it wrote outside of its directory")
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Fatalf("outside: %v, %v", left, err)
	}
}

// BenchmarkAppend measures pieces of 8 MiB, each durable.
func BenchmarkAppend(b *testing.B) {
	s := open(b, b.TempDir())
	piece := make([]byte, 8<<20)
	b.SetBytes(int64(len(piece)))
	for b.Loop() {
		id := delivery.BlobID{1}
		if _, err := s.Append(b.Context(), id, 0, bytes.NewReader(piece)); err != nil {
			b.Fatal(err)
		}
		if err := s.Delete(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}
