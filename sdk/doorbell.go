package sdk

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
)

// A socket is a doorbell, and a dead one looks like one that nobody rings: a proxy has
// forgotten it, the machine slept, a hint was lost inside the service. Behind it runs a
// timer, so that a device that was rung for nothing looks by itself.
//
// Looking is [Engine.Sync] and a new socket, a request for each room. It costs the
// service no more than the socket itself does, which it pings every 30 seconds: a device
// with many rooms looks less often.
const (
	lookFirst  = 5 * time.Minute  // without a frame, then it looks
	lookMost   = time.Hour        // each look that finds a silent bell doubles it up to this
	lookRoom   = 30 * time.Second // for each room, at least
	answerTime = time.Minute      // in which a socket that was dialled must be ready
)

// errQuiet ends a connection on which nothing came for so long that the device looks.
var errQuiet = errors.New("nothing was rung for")

// doorbell is when a device looks by itself while it follows. Its times are those of
// the engine's clock.
type doorbell struct {
	quiet time.Duration // how long it may be silent; 0 = lookFirst

	mu     sync.Mutex // guards the fields below
	opened time.Time  // the connection
	heard  time.Time  // the last frame of it; zero = none
}

// hung is called when a connection is ready.
func (b *doorbell) hung(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened, b.heard = now, time.Time{}
}

// rang is called for each frame.
func (b *doorbell) rang(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = now
}

// left is how long the device waits before it looks, were nothing to come: until the
// bell has been silent for quiet, and for lookMost whatever rings. late is how much
// longer the device takes for both, in [1, 1.5), so that not all of them look at once.
// A clock that went back says nothing, so the device looks.
func (b *doorbell) left(now time.Time, rooms int, late float64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Before(b.opened) || now.Before(b.heard) {
		return 0
	}
	last := b.opened
	if b.heard.After(last) {
		last = b.heard
	}
	after := func(d time.Duration) time.Duration {
		return time.Duration(late * float64(max(d, time.Duration(rooms)*lookRoom)))
	}
	silent := after(max(b.quiet, lookFirst)) - now.Sub(last)
	return max(min(silent, after(lookMost)-now.Sub(b.opened)), 0)
}

// looks is called when a connection was given up for a look.
func (b *doorbell) looks() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.quiet = max(b.quiet, lookFirst) * 2; !b.heard.IsZero() {
		b.quiet = lookFirst // it rings
	}
	b.quiet = min(b.quiet, lookMost)
}

// listenTo closes a connection when it is time to look, and tells whether it did when
// the returned function is called, which ends the watch.
func (e *Engine) listenTo(ctx context.Context, b *doorbell, c *client.Connection, rooms int) (quiet func() bool) {
	late := 1 + e.jitter()/2
	return e.unless(ctx, func() time.Duration { return b.left(e.Now(), rooms, late) }, func() { _ = c.Close() })
}

// connect opens the socket, which has answerTime to be ready.
func (e *Engine) connect(ctx context.Context, cursors []delivery.Cursor) (*client.Connection, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := e.Now().Add(answerTime)
	defer e.unless(ctx, func() time.Duration { return end.Sub(e.Now()) }, cancel)()
	return e.client.Connect(ctx, cursors)
}

// unless calls give when nothing is left of a time, unless the returned function is
// called before: that one says whether give was called, and nothing of it runs then.
func (e *Engine) unless(ctx context.Context, left func() time.Duration, give func()) (end func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	ended, gave := make(chan struct{}), false
	go func() {
		defer close(ended)
		for {
			d := left()
			if d <= 0 {
				gave = true
				give()
				return
			}
			if e.Sleep(ctx, d) != nil {
				return // ended, or the engine was closed
			}
		}
	}()
	return func() bool {
		cancel()
		<-ended
		return gave
	}
}
