package durable

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var errPower = errors.New("no more power")

// TestEveryStepMayFail: until the rename nothing has the name, and what failed
// leaves nothing behind.
func TestEveryStepMayFail(t *testing.T) {
	order := []string{"write", "sync", "rename", "folder"}
	for i := range len(order) + 1 {
		dir := t.TempDir()
		path := filepath.Join(dir, "key")
		var done []string
		step := func(name string, f func() error) error {
			if len(done) == i {
				return errPower
			}
			if _, err := os.Lstat(path); (err == nil) != (name == "folder") {
				t.Fatalf("before %s the file is there: %v", name, err == nil)
			}
			done = append(done, name)
			return f()
		}
		err := create(steps{
			write: func(f *os.File, data []byte) error {
				return step("write", func() error { return onDisk.write(f, data) })
			},
			sync:   func(f *os.File) error { return step("sync", f.Sync) },
			rename: func(from, to string) error { return step("rename", func() error { return os.Rename(from, to) }) },
			folder: func(d string) error { return step("folder", func() error { return syncFolder(d) }) },
		}, path, []byte("secret"))
		if !slices.Equal(done, order[:i]) {
			t.Fatalf("the steps were %v, want %v", done, order[:i])
		}
		if failed := i < len(order); failed != errors.Is(err, errPower) || !failed && err != nil {
			t.Fatalf("after %v: %v", done, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if renamed := i >= 3; renamed != (len(left) == 1) || len(left) > 1 {
			t.Fatalf("after %v the folder has %v", done, left)
		}
	}
}

func TestCreateReplacesALinkAndFollowsItNot(t *testing.T) {
	dir := t.TempDir()
	path, elsewhere := filepath.Join(dir, "key"), filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the file has mode %v", info.Mode())
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "secret" {
		t.Errorf("it holds %q: %v", got, err)
	}
	if _, err := os.Lstat(elsewhere); !os.IsNotExist(err) {
		t.Errorf("where the link led: %v", err)
	}
}

func TestCreateInNoFolder(t *testing.T) {
	if err := Create(filepath.Join(t.TempDir(), "none", "key"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}
