package sdk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// forked is a chat in which ada and bob have followed a change that is newer than the
// backup and that nobody keeps, and from which carl and dora know nothing since.
type forked struct {
	*home
	room                 delivery.RoomID
	ada, bob, carl, dora *person
	backup               string
}

func newForked(t *testing.T, since func(*forked)) *forked {
	t.Helper()
	f := &forked{home: newHome(t)}
	f.ada, f.bob, f.carl, f.dora = newPerson(t, f.home, "ada"), newPerson(t, f.home, "bob"), newPerson(t, f.home, "carl"), newPerson(t, f.home, "dora")
	f.room = f.ada.room("Forked")
	for _, p := range []*person{f.bob, f.carl, f.dora} {
		f.ada.invite(f.room, p)
	}
	f.ada.say(f.room, "of the backup")
	for _, p := range []*person{f.ada, f.bob, f.carl, f.dora} {
		p.reads(f.room, "of the backup")
	}
	f.backup = f.home.backup()
	tablet := f.bob.another(f.home, "tablet")
	must(t, f.bob.Refresh(t.Context(), f.room))
	since(f)
	must(t, tablet.Close())
	f.again()
	return f
}

// again restores the service once more, when nobody keeps a change.
func (f *forked) again() {
	f.t.Helper()
	for _, p := range []*person{f.ada, f.bob, f.carl, f.dora} {
		must(f.t, p.Store.Update(f.t.Context(), func(tx sdk.Tx) error { return forgetCommits(tx, f.room) }))
	}
	f.stop()
	copied := filepath.Join(f.t.TempDir(), "again")
	must(f.t, os.CopyFS(copied, os.DirFS(f.backup)))
	f.restore(copied)
}

// settle lets devices look until the room is open and all are in it.
func (f *forked) settle(people ...*person) {
	f.t.Helper()
	for range 3 {
		f.later.Add(int64(time.Hour))
		for _, p := range people {
			must(f.t, p.Refresh(f.t.Context(), f.room))
		}
	}
}

// TestSaidAgain: what a device said in a state that nobody brought back it says again:
// messages, what they became by an edit, that one was taken back, and how the chat is
// called. Who lacks all of it reads the chat as it stood, and who has it reads nothing twice.
func TestSaidAgain(t *testing.T) {
	f := newForked(t, func(f *forked) {
		ctx := f.t.Context()
		sent := f.ada.say(f.room, "a mistke")
		_, err := f.ada.Edit(ctx, f.room, sent.Seq, "a mistake")
		must(f.t, err)
		gone := f.ada.say(f.room, "never mind")
		_, err = f.ada.Delete(ctx, f.room, gone.Seq)
		must(f.t, err)
		old, err := f.ada.History(ctx, f.room, 0, 0, false)
		must(f.t, err)
		_, err = f.ada.Delete(ctx, f.room, old[0].Seq)
		must(f.t, err)
		_, err = f.ada.Rename(ctx, f.room, "Said again")
		must(f.t, err)
		f.ada.say(f.room, "the last word")
		must(f.t, f.bob.Refresh(ctx, f.room))
	})
	f.settle(f.carl, f.ada, f.bob, f.dora)
	for _, p := range []*person{f.ada, f.bob, f.carl, f.dora} {
		var got []string
		for _, text := range p.read(f.room) {
			if text != "" && !strings.HasPrefix(text, "!") {
				got = append(got, text)
			}
		}
		if want := []string{"a mistake", "the last word"}; !slices.Equal(got, want) {
			t.Errorf("%s reads %q, want %q", p.Name(), got, want)
		}
		if r, err := p.RoomOf(t.Context(), f.room); err != nil || r.Title != "Said again" {
			t.Errorf("%s has the title %q, %v", p.Name(), r.Title, err)
		}
	}
}

// TestSaidAgainAfterTheFirstSayingWasForgotten: a message was said again after one restore,
// its first entry is past retention since, and the next restore loses the second. It is said
// a third time: whoever was away throughout reads it.
func TestSaidAgainAfterTheFirstSayingWasForgotten(t *testing.T) {
	f := newForked(t, func(f *forked) {
		f.ada.say(f.room, "thrice")
		must(f.t, f.bob.Refresh(f.t.Context(), f.room))
	})
	f.settle(f.carl, f.ada, f.bob)
	if got := f.carl.read(f.room); got[len(got)-1] != "thrice" {
		t.Fatalf("carl reads %q", got)
	}
	must(t, f.ada.Store.Update(t.Context(), func(tx sdk.Tx) error {
		return tx.Delete(sdk.TableRaw, firstSaying(t, tx, f.room, "thrice"))
	}))
	f.bob.another(f.home, "second") // nobody keeps this change either
	f.ada.say(f.room, "and on")
	f.again()
	f.settle(f.dora, f.ada, f.bob, f.carl)
	got := f.dora.read(f.room)
	if !slices.Contains(got, "thrice") || !slices.Contains(got, "and on") {
		t.Errorf("dora reads %q", got)
	}
	for _, p := range []*person{f.ada, f.bob, f.carl} {
		if n := strings.Count(strings.Join(p.read(f.room), " "), "thrice"); n != 1 {
			t.Errorf("%s reads it %d times", p.Name(), n)
		}
	}
}

// firstSaying is the key of the entry in which a message was said first.
func firstSaying(t *testing.T, tx sdk.Tx, room delivery.RoomID, text string) string {
	t.Helper()
	lines, err := tx.Search(text, &room, 1)
	must(t, err)
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	key := ""
	must(t, tx.Scan(sdk.TableRaw, room.String()+"/", "", func(k string, raw []byte) (bool, error) {
		if strings.HasSuffix(k, fmt.Sprintf("/%016x", lines[0].Seq)) {
			key = k
		}
		return key == "", nil
	}))
	if key == "" {
		t.Fatal("the entry is not kept")
	}
	return key
}

// TestSentIntoAFork: a device has read a restored chat to its end while it was put
// together, and sends after the room has opened without its change and gone on to the very
// number of its epoch. The service takes the message, which nobody can read; the
// device says it again where the others are.
func TestSentIntoAFork(t *testing.T) {
	f := newForked(t, func(f *forked) { must(f.t, f.ada.Refresh(f.t.Context(), f.room)) })
	ctx := t.Context()
	must(t, f.ada.Refresh(ctx, f.room))
	f.later.Add(int64(time.Hour))
	must(t, f.carl.Refresh(ctx, f.room)) // the room opens
	f.carl.another(f.home, "tablet")
	must(t, f.carl.Refresh(ctx, f.room))
	if f.carl.epoch(f.room) != f.ada.epoch(f.room) {
		t.Fatalf("epochs %d and %d", f.carl.epoch(f.room), f.ada.epoch(f.room))
	}
	sent := f.ada.say(f.room, "into the fork")
	must(t, f.carl.Refresh(ctx, f.room))
	if got := f.carl.read(f.room); slices.Contains(got, "into the fork") {
		t.Fatalf("carl reads %q at %d", got, sent.Seq)
	}
	f.settle(f.ada, f.bob, f.carl)
	agree(t, f.room, f.ada, f.bob, f.carl)
	for _, p := range []*person{f.ada, f.bob, f.carl} {
		if n := strings.Count(strings.Join(p.read(f.room), " "), "into the fork"); n != 1 {
			t.Errorf("%s reads it %d times: %q", p.Name(), n, p.read(f.room))
		}
	}
}
