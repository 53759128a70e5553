package local

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// Buckets are token buckets in bounded memory. Use [NewBuckets].
type Buckets struct {
	seed   maphash.Seed
	limit  int // of each shard
	shards [16]struct {
		mu sync.Mutex // guards of
		of map[string]bucket
	}
}

var _ delivery.Buckets = (*Buckets)(nil)

// bucket is what was there at a moment; 40 bytes beside its subject.
type bucket struct {
	tokens, rate, burst float64
	at                  time.Time
}

// refilled is the bucket at now with the budget of now. A clock that went back
// refills nothing.
func (b bucket) refilled(rate, burst float64, now time.Time) bucket {
	if gone := now.Sub(b.at).Seconds(); gone > 0 {
		b.tokens += gone * rate
	} else {
		now = b.at
	}
	return bucket{tokens: min(b.tokens, burst), rate: rate, burst: burst, at: now}
}

// full is how full the bucket is at now, from 0 to 1. A full one says no more
// than one that is not there.
func (b bucket) full(now time.Time) float64 {
	if b.burst <= 0 {
		return 1
	}
	return b.refilled(b.rate, b.burst, now).tokens / b.burst
}

// NewBuckets keeps at most about subjects buckets, of 100 to 200 bytes each.
func NewBuckets(subjects int) *Buckets {
	b := &Buckets{seed: maphash.MakeSeed(), limit: max(1, subjects/16)}
	for i := range b.shards {
		b.shards[i].of = make(map[string]bucket)
	}
	return b
}

// Take spends cost when it is there. It never fails.
func (b *Buckets) Take(_ context.Context, subject string, cost, rate, burst float64, now time.Time) (ok bool, retryAfter time.Duration, err error) {
	shard := &b.shards[maphash.String(b.seed, subject)%16]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	have, known := shard.of[subject]
	if !known {
		have = bucket{tokens: burst, at: now}
	}
	have = have.refilled(rate, burst, now)
	cost = max(cost, 0)
	ok = have.tokens >= cost
	switch {
	case ok:
		have.tokens -= cost
	case cost <= burst && rate > 0:
		// One nanosecond more than the division says, or rounding refuses again.
		retryAfter = time.Duration((cost-have.tokens)/rate*float64(time.Second)) + 1
	}
	if !known && len(shard.of) >= b.limit {
		evict(shard.of, now)
	}
	shard.of[subject] = have
	return ok, retryAfter, nil
}

// evict makes room for one bucket: of eight at random it drops those that are
// full again, else the fullest. A flood of new subjects so pushes out its own
// kind, which spent little, before a subject that is being held back.
func evict(of map[string]bucket, now time.Time) {
	victim, fullest, seen, dropped := "", -1.0, 0, false
	for subject, b := range of { // Go's order is random
		full := b.full(now)
		if full >= 1 {
			delete(of, subject)
			dropped = true
		} else if full > fullest {
			victim, fullest = subject, full
		}
		if seen++; seen == 8 {
			break
		}
	}
	if !dropped {
		delete(of, victim)
	}
}
