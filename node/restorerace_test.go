package node

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestRestoreAndFirstStartInOneDirectory: of a restore and a first start that begin at the
// same time in one empty directory at most one goes on. What the other one leaves behind
// keeps nobody from trying again.
func TestRestoreAndFirstStartInOneDirectory(t *testing.T) {
	source := t.TempDir()
	_, stop := run(t, testConfig(source))
	stop()
	saved, m, _ := backupOf(t, source, true)
	var restores, starts, neither int
	for i := range 60 {
		dir := filepath.Join(t.TempDir(), "data")
		check(t, os.Mkdir(dir, 0o700))
		var n *Node
		var started, restored error
		var both sync.WaitGroup
		begin := make(chan struct{})
		both.Go(func() { <-begin; n, started = New(t.Context(), testConfig(dir)) })
		both.Go(func() {
			<-begin
			for range i % 20 * 500 { // now one is ahead and now the other
			}
			_, restored = Restore(t.Context(), bytes.NewReader(saved), RestoreOptions{Dir: dir, Now: time.Now()})
		})
		close(begin)
		both.Wait()
		switch {
		case started == nil && restored == nil:
			if n.Home().String() != m.Home {
				t.Fatal("a start and a restore went on in one directory")
			}
			restores++ // the start came when all was restored
		case started == nil:
			if !errors.Is(restored, ErrNotEmpty) && !errors.Is(restored, ErrHalfRestored) {
				t.Fatal(restored)
			}
			starts++
		case restored == nil:
			if !errors.Is(started, ErrHalfRestored) {
				t.Fatal(started)
			}
			restores++
		default:
			neither++
		}
		if n != nil {
			check(t, n.close())
		}
		again, err := New(t.Context(), testConfig(dir))
		check(t, err)
		if restored == nil && again.Home().String() != m.Home {
			t.Errorf("it serves home %s, and %s was restored", again.Home(), m.Home)
		}
		check(t, again.close())
	}
	t.Logf("%d restores, %d starts, %d times neither", restores, starts, neither)
}
