package sdk_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/sdk"
)

// gaps are the lines of a room that say what is missing.
func (p *person) gaps(room delivery.RoomID) (out []sdk.Line) {
	p.t.Helper()
	lines, err := p.History(p.t.Context(), room, 0, 0, true)
	must(p.t, err)
	for _, l := range lines {
		if l.Kind == sdk.LineGap {
			out = append(out, l)
		}
	}
	return out
}

// TestWhatEverybodyHasForgotten: messages that are newer than the backup and were past
// retention when it came back are kept by nobody. Who may have missed one of them has
// one line that says so, and nobody else has.
func TestWhatEverybodyHasForgotten(t *testing.T) {
	h := newHome(t)
	ada := newPerson(t, h, "ada")
	now := time.Now()
	day := func(n int) int64 { return now.Add(time.Duration(n) * 24 * time.Hour).UnixMilli() }
	for name, c := range map[string]struct {
		caught, backup, restored int64
		from                     int64 // 0 = no line
	}{
		"away since before the backup":             {day(-90), day(-60), day(0), day(-60)},
		"away since after the backup":              {day(-50), day(-60), day(0), day(-50)},
		"the backup's age is unknown":              {day(-50), 0, day(0), day(-50)},
		"here when it was forgotten":               {day(-29), day(-60), day(0), 0},
		"the backup is of a time that all keep":    {day(-90), day(-29), day(0), 0},
		"read the restore long after it":           {day(-90), day(-61), day(-40), 0},
		"read a restore of an old backup long ago": {day(-90), day(-80), day(-40), day(-80)},
	} {
		t.Run(name, func(t *testing.T) {
			room, err := ada.NewRoom(t.Context(), name)
			must(t, err)
			before, err := ada.RoomOf(t.Context(), room)
			must(t, err)
			m := delivery.NewMarker(c.backup, c.restored)
			e := delivery.Entry{Seq: m.First(before.Cursor + 5), Kind: delivery.KindIncarnation, AcceptedMS: c.restored, Bytes: m.Bytes()}
			rec, err := ada.ReadRestore(t.Context(), room, e, c.caught)
			must(t, err)
			if rec.Lost != before.Cursor+5 || rec.Anew != e.Seq || rec.Cursor != e.Seq {
				t.Errorf("lost from %d, anew from %d, read up to %d", rec.Lost, rec.Anew, rec.Cursor)
			}
			got := ada.gaps(room)
			if c.from == 0 {
				if len(got) != 0 {
					t.Fatalf("%+v", got)
				}
				return
			}
			limit := c.restored - (30 * 24 * time.Hour).Milliseconds()
			date := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }
			if len(got) != 1 || got[0].GapFrom != before.Cursor+1 || got[0].Seq != e.Seq-1 {
				t.Fatalf("%+v", got)
			}
			if want := "from " + date(c.from) + " to " + date(limit); !strings.Contains(got[0].Cause, want) {
				t.Errorf("%q does not say %q", got[0].Cause, want)
			}
		})
	}
}

// TestForgottenIsNotArchivedAsRead: what everybody may have forgotten is missing on a
// device that was there as on one that came later. What the first one archives is no proof
// to the second that nothing was said.
func TestForgottenIsNotArchivedAsRead(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Forgotten")
	must(t, err)
	tablet := ada.another(h, "tablet")
	must(t, ada.Sync(ctx))
	must(t, tablet.Sync(ctx))
	now, day := time.Now().UnixMilli(), (24 * time.Hour).Milliseconds()
	rec, err := ada.RoomOf(ctx, room)
	must(t, err)
	m := delivery.NewMarker(now-60*day, now)
	at := m.First(rec.Cursor + 1)
	_, err = ada.ReadRestore(ctx, room, delivery.Entry{Seq: at, Kind: delivery.KindIncarnation, AcceptedMS: now, Bytes: m.Bytes()}, now-90*day)
	must(t, err)
	_, err = tablet.ReadRestore(ctx, room, delivery.Entry{Seq: at + 1, Kind: delivery.KindApplication, AcceptedMS: now, Bytes: []byte("since")}, now-90*day)
	must(t, err)
	_, err = ada.Archive(ctx)
	must(t, err)
	must(t, tablet.Sync(ctx))
	for _, p := range []*person{ada, tablet} {
		if got := p.gaps(room); len(got) != 1 || got[0].Cause == "" {
			t.Errorf("%s tells of %+v", p.Name(), got)
		}
		if past := p.past(room); len(past.Missing)+len(past.Withheld) == 0 {
			t.Errorf("%s misses nothing: %+v", p.Name(), past)
		}
	}
}

// TestRestoredTwiceFromOneBackup: the service comes back from the same file twice, with
// talk in between. No number stands for two entries, and everybody has everything once.
func TestRestoredTwiceFromOneBackup(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Twice")
	must(t, err)
	ada.invite(room, bob)
	want := []string{"in the backup"}
	ada.say(room, want[0])
	bob.reads(room, want...)
	backup := h.backup()
	seqs := map[uint64]string{}
	say := func(p *person, text string) {
		t.Helper()
		p.reads(room, want...)
		sent := p.say(room, text)
		if other, twice := seqs[sent.Seq]; twice {
			t.Errorf("%q and %q have the seq %d", other, text, sent.Seq)
		}
		seqs[sent.Seq], want = text, append(want, text)
	}
	say(ada, "lost once")
	say(bob, "and once more")
	ada.reads(room, want...)
	for _, after := range []string{"after the first", "after the second"} {
		h.stop()
		again := filepath.Join(t.TempDir(), "again")
		must(t, os.CopyFS(again, os.DirFS(backup)))
		h.restore(again)
		for range 3 { // the room opens when both have said what they kept
			must(t, ada.Refresh(ctx, room))
			must(t, bob.Refresh(ctx, room))
		}
		say(ada, after)
		say(bob, "I see: "+after)
		ada.reads(room, want...)
		bob.reads(room, want...)
	}
	for _, p := range []*person{ada, bob} {
		if got := p.gaps(room); len(got) != 0 {
			t.Errorf("%s misses something: %+v", p.Name(), got)
		}
		p.restart()
		p.reads(room, want...)
	}
}

// agree checks that devices are in one epoch of a room.
func agree(t *testing.T, room delivery.RoomID, people ...*person) {
	t.Helper()
	want, a, err := people[0].EpochAuthenticator(t.Context(), room)
	must(t, err)
	for i, p := range people[1:] {
		if got, b, err := p.EpochAuthenticator(t.Context(), room); err != nil || got != want || !bytes.Equal(a, b) {
			t.Errorf("device %d is in epoch %d, the first one in %d, %v", i+1, got, want, err)
		}
	}
}

// TestRestoredToBeforeADeviceCameIn: nobody can bring back how a device came in. It comes
// in anew beside another device of its account, once the room is open and shows a state to
// come in by; until then it waits, and asks for nothing a second time.
func TestRestoredToBeforeADeviceCameIn(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Tablet")
	must(t, err)
	ada.invite(room, bob)
	must(t, ada.Refresh(ctx, room))
	backup := h.backup()
	tablet := bob.another(h, "tablet")
	tablet.say(room, "from the tablet")
	for _, p := range []*person{ada, bob} {
		p.reads(room, "from the tablet")
	}
	for _, p := range []*person{ada, bob, tablet} {
		p.forget()
	}
	h.stop()
	h.restore(backup)

	asks := func() (b *between) {
		t.Helper()
		b = tablet.through() // with no memory of when it asked last
		must(t, tablet.Refresh(ctx, room))
		if _, err := tablet.Send(ctx, room, sdk.Draft{Text: "too early"}); !errors.Is(err, sdk.ErrKept) || delivery.CodeOf(err) != delivery.CodeHealing {
			t.Errorf("it sends with %v", err)
		}
		return b
	}
	if b := asks(); b.commits.Load() != 1 { // the room waits for its members
		t.Errorf("it asked %d times to come in", b.commits.Load())
	}
	for range 2 {
		must(t, ada.Refresh(ctx, room))
		must(t, bob.Refresh(ctx, room))
	}
	b := tablet.through()
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, "/groupinfo") {
			return 200, delivery.BinaryType, nil
		}
		return 0, "", nil
	}
	if err := tablet.Refresh(ctx, room); !errors.Is(err, sdk.ErrStuck) || errors.Is(err, client.ErrGarbage) {
		t.Errorf("by no state it comes in with %v", err)
	}
	tablet.restart()
	for _, p := range []*person{tablet, ada, bob} {
		must(t, p.Refresh(ctx, room))
	}
	agree(t, room, ada, bob, tablet)
	bob.say(room, "welcome back")
	for _, p := range []*person{ada, bob, tablet} {
		if got := p.read(room); got[len(got)-1] != "welcome back" {
			t.Errorf("%s reads %q", p.Name(), got)
		}
	}
}

// TestRestoredRoomEnteredByANewDevice: a room was restored to before a change that
// everybody has forgotten, and the first to change it there is a device that nobody knew.
// It is of somebody known, so those who were further come in again; also when the room
// has gone on from the very epoch in which they are.
func TestRestoredRoomEnteredByANewDevice(t *testing.T) {
	for name, devices := range map[string]int{"the same epoch": 1, "a later epoch": 2} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			ctx := t.Context()
			ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
			room, err := ada.NewRoom(ctx, "New")
			must(t, err)
			ada.invite(room, bob)
			ada.invite(room, carl)
			for _, p := range []*person{ada, bob} {
				must(t, p.Refresh(ctx, room))
			}
			backup := h.backup()
			bob.another(h, "forgotten") // carl never hears of it
			must(t, ada.Refresh(ctx, room))
			must(t, bob.Refresh(ctx, room))
			ada.forget()
			bob.forget()
			h.stop()
			h.restore(backup)

			must(t, carl.Refresh(ctx, room))
			for _, p := range []*person{ada, bob} {
				b := p.through()
				b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
					if strings.HasSuffix(path, "/groupinfo") { // they offer, and go away before they look further
						return 503, delivery.ProblemType, problem(t, delivery.Refuse(delivery.CodeRetry, "later"))
					}
					return 0, "", nil
				}
				_ = p.Refresh(ctx, room)
			}
			people := []*person{ada, bob, carl}
			for n := range devices {
				people = append(people, carl.another(h, fmt.Sprint("tablet", n)))
			}
			for _, p := range []*person{ada, bob} {
				p.restart()
			}
			for range 3 {
				for _, p := range people {
					must(t, p.Refresh(ctx, room))
				}
			}
			agree(t, room, people...)
			ada.say(room, "after")
			for _, p := range people[1:] {
				if got := p.read(room); len(got) == 0 || got[len(got)-1] != "after" {
					t.Errorf("%s reads %q", p.Name(), got)
				}
			}
		})
	}
}
