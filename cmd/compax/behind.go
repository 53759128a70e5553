package main

import (
	"math"
	"sync"

	"github.com/dustin/go-humanize"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

// behind shows how far this profile is with reading the chat that it is far behind.
type behind struct {
	mu   sync.Mutex // guards the fields below
	off  bool
	room delivery.RoomID
	bar  *bar // of room; nil = none
}

// hush shows nothing from now on.
func (b *behind) hush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.off = true
}

// catchingUp is told after each page of a log.
func (a *app) catchingUp(u sdk.CatchUp) {
	b := &a.behind
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.off:
		return
	case b.bar == nil || b.room != u.Room:
		name := "catching up"
		if u.Title != "" {
			name += ": " + u.Title
		}
		b.room, b.bar = u.Room, a.bar(name)
		b.bar.patience, b.bar.plain, b.bar.amount = 0, true, humanize.Comma // a page is long enough
	}
	done := min(u.Done, math.MaxInt64)
	left := min(u.Left, math.MaxInt64-done)
	_ = b.bar.show(local.Progress{Done: int64(done), Total: int64(done + left)}) // a bar that cannot be drawn costs nothing
	if u.Left == 0 {
		b.bar.end()
		b.bar = nil
	}
}
