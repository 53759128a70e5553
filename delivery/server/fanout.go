package server

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// maxAudienceDevices bounds the cache of who is in which room: 16 bytes each
// and as much again around them.
const maxAudienceDevices = 1_000_000

// audience remembers the devices of rooms by epoch: whom an entry of that epoch
// is for. A commit leads to another epoch and so to another line.
type audience struct {
	mu    sync.Mutex // guards the fields below
	rooms map[delivery.RoomID]*list.Element
	order *list.List // of *listeners, most recently used first
	left  int
}

type listeners struct {
	room    delivery.RoomID
	epoch   uint64
	devices []identity.DeviceID
}

func (a *audience) init(limit int) {
	a.rooms, a.order, a.left = map[delivery.RoomID]*list.Element{}, list.New(), limit
}

func (a *audience) get(room delivery.RoomID, epoch uint64) ([]identity.DeviceID, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.rooms[room]
	if e == nil || e.Value.(*listeners).epoch != epoch {
		return nil, false
	}
	a.order.MoveToFront(e)
	return e.Value.(*listeners).devices, true
}

// has reports whether a device is known to be in a room in an epoch. Who is in
// a room changes with its epoch only, so a yes holds for as long as the room is
// in that epoch; a no says nothing.
func (a *audience) has(room delivery.RoomID, epoch uint64, device identity.DeviceID) bool {
	devices, _ := a.get(room, epoch)
	return slices.Contains(devices, device)
}

func (a *audience) put(l *listeners) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e := a.rooms[l.room]; e != nil {
		if e.Value.(*listeners).epoch > l.epoch {
			return
		}
		a.remove(e)
	}
	a.rooms[l.room] = a.order.PushFront(l)
	a.left -= len(l.devices) + 4
	for a.left < 0 && a.order.Len() > 1 {
		a.remove(a.order.Back())
	}
}

func (a *audience) remove(e *list.Element) {
	l := a.order.Remove(e).(*listeners)
	delete(a.rooms, l.room)
	a.left += len(l.devices) + 4
}

// members are the devices of a room in an epoch.
func (s *Server) members(ctx context.Context, room delivery.RoomID, epoch uint64) ([]identity.DeviceID, error) {
	if d, ok := s.audience.get(room, epoch); ok {
		return d, nil
	}
	list, err := s.store.Members(ctx, room)
	if err != nil {
		return nil, err
	}
	l := &listeners{room: room, epoch: epoch, devices: make([]identity.DeviceID, len(list))}
	for i, m := range list {
		l.devices[i] = m.Device
	}
	s.audience.put(l)
	return l.devices, nil
}

// fanOut rings for an entry: for the members of its epoch, and with a commit
// for those that it added, too. What goes wrong costs a delay, not an entry.
func (s *Server) fanOut(ctx context.Context, room delivery.RoomID, e *delivery.Entry, also []identity.DeviceID) {
	devices, err := s.members(ctx, room, e.Epoch)
	if err != nil {
		s.failed("fanning out", err)
		return
	}
	hint := delivery.Hint{Kind: delivery.HintEntry, Room: room, Seq: e.Seq, Entry: e}
	s.ring(ctx, devices, hint)
	if len(also) > 0 {
		s.ring(ctx, also, hint)
	}
}

// ring publishes a hint about what is durable already: it goes out also when the
// request that made it so is given up.
func (s *Server) ring(ctx context.Context, devices []identity.DeviceID, h delivery.Hint) {
	if err := s.Bus.Publish(context.WithoutCancel(ctx), devices, h); err != nil {
		s.metrics.hintsLost.Inc()
		s.failed("ringing", err)
	}
}
