package mls_test

import (
	"sync"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// One group value serves many goroutines at once, and is the same afterwards. The
// race detector watches.
func TestGroupsAreReadConcurrently(t *testing.T) {
	w := trio(t, 4)
	g := w.Members[0].Group
	message := w.Members[1].Seal("text")
	commit := commitOf(t, w, w.Members[2], mls.CommitParams{}).Message
	before := mlstest.State(g)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for _, m := range [][]byte{message, commit} {
				if _, err := g.Process(m, mls.ProcessParams{Now: w.Now}); err != nil {
					t.Error(err)
				}
			}
			if _, err := g.ExportSafe(wire.ComponentID(0x8001)); err != nil {
				t.Error(err)
			}
			if _, err := g.GroupInfo(true, nil); err != nil {
				t.Error(err)
			}
			if string(mlstest.State(g)) != string(before) {
				t.Error("the group changed")
			}
		})
	}
	wait.Wait()
}
