package sdk_test

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
)

// TestOneRoomKeepsSyncFromNoOther: a room whose log is garbage, or that is being put
// together again for long, is the error of Sync when everything else is done.
func TestOneRoomKeepsSyncFromNoOther(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	var rooms []delivery.RoomID
	for _, title := range []string{"One", "Two"} {
		room, err := ada.NewRoom(ctx, title)
		must(t, err)
		ada.invite(room, bob)
		rooms = append(rooms, room)
	}
	slices.SortFunc(rooms, func(a, b delivery.RoomID) int { return strings.Compare(a.String(), b.String()) })
	bad, good := rooms[0], rooms[1] // in the order in which Sync reads them
	b := bob.through()
	answers := map[string]func() (int, string, []byte){
		"garbage": func() (int, string, []byte) { return 200, delivery.BinaryType, []byte("<html>") },
		"healing": func() (int, string, []byte) {
			return 503, delivery.ProblemType, problem(t, delivery.Refuse(delivery.CodeHealing, "it is put together again"))
		},
	}
	want := map[string]func(error) bool{
		"garbage": func(err error) bool { return errors.Is(err, client.ErrGarbage) },
		"healing": func(err error) bool { return delivery.CodeOf(err) == delivery.CodeHealing },
	}
	for _, what := range []string{"garbage", "healing"} {
		ada.say(good, what)
		b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
			if path == "/v1/rooms/"+bad.String()+"/log" {
				return answers[what]()
			}
			return 0, "", nil
		}
		if err := bob.Sync(ctx); !want[what](err) {
			t.Errorf("%s: Sync ends with %v", what, err)
		}
		b.answer = nil
		lines, err := bob.History(ctx, good, 0, 0, false)
		must(t, err)
		if len(lines) == 0 || lines[len(lines)-1].Text != what {
			t.Errorf("%s: the other room was not read: %v", what, lines)
		}
	}
	must(t, bob.Sync(ctx))
	ada.say(bad, "at last")
	bob.reads(bad, "at last")
}
