package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/server"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/store/sqlite"
)

// TestEverybodyAtOnce: several people write and change the room at the same
// moment. Losers of a race catch up and try again; nothing is lost or doubled.
func TestEverybodyAtOnce(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	people := []*person{newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")}
	guests := []*person{newPerson(t, h, "dora"), newPerson(t, h, "eve"), newPerson(t, h, "finn")}
	ada := people[0]
	room, err := ada.NewRoom(ctx, "Race")
	must(t, err)
	ada.invite(room, people[1])
	ada.invite(room, people[2])
	var wg sync.WaitGroup
	for i, p := range people {
		wg.Go(func() {
			for n := range 5 {
				if _, err := p.Send(ctx, room, sdk.Draft{Text: fmt.Sprintf("%s %d", p.Name(), n)}); err != nil {
					t.Errorf("%s: %v", p.Name(), err)
				}
			}
		})
		wg.Go(func() {
			if err := p.Add(ctx, room, guests[i].Identity()); err != nil {
				t.Errorf("%s adds: %v", p.Name(), err)
			}
		})
	}
	wg.Wait()
	var first []string
	for _, p := range people {
		got := p.read(room)
		if first == nil {
			first = got
		}
		if len(got) != 15 || !slices.Equal(got, first) {
			t.Errorf("%s reads %q, ada %q", p.Name(), got, first)
		}
		members, err := p.Members(ctx, room)
		must(t, err)
		if len(members) != 6 {
			t.Errorf("%s sees %d members", p.Name(), len(members))
		}
	}
}

// TestCopiedProfile: a profile is copied and both copies are used. The copy's
// leaf is renewed before it sends, so that no key is used twice.
func TestCopiedProfile(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Copy")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "one")
	must(t, ada.Close())
	twin := ada.copied()
	ada.Engine, err = sdk.Open(ctx, ada.config())
	must(t, err)
	ada.say(room, "two")
	twin.Engine, err = sdk.Open(ctx, twin.config())
	must(t, err)
	t.Cleanup(func() { _ = twin.Close() })
	twin.say(room, "from the copy")
	bob.reads(room, "one", "two", "from the copy")
	bob.say(room, "I read you")
	got := twin.read(room)
	if got[len(got)-1] != "I read you" {
		t.Fatalf("the copy reads %q", got)
	}

	// The first one comes in again as well: its next login tells it of the copy.
	ada.restart()
	ada.say(room, "from the first")
	bob.reads(room, "one", "two", "from the copy", "I read you", "from the first")
	if got := ada.read(room); got[len(got)-1] != "from the first" {
		t.Fatalf("the first one reads %q", got)
	}
	bob.say(room, "and you")
	if got := ada.read(room); got[len(got)-1] != "and you" {
		t.Fatalf("the first one reads %q", got)
	}
}

// TestAwayForManyMessages: who comes back has all of it, in order, once. With processes
// and 5,000 messages TestLongAbsence in scripts does the same.
func TestAwayForManyMessages(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Away")
	must(t, err)
	ada.invite(room, bob)
	count := 1500
	if testing.Short() {
		count = 300
	}
	for n := range count {
		ada.say(room, fmt.Sprintf("message %d", n))
	}
	began := time.Now()
	must(t, bob.Refresh(ctx, room))
	t.Logf("%d messages in %v", count, time.Since(began))
	lines, err := bob.History(ctx, room, 0, 0, false)
	must(t, err)
	if len(lines) != count {
		t.Fatalf("%d messages arrived", len(lines))
	}
	for n, l := range lines {
		if l.Text != fmt.Sprintf("message %d", n) {
			t.Fatalf("line %d says %q", n, l.Text)
		}
	}
}

// TestRestoredServer: the service goes back to a backup. What was acknowledged
// since comes back from a device that kept it.
func TestRestoredServer(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	room, err := ada.NewRoom(ctx, "Backup")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "before the backup")
	bob.reads(room, "before the backup")
	backup := h.backup()
	ada.say(room, "lost by the service, kept by Ada")
	ada.invite(room, carl)
	ada.say(room, "after a change")
	h.stop()
	h.restore(backup)
	// The room opens when everybody in it has said what they kept. Until then who says
	// something waits for seconds, and is told that it is kept.
	var waited time.Duration
	must(t, ada.Close())
	ada.opens(func(c *sdk.Config) {
		sleep := c.Sleep
		c.Sleep = func(ctx context.Context, d time.Duration) error { waited += d; return sleep(ctx, d) }
	})
	for round := 0; ; round++ {
		waited = 0
		_, err := ada.Send(ctx, room, sdk.Draft{Text: "after the restore", Key: [16]byte{1}})
		if round == 0 && (delivery.CodeOf(err) != delivery.CodeHealing || !errors.Is(err, sdk.ErrKept)) {
			t.Fatalf("alone in it: %v", err)
		}
		if waited > 30*time.Second {
			t.Errorf("it waits for %s", waited)
		}
		if delivery.CodeOf(err) != delivery.CodeHealing || round == 5 {
			must(t, err)
			break
		}
		must(t, bob.Refresh(ctx, room))
		must(t, carl.Refresh(ctx, room))
	}
	bob.reads(room, "before the backup", "lost by the service, kept by Ada", "after a change", "after the restore")
	ada.reads(room, "before the backup", "lost by the service, kept by Ada", "after a change", "after the restore")
}

// TestRestoredFromLongAgo: what the service lost is more than one offer holds, with
// a change of the room in the middle. It comes back in pieces.
func TestRestoredFromLongAgo(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	room, err := ada.NewRoom(ctx, "Backup")
	must(t, err)
	ada.invite(room, bob)
	backup := h.backup()
	var want []string
	say := func(n int) {
		for range n {
			want = append(want, fmt.Sprintf("message %d", len(want)))
			ada.say(room, want[len(want)-1])
		}
	}
	say(delivery.MaxLogEntries * 6 / 10)
	ada.invite(room, carl)
	say(delivery.MaxLogEntries * 6 / 10)
	h.stop()
	h.restore(backup)
	must(t, carl.Refresh(ctx, room)) // it comes too early: the service does not know it there yet
	for range 3 {
		must(t, ada.Refresh(ctx, room))
		must(t, bob.Refresh(ctx, room))
		must(t, carl.Refresh(ctx, room))
	}
	bob.reads(room, want...)
	if got := carl.read(room); len(got) != delivery.MaxLogEntries*6/10 {
		t.Fatalf("carl reads %d messages", len(got))
	}
	bob.say(room, "after it")
	ada.reads(room, append(want, "after it")...)
}

// backup copies the service's data, and goes on.
func (h *home) backup() string {
	h.t.Helper()
	h.stop()
	backup := filepath.Join(h.t.TempDir(), "backup")
	must(h.t, os.CopyFS(backup, os.DirFS(h.dir)))
	h.start()
	return backup
}

// restore replaces the service's data by a backup and starts it again.
func (h *home) restore(backup string) {
	h.t.Helper()
	h.dir = backup
	store, err := sqlite.Open(h.t.Context(), filepath.Join(backup, "server", "compax.db"))
	must(h.t, err)
	must(h.t, server.StartIncarnation(h.t.Context(), store, time.Now()))
	must(h.t, store.Close())
	h.start()
}

// TestSentAgainAfterRetention: a message arrives, its sender never hears of it and sends
// the same bytes when the service has forgotten that it has them. Who has read it reads
// it once, and of no used key.
func TestSentAgainAfterRetention(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Twice")
	must(t, err)
	ada.invite(room, bob)
	must(t, ada.Sync(ctx))
	b := ada.through()
	b.lose = func(path string) bool { return strings.HasSuffix(path, "/append") }
	if _, err := ada.Send(ctx, room, sdk.Draft{Text: "one"}); !errors.Is(err, sdk.ErrKept) {
		t.Fatal(err)
	}
	bob.reads(room, "one")
	h.stop()
	store, err := sqlite.Open(ctx, filepath.Join(h.dir, "server", "compax.db"))
	must(t, err)
	now := time.Now().UnixMilli()
	_, err = store.Sweep(ctx, delivery.SweepPlan{NowMS: now, LogBefore: now + 1})
	must(t, err)
	must(t, store.Close())
	h.start()
	b.lose = nil
	must(t, ada.Flush(ctx))
	ada.say(room, "two")
	bob.reads(room, "one", "two")
}

// TestUndecryptableNamesItsCause: what a member cannot read says why.
func TestUndecryptableNamesItsCause(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Cause")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "one")
	bob.reads(room, "one")
	ada.say(room, "two")
	// Bob's profile comes from a copy that had entered before "one" was read, and
	// its place was renewed on another machine meanwhile.
	must(t, bob.Close())
	config := bob.config()
	config.Host = "another machine"
	bob.Engine, err = sdk.Open(ctx, config)
	must(t, err)
	bob.say(room, "renewed")
	bob.reads(room, "one", "two", "renewed")
	ada.reads(room, "one", "two", "renewed")
}
