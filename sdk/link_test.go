package sdk_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/askucher/compax-core/sdk"
)

func TestLinkedDevice(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Linked")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "before")

	phone := &person{t: t, path: filepath.Join(t.TempDir(), "phone.db"), seal: bytes.Repeat([]byte{3}, sdk.SealKeySize)}
	ticket, err := ada.Ticket()
	must(t, err)
	config := phone.config()
	offer, err := sdk.Link(ctx, config, ticket)
	must(t, err)
	if again, err := sdk.Link(ctx, config, ticket); err != nil || again != offer {
		t.Fatalf("asked again it offers another device: %v", err)
	}
	if _, err := sdk.FinishLink(ctx, config); !errors.Is(err, sdk.ErrWaiting) {
		t.Fatalf("before it was approved: %v", err)
	}
	if _, err := bob.Approve(ctx, offer, nil); !errors.Is(err, sdk.ErrCode) {
		t.Fatalf("a stranger approves: %v", err)
	}
	device, err := ada.Approve(ctx, offer, nil)
	must(t, err)
	phone.Engine, err = sdk.FinishLink(ctx, config)
	must(t, err)
	t.Cleanup(func() { _ = phone.Close() })
	if phone.Device() != device || phone.Identity() != ada.Identity() || phone.Name() != "ada" {
		t.Fatalf("linked as %s of %s, called %q", phone.Device(), phone.Identity(), phone.Name())
	}
	chats, err := phone.Chats(ctx)
	must(t, err)
	if len(chats) != 1 || chats[0].Title != "Linked" {
		t.Fatalf("chats %+v", chats)
	}
	phone.say(room, "from the phone")
	bob.say(room, "I read you both")
	ada.reads(room, "before", "from the phone", "I read you both")
	phone.reads(room, "before", "from the phone", "I read you both")

	// A linked device holds no key of the account.
	if err := phone.Revoke(ctx, ada.Device(), nil); !errors.Is(err, sdk.ErrNoKey) {
		t.Fatalf("a linked device revokes: %v", err)
	}
	must(t, ada.Revoke(ctx, phone.Device(), nil))
	ada.say(room, "without the phone")
	if _, err := phone.Send(ctx, room, sdk.Draft{Text: "stolen"}); err == nil {
		t.Fatal("a revoked device sends")
	}
	bob.reads(room, "before", "from the phone", "I read you both", "without the phone")
}

func TestLinkRefusesOtherCodes(t *testing.T) {
	h := newHome(t)
	ada := newPerson(t, h, "ada")
	phone := &person{t: t, path: filepath.Join(t.TempDir(), "phone.db"), seal: bytes.Repeat([]byte{3}, sdk.SealKeySize)}
	config := phone.config()
	t.Cleanup(func() { _ = config.Store.Close() })
	for _, code := range []string{"", "compax-ticket-1:", "compax-ticket-1:e30", "compax-offer-1:e30", "https://example.org"} {
		if _, err := sdk.Link(t.Context(), config, code); !errors.Is(err, sdk.ErrCode) {
			t.Errorf("%q: %v", code, err)
		}
		if _, err := ada.Approve(t.Context(), code, nil); !errors.Is(err, sdk.ErrCode) {
			t.Errorf("approve %q: %v", code, err)
		}
	}
	ticket, err := ada.Ticket()
	must(t, err)
	offer, err := sdk.Link(t.Context(), config, ticket)
	must(t, err)
	broken := []byte(offer)
	broken[len(broken)-3] ^= 1
	if _, err := ada.Approve(t.Context(), string(broken), nil); err == nil {
		t.Error("an offer with a broken signature is approved")
	}
}

// TestLinkingInterruptedAtItsEnd: a linking that is complete, and of which nobody was
// told, is complete when it is asked for again; no other account comes into its store.
func TestLinkingInterruptedAtItsEnd(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	phone := &person{t: t, path: filepath.Join(t.TempDir(), "phone.db"), seal: bytes.Repeat([]byte{3}, sdk.SealKeySize)}
	ticket, err := ada.Ticket()
	must(t, err)
	config := phone.config()
	offer, err := sdk.Link(ctx, config, ticket)
	must(t, err)
	device, err := ada.Approve(ctx, offer, nil)
	must(t, err)
	phone.Engine, err = sdk.FinishLink(ctx, config)
	must(t, err)
	must(t, phone.Close())

	config = phone.config()
	if again, err := sdk.Link(ctx, config, ticket); err != nil || again != offer {
		t.Fatalf("the same ticket again: %v", err)
	}
	foreign, err := bob.Ticket()
	must(t, err)
	if _, err := sdk.Link(ctx, config, foreign); !errors.Is(err, sdk.ErrAccount) {
		t.Errorf("the ticket of another account: %v", err)
	}
	if _, err := sdk.Link(ctx, config, "nonsense"); !errors.Is(err, sdk.ErrCode) {
		t.Errorf("no ticket: %v", err)
	}
	phone.Engine, err = sdk.FinishLink(ctx, config)
	must(t, err)
	t.Cleanup(func() { _ = phone.Close() })
	if phone.Device() != device || phone.Identity() != ada.Identity() {
		t.Errorf("finished again it is %s of %s", phone.Device(), phone.Identity())
	}
	must(t, phone.Sync(ctx))

	must(t, ada.Close())
	created := ada.config()
	defer func() { must(t, created.Store.Close()) }()
	if _, err := sdk.Link(ctx, created, ticket); !errors.Is(err, sdk.ErrAccount) {
		t.Errorf("a store whose account was made in it: %v", err)
	}
}
