package server

import (
	"container/list"
	"context"
	"net/netip"
	"sync"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// MemoryLimits bound the bytes that the bodies of requests hold in memory at once, in an instance.
// A zero is the default. What one request needs it may have alone, also where a bound
// is smaller.
type MemoryLimits struct {
	// Text is for bodies of up to 64 KiB, which wait for their turn and are never
	// refused; 64 MiB, of which one device has at most a sixteenth.
	Text int64
	// Bodies is for longer ones, of which a device has at most a quarter; 256 MiB.
	// Over it the answer is delivery.CodeRetry.
	Bodies int64
}

func (m *MemoryLimits) defaults() {
	def(&m.Text, 64<<20)
	def(&m.Bodies, 256<<20)
}

// budget is how many bytes may be held at once, in all and for each holder. Who holds
// nothing may hold anything while it is there, so no request is too large for ever.
type budget struct {
	size, share int64

	mu      sync.Mutex // guards the fields below
	used    int64
	of      map[holder]int64
	waiting list.List // of *waiter, the first to come first
}

// holder is for whom bytes are held: a device, or the address of who has not said
// who they are. The zero one is the operator, who has no share to keep to.
type holder struct {
	device  identity.DeviceID
	address netip.Addr
}

type waiter struct {
	who   holder
	bytes int64
	has   chan struct{} // closed when it has them
}

func newBudget(size, parts int64) *budget {
	return &budget{size: size, share: size / parts, of: map[holder]int64{}}
}

// fair reports whether a holder may have so many more of its share. b.mu is held.
func (b *budget) fair(who holder, n int64) bool {
	has := b.of[who]
	return who == holder{} || has == 0 || has+n <= b.share
}

// free reports whether so many more are there. b.mu is held.
func (b *budget) free(n int64) bool { return b.used == 0 || b.used+n <= b.size }

func (b *budget) take(who holder, n int64) {
	b.used += n
	b.of[who] += n
}

// try takes bytes when they are there now.
func (b *budget) try(who holder, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.fair(who, n) || !b.free(n) {
		return false
	}
	b.take(who, n)
	return true
}

// wait takes bytes when it is its turn: who came first has them first, unless its
// share is in use. The error is ctx's.
func (b *budget) wait(ctx context.Context, who holder, n int64) error {
	b.mu.Lock()
	if b.waiting.Len() == 0 && b.fair(who, n) && b.free(n) {
		b.take(who, n)
		b.mu.Unlock()
		return nil
	}
	w := &waiter{who, n, make(chan struct{})}
	e := b.waiting.PushBack(w)
	b.serve()
	b.mu.Unlock()
	select {
	case <-w.has:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.has: // at the same moment
		return nil
	default:
	}
	b.waiting.Remove(e)
	b.serve() // it may have stood in the way
	return ctx.Err()
}

// give gives bytes back.
func (b *budget) give(who holder, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.of[who] -= n; b.of[who] == 0 {
		delete(b.of, who)
	}
	b.serve()
}

// serve hands out what is there. b.mu is held.
func (b *budget) serve() {
	for e := b.waiting.Front(); e != nil; {
		w, next := e.Value.(*waiter), e.Next()
		if b.fair(w.who, w.bytes) {
			if !b.free(w.bytes) {
				return
			}
			b.take(w.who, w.bytes)
			close(w.has)
			b.waiting.Remove(e)
		}
		e = next
	}
}

// held is what a request holds of a budget.
type held struct {
	budget *budget
	who    holder
	bytes  int64
}

// release gives back what is more than bytes.
func (h *held) release(bytes int64) {
	if h.bytes > bytes {
		h.budget.give(h.who, h.bytes-bytes)
		h.bytes = bytes
	}
}

// holder is for whom a request holds bytes.
func (s *Server) holder(c *call) holder {
	if id := c.device(); id != (identity.DeviceID{}) {
		return holder{device: id}
	}
	return holder{address: s.address(c)}
}

// errBusy refuses what does not fit into memory now.
var errBusy = &delivery.Error{Code: delivery.CodeRetry, Detail: "the service holds as many bytes as it can now: send the same again", RetryAfter: busyRetry}
