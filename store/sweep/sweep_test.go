package sweep

import (
	"context"
	"errors"
	"testing"

	"github.com/askucher/compax-core/delivery"
)

// TestRun: steps go in order, each alone; a run that came to nothing counts nothing;
// the first that reaches the limit or fails is the last.
func TestRun(t *testing.T) {
	broken := errors.New("broken")
	entries := func(n int64, more bool, err error) Step[int] {
		return func(_ context.Context, _ int, _ *delivery.SweepPlan, limit int64, counts *delivery.SweepCounts) (bool, error) {
			counts.Entries += min(n, limit)
			return more, err
		}
	}
	for name, c := range map[string]struct {
		limit   int
		steps   []Step[int]
		entries int64
		more    bool
		err     error
	}{
		"none":        {0, nil, 0, false, nil},
		"all":         {0, []Step[int]{entries(1, false, nil), entries(2, false, nil)}, 3, false, nil},
		"a limit":     {5, []Step[int]{entries(9, true, nil), entries(2, false, nil)}, 5, true, nil},
		"the default": {-1, []Step[int]{entries(1<<20, true, nil)}, DefaultLimit, true, nil},
		"a fault":     {0, []Step[int]{entries(1, false, nil), entries(2, false, broken), entries(4, false, nil)}, 1, false, broken},
	} {
		transactions := 0
		counts, err := Run(t.Context(), delivery.SweepPlan{Limit: c.limit}, c.steps, func(_ context.Context, fn func(int) error) error {
			transactions++
			_ = fn(1) // a run that the database gave up
			return fn(2)
		})
		if counts.Entries != c.entries || counts.More != c.more || !errors.Is(err, c.err) || transactions > len(c.steps) {
			t.Errorf("%s: %+v, %v after %d transactions", name, counts, err, transactions)
		}
	}
}
