package mlstest_test

import (
	"fmt"
	"testing"

	"github.com/askucher/compax-core/mls"
	_ "github.com/askucher/compax-core/mls/hpke/hpke448"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mlstest"
)

// TestRandomHistories runs seeded histories in every suite: proposals, commits,
// external commits, races, messages out of order and restarts, against the
// naive tree. A failure names the seed.
func TestRandomHistories(t *testing.T) {
	for _, id := range suite.Known() {
		steps, seeds := 25, uint64(2)
		if id == suite.X25519AES128GCMSHA256Ed25519 {
			steps, seeds = 100, 8
		}
		for seed := range seeds {
			t.Run(fmt.Sprintf("suite%d/seed%d", id, seed), func(t *testing.T) {
				t.Parallel()
				w := mlstest.NewWorld(t, id, seed, mlstest.Capable())
				w.Private = seed%2 == 1
				for range steps {
					w.Step(18)
				}
			})
		}
	}
}

// TestRotatingCommitters grows a group one by one across the powers of two, each
// newcomer adding the next, and shrinks it again from the right, with another
// committer each time.
func TestRotatingCommitters(t *testing.T) {
	w := mlstest.NewWorld(t, suite.X25519AES128GCMSHA256Ed25519, 1, mlstest.Capable())
	for len(w.Members) < 35 {
		w.Add(w.Members[len(w.Members)-1], 1)
	}
	for i := 0; len(w.Members) > 1; i++ {
		by := w.Members[i%(len(w.Members)-1)]
		last := w.Members[len(w.Members)-1]
		w.Commit(by, mls.CommitParams{Proposals: mlstest.Remove(last)})
	}
}
