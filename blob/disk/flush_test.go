package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
)

// TestARemovalIsOnTheMedium: the caller forgets the blob when Delete returns, so the
// name must not come back with the next loss of power; nor may the name of a file
// that an earlier try removed and did not flush.
func TestARemovalIsOnTheMedium(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	id := delivery.BlobID{0xab, 1}
	if _, err := s.Append(t.Context(), id, 0, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	_, name := path(id)
	var fault error
	flushed := 0
	s.flush = func(dir *os.File) error {
		if filepath.Base(dir.Name()) != "ab" {
			t.Errorf("flushed %s", dir.Name())
		}
		if _, err := s.root.Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("flushed before the file was gone: %v", err)
		}
		flushed++
		return fault
	}
	fault = errors.New("the medium")
	if err := s.Delete(t.Context(), id); !errors.Is(err, fault) {
		t.Fatalf("a removal that is not on the medium: %v", err)
	}
	fault = nil
	if err := s.Delete(t.Context(), id); err != nil || flushed != 2 {
		t.Fatalf("again: %v, flushed %d times", err, flushed)
	}
	if err := s.Delete(t.Context(), delivery.BlobID{0xcd}); err != nil || flushed != 2 {
		t.Fatalf("without a folder: %v, flushed %d times", err, flushed)
	}
}
