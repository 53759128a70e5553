package sdk_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// answers answers every request whose path ends so.
func answers(suffix string, status int, media string, body []byte) func(string, string, url.Values) (int, string, []byte) {
	return func(_, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, suffix) {
			return status, media, body
		}
		return 0, "", nil
	}
}

// trimmed is a service that no longer has what a device missed.
func trimmed(t *testing.T) func(string, string, url.Values) (int, string, []byte) {
	t.Helper()
	return answers("/log", 410, delivery.ProblemType, problem(t, &delivery.Error{Code: delivery.CodeTrimmed, Detail: "past retention", Seq: 100}))
}

// TestRestoredToBetweenTwoStays: who was removed and is back was out at the time of the
// backup. The log that the restored service shows it ends with the removal, before what
// it has read: it is out for the service, gives what it kept, and is back when others
// have brought back how it came in.
func TestRestoredToBetweenTwoStays(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Stays")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "one")
	bob.reads(room, "one")
	must(t, ada.Remove(ctx, room, bob.Identity()))
	must(t, bob.Refresh(ctx, room))
	backup := h.backup()
	must(t, ada.Add(ctx, room, bob.Identity()))
	must(t, bob.Accept(ctx, room))
	ada.say(room, "two")
	if got := bob.read(room); got[len(got)-1] != "two" {
		t.Fatalf("bob reads %q", got)
	}
	h.stop()
	h.restore(backup)

	must(t, bob.Refresh(ctx, room))
	if r, err := bob.RoomOf(ctx, room); err != nil || r.Lost == 0 {
		t.Errorf("nothing is offered: %v", err)
	}
	must(t, ada.Refresh(ctx, room))
	bob.restart() // the wait before it asks again is a process's own
	for range 2 {
		must(t, bob.Refresh(ctx, room))
		must(t, ada.Refresh(ctx, room))
	}
	agree(t, room, ada, bob)
	bob.say(room, "three")
	ada.reads(room, "one", "two", "three")
}

// TestAttackLogEndsBeforeWhatWasRead: a service that shows a shorter log than before,
// and says that it takes what is offered, gains nothing: the device offers
// what it has once, makes no commit, and goes on with an honest one, where nobody
// reads anything twice.
func TestAttackLogEndsBeforeWhatWasRead(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Short")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "one")
	bob.say(room, "two")
	bob.reads(room, "one", "two")
	epoch := bob.epoch(room)
	page := delivery.LogPage{Head: 1, First: 1}
	short := answers("/log", 200, delivery.BinaryType, page.AppendTo(nil))
	b := bob.through()
	offers := 0
	b.answer = func(method, path string, q url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, "/heal") {
			offers++
			return 200, "application/json", jsonOf(t, delivery.HealResponse{Head: 1, Epoch: epoch, Status: delivery.RoomOpen})
		}
		return short(method, path, q)
	}
	for range 3 {
		must(t, bob.Refresh(ctx, room))
	}
	if offers != 1 || b.commits.Load() != 0 || bob.epoch(room) != epoch {
		t.Errorf("%d offers, %d commits, epoch %d", offers, b.commits.Load(), bob.epoch(room))
	}
	b.answer = nil
	must(t, bob.Refresh(ctx, room))
	bob.say(room, "three")
	for _, p := range []*person{ada, bob} {
		p.reads(room, "one", "two", "three")
	}
}

// restoredMeanwhile is a chat whose last change the restored service has lost, and of
// those who know of it only ada is left, who was away for longer than messages are kept.
func restoredMeanwhile(t *testing.T, change func(h *home, ada, eve *person, room delivery.RoomID)) (ada, bob *person, room delivery.RoomID, b *between) {
	t.Helper()
	h := newHome(t)
	ctx := t.Context()
	ada, bob, eve := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "eve")
	room, err := ada.NewRoom(ctx, "Meanwhile")
	must(t, err)
	ada.invite(room, bob)
	must(t, ada.Add(ctx, room, eve.Identity()))
	must(t, eve.Accept(ctx, room))
	for _, p := range []*person{ada, bob} {
		must(t, p.Refresh(ctx, room))
	}
	backup := h.backup()
	change(h, ada, eve, room)
	if bob.epoch(room) >= ada.epoch(room) {
		t.Fatal("nothing was changed")
	}
	h.stop()
	h.restore(backup)
	must(t, bob.Refresh(ctx, room))
	must(t, eve.Refresh(ctx, room))
	h.later.Store(int64(time.Hour)) // the room opens without ada
	must(t, bob.Refresh(ctx, room))
	return ada, bob, room, ada.later(31 * 24 * time.Hour)
}

// TestAwayWhileTheServiceWasRestored: a device that was away for longer than messages
// are kept finds the chat at an earlier epoch than its own, where everybody belongs
// there. It comes in.
func TestAwayWhileTheServiceWasRestored(t *testing.T) {
	ada, bob, room, b := restoredMeanwhile(t, func(h *home, ada, _ *person, room delivery.RoomID) {
		ada.another(h, "tablet")
		must(t, ada.Refresh(t.Context(), room))
	})
	gone := trimmed(t)
	b.answer = func(method, path string, q url.Values) (int, string, []byte) {
		if b.commits.Load() > 0 {
			return 0, "", nil
		}
		return gone(method, path, q)
	}
	must(t, ada.Refresh(t.Context(), room))
	must(t, bob.Refresh(t.Context(), room))
	agree(t, room, bob, ada)
	bob.say(room, "welcome back")
	if got := ada.read(room); len(got) == 0 || got[len(got)-1] != "welcome back" {
		t.Errorf("ada reads %q", got)
	}
}

// TestAttackAwayWhileTheServiceWasRestored: somebody is in that earlier state who was
// removed since. Nobody goes back there by having been away, and a service that says so
// of a device that was here a moment ago takes it nowhere.
func TestAttackAwayWhileTheServiceWasRestored(t *testing.T) {
	ada, _, room, b := restoredMeanwhile(t, func(_ *home, ada, eve *person, room delivery.RoomID) {
		must(t, ada.Remove(t.Context(), room, eve.Identity()))
	})
	b.answer = trimmed(t)
	ada.stays(b, room, "to where somebody is who was removed")
	if _, err := ada.Send(t.Context(), room, sdk.Draft{Text: "without Eve"}); !errors.Is(err, sdk.ErrStuck) {
		t.Errorf("sending ends with %v", err)
	}
	ada, _, room, _ = restoredMeanwhile(t, func(h *home, ada, _ *person, room delivery.RoomID) {
		ada.another(h, "tablet")
		must(t, ada.Refresh(t.Context(), room))
	})
	b = ada.later(20 * 24 * time.Hour)
	b.answer = trimmed(t)
	ada.stays(b, room, "after twenty days of thirty")
}

// TestStuckAfterTrimmingSendsNothing: a device that has read a chat to its end hears, in
// the same session, that messages are gone, and finds no state to go on in. It sends
// nothing from where it is until it has read the log to its end again.
func TestStuckAfterTrimmingSendsNothing(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Silent")
	must(t, err)
	ada.invite(room, bob)
	b := bob.through()
	bob.say(room, "before")
	bob.reads(room, "before")
	bob.another(h, "tablet")
	tablet := ada.another(h, "tablet") // bob knows neither, and this one vouches
	tablet.say(room, "a fork")
	appends := 0
	gone := trimmed(t)
	b.answer = func(method, path string, q url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, "/append") {
			appends++
		}
		return gone(method, path, q)
	}
	bob.stays(b, room, "in the session in which it had read everything")
	if _, err := bob.Send(ctx, room, sdk.Draft{Text: "after"}); !errors.Is(err, sdk.ErrStuck) || appends != 0 {
		t.Errorf("sending ends with %v, %d messages went out", err, appends)
	}
	b.answer = nil
	must(t, bob.Flush(ctx))
	if got := ada.read(room); got[len(got)-1] != "after" {
		t.Errorf("ada reads %q", got)
	}
}

// TestEarlierStateIsRememberedAcrossAStart: a device learns that the restored chat went
// on from before its own state, and is ended before it is back in. Started again it still
// knows that its leaf has to be replaced before it sends.
func TestEarlierStateIsRememberedAcrossAStart(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	room, err := ada.NewRoom(ctx, "Ended")
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
	must(t, ada.Refresh(ctx, room))
	b := bob.through()
	b.answer = answers("/groupinfo", 503, delivery.ProblemType, problem(t, delivery.Refuse(delivery.CodeRetry, "later")))
	if err := bob.Refresh(ctx, room); delivery.CodeOf(err) != delivery.CodeRetry {
		t.Fatalf("it does not look where the chat is: %v", err)
	}
	bob.restart()
	if r, err := bob.RoomOf(ctx, room); err != nil || r.Renew == "" {
		t.Errorf("it does not know any more that it has to come in again: %q, %v", r.Renew, err)
	}
	for range 2 {
		for _, p := range []*person{ada, bob, carl} {
			must(t, p.Refresh(ctx, room))
		}
	}
	agree(t, room, ada, bob, carl)
	if r, err := bob.RoomOf(ctx, room); err != nil || r.Renew != "" {
		t.Errorf("it came in, and has to again: %q, %v", r.Renew, err)
	}
}

// TestBroughtBackBeforeAFurtherDeviceCameIn: a message that no device of the account had
// read is brought back with how a further device came in, and stands before that. The
// further device cannot read it in the log: a sibling can, and the archive gives it.
func TestBroughtBackBeforeAFurtherDeviceCameIn(t *testing.T) {
	for name, after := range map[string][]string{"nothing is said after it": nil, "something is said after it": {"after"}} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			ctx := t.Context()
			ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
			room, err := ada.NewRoom(ctx, "Further")
			must(t, err)
			ada.invite(room, bob)
			ada.say(room, "one")
			bob.reads(room, "one")
			backup := h.backup()
			bob.say(room, "two") // while ada's first device is away
			tablet := ada.another(h, "tablet")
			must(t, bob.Refresh(ctx, room))
			h.stop()
			h.restore(backup)
			for range 2 {
				must(t, bob.Refresh(ctx, room))
				must(t, ada.Refresh(ctx, room))
			}
			h.later.Store(int64(time.Hour)) // the room opens without the further device
			must(t, bob.Refresh(ctx, room))
			for _, text := range after {
				bob.say(room, text)
			}
			must(t, tablet.Refresh(ctx, room))
			want := append([]string{"one", "two"}, after...)
			ada.has(room, want)
			for range 2 {
				must(t, ada.Sync(ctx))
				_, err = ada.Archive(ctx)
				must(t, err)
				must(t, tablet.Sync(ctx))
			}
			if got := tablet.read(room); !slices.Equal(got, want) {
				t.Errorf("the further device reads %q, want %q", got, want)
			}
		})
	}
}

// TestAttackJumpsWithoutEnd: a service that shows one restore after the other makes a
// further device write down so many gaps and no more.
func TestAttackJumpsWithoutEnd(t *testing.T) {
	h := newHome(t)
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(t.Context(), "Jumps")
	must(t, err)
	tablet := ada.another(h, "tablet")
	rec, err := tablet.RoomOf(t.Context(), room)
	must(t, err)
	for range sdk.GapsAtMost + 10 {
		e := delivery.Entry{Seq: rec.Cursor + delivery.IncarnationJump, Epoch: rec.Epoch, Kind: delivery.KindApplication, AcceptedMS: 1, Bytes: []byte("nothing")}
		rec, err = tablet.ReadRestore(t.Context(), room, e, rec.Caught)
		must(t, err)
	}
	if len(rec.Gaps) != sdk.GapsAtMost {
		t.Errorf("%d gaps", len(rec.Gaps))
	}
}
