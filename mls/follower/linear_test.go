package follower

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/askucher/compax-core/mls/wire"
)

// allocated is how many bytes f allocates, a measure of work that is the same in
// every run.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Four times as many proposals cost about four times as much, and not sixteen.
func TestListsCostInProportion(t *testing.T) {
	all := func(_ wire.ComponentID, _ []byte, updates [][]byte) ([]byte, error) { return updates[0], nil }
	for _, c := range []struct {
		name     string
		proposal func(i int) *wire.Proposal
		want     error
	}{
		{"AppDataUpdate", func(i int) *wire.Proposal { return appUpdate(wire.ComponentID(i), "x") }, nil},
		{"GroupContextExtensions", func(i int) *wire.Proposal {
			senders := make(wire.ExternalSenders, 100)
			for i := range senders {
				senders[i].Credential = wire.BasicCredential(nil)
			}
			return gce(wire.Extensions{wire.NewExtension(wire.ExtensionTypeExternalSenders, &senders)})
		}, ErrProposalList},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := grown(t, 2)
			senders := make(wire.ExternalSenders, 400)
			for i := range senders {
				senders[i] = wire.ExternalSender{Credential: wire.BasicCredential(fmt.Appendf(nil, "sender %d", i))}
			}
			w.g.terms.senders = senders
			w.options.AppData = all
			work := func(n int) uint64 {
				list := make([]wire.ProposalOrRef, n)
				for i := range list {
					list[i] = wire.ProposalOrRef{Type: wire.ProposalOrRefTypeProposal, Proposal: c.proposal(i)}
				}
				return allocated(func() {
					if _, err := w.g.Draft(member(0), list, w.options); !errors.Is(err, c.want) {
						t.Errorf("%d proposals: %v", n, err)
					}
				})
			}
			if few, many := work(1000), work(4000); many > 6*few {
				t.Errorf("1,000 proposals allocate %d bytes and 4,000 allocate %d", few, many)
			}
		})
	}
}
