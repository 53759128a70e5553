package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

// TestCatchingUpIsShown: who was away for long sees on a terminal how far catching up is,
// in a line that is gone when something else is said. A pipe and a listener's rows are
// left alone, and so is standard output.
func TestCatchingUpIsShown(t *testing.T) {
	w := newWorld(t)
	w.env["NO_COLOR"] = "1"
	w.fake.away = []sdk.CatchUp{{Room: teaRoom, Title: "Tea", Done: 1000, Left: 4000}, {Room: teaRoom, Title: "Tea", Done: 5000}, {Room: delivery.RoomID{7}, Done: 1000, Left: 1 << 63}}
	w.fake.failSync = client.ErrOffline // after the first page of the second room
	w.wants(0, "history", "Tea", "--json")
	if w.err.Len() > 0 && strings.Contains(w.err.String(), "catching") {
		t.Errorf("a pipe is told %q", &w.err)
	}
	w.tty = true
	w.wants(0, "history", "Tea", "--json")
	if w.out.Len() > 0 {
		t.Errorf("standard output has %q", &w.out)
	}
	said := w.err.String()
	for _, part := range []string{lineStart + "catching up: Tea  ", " 20%  1,000 of 5,000", "100%  5,000 of 5,000" + lineStart, lineStart + "catching up  ", lineStart + "compax: the service cannot be reached"} {
		if !strings.Contains(said, part) {
			t.Errorf("%q is not in %q", part, said)
		}
	}
	w.fake.rows = []local.Row{{Chat: teaRoom, Seq: 1, Kind: "text"}}
	w.tty = false
	w.wants(0, "listen", "--count", "1")
	a := &app{err: &w.err, errTTY: true, now: w.fake.app.now}
	a.behind.hush()
	w.err.Reset()
	a.catchingUp(w.fake.away[0])
	if w.err.Len() > 0 {
		t.Errorf("a listener is told %q", &w.err)
	}
	if !w.fake.app.behind.off {
		t.Error("a listener is not left alone")
	}
}

// TestTalkTakesAProgressAway: what is said while a progress stands in the last line takes
// it away first, and it comes back with the next drawing.
func TestTalkTakesAProgressAway(t *testing.T) {
	var said strings.Builder
	a := &app{err: &said, errTTY: true}
	a.draw("film.mkv 10%")
	a.say("the connection is back")
	a.draw("film.mkv 20%")
	a.wipe()
	a.wipe()
	want := lineStart + "film.mkv 10%" + lineStart + "the connection is back\n" + lineStart + "film.mkv 20%" + lineStart
	if said.String() != want {
		t.Errorf("%q, want %q", &said, want)
	}
}

// TestEnginesTellOfCatchingUp: the profiles on disk have the hook.
func TestEnginesTellOfCatchingUp(t *testing.T) {
	w := newWorld(t)
	a := &app{err: io.Discard, env: func(string) string { return "" }}
	c, err := a.engineConfig(context.Background(), w.home, true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Store.Close()
	if c.CatchingUp == nil {
		t.Error("nobody is told of catching up")
	}
}
