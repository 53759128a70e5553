package sdk_test

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// TestEntryWhoseAnswerWasLost: another device of the account enters a room by
// external commit, the service takes it, and the answer is lost. The device has a
// leaf there and no state; it comes in again.
func TestEntryWhoseAnswerWasLost(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	phone := ada.another(h, "phone")
	room, err := ada.NewRoom(ctx, "Lost")
	must(t, err)
	ada.invite(room, bob)
	b := phone.through()
	b.lose = func(path string) bool { return strings.HasSuffix(path, "/append") }
	t.Logf("the answer is lost: %v", phone.Sync(ctx))
	b.lose = nil
	phone.restart()
	must(t, phone.Sync(ctx))
	chats, err := phone.Chats(ctx)
	must(t, err)
	if len(chats) != 1 {
		t.Fatalf("the device never comes in: %+v", chats)
	}
	bob.say(room, "both of you?")
	phone.reads(room, "both of you?")
}

// TestInvitationBehindGarbage: while an invitation is opened the service answers
// garbage. The invitation is still there afterwards.
func TestInvitationBehindGarbage(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	first, err := ada.NewRoom(ctx, "First")
	must(t, err)
	ada.invite(first, bob) // from now on she is no stranger
	room, err := ada.NewRoom(ctx, "Second")
	must(t, err)
	must(t, ada.Add(ctx, room, bob.Identity()))
	b := bob.through()
	b.answer = answers("/tree", 200, "text/html", []byte("<html>log in to the hotel</html>"))
	t.Logf("behind garbage: %v", bob.Sync(ctx))
	b.answer = nil
	must(t, bob.Sync(ctx))
	ada.say(room, "are you there?")
	bob.reads(room, "are you there?")
}

// TestSentBeforeItsRemovalIsNotFailed: the answer to a message is lost, and its
// device is removed before it asks again. It was sent and is not told of as failed.
func TestSentBeforeItsRemovalIsNotFailed(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Removed")
	must(t, err)
	ada.invite(room, bob)
	b := bob.through()
	b.lose = func(path string) bool { return strings.HasSuffix(path, "/append") }
	if _, err := bob.Send(ctx, room, sdk.Draft{Text: "last words"}); err == nil {
		t.Fatal("no error without an answer")
	}
	b.lose = nil
	ada.reads(room, "last words")
	must(t, ada.Remove(ctx, room, bob.Identity()))
	bob.restart() // so that it reads what it missed before it sends
	must(t, bob.Flush(ctx))
	left, err := bob.Outbox(ctx)
	must(t, err)
	if len(left) != 0 {
		t.Errorf("what everybody has read lies in the outbox: %+v", left)
	}
	bob.reads(room, "last words")
}

// TestRoomIsReadWhileAFileGoesUp: the upload of a large file keeps nobody from reading
// the room and from writing to it.
func TestRoomIsReadWhileAFileGoesUp(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Files")
	must(t, err)
	ada.invite(room, bob)
	small := sdk.Draft{File: &sdk.File{Name: "small", Type: "text/plain", Size: 1, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }}}
	_, err = ada.Send(ctx, room, small) // in a room that was just made
	must(t, err)
	b := ada.through()
	begun, going := make(chan struct{}), make(chan struct{})
	b.answer = func(method, path string, _ url.Values) (int, string, []byte) {
		if method == "PATCH" && strings.Contains(path, "/blobs/") {
			close(begun)
			<-going
		}
		return 0, "", nil
	}
	sent := make(chan error, 1)
	go func() {
		_, err := ada.Send(ctx, room, sdk.Draft{File: &sdk.File{
			Name: "large", Type: "text/plain", Size: 5, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("large")), nil },
		}})
		sent <- err
	}()
	select {
	case <-begun:
	case err := <-sent:
		t.Fatal(err)
	}
	bob.say(room, "meanwhile")
	soon, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := ada.Refresh(soon, room); err != nil {
		t.Errorf("reading while a file goes up: %v", err)
	}
	close(going)
	must(t, <-sent)
	ada.reads(room, "", "meanwhile", "")
}

// TestDeletionOfAnotherHidesNoEdit: the message that was edited is not here, so that
// nothing says whose it is. A deletion by somebody else hides nothing of its edits.
func TestDeletionOfAnotherHidesNoEdit(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	room, err := ada.NewRoom(ctx, "Edits")
	must(t, err)
	ada.invite(room, bob)
	first := ada.say(room, "before Carl came")
	original, err := ada.LineAt(ctx, room, first.Seq)
	must(t, err)
	ada.invite(room, carl)
	edit, err := ada.Edit(ctx, room, first.Seq, "and after")
	must(t, err)
	_, err = bob.Write(ctx, room, func(h content.Header) (content.Message, error) { return content.Delete(h, original.ID) })
	must(t, err)
	must(t, carl.Refresh(ctx, room))
	l, err := carl.LineAt(ctx, room, edit.Seq)
	must(t, err)
	if l.Text != "and after" {
		t.Errorf("the edit reads %q", l.Text)
	}
}

// TestMessageToALostRoomWaits: the restored service does not know the room until the
// one who made it comes by. What is said there meanwhile waits and goes out then.
func TestMessageToALostRoomWaits(t *testing.T) {
	l := newLost(t, "bob")
	ctx, bob := t.Context(), l.others[0]
	_, err := bob.Send(ctx, l.room, sdk.Draft{Text: "meanwhile"})
	if !errors.Is(err, sdk.ErrKept) || delivery.CodeOf(err) != delivery.CodeHealing {
		t.Errorf("sending to a lost room ends with %v", err)
	}
	must(t, l.ada.Sync(ctx)) // brings it back
	for range 3 {
		l.wait(time.Hour)
		l.sync()
		must(t, l.ada.Sync(ctx))
	}
	l.ada.reads(l.room, "before", "meanwhile")
	if left, err := bob.Outbox(ctx); err != nil || len(left) != 0 {
		t.Errorf("the outbox has %+v, %v", left, err)
	}
}
