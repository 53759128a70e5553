package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/askucher/compax-core/sdk"
)

// TestTheSealKeyIsPutIntoPlaceWhole: without its key a profile's secrets are lost,
// so the file has its name only when all of it is on the medium. What is put into
// place by a rename does not go through a link either.
func TestTheSealKeyIsPutIntoPlaceWhole(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	path := filepath.Join(dir, sealFile)
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Fatal(err)
	}
	if _, err := sealKey(path, false); !errors.Is(err, sdk.ErrSeal) {
		t.Errorf("a key that is not there: %v", err)
	}
	made, err := sealKey(path, true)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	if _, err := os.Lstat(elsewhere); !os.IsNotExist(err) {
		t.Errorf("the key was written in place, where a link led: %v", err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	for _, create := range []bool{false, true} {
		if again, err := sealKey(path, create); err != nil || !bytes.Equal(again, made) {
			t.Errorf("read again (create %v) it is another key: %v", create, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v: %v", left, err)
	}
}
