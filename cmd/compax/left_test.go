package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestLeftIsBoundToItsPlace: a file that was copied, put back or made readable to
// others is not taken for what was left here, and none is taken twice.
func TestLeftIsBoundToItsPlace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, leftFile)
	write := func(path string) []byte {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		place, err := leftAt(filepath.Dir(path), f)
		if err != nil {
			t.Skipf("SKIPPED, nothing is left on this system: %v", err)
		}
		if _, err := f.WriteString("sealed"); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return place
	}
	place := write(path)
	got := takeLeft(dir)
	if string(got.Sealed) != "sealed" || !bytes.Equal(got.Place, place) {
		t.Fatalf("taken is %q at %x, left was it at %x", got.Sealed, got.Place, place)
	}
	if got := takeLeft(dir); got.Place != nil {
		t.Error("it was taken twice")
	}

	// The same name, and often the same inode: made at another time.
	write(path)
	if got := takeLeft(dir); bytes.Equal(got.Place, place) {
		t.Error("a file that was put back is at the same place")
	}

	place = write(path)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if got := takeLeft(copied); bytes.Equal(got.Place, place) {
		t.Error("a copy of the folder is the same place")
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if got := takeLeft(moved); bytes.Equal(got.Place, place) {
		t.Error("a folder that was moved is the same place")
	}

	write(filepath.Join(moved, leftFile))
	if err := os.Chmod(filepath.Join(moved, leftFile), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := takeLeft(moved); got.Sealed != nil {
		t.Error("a file that others can read was taken")
	}
	if _, err := os.Lstat(filepath.Join(moved, leftFile)); !os.IsNotExist(err) {
		t.Errorf("and it is still there: %v", err)
	}
	if err := os.Symlink(path, filepath.Join(moved, leftFile)); err != nil {
		t.Fatal(err)
	}
	if got := takeLeft(moved); got.Sealed != nil {
		t.Error("a link was followed")
	}
}
