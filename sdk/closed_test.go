package sdk_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// TestClosedChatsComeBackWithTheirHistory: of chats that the account has left, was removed
// from, or that moved, a new device shows what was said, and says nothing there. Who is
// added again goes on.
func TestClosedChatsComeBackWithTheirHistory(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	left, moved, out := bob.room("Left"), ada.room("Moved"), bob.room("Out")
	bob.invite(left, ada)
	bob.invite(out, ada)
	ada.invite(moved, bob)
	for room, text := range map[delivery.RoomID]string{left: "one", moved: "two", out: "three"} {
		bob.say(room, text)
		ada.reads(room, text)
	}
	must(t, ada.Leave(ctx, left))
	next, err := ada.Succeed(ctx, moved, 0, "on")
	must(t, err)
	must(t, bob.Sync(ctx))
	must(t, bob.Remove(ctx, out, ada.Identity()))
	must(t, ada.Sync(ctx))
	_, err = ada.Archive(ctx)
	must(t, err)

	for name, come := range map[string]func() *person{
		"the phrase": func() *person { return ada.restored(h, "new") },
		"a link":     func() *person { return ada.linked("phone") },
		"the phrase, of a device that came so itself": func() *person { return ada.restored(h, "first").restored(h, "second") },
	} {
		t.Run(name, func(t *testing.T) {
			p := come()
			var told []string
			must(t, p.Close())
			c := p.config()
			c.Warn = func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
			p.Engine, err = sdk.Open(ctx, c)
			must(t, err)
			must(t, p.Sync(ctx))
			for room, want := range map[delivery.RoomID]struct {
				status      sdk.Status
				title, text string
			}{left: {sdk.StatusLeft, "Left", "one"}, moved: {sdk.StatusSucceeded, "Moved", "two"}, out: {sdk.StatusOut, "Out", "three"}} {
				r, err := p.RoomOf(ctx, room)
				must(t, err)
				if r.Status != want.status || r.Title != want.title || (r.Successor != nil) != (room == moved) {
					t.Errorf("%+v", r)
				}
				p.has(room, []string{want.text})
				lines, err := p.History(ctx, room, 0, 0, true)
				must(t, err)
				if went := slices.ContainsFunc(lines, func(l sdk.Line) bool { return l.Kind == sdk.LineLeave && l.From == ada.Identity() }); went != (room != moved) {
					t.Errorf("%s: that the account went is shown: %v", want.title, went)
				}
				if past := p.past(room); !past.Never || past.Going || len(past.Missing)+len(past.Withheld) > 0 {
					t.Errorf("%s: %+v", want.title, past)
				}
				if _, err := p.Send(ctx, room, sdk.Draft{Text: "no"}); !errors.Is(err, sdk.ErrOut) {
					t.Errorf("sending ends with %v", err)
				}
				if _, err := p.Members(ctx, room); !errors.Is(err, sdk.ErrOut) {
					t.Errorf("the members are told with %v", err)
				}
				must(t, p.Refresh(ctx, room))
				if err := p.Add(ctx, room, bob.Identity()); !errors.Is(err, sdk.ErrOut) {
					t.Errorf("adding ends with %v", err)
				}
			}
			if r, err := p.RoomOf(ctx, moved); err != nil || r.Successor == nil || *r.Successor != next {
				t.Errorf("it moved to %v, %v", r.Successor, err)
			}
			if all := strings.Join(told, "\n"); all != "" {
				t.Errorf("told %q", all)
			}
		})
	}

	p := ada.restored(h, "last")
	must(t, bob.Add(ctx, out, ada.Identity()))
	must(t, p.Sync(ctx))
	bob.say(out, "four")
	p.reads(out, "three", "four")
	if p.status(out) != sdk.StatusOpen {
		t.Errorf("who was added again is %s", p.status(out))
	}
	must(t, ada.Sync(ctx))
	must(t, ada.WriteSnapshot(ctx))
	if again := ada.restored(h, "after that"); again.status(out) != sdk.StatusOpen {
		t.Errorf("a device of who was added again is %s", again.status(out))
	}
}
