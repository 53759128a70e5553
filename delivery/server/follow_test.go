package server

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/askucher/compax-core/delivery"
)

// TestFollowedStatesWeighTheirBytes: the cache of public states counts no state for
// less than the memory that it takes, whatever its members put into it.
func TestFollowedStatesWeighTheirBytes(t *testing.T) { eachSuite(t, followedStatesWeighTheirBytes) }

func followedStatesWeighTheirBytes(t *testing.T, w *world) {
	in := w.start()
	p := in.people("ada", "bob", "carl")
	ids := map[string]delivery.RoomID{"one": p[0].create(delivery.RoomGroup), "three": group(t, p...)}
	crowd := make([]*member, 200) // who are only listed
	for i := range crowd {
		crowd[i] = &member{device: &device{owner: newPerson(fmt.Sprint("listed ", i))}}
	}
	ids["many listed"] = p[0].create(delivery.RoomGroup, crowd...)
	for name, id := range ids {
		room, err := w.store.Room(t.Context(), id)
		check(t, err)
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		states := make([]*followed, 48)
		before := heap()
		for i := range states {
			states[i], err = in.readState(t.Context(), id, room.Epoch)
			check(t, err)
		}
		each := int(heap()-before) / len(states)
		runtime.KeepAlive(states)
		if got := weight(states[0]); each > got || got > 8*each {
			t.Errorf("%s: a state takes %d bytes and weighs %d", name, each, got)
		}
	}
}

// TestFollowedStatesAreBounded: the one that was not used for longest goes.
func TestFollowedStatesAreBounded(t *testing.T) {
	in := newWorld(t).start()
	ada := in.people("ada")[0]
	var ids []delivery.RoomID
	var states []*followed
	for range 3 {
		id := ada.create(delivery.RoomGroup)
		s, err := in.readState(t.Context(), id, 0)
		check(t, err)
		ids, states = append(ids, id), append(states, s)
	}
	var f follows
	limit := weight(states[0]) + weight(states[1]) + weight(states[2])/2
	f.init(limit)
	f.put(ids[0], states[0])
	f.put(ids[1], states[1])
	f.find(ids[0], 0)
	f.put(ids[2], states[2])
	for i, want := range []bool{true, false, true} {
		if got := f.find(ids[i], 0) != nil; got != want {
			t.Errorf("state %d is kept: %v", i, got)
		}
	}
	for f.order.Len() > 0 {
		f.remove(f.order.Back())
	}
	if f.left != limit || len(f.rooms) != 0 {
		t.Errorf("%d of %d bytes are free, %d rooms kept", f.left, limit, len(f.rooms))
	}
}
