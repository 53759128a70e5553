package node

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTheTokenIsPutIntoPlaceWhole: half a token would stop the next start. What is
// put into place by a rename does not go through a link either.
func TestTheTokenIsPutIntoPlaceWhole(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	path := filepath.Join(dir, tokenName)
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Fatal(err)
	}
	made, err := metricsToken(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(elsewhere); !os.IsNotExist(err) {
		t.Errorf("the token was written in place, where a link led: %v", err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the token's file: %v, %v", info, err)
	}
	if again, err := metricsToken(Config{Dir: dir}); err != nil || again != made {
		t.Errorf("the next start has another token: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v: %v", left, err)
	}
}
