package sdk

import (
	"context"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// telling tells one listener what begins and what is over.
type telling struct {
	engine *Engine
	room   *delivery.RoomID // nil = all
	f      func(a Activity, begins bool) error
	told   map[Activity]bool
}

// wait tells until bell or ended is closed.
func (t *telling) wait(ctx context.Context, bell, ended <-chan struct{}) error {
	if t.f == nil {
		select {
		case <-bell:
		case <-ended:
		}
		return nil
	}
	for {
		stir := t.engine.heard.stirred()
		next, err := t.tell()
		if err != nil {
			return err
		}
		alarm, stop := t.engine.alarm(ctx, next)
		select {
		case <-bell:
			stop()
			return nil
		case <-ended:
			stop()
			return nil
		case <-stir:
		case <-alarm:
		}
		stop()
	}
}

// alarm gives a channel that is closed at a time, never at the zero time. stop is
// called when it is waited for no more.
func (e *Engine) alarm(ctx context.Context, at time.Time) (alarm <-chan struct{}, stop func()) {
	if at.IsZero() {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	rings := make(chan struct{})
	go func() { defer close(rings); _ = e.Sleep(ctx, at.Sub(e.Now())) }() // ends with ctx, as stop sees to
	return rings, func() { cancel(); <-rings }
}

// tell tells what changed since the last time, and when to look again (zero: when
// something stirs).
func (t *telling) tell() (next time.Time, err error) {
	all, next := t.engine.heard.now(t.engine.Now())
	now := make(map[Activity]bool, len(all))
	for _, a := range all {
		if t.room == nil || a.Room == *t.room {
			now[a] = true
		}
	}
	for a := range t.told {
		if !now[a] {
			if err := t.f(a, false); err != nil {
				return next, err
			}
			delete(t.told, a)
		}
	}
	for _, a := range all {
		if now[a] && !t.told[a] {
			t.told[a] = true
			if err := t.f(a, true); err != nil {
				return next, err
			}
		}
	}
	return next, nil
}
