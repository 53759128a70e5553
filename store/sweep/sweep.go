// Package sweep is what the housekeeping of the stores has in common: which steps there
// are, in which order, and what each counts. The stores say how a step is written in
// their database, and trim rooms and blobs themselves.
//
// It knows no database and decides nothing: a [delivery.SweepPlan] does. Begin reading
// at [Run].
package sweep

import (
	"context"

	"github.com/askucher/compax-core/delivery"
)

// DefaultLimit is how many rows a transaction drops at most when the plan does not say.
const DefaultLimit = 1000

// Step is one kind of housekeeping in one transaction, at most limit rows. more: there
// is a rest.
type Step[Tx any] func(ctx context.Context, tx Tx, plan *delivery.SweepPlan, limit int64, counts *delivery.SweepCounts) (more bool, err error)

// Run runs steps, each in a transaction of its own by write, until one of them reaches
// the limit or fails. write may run what it is given again: what was counted in a run
// that came to nothing does not count.
func Run[Tx any](ctx context.Context, plan delivery.SweepPlan, steps []Step[Tx], write func(context.Context, func(Tx) error) error) (counts delivery.SweepCounts, err error) {
	limit := int64(plan.Limit)
	if limit <= 0 {
		limit = DefaultLimit
	}
	for _, step := range steps {
		done := counts
		err := write(ctx, func(tx Tx) (err error) {
			done = counts
			done.More, err = step(ctx, tx, &plan, limit, &done)
			return err
		})
		if err != nil {
			return counts, err
		}
		if counts = done; counts.More {
			break
		}
	}
	return counts, nil
}

// Aged are rows of one table that go by their time alone.
type Aged struct {
	Table, Key string
	Old        string // how their column compares with Before when they are to go
	Done       bool   // of the mailbox: only acknowledged ones
	Before     func(*delivery.SweepPlan) int64
	Count      func(*delivery.SweepCounts) *int64
}

// ByAge are all of them, in the order in which they are dropped.
var ByAge = []Aged{
	{"sessions", "token", "expires_ms <=", false, atNow, func(n *delivery.SweepCounts) *int64 { return &n.Sessions }},
	{"key_packages", "n", "not_after_ms <=", false, atNow, func(n *delivery.SweepCounts) *int64 { return &n.KeyPackages }},
	{"nonces", "key, nonce", "expires_ms <=", false, atNow, func(n *delivery.SweepCounts) *int64 { return &n.Nonces }},
	{"mail", "device, id", "created_ms <", true,
		func(p *delivery.SweepPlan) int64 { return p.MailKeysBefore }, func(n *delivery.SweepCounts) *int64 { return &n.Mail }},
	{"archive", "n", "created_ms <", false,
		func(p *delivery.SweepPlan) int64 { return p.ArchiveBefore }, func(n *delivery.SweepCounts) *int64 { return &n.Archive }},
}

func atNow(p *delivery.SweepPlan) int64 { return p.NowMS }
