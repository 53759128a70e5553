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

// TestANameIsFlushedByTheNextTry: when the folder's flush failed, or the process was
// killed before it, the file is there and its name may not be on the medium.
func TestANameIsFlushedByTheNextTry(t *testing.T) {
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
	fault := errors.New("the medium")
	flushed := 0
	s.flush = func(dir *os.File) error {
		if filepath.Base(dir.Name()) != "ab" {
			return nil
		}
		flushed++
		return fault
	}
	for try := 1; try <= 2; try++ {
		if n, err := s.Append(t.Context(), id, 0, strings.NewReader("abc")); n != 0 || !errors.Is(err, fault) || flushed != try {
			t.Fatalf("try %d took %d with a name that is not on the medium: %v", try, n, err)
		}
	}
	fault = nil
	if n, err := s.Append(t.Context(), id, 0, strings.NewReader("abc")); n != 3 || err != nil || flushed != 3 {
		t.Fatalf("took %d: %v, flushed %d times", n, err, flushed)
	}
	if n, err := s.Append(t.Context(), id, 3, strings.NewReader("def")); n != 3 || err != nil || flushed != 3 {
		t.Fatalf("further bytes: took %d: %v, flushed %d times", n, err, flushed)
	}
}

// TestWhatAKilledProcessWroteIsFlushedBeforeItCounts: its bytes are in the file and
// may not be on the medium.
func TestWhatAKilledProcessWroteIsFlushedBeforeItCounts(t *testing.T) {
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
	if _, err := s.Append(t.Context(), id, 0, strings.NewReader("abc")); err != nil {
		t.Fatal(err)
	}
	_, name := path(id)
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("def")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	fault := errors.New("the medium")
	settled := 0
	s.settle = func(*os.File) error {
		settled++
		return fault
	}
	if n, err := s.Size(t.Context(), id); n != 0 || !errors.Is(err, fault) {
		t.Fatalf("%d bytes count that are not on the medium: %v", n, err)
	}
	fault = nil
	if n, err := s.Size(t.Context(), id); n != 6 || err != nil || settled != 2 {
		t.Fatalf("%d bytes, %v, settled %d times", n, err, settled)
	}
}
