package sdk_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/sdk"
)

// smallPages is a transport over which a log comes in pages of three entries.
type smallPages struct{ client.Transport }

func (s smallPages) Do(ctx context.Context, r client.Request) (client.Response, error) {
	if path, query, _ := strings.Cut(r.URL, "?"); strings.HasSuffix(path, "/log") {
		r.URL = path + "?limit=3&" + query
	}
	return s.Transport.Do(ctx, r)
}

// tellsOfCatchingUp opens a person again so that what is told of catching up is noted.
func (p *person) tellsOfCatchingUp(told *[]sdk.CatchUp) {
	p.t.Helper()
	must(p.t, p.Close())
	c := p.config()
	c.Transport = smallPages{c.Transport}
	c.CatchingUp = func(u sdk.CatchUp) { *told = append(*told, u) }
	e, err := sdk.Open(p.t.Context(), c)
	must(p.t, err)
	p.Engine = e
}

// TestCatchingUpIsTold: who was away for more than a page of a log hears after each page
// how far the reading is, by the chat's name, and when it is done; who was away for
// less hears nothing.
func TestCatchingUpIsTold(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	group, err := ada.NewRoom(ctx, "Tea")
	must(t, err)
	ada.invite(group, bob)
	direct, err := ada.Direct(ctx, bob.Identity())
	must(t, err)
	must(t, bob.Sync(ctx))
	for _, room := range []delivery.RoomID{group, direct} {
		var told []sdk.CatchUp
		bob.tellsOfCatchingUp(&told)
		must(t, bob.Sync(ctx))
		told = nil
		ada.say(room, "short")
		must(t, bob.Sync(ctx))
		if len(told) > 0 {
			t.Errorf("a single page is told: %+v", told)
		}
		for n := range 10 {
			ada.say(room, fmt.Sprint(n))
		}
		must(t, bob.Sync(ctx))
		if len(told) != 4 {
			t.Fatalf("told %d times: %+v", len(told), told)
		}
		for i, u := range told {
			title := map[delivery.RoomID]string{group: "Tea", direct: "ada"}[room]
			if done := min(uint64(3*i+3), 10); u.Room != room || u.Title != title || u.Done != done || u.Left != 10-done {
				t.Errorf("page %d: %+v", i, u)
			}
		}
	}
}

// TestCatchingUpOverARestore: a restored service moves a room's numbers on by a million
// and more. Nobody is told of a million messages.
func TestCatchingUpOverARestore(t *testing.T) {
	const jump = delivery.IncarnationJump
	for _, c := range []struct{ cursor, head, left uint64 }{
		{7, 7, 0}, {9, 7, 0}, {0, 5000, 5000}, {7, 5007, 5000},
		{100, 100 + jump + 1, 1}, {100, 120 + 40*jump, 1}, {100, 1 << 40, 1},
		{100, 40 + jump + 1, 1}, // the backup is older than what was read
		{jump + 101, jump + 111, 10},
		{100, 100 + jump/2 - 1, jump/2 - 1},
	} {
		if got := sdk.Behind(c.cursor, c.head); got != c.left {
			t.Errorf("from %d to %d there are %d, want %d", c.cursor, c.head, got, c.left)
		}
	}
}
