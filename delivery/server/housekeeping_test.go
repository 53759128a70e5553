package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// halting is a store that ends the context of housekeeping after so many calls.
type halting struct {
	delivery.Store
	calls, last int
	end         context.CancelFunc
}

func (s *halting) Sweep(ctx context.Context, plan delivery.SweepPlan) (delivery.SweepCounts, error) {
	if plan.Limit > 1000 {
		return delivery.SweepCounts{}, errors.New("so many rows in one transaction")
	}
	plan.Limit = 1
	if s.calls++; s.calls == s.last {
		s.end()
	}
	return s.Store.Sweep(ctx, plan)
}

// TestHousekeepingStopsBetweenPieces: a service that ends does not wait for a long
// sweep. What was done stays, and the next sweep does the rest.
func TestHousekeepingStopsBetweenPieces(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	halts := &halting{Store: w.store, last: 2, end: cancel}
	w.store = halts
	in := w.start()
	ada := in.people("ada")[0]
	id := group(t, ada)
	for range 5 {
		ada.say(id, "hello")
	}
	w.clock.add(in.Retention + time.Hour)
	if err := in.Sweep(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("broken off it says %v", err)
	}
	if halts.calls != 2 {
		t.Errorf("%d pieces", halts.calls)
	}
	r, err := w.store.Room(t.Context(), id)
	check(t, err)
	if r.FirstSeq != 2 || r.NextSeq != 6 {
		t.Errorf("%+v", r)
	}
	check(t, in.Sweep(t.Context()))
	if r, err = w.store.Room(t.Context(), id); err != nil || r.FirstSeq != 6 {
		t.Errorf("%+v, %v", r, err)
	}
}
