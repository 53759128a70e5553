package sdk_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/store/sqlite"
)

// live is the account's devices that are not revoked.
func (p *person) live() (out []identity.DeviceID) {
	p.t.Helper()
	devices, err := p.Devices(p.t.Context())
	must(p.t, err)
	for _, d := range devices {
		if !d.Revoked {
			out = append(out, d.Device)
		}
	}
	return out
}

// returning is a device on which an account is to come back.
func returning(t *testing.T, name string) *person {
	return &person{t: t, path: filepath.Join(t.TempDir(), name+".db"), seal: bytes.Repeat([]byte{5}, sdk.SealKeySize)}
}

// comesBack restores the account on p, and ends with the profile open.
func (p *person) comesBack(url string, words phrase.Phrase) {
	p.t.Helper()
	c := p.config()
	e, err := sdk.Restore(p.t.Context(), c, url, words)
	if err != nil {
		p.t.Fatal(errors.Join(err, c.Store.Close()))
	}
	p.Engine = e
}

// TestRestoreInterruptedAnywhere: whatever breaks while an account comes back, at
// whatever step, the next try on the same store completes it, as one device and no
// other.
func TestRestoreInterruptedAnywhere(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room := ada.room("Kept")
	ada.invite(room, bob)
	said := []string{"before"}
	ada.say(room, "before")
	must(t, ada.Sync(ctx))

	// Each breaks the step with a number, and all that follow; it reports whether one broke.
	ways := map[string]func(c *sdk.Config, at int) (broke func() bool){
		"answers lost or spoilt": func(c *sdk.Config, at int) func() bool {
			var n atomic.Int32
			breaks := func(string) bool { return int(n.Add(1)) >= at }
			b := &between{Transport: c.Transport, lose: breaks}
			if at%2 == 0 {
				b.lose, b.spoil = nil, breaks
			}
			c.Transport = b
			return func() bool { return int(n.Load()) >= at }
		},
		"power lost before a write": func(c *sdk.Config, at int) func() bool {
			f := &fuse{Store: c.Store, left: at}
			c.Store = f
			return func() bool { return f.blown }
		},
		"power lost after a write": func(c *sdk.Config, at int) func() bool {
			f := &fuse{Store: c.Store, left: at, kept: true}
			c.Store = f
			return func() bool { return f.blown }
		},
	}
	for name, breaks := range ways {
		for at := 1; ; at++ {
			known := len(ada.live())
			p := returning(t, "again")
			c := p.config()
			broke := breaks(&c, at)
			e, err := sdk.Restore(ctx, c, h.url, ada.words)
			if err == nil {
				must(t, e.Close())
			} else {
				must(t, c.Store.Close())
			}
			if !broke() {
				t.Logf("%s: %d steps", name, at-1)
				must(t, err)
				must(t, ada.Revoke(ctx, e.Device(), nil))
				break
			}
			if left := len(ada.live()); err != nil && left > known && !errors.Is(err, sdk.ErrUnfinished) {
				t.Errorf("%s at %d: a device is left behind, and the error does not say so: %v", name, at, err)
			}
			p.comesBack(h.url, ada.words)
			if left := ada.live(); len(left) != known+1 {
				t.Errorf("%s at %d: %d devices, not %d", name, at, len(left), known+1)
			}
			text := fmt.Sprintf("%s at %d", name, at)
			p.say(room, text)
			said = append(said, text)
			must(t, ada.Revoke(ctx, p.Device(), nil))
			must(t, p.Close())
		}
		bob.reads(room, said...)
	}
}

// TestRestoreWhereTheAccountIsNot: a service that does not know the account keeps no
// device of it either, and the store is free.
func TestRestoreWhereTheAccountIsNot(t *testing.T) {
	h, other := newHome(t), newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	p := returning(t, "again")
	c := p.config()
	_, err := sdk.Restore(ctx, c, other.url, ada.words)
	if delivery.CodeOf(err) != delivery.CodeNotFound || errors.Is(err, sdk.ErrUnfinished) {
		t.Fatalf("restoring elsewhere ends with %v", err)
	}
	must(t, c.Store.Close())
	p.comesBack(h.url, ada.words)
	must(t, p.Close())
	if n := other.devices(ada.Identity()); n != 0 {
		t.Errorf("%d devices are left at the other service", n)
	}

	// The other service is away when its device is to be ended.
	p = returning(t, "once more")
	c = p.config()
	c.Transport = &between{Transport: c.Transport, answer: func(_, path string, _ url.Values) (int, string, []byte) {
		if path == "/v1/revocations" {
			return 502, "text/html", []byte("Bad Gateway")
		}
		return 0, "", nil
	}}
	if _, err = sdk.Restore(ctx, c, other.url, ada.words); delivery.CodeOf(err) != delivery.CodeNotFound || !errors.Is(err, sdk.ErrUnfinished) {
		t.Errorf("the device stays, and the error is %v", err)
	}
	must(t, c.Store.Close())
	c = p.config()
	defer func() { must(t, c.Store.Close()) }()
	if _, err := sdk.Restore(ctx, c, h.url, ada.words); !errors.Is(err, sdk.ErrAccount) {
		t.Errorf("what began at another service: %v", err)
	}
	if _, err := sdk.Restore(ctx, c, other.url, ada.words); delivery.CodeOf(err) != delivery.CodeNotFound || errors.Is(err, sdk.ErrUnfinished) {
		t.Errorf("ended at last: %v", err)
	}
	if n := other.devices(ada.Identity()); n != 0 {
		t.Errorf("%d devices are left at the other service", n)
	}
}

// TestUnfinishedRestoreIsNobodyElses: a store in which an account comes back takes no
// other one, however it comes, and says when its device was revoked meanwhile.
func TestUnfinishedRestoreIsNobodyElses(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	p := returning(t, "again")
	c := p.config()
	whole := c.Transport
	c.Transport = &between{Transport: whole, lose: func(path string) bool { return path == "/v1/snapshot" }}
	if _, err := sdk.Restore(ctx, c, h.url, ada.words); !errors.Is(err, sdk.ErrUnfinished) {
		t.Fatalf("interrupted it ends with %v", err)
	}
	defer func() { must(t, c.Store.Close()) }()
	c.Transport = whole
	if _, err := sdk.Restore(ctx, c, h.url, bob.words); !errors.Is(err, sdk.ErrAccount) {
		t.Errorf("another phrase: %v", err)
	}
	if _, _, err := sdk.Create(ctx, c, sdk.NewAccount{Server: h.url, Name: "carl"}); !errors.Is(err, sdk.ErrAccount) {
		t.Errorf("a new account: %v", err)
	}
	ticket, err := bob.Ticket()
	must(t, err)
	if _, err := sdk.Link(ctx, c, ticket); !errors.Is(err, sdk.ErrAccount) {
		t.Errorf("a linked device: %v", err)
	}
	if _, err := sdk.Open(ctx, c); !errors.Is(err, sdk.ErrNoAccount) {
		t.Errorf("opened it ends with %v", err)
	}
	for _, d := range ada.live() {
		if d != ada.Device() {
			must(t, ada.Revoke(ctx, d, nil))
		}
	}
	if _, err := sdk.Restore(ctx, c, h.url, ada.words); !errors.Is(err, sdk.ErrRevoked) || errors.Is(err, sdk.ErrUnfinished) {
		t.Errorf("revoked meanwhile it ends with %v", err)
	}
}

// devices is how many devices of an identity the service knows.
func (h *home) devices(id identity.PublicKey) int {
	h.t.Helper()
	h.stop()
	store, err := sqlite.Open(h.t.Context(), filepath.Join(h.dir, "server", "compax.db"))
	must(h.t, err)
	got, err := store.Devices(h.t.Context(), id)
	must(h.t, err)
	must(h.t, store.Close())
	h.start()
	return len(got)
}
