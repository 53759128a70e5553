package sdk_test

import (
	"sync"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// lost is a room of Ada, who made it after the backup, and of others, at a service that
// was restored from that backup.
type lost struct {
	*home
	room   delivery.RoomID
	ada    *person
	others []*person
}

func newLost(t *testing.T, names ...string) *lost {
	t.Helper()
	l := &lost{home: newHome(t)}
	l.ada = newPerson(t, l.home, "ada")
	for _, name := range names {
		l.others = append(l.others, newPerson(t, l.home, name))
	}
	backup := l.backup()
	l.room = l.ada.room("Lost")
	for _, p := range l.others {
		l.ada.invite(l.room, p)
	}
	l.ada.say(l.room, "before")
	must(t, l.ada.Sync(t.Context()))
	for _, p := range l.others {
		p.reads(l.room, "before")
	}
	l.stop()
	l.restore(backup)
	return l
}

// wait lets time pass for everybody and the service.
func (l *lost) wait(d time.Duration) {
	l.later.Add(int64(d))
	for _, p := range append(l.others, l.ada) {
		p.ahead += d
	}
}

// sync lets the others look, all at once.
func (l *lost) sync() {
	l.t.Helper()
	var wg sync.WaitGroup
	for _, p := range l.others {
		wg.Go(func() {
			if err := p.Sync(l.t.Context()); err != nil {
				l.t.Errorf("%s: %v", p.Name(), err)
			}
		})
	}
	wg.Wait()
}

// goesOn checks that a device goes on in the successor that everybody has.
func (l *lost) goesOn(next delivery.RoomID, people ...*person) {
	l.t.Helper()
	for _, p := range people {
		r, err := p.RoomOf(l.t.Context(), l.room)
		must(l.t, err)
		if r.Status != sdk.StatusSucceeded || r.Successor == nil || *r.Successor != next {
			l.t.Fatalf("%s has the room as %s, with %v; want %s", p.Name(), r.Status, r.Successor, next)
		}
	}
}

// TestLostRoomGoesOnInOneSuccessor: the device that could bring a room back is gone.
// Others race for its successor, and all of them are in one. Whose only device is new,
// made from the phrase, is invited.
func TestLostRoomGoesOnInOneSuccessor(t *testing.T) {
	l := newLost(t, "bob", "carl", "dora")
	ctx := t.Context()
	must(t, l.ada.Close())
	l.sync() // sees that the room is gone
	l.wait(20 * time.Hour)
	l.sync()
	for _, p := range l.others {
		if r, err := p.RoomOf(ctx, l.room); err != nil || r.Successor != nil {
			t.Fatalf("%s has not waited: %v, %v", p.Name(), r.Successor, err)
		}
	}
	l.ada = l.ada.restored(l.home, "anew")
	l.ada.ahead = 20 * time.Hour
	l.wait(7 * time.Hour)
	l.sync()
	l.sync()
	next := delivery.SuccessorID(l.room, 0)
	l.goesOn(next, l.others...)
	l.wait(2 * time.Hour)
	l.sync()
	must(t, l.ada.Accept(ctx, next)) // of a chat that this device has never seen
	l.ada.say(next, "after")
	for _, p := range l.others {
		p.reads(next, "after")
		if members, err := p.Members(ctx, next); err != nil || len(members) != 4 {
			t.Errorf("%s sees %d members, %v", p.Name(), len(members), err)
		}
		if r, err := p.RoomOf(ctx, next); err != nil || r.Title != "Lost" {
			t.Errorf("%s: the title is %q, %v", p.Name(), r.Title, err)
		}
		if p.epoch(next) != l.ada.epoch(next) {
			t.Errorf("epochs %d and %d", p.epoch(next), l.ada.epoch(next))
		}
	}
}

// TestAttackSecondSuccessor: a hostile member makes another successor when everybody is
// in one. It is a room like any other that she invites to, and moves nobody.
func TestAttackSecondSuccessor(t *testing.T) {
	l := newLost(t, "bob", "carl", "eve")
	ctx := t.Context()
	bob, carl, eve := l.others[0], l.others[1], l.others[2]
	must(t, l.ada.Close())
	l.sync()
	l.wait(27 * time.Hour)
	l.others = []*person{bob, carl}
	l.sync()
	l.sync()
	next := delivery.SuccessorID(l.room, 0)
	l.goesOn(next, bob, carl)
	second, err := eve.MakeSuccessor(ctx, l.room, 1)
	must(t, err)
	must(t, eve.Add(ctx, second, carl.Identity()))
	must(t, eve.Add(ctx, second, bob.Identity()))
	l.sync()
	l.goesOn(next, bob, carl)
	bob.say(next, "still here")
	carl.reads(next, "still here")
}

// TestAttackSuccessorTaken: somebody makes the first successor and invites nobody. A day
// later the next one is made.
func TestAttackSuccessorTaken(t *testing.T) {
	l := newLost(t, "bob", "carl")
	ctx := t.Context()
	must(t, l.ada.Close())
	eve := newPerson(t, l.home, "eve")
	_, err := eve.MakeSuccessor(ctx, l.room, 0)
	must(t, err)
	l.sync()
	l.wait(27 * time.Hour)
	l.sync()
	for _, p := range l.others {
		if r, err := p.RoomOf(ctx, l.room); err != nil || r.Successor != nil {
			t.Fatalf("%s goes on in %v, %v", p.Name(), r.Successor, err)
		}
	}
	l.wait(24 * time.Hour)
	l.sync()
	l.sync()
	l.goesOn(delivery.SuccessorID(l.room, 1), l.others...)
}

// TestLostRoomComesBack: who made the room comes in time, and it goes on; or too late,
// and is brought along into the successor.
func TestLostRoomComesBack(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "too late": true} {
		t.Run(name, func(t *testing.T) {
			l := newLost(t, "bob", "carl")
			ctx := t.Context()
			l.sync()
			if late {
				l.wait(27 * time.Hour)
				l.sync()
				l.sync()
			}
			must(t, l.ada.Sync(ctx)) // brings the old one back
			if !late {
				for range 3 {
					l.wait(10 * time.Hour)
					l.sync()
					must(t, l.ada.Sync(ctx))
				}
				for _, p := range append(l.others, l.ada) {
					if r, err := p.RoomOf(ctx, l.room); err != nil || r.Status != sdk.StatusOpen || r.Successor != nil {
						t.Errorf("%s: %s, %v, %v", p.Name(), r.Status, r.Successor, err)
					}
				}
				l.ada.say(l.room, "after")
				l.others[0].reads(l.room, "before", "after")
				return
			}
			l.wait(2 * time.Hour)
			l.sync()
			must(t, l.ada.Sync(ctx))
			next := delivery.SuccessorID(l.room, 0)
			l.goesOn(next, append(l.others, l.ada)...)
			l.ada.say(next, "after")
			l.others[1].reads(next, "after")
		})
	}
}
