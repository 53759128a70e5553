package sdk_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// another is a further device of a person, made from the phrase.
func (p *person) another(h *home, name string) *person {
	p.t.Helper()
	q := &person{t: p.t, path: filepath.Join(p.t.TempDir(), name+".db"), seal: bytes.Repeat([]byte{9}, sdk.SealKeySize), words: p.words}
	var err error
	q.Engine, err = sdk.Restore(p.t.Context(), q.config(), h.url, p.words)
	must(p.t, err)
	p.t.Cleanup(func() { _ = q.Close() })
	return q
}

func (p *person) status(room delivery.RoomID) sdk.Status {
	p.t.Helper()
	r, err := p.RoomOf(p.t.Context(), room)
	must(p.t, err)
	return r.Status
}

// alone checks that one identity is left in a room.
func (p *person) alone(room delivery.RoomID) {
	p.t.Helper()
	must(p.t, p.Sync(p.t.Context()))
	members, err := p.Members(p.t.Context(), room)
	must(p.t, err)
	if len(members) != 1 || members[0].Person.Identity != p.Identity() {
		p.t.Errorf("%d people are in the room", len(members))
	}
}

// TestLeavingTakesAllDevices: somebody leaves with one device of two. Who stays
// commits it for both at once.
func TestLeavingTakesAllDevices(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Leaving")
	must(t, err)
	ada.invite(room, bob)
	laptop := bob.another(h, "laptop")
	must(t, ada.Refresh(ctx, room))
	must(t, bob.Leave(ctx, room))
	ada.alone(room)
	ada.say(room, "alone")
	must(t, laptop.Sync(ctx))
	if laptop.status(room) == sdk.StatusOpen || bob.status(room) != sdk.StatusLeft {
		t.Errorf("the laptop is %s, the phone %s", laptop.status(room), bob.status(room))
	}
}

// TestOtherDevicesFollowWhoLeft: an external commit has to honour a SelfRemove and
// cannot remove more. The other device of who left follows by its own.
func TestOtherDevicesFollowWhoLeft(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Following")
	must(t, err)
	ada.invite(room, bob)
	laptop := bob.another(h, "laptop")
	must(t, bob.Leave(ctx, room))
	ada.another(h, "tablet") // comes in by external commit, before anybody committed it
	must(t, laptop.Sync(ctx))
	if laptop.status(room) != sdk.StatusLeft {
		t.Errorf("the laptop is %s", laptop.status(room))
	}
	ada.alone(room)
}
