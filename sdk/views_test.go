package sdk_test

import (
	"testing"

	"github.com/askucher/compax-core/sdk"
)

// TestChatsShowWhatWasSaidLast: read or not; what was taken back is neither last
// nor unread, and what is no message does not count.
func TestChatsShowWhatWasSaidLast(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Tea")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "first")
	second := ada.say(room, "second")
	shows := func(p *person, last string, unread int) {
		t.Helper()
		must(t, p.Refresh(ctx, room))
		chats, err := p.Chats(ctx)
		must(t, err)
		if len(chats) != 1 || chats[0].Last == nil || chats[0].Last.Text != last || chats[0].Unread != unread {
			t.Errorf("%s sees %+v, want %q and %d unread", p.Name(), chats, last, unread)
		}
	}
	shows(bob, "second", 2)
	shows(ada, "second", 0)
	must(t, bob.MarkRead(ctx, room, second.Seq, false))
	shows(bob, "second", 0)
	_, err = ada.Rename(ctx, room, "Coffee")
	must(t, err)
	shows(bob, "second", 0)
	_, err = ada.Delete(ctx, room, second.Seq)
	must(t, err)
	shows(bob, "first", 0)
	third := ada.say(room, "third")
	_, err = ada.Delete(ctx, room, third.Seq)
	must(t, err)
	shows(bob, "first", 0)
	_, err = ada.Send(ctx, room, sdk.Draft{Text: "fourth"})
	must(t, err)
	shows(bob, "fourth", 1)
}
