package server

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// tallying is a store that counts what it is asked about single rooms and devices.
type tallying struct {
	delivery.Store
	rooms, devices atomic.Int64
}

func (s *tallying) Room(ctx context.Context, id delivery.RoomID) (delivery.Room, error) {
	s.rooms.Add(1)
	return s.Store.Room(ctx, id)
}

func (s *tallying) Held(ctx context.Context, id delivery.RoomID) ([]delivery.HeldProposal, error) {
	s.rooms.Add(1)
	return s.Store.Held(ctx, id)
}

func (s *tallying) Revoked(ctx context.Context, who identity.PublicKey, d identity.DeviceID) (delivery.StoredRevocation, error) {
	s.rooms.Add(1)
	return s.Store.Revoked(ctx, who, d)
}

func (s *tallying) Device(ctx context.Context, id identity.DeviceID) (delivery.Device, error) {
	s.devices.Add(1)
	return s.Store.Device(ctx, id)
}

// TestWaitingRemovalsCostNothing: a removal that its room holds is looked for again
// when the room has moved on, and not in every round; nor by an instance that did not
// propose it itself, after its first look.
func TestWaitingRemovalsCostNothing(t *testing.T) {
	w := newWorld(t)
	w.still = true // rounds are the test's own
	w.config.RemovalBatch = 2
	first := w.start()
	count := &tallying{Store: w.store}
	w.store = count
	second := w.start()
	p := first.people("ada", "bob")
	laptop := first.member(p[1].owner.attest(t, "laptop"))
	var rooms []delivery.RoomID
	for range 3 {
		id := group(t, p...)
		check(t, laptop.enter(id, laptop.external(id)))
		rooms = append(rooms, id)
		for _, m := range p {
			m.sync(id)
		}
	}
	r := laptop.revocation(t, p[1].owner)
	check(t, p[1].json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: r.Bytes()}, nil))
	round := func(what string, in *instance, looked bool) {
		t.Helper()
		before := count.rooms.Load()
		check(t, in.ProposeRemovals(t.Context()))
		if in == second && (count.rooms.Load() > before) != looked {
			t.Errorf("%s: %d looks, want some: %v", what, count.rooms.Load()-before, looked)
		}
		for n, id := range rooms {
			if h := p[0].head(id); len(h.Proposals) != 1 {
				t.Errorf("%s: room %d holds %d proposals", what, n, len(h.Proposals))
			}
		}
	}
	round("proposing", first, true)
	round("the other instance", second, true)
	round("the other instance, again", second, false)
	round("and again", second, false)
	// An external commit drops the Remove.
	phone := first.member(p[0].owner.attest(t, "phone"))
	check(t, phone.enter(rooms[1], phone.external(rooms[1])))
	round("after an external commit", second, true)
	round("after its own proposal", second, false)
	if n := len(second.removals.held); n != len(rooms) {
		t.Errorf("%d removals are remembered", n)
	}
	for _, m := range p {
		m.sync(rooms[0])
	}
	p[0].commit(rooms[0])
	check(t, second.ProposeRemovals(t.Context()))
	if n := len(second.removals.held); n != len(rooms)-1 {
		t.Errorf("%d removals are remembered when one is done", n)
	}
}
