package server

import (
	"slices"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// TestIdleDevices: members are told of devices that were away for 90 days, never of an
// identity's last leaf, and nothing is done about them. Who is no member is told nothing.
func TestIdleDevices(t *testing.T) {
	w := newWorld(t)
	count := &tallying{Store: w.store}
	w.store = count
	in := w.start()
	p := in.people("ada", "bob", "eve")
	ada, bob, eve := p[0], p[1], p[2]
	id := group(t, ada, bob)
	laptop, phone := in.member(ada.owner.attest(t, "laptop")), in.member(bob.owner.attest(t, "phone"))
	for _, m := range []*member{laptop, phone} {
		check(t, m.enter(id, m.external(id)))
	}
	idle := func(by *member) []identity.DeviceID {
		t.Helper()
		check(t, by.login())
		var out delivery.IdleResponse
		before := count.devices.Load()
		check(t, by.json(delivery.RouteIdle, nil, &out, id.String()))
		if n := count.devices.Load() - before; n != 0 {
			t.Errorf("%d devices were read one by one", n)
		}
		return out.Devices
	}
	if got := idle(ada); len(got) != 0 {
		t.Fatalf("idle at once: %v", got)
	}
	w.clock.add(time.Hour)
	check(t, phone.login()) // an hour after bob
	before := w.fingerprint(t, id)
	w.clock.add(delivery.IdleAfter - time.Hour - time.Minute)
	if got := idle(ada); len(got) != 0 {
		t.Fatalf("idle a minute too early: %v", got)
	}
	w.clock.add(2 * time.Hour)
	// Ada has just been here. Of Bob's two, both away, the later one is his last.
	want := []identity.DeviceID{laptop.id(), bob.id()}
	got := idle(ada)
	for _, list := range [][]identity.DeviceID{got, want} {
		slices.SortFunc(list, func(a, b identity.DeviceID) int { return slices.Compare(a[:], b[:]) })
	}
	if !slices.Equal(got, want) {
		t.Errorf("idle: %v, want %v", got, want)
	}
	if w.fingerprint(t, id) != before {
		t.Error("something was done about them")
	}
	if got := idle(bob); !slices.Equal(got, []identity.DeviceID{laptop.id(), phone.id()}) && !slices.Equal(got, []identity.DeviceID{phone.id(), laptop.id()}) {
		t.Errorf("after bob came: %v", got)
	}
	check(t, eve.login())
	wantCode(t, eve.json(delivery.RouteIdle, nil, nil, id.String()), delivery.CodeNotFound)
}
