package sdk_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
)

// TestIdleDevicesAreShown: the service advises of a device that was away for 90 days.
// It is shown, whatever else the service says is not, and nothing is done about it.
func TestIdleDevicesAreShown(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	old := bob.another(h, "old")
	room, err := ada.NewRoom(ctx, "Idle")
	must(t, err)
	ada.invite(room, bob)
	must(t, old.Sync(ctx))
	b := ada.through()
	idle := []identity.DeviceID{old.Device(), ada.Device(), {1, 2, 3}} // Ada's only one, and none of the room
	asked := false
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if !strings.HasSuffix(path, "/idle") {
			return 0, "", nil
		}
		asked = true
		return 200, "application/json", jsonOf(t, delivery.IdleResponse{Devices: idle})
	}
	must(t, ada.Refresh(ctx, room))
	epoch := ada.epoch(room)
	members, err := ada.Members(ctx, room)
	must(t, err)
	must(t, ada.Engine.Idle(ctx, room, members))
	if !asked {
		t.Fatal("the service was not asked")
	}
	for _, m := range members {
		switch {
		case m.Person.Identity == ada.Identity() && len(m.Idle) != 0:
			t.Error("somebody's only device is shown as idle")
		case m.Person.Identity == bob.Identity() && !slices.Equal(m.Idle, []identity.DeviceID{old.Device()}):
			t.Errorf("of Bob's devices idle: %v", m.Idle)
		}
	}
	b.answer = nil
	must(t, ada.Sync(ctx))
	if ada.epoch(room) != epoch {
		t.Error("the room was changed for it")
	}
	must(t, ada.Engine.Idle(ctx, room, members[:0])) // the service itself answers

	// The owner sees it among the own devices, by its own clock.
	own := func(p *person) (idle bool) {
		devices, err := p.Devices(ctx)
		must(t, err)
		i := slices.IndexFunc(devices, func(d sdk.DeviceView) bool { return d.Device == old.Device() })
		if i < 0 {
			t.Fatal("the device is not listed")
		}
		return devices[i].Idle
	}
	if own(bob) {
		t.Error("a device that was just here is idle")
	}
	bob.later(delivery.IdleAfter + time.Hour)
	if !own(bob) {
		t.Error("a device that was away for 90 days is not idle")
	}
}
