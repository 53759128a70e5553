package sim

import (
	"context"
	"errors"
	"sync"

	"github.com/askucher/compax-core/sdk"
)

// errCrash is what a device's process meets at its end.
var errCrash = errors.New("sim: the process was killed")

// crashing is a profile's store that kills its process at a chosen write: either
// before the write or right after it, before anybody hears that it is durable.
// Once dead it does nothing any more; a new one over the same profile is the
// next start.
type crashing struct {
	sdk.Store

	mu    sync.Mutex // guards the rest
	left  int        // writes until the crash; 0 = none is planned
	after bool       // the last write is kept
	dead  bool
}

// plan kills the process at the nth write from now.
func (c *crashing) plan(n int, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.after = n, after
}

// died reports whether it has happened.
func (c *crashing) died() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// Update implements sdk.Store.
func (c *crashing) Update(ctx context.Context, f func(sdk.Tx) error) error {
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return errCrash
	}
	crash := c.left == 1
	if c.left > 0 {
		c.left--
	}
	if crash {
		c.dead = true
	}
	keep := c.after
	c.mu.Unlock()
	if crash && !keep {
		return errCrash
	}
	if err := c.Store.Update(ctx, f); err != nil {
		return err
	}
	if crash {
		return errCrash
	}
	return nil
}

// View implements sdk.Store.
func (c *crashing) View(ctx context.Context, f func(sdk.Tx) error) error {
	if c.died() {
		return errCrash
	}
	return c.Store.View(ctx, f)
}

// Close implements sdk.Store: a killed process closes nothing, and the
// simulator closes profiles itself.
func (c *crashing) Close() error { return nil }
