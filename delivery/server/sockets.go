package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// maxSockets is how many sockets a device has: the oldest goes when another comes.
const maxSockets = 8

// sockets are the ones of this instance.
type sockets struct {
	mu      sync.Mutex // guards the fields below
	open    map[*socket]struct{}
	of      map[identity.DeviceID][]*socket // the oldest first
	closing bool
	empty   chan struct{} // closed when closing and none is left
}

func (s *sockets) init() {
	s.open, s.of, s.empty = map[*socket]struct{}{}, map[identity.DeviceID][]*socket{}, make(chan struct{})
}

// add takes a socket in. A device whose connection broke opens another long before
// the old one is found dead, so that the oldest goes and not the newest.
func (s *sockets) add(k *socket) *delivery.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return delivery.Refuse(delivery.CodeRetry, "this instance is stopping")
	}
	device := k.device.Device
	others := s.of[device]
	if len(others) >= 2*maxSockets { // it opens them faster than they end
		return &delivery.Error{Code: delivery.CodeSlowDown, Detail: tooManySockets, RetryAfter: writeTime}
	}
	if len(others) >= maxSockets {
		others[len(others)-maxSockets].finish(delivery.CodeSlowDown, tooManySockets)
	}
	s.of[device] = append(others, k)
	s.open[k] = struct{}{}
	k.s.metrics.sockets.Inc()
	return nil
}

const tooManySockets = "this device has opened too many sockets"

func (s *sockets) remove(k *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, k)
	device := k.device.Device
	if s.of[device] = slices.DeleteFunc(s.of[device], func(o *socket) bool { return o == k }); len(s.of[device]) == 0 {
		delete(s.of, device)
	}
	k.s.metrics.sockets.Dec()
	if s.closing && len(s.open) == 0 {
		close(s.empty)
	}
}

func (s *sockets) drain(ctx context.Context, within time.Duration) {
	s.mu.Lock()
	first := !s.closing
	s.closing = true
	if first && len(s.open) == 0 {
		close(s.empty)
	}
	for k := range s.open {
		k.askToLeave(within)
	}
	s.mu.Unlock()
	select {
	case <-s.empty:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for k := range s.open {
		k.finish(delivery.CodeRetry, "this instance stopped")
	}
	s.mu.Unlock()
	select {
	case <-s.empty:
	case <-time.After(time.Second):
		s.mu.Lock()
		for k := range s.open {
			_ = k.conn.CloseNow() // it did not even read that it ends
		}
		s.mu.Unlock()
		<-s.empty
	}
}
