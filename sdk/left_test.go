package sdk_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/askucher/compax-core/sdk"
)

// TestLeftSession: a process leaves its session to the next one at the same place. At
// another place, damaged, or ended by the service meanwhile it is no fault: the process
// logs in. What another copy wrote meanwhile is read before anything is sent.
func TestLeftSession(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Left")
	must(t, err)
	ada.invite(room, bob)
	here := []byte("here")
	var logins atomic.Int32
	next := func(edit func(*sdk.Left)) (warned *[]string) {
		t.Helper()
		sealed, err := ada.LeaveSession(here)
		must(t, err)
		if len(sealed) == 0 || bytes.Contains(sealed, here) {
			t.Fatalf("left is %q", sealed)
		}
		must(t, ada.Close())
		logins.Store(0)
		return ada.opens(func(c *sdk.Config) {
			c.Left = sdk.Left{Sealed: sealed, Place: here}
			if edit != nil {
				edit(&c.Left)
			}
			c.Transport = &between{Transport: c.Transport, lose: func(path string) bool {
				if strings.HasSuffix(path, "/sessions") {
					logins.Add(1)
				}
				return false
			}}
		})
	}
	want := []string{}
	for name, edit := range map[string]func(*sdk.Left){
		"another place": func(l *sdk.Left) { l.Place = []byte("there") },
		"no place":      func(l *sdk.Left) { l.Place = nil },
		"damaged":       func(l *sdk.Left) { l.Sealed[20] ^= 1 },
		"cut short":     func(l *sdk.Left) { l.Sealed = l.Sealed[:5] },
	} {
		warned := next(edit)
		ada.say(room, name)
		if want = append(want, name); logins.Load() != 1 || len(*warned) > 0 {
			t.Errorf("%s: %d logins, %q", name, logins.Load(), *warned)
		}
	}
	for i := range 3 {
		next(nil)
		ada.say(room, fmt.Sprint(i))
		if want = append(want, fmt.Sprint(i)); logins.Load() != 0 {
			t.Errorf("%d logins with a session that was left", logins.Load())
		}
	}

	// A copy that has the same session, as an honest profile never gives it away.
	sealed, err := ada.LeaveSession(here)
	must(t, err)
	must(t, ada.Close())
	left := func(c *sdk.Config) { c.Left = sdk.Left{Sealed: sealed, Place: here} }
	twin := ada.copied()
	warned := ada.opens(left)
	epoch := ada.epoch(room)
	ada.say(room, "first")
	twinWarned := twin.opens(left)
	twin.say(room, "copy")
	if twin.epoch(room) == epoch || len(*warned) > 0 || !warnsOfCopy(*twinWarned) {
		t.Errorf("the copy has sent from the same leaf; warned %q and %q", *warned, *twinWarned)
	}
	bob.reads(room, append(want, "first", "copy")...)
}

// TestLeftSessionThatEnded: the service does not know the session any more; nobody
// hears of it.
func TestLeftSessionThatEnded(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Ended")
	must(t, err)
	here := []byte("here")
	sealed, err := ada.LeaveSession(here)
	must(t, err)
	ada.say(room, "another session") // ends the one that was left
	must(t, ada.Close())
	warned := ada.opens(func(c *sdk.Config) { c.Left = sdk.Left{Sealed: sealed, Place: here} })
	ada.say(room, "goes on")
	ada.reads(room, "another session", "goes on")
	if len(*warned) > 0 {
		t.Errorf("warned of %q", *warned)
	}
}
