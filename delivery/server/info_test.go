package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// probed is a store that counts what writes to it, and may fail to.
type probed struct {
	delivery.Store
	pings, sets atomic.Int64
	broken      atomic.Bool
	wait        chan struct{} // nil: a ping waits for nobody
}

func (c *probed) Ping(ctx context.Context) error {
	c.pings.Add(1)
	if c.wait != nil {
		<-c.wait
	}
	if c.broken.Load() {
		return errors.New("the disk does not answer")
	}
	return c.Store.Ping(ctx)
}

func (c *probed) InitSetting(ctx context.Context, key string, value []byte) ([]byte, error) {
	c.sets.Add(1)
	return c.Store.InitSetting(ctx, key, value)
}

func (c *probed) PutSetting(ctx context.Context, key string, value []byte) error {
	c.sets.Add(1)
	return c.Store.PutSetting(ctx, key, value)
}

// TestAttackAskingWritesNothing: what anybody may ask without a session costs no write
// each time, however many ask, and how the service is, is known again a second later.
func TestAttackAskingWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.still = true
	store := &probed{Store: w.store, wait: make(chan struct{})}
	w.store = store
	in := w.start()
	sets := store.sets.Load()
	get := func(target string) int {
		resp, err := http.Get(in.http.URL + target)
		if err != nil {
			t.Error(err)
			return 0
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		return resp.StatusCode
	}
	// All at once, while the first look is under way.
	var all sync.WaitGroup
	var started atomic.Int64
	for _, target := range []string{"/health", "/health/ready", "/v1/info", "/health/live"} {
		for range 8 {
			all.Go(func() {
				if started.Add(1) == 16 {
					close(store.wait)
				}
				if status := get(target); status != 200 {
					t.Errorf("%s: %d", target, status)
				}
			})
		}
	}
	all.Wait()
	if pings, wrote := store.pings.Load(), store.sets.Load()-sets; pings != 1 || wrote != 0 {
		t.Errorf("the store was asked %d times and written to %d times", pings, wrote)
	}
	store.broken.Store(true)
	w.clock.add(checkupGood)
	for range 2 {
		if status := get("/health"); status != 503 {
			t.Errorf("a broken store: %d", status)
		}
	}
	store.broken.Store(false)
	w.clock.add(-time.Hour) // a clock that was set back
	if status := get("/health"); status != 200 {
		t.Errorf("a store that is well again: %d", status)
	}
	if pings := store.pings.Load(); pings != 3 {
		t.Errorf("the store was asked %d times", pings)
	}
}
