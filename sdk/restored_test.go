package sdk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
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
