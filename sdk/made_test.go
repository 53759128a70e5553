package sdk_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// TestOwnChangeIsNoCopy: a change of a chat that this device made, and of which it has no
// keys any more, comes back in the log, as after a restore others bring it back. The
// device does not believe that another copy of its profile made it: it comes in again,
// says what it misses, and goes on.
func TestOwnChangeIsNoCopy(t *testing.T) {
	gone := problem(t, &delivery.Error{Code: delivery.CodeTrimmed, Detail: "past retention", Seq: 100})
	stale := problem(t, &delivery.Error{Code: delivery.CodeStaleEpoch, Detail: "the room went on"})
	for name, c := range map[string]struct {
		change bool // what comes back is a change that was refused; otherwise the device's own coming in
	}{"it came in, and heard no answer": {false}, "it was refused, and others had it": {true}} {
		for _, restarts := range []bool{false, true} {
			if restarts {
				name += ", and ended"
			}
			t.Run(name, func(t *testing.T) {
				h := newHome(t)
				ctx := t.Context()
				ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
				room, err := ada.NewRoom(ctx, "Mine")
				must(t, err)
				ada.invite(room, bob)
				ada.say(room, "one")
				must(t, ada.Close())
				var b *between
				warned := ada.opens(func(c *sdk.Config) { b = &between{Transport: c.Transport}; c.Transport = b })
				must(t, ada.Refresh(ctx, room))
				if c.change {
					b.lose = func(path string) bool { return strings.HasSuffix(path, "/append") }
					if err := ada.Add(ctx, room, carl.Identity()); err == nil {
						t.Fatal("a change whose answer was lost went well")
					}
				}
				b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
					switch {
					case strings.HasSuffix(path, "/log"):
						return 410, delivery.ProblemType, gone
					case c.change && strings.HasSuffix(path, "/append"):
						return 409, delivery.ProblemType, stale
					}
					return 0, "", nil
				}
				b.lose = func(path string) bool {
					return strings.HasSuffix(path, "/append") || c.change && strings.Contains(path, "tree")
				}
				if err := ada.Refresh(ctx, room); err == nil {
					t.Fatal("coming in went well, without an answer")
				}
				b.answer, b.lose = nil, nil
				if restarts {
					must(t, ada.Close())
					warned = ada.opens(nil)
				}
				before := bob.epoch(room)
				ada.say(room, "two")
				bob.reads(room, "one", "two")
				if warnsOfCopy(*warned) {
					t.Errorf("warned of %q", *warned)
				}
				if bob.epoch(room) == before {
					t.Error("nothing came back: the test shows nothing")
				}
				if rec, err := ada.RoomOf(ctx, room); err != nil || rec.Renew != "" {
					t.Errorf("%+v, %v", rec, err)
				}
			})
		}
	}
}
