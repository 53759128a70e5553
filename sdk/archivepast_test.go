package sdk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/store/sqlite"
)

// loseArchive takes all archives away, as housekeeping does when they are old.
func (h *home) loseArchive() {
	h.t.Helper()
	h.stop()
	store, err := sqlite.Open(h.t.Context(), filepath.Join(h.dir, "server", "compax.db"))
	must(h.t, err)
	n, err := store.Sweep(h.t.Context(), delivery.SweepPlan{ArchiveBefore: 1 << 60, Limit: 1000})
	must(h.t, err)
	if n.Archive == 0 {
		h.t.Fatal("there was no archive")
	}
	must(h.t, store.Close())
	h.start()
}

// TestNothingIsMissingWhereNothingWasSaid: commits, the time when the account was
// out of the room, and the numbers that a restore jumps over are not said to be
// missing on a device that comes later, nor on one that was there.
func TestNothingIsMissingWhereNothingWasSaid(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := bob.NewRoom(ctx, "Bare")
	must(t, err)
	bob.invite(room, ada)
	ada.say(room, "one")
	for i := range 140 { // more than a block
		_, err := bob.Rename(ctx, room, fmt.Sprint("Title ", i))
		must(t, err)
	}
	bob.say(room, "two")
	ada.read(room)
	must(t, bob.Remove(ctx, room, ada.Identity()))
	bob.say(room, "without ada")
	must(t, ada.Sync(ctx))
	bob.invite(room, ada)
	bob.say(room, "three")
	want := []string{"one", "two", "three"}
	ada.has(room, want)
	complete := func(p *person) {
		t.Helper()
		p.has(room, want)
		if past := p.past(room); len(past.Missing)+len(past.Withheld) != 0 || past.Going {
			t.Errorf("%+v", past)
		}
	}
	complete(ada)
	_, err = ada.Archive(ctx)
	must(t, err)
	complete(ada.restored(h, "new"))
}

// TestLostSegmentsAreWrittenAgain: a device that is asked to archive gives what the
// service has lost, and one that is asked reads what came since.
func TestLostSegmentsAreWrittenAgain(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Lost")
	must(t, err)
	ada.say(room, "one")
	phone := ada.linked("phone")
	h.loseArchive()
	must(t, phone.ForgetHistory(ctx))
	must(t, phone.Sync(ctx))
	if past := phone.past(room); len(past.Withheld) == 0 {
		t.Fatalf("%+v", past)
	}
	if n, err := ada.Archive(ctx); err != nil || n != 1 {
		t.Fatalf("%d segments, %v", n, err)
	}
	if _, err := phone.Archive(ctx); err != nil {
		t.Fatal(err)
	}
	phone.has(room, []string{"one"})
	if past := phone.past(room); len(past.Missing)+len(past.Withheld) != 0 {
		t.Errorf("%+v", past)
	}
}

// TestAClockFarAheadErasesNothing: a device whose clock is wrong by a year takes
// nothing out of what others have archived.
func TestAClockFarAheadErasesNothing(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Clock")
	must(t, err)
	ada.say(room, "one")
	phone := ada.linked("phone")
	must(t, phone.Close())
	c := phone.config()
	c.Now = func() time.Time { return time.Now().AddDate(1, 0, 0) }
	phone.Engine, err = sdk.Open(ctx, c)
	must(t, err)
	phone.say(room, "two")
	_, err = phone.Archive(ctx)
	must(t, err)
	ada.restored(h, "new").has(room, []string{"one"})
	must(t, ada.Sync(ctx))
	_, err = ada.Archive(ctx)
	must(t, err)
	ada.restored(h, "newer").has(room, []string{"one", "two"})
}

// TestARestoredServiceIsGivenTheArchiveAgain: what was archived after the backup, and
// what stands there as it was before, is written again by a device that goes on, so
// that one which is linked then shows all that it does. Two restores of one backup
// are two.
func TestARestoredServiceIsGivenTheArchiveAgain(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Restored")
	must(t, err)
	first := ada.say(room, "one, with a mistake")
	_, err = ada.Archive(ctx)
	must(t, err)
	backup, again := h.backup(), filepath.Join(t.TempDir(), "again")
	must(t, os.CopyFS(again, os.DirFS(backup)))
	_, err = ada.Edit(ctx, room, first.Seq, "one")
	must(t, err)
	want := []string{"one"}
	for i := range 140 { // more than a block
		text := fmt.Sprint("word ", i)
		ada.say(room, text)
		want = append(want, text)
	}
	_, err = ada.Archive(ctx)
	must(t, err)
	h.stop()
	h.restore(backup)
	for range 3 { // until the room is open again
		must(t, ada.Sync(ctx))
	}
	phone := ada.linked("phone")
	ada.has(room, want)
	phone.has(room, want)
	complete := func() {
		t.Helper()
		if past := phone.past(room); len(past.Missing)+len(past.Withheld) != 0 || past.Going {
			t.Errorf("%+v", past)
		}
	}
	complete()

	h.stop()
	h.restore(again)
	must(t, ada.Sync(ctx))
	if _, err = ada.Archive(ctx); err != nil {
		t.Fatal(err)
	}
	must(t, phone.ForgetHistory(ctx))
	must(t, phone.Sync(ctx))
	phone.has(room, want)
	complete()
}
