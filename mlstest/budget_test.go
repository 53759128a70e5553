package mlstest_test

import (
	"crypto/rand"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mlstest"
)

// TestAllocationBudgets holds what the operations of every day allocate, which no
// load on the machine changes. A budget is a quarter above what was measured: what
// exceeds it works in proportion to the group again, or copies what it need not.
func TestAllocationBudgets(t *testing.T) {
	for _, c := range []struct{ members, seal, open, commit, process, load int }{
		{10, 70, 78, 400, 345, 820},
		{100, 78, 85, 500, 385, 3300},
	} {
		p := populate(t, c.members)
		must := func(err error) {
			if err != nil {
				t.Helper()
				t.Fatal(err)
			}
		}
		within := func(what string, budget int, f func()) {
			t.Helper()
			if got := int(testing.AllocsPerRun(20, f)); got > budget {
				t.Errorf("%d members: %d allocations to %s, more than %d", c.members, got, what, budget)
			}
		}
		content := make([]byte, 1024)
		seal := func() *mls.Sealed {
			sealed, err := p.last.Group.Seal(mls.SealParams{Random: rand.Reader, Content: content})
			must(err)
			return sealed
		}
		process := func(message []byte) {
			_, err := p.first.Group.Process(message, mls.ProcessParams{Now: mlstest.Start})
			must(err)
		}
		// The first message of a sender derives its ratchets; the others do not.
		first := seal()
		p.last.Take(first.Step)
		if _, err := p.first.Process(mlstest.Start, first.Message); err != nil {
			t.Fatal(err)
		}
		message := seal().Message
		commit, err := p.last.Group.Commit(mls.CommitParams{Random: rand.Reader, Now: mlstest.Start})
		must(err)
		records := p.first.Records()

		within("encrypt 1 KiB", c.seal, func() { seal() })
		within("decrypt 1 KiB", c.open, func() { process(message) })
		within("commit", c.commit, func() {
			made, err := p.last.Group.Commit(mls.CommitParams{Random: rand.Reader, Now: mlstest.Start})
			must(err)
			_, err = made.Apply(p.last.Group, mlstest.Start)
			must(err)
		})
		within("process a commit", c.process, func() { process(commit.Message) })
		within("load", c.load, func() {
			_, err := p.first.Config.Load(records)
			must(err)
		})
	}
}
