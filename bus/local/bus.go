// Package local is the bus and the rate buckets of a service of one process:
// [delivery.Bus] and [delivery.Buckets] in memory. Nothing of it outlives the
// process, and nothing needs to: hints may be lost, and a bucket starts full.
//
// It starts no goroutine, keeps no queue and never blocks: Publish calls the
// sockets' wake functions itself. Begin reading at [Bus.Publish].
package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// MaxSockets is how many sockets one device may attach: several windows, and
// those that a broken network has not ended yet.
const MaxSockets = 64

// ErrClosed: the bus was closed.
var ErrClosed = errors.New("local: the bus is closed")

// Bus wakes sockets of this process. Use [NewBus].
type Bus struct {
	closed atomic.Bool
	// Devices are spread by the first byte of their id, a hash, so that attaching
	// ten thousand sockets does not hold up the hints.
	shards [64]struct {
		mu sync.RWMutex // guards sockets; a slice in it is never changed, only replaced
		of map[identity.DeviceID][]*socket
	}
}

var _ delivery.Bus = (*Bus)(nil)

type socket struct {
	wake func(delivery.Hint)
	gone atomic.Bool
}

// NewBus makes a bus.
func NewBus() *Bus {
	b := new(Bus)
	for i := range b.shards {
		b.shards[i].of = make(map[identity.DeviceID][]*socket)
	}
	return b
}

// Attach adds a socket. When detach returns, no Publish that begins later
// reaches it.
func (b *Bus) Attach(device identity.DeviceID, wake func(delivery.Hint)) (detach func(), err error) {
	shard := &b.shards[device[0]%64]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if b.closed.Load() {
		return nil, ErrClosed
	}
	old := shard.of[device]
	if len(old) >= MaxSockets {
		return nil, fmt.Errorf("%w: a device has %d sockets", delivery.ErrLimit, MaxSockets)
	}
	s := &socket{wake: wake}
	shard.of[device] = append(slices.Clip(old), s)
	return func() { b.detach(device, s) }, nil
}

func (b *Bus) detach(device identity.DeviceID, s *socket) {
	if s.gone.Swap(true) {
		return
	}
	shard := &b.shards[device[0]%64]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(shard.of[device]), func(o *socket) bool { return o == s })
	if len(left) == 0 {
		delete(shard.of, device)
	} else {
		shard.of[device] = left
	}
}

func (b *Bus) sockets(device identity.DeviceID) []*socket {
	shard := &b.shards[device[0]%64]
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	return shard.of[device]
}

// Publish wakes each socket of the devices, on the caller's goroutine and
// without a lock, so a wake function may attach and detach.
func (b *Bus) Publish(ctx context.Context, devices []identity.DeviceID, h delivery.Hint) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.closed.Load() {
		return ErrClosed
	}
	for _, d := range devices {
		for _, s := range b.sockets(d) {
			if !s.gone.Load() {
				s.wake(h)
			}
		}
	}
	return nil
}

// Online tells which of the devices have a socket, in the order asked.
func (b *Bus) Online(ctx context.Context, devices []identity.DeviceID) ([]identity.DeviceID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var online []identity.DeviceID
	for _, d := range devices {
		if len(b.sockets(d)) > 0 {
			online = append(online, d)
		}
	}
	return online, nil
}

// Close forgets all sockets; it calls none. Later calls get ErrClosed.
func (b *Bus) Close() error {
	b.closed.Store(true)
	for i := range b.shards {
		shard := &b.shards[i]
		shard.mu.Lock()
		for _, sockets := range shard.of {
			for _, s := range sockets {
				s.gone.Store(true)
			}
		}
		clear(shard.of)
		shard.mu.Unlock()
	}
	return nil
}
