package sdk_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// refuseAppends answers appends with a refusal for good; undo lets them through.
func refuseAppends(t *testing.T, b *between, code delivery.Code) (undo func()) {
	t.Helper()
	body, err := json.Marshal(delivery.Problem{Code: code, Status: code.Status(), Detail: "not this one"})
	must(t, err)
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if !strings.HasSuffix(path, "/append") {
			return 0, "", nil
		}
		return code.Status(), delivery.ProblemType, body
	}
	return func() { b.answer = nil }
}

// TestRefusedForGoodIsNeverSilentlyGone: a message that the service refuses for
// good lies in the outbox with its cause, keeps no later one back, and is sent
// again, as the same message, or dropped, when a person says so.
func TestRefusedForGoodIsNeverSilentlyGone(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "Refused")
	must(t, err)
	ada.invite(room, bob)
	b := ada.through()
	undo := refuseAppends(t, b, delivery.CodeRefused)
	for _, text := range []string{"first", "second"} {
		_, err := ada.Send(ctx, room, sdk.Draft{Text: text})
		if !errors.Is(err, sdk.ErrFailed) || delivery.CodeOf(err) != delivery.CodeRefused || errors.Is(err, sdk.ErrKept) {
			t.Fatalf("%s: %v", text, err)
		}
	}
	undo()
	ada.say(room, "third")
	bob.reads(room, "third")

	ada.restart()
	list, err := ada.Outbox(ctx)
	must(t, err)
	if len(list) != 2 || list[0].Text != "first" || !list[0].Failed || !strings.Contains(list[0].Cause, "not this one") {
		t.Fatalf("the outbox holds %+v", list)
	}
	sent, err := ada.Resend(ctx, room, list[0].ID)
	must(t, err)
	if sent.ID != list[0].ID || sent.Seq == 0 {
		t.Fatalf("sent as %+v", sent)
	}
	must(t, ada.Discard(ctx, room, list[1].ID))
	if err := ada.Discard(ctx, room, list[1].ID); !errors.Is(err, sdk.ErrNotWaiting) {
		t.Fatalf("dropped twice: %v", err)
	}
	if list, err = ada.Outbox(ctx); err != nil || len(list) != 0 {
		t.Fatalf("the outbox holds %+v, %v", list, err)
	}
	bob.reads(room, "third", "first")
}

// TestRefusedInTheQueue: what waited and is refused for good when its turn comes
// does not fail the message behind it.
func TestRefusedInTheQueue(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "Queue")
	must(t, err)
	ada.invite(room, bob)
	b := ada.through()
	b.answer = func(string, string, url.Values) (int, string, []byte) { return 502, "text/html", nil }
	if _, err := ada.Send(ctx, room, sdk.Draft{Text: "waits"}); !errors.Is(err, sdk.ErrKept) {
		t.Fatal(err)
	}
	refusals := 0
	body, err := json.Marshal(delivery.Problem{Code: delivery.CodeTooLarge, Status: 413, Detail: "too large"})
	must(t, err)
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, "/append") && refusals == 0 {
			refusals++
			return 413, delivery.ProblemType, body
		}
		return 0, "", nil
	}
	ada.say(room, "goes out")
	bob.reads(room, "goes out")
	list, err := ada.Outbox(ctx)
	must(t, err)
	if len(list) != 1 || list[0].Text != "waits" || !list[0].Failed {
		t.Fatalf("the outbox holds %+v", list)
	}
	if err := ada.Discard(ctx, room, list[0].ID); err != nil {
		t.Fatal(err)
	}

	// What never left can be dropped; what may have left cannot.
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) { return 502, "text/html", nil }
	for _, text := range []string{"may have left", "never left"} {
		if _, err := ada.Send(ctx, room, sdk.Draft{Text: text}); !errors.Is(err, sdk.ErrKept) {
			t.Fatal(err)
		}
	}
	if list, err = ada.Outbox(ctx); err != nil || len(list) != 2 || list[0].Failed {
		t.Fatalf("the outbox holds %+v, %v", list, err)
	}
	if err := ada.Discard(ctx, room, list[0].ID); !errors.Is(err, sdk.ErrSending) {
		t.Fatal(err)
	}
	must(t, ada.Discard(ctx, room, list[1].ID))
	b.answer = nil
	must(t, ada.Sync(ctx))
	bob.reads(room, "goes out", "may have left")
}

// TestRevokedDeviceKeepsNothingToSend: what a device that was revoked has written can
// never be sent, and is not said to go out later: what waited before, what is written
// when it learns of it, and what is written after.
func TestRevokedDeviceKeepsNothingToSend(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room := ada.room("Lost phone")
	phone := ada.another(h, "phone")
	must(t, phone.Sync(ctx))
	must(t, ada.Sync(ctx))
	url := h.url
	h.stop()
	if _, err := phone.Send(ctx, room, sdk.Draft{Text: "offline"}); !errors.Is(err, sdk.ErrKept) {
		t.Fatalf("offline it is not kept: %v", err)
	}
	h.start()
	if h.url != url {
		t.Fatal("the service has moved")
	}
	must(t, ada.Revoke(ctx, phone.Device(), nil))
	for i, text := range []string{"learns of it", "knows it"} {
		_, err := phone.Send(ctx, room, sdk.Draft{Text: text})
		if !errors.Is(err, sdk.ErrRevoked) || errors.Is(err, sdk.ErrKept) || errors.Is(err, sdk.ErrFailed) != (i == 0) {
			t.Errorf("%q ends with %v", text, err)
		}
	}
	phone.restart()
	list, err := phone.Outbox(ctx)
	must(t, err)
	if len(list) != 2 {
		t.Fatalf("the outbox holds %+v", list)
	}
	for i, text := range []string{"offline", "learns of it"} {
		if u := list[i]; u.Text != text || !u.Failed || !strings.Contains(u.Cause, "revoked") {
			t.Errorf("the outbox holds %+v", u)
		}
		if _, err := phone.Resend(ctx, room, list[i].ID); !errors.Is(err, sdk.ErrRevoked) || errors.Is(err, sdk.ErrKept) {
			t.Errorf("sent again: %v", err)
		}
	}
}
