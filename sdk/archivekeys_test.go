package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
)

// linked is a further device of a person, without the account's key.
func (p *person) linked(name string) *person {
	p.t.Helper()
	d := &person{t: p.t, path: filepath.Join(p.t.TempDir(), name+".db"), seal: bytes.Repeat([]byte{3}, sdk.SealKeySize), words: p.words}
	ticket, err := p.Ticket()
	must(p.t, err)
	config := d.config()
	offer, err := sdk.Link(p.t.Context(), config, ticket)
	must(p.t, err)
	_, err = p.Approve(p.t.Context(), offer, nil)
	must(p.t, err)
	d.Engine, err = sdk.FinishLink(p.t.Context(), config)
	must(p.t, err)
	p.t.Cleanup(func() { _ = d.Engine.Close() })
	return d
}

// restored is a further device of a person, from the phrase.
func (p *person) restored(h *home, name string) *person {
	p.t.Helper()
	d := &person{t: p.t, path: filepath.Join(p.t.TempDir(), name+".db"), seal: bytes.Repeat([]byte{4}, sdk.SealKeySize), words: p.words}
	var err error
	d.Engine, err = sdk.Restore(p.t.Context(), d.config(), h.url, p.words)
	must(p.t, err)
	p.t.Cleanup(func() { _ = d.Engine.Close() })
	return d
}

func (p *person) sealsUnder(generation uint64) {
	p.t.Helper()
	held, owed, err := p.Generations(p.t.Context())
	must(p.t, err)
	if held != generation || owed != generation {
		p.t.Fatalf("a device seals under generation %d, %d is due; want %d", held, owed, generation)
	}
}

// snapshot is the account's sealed state as the service keeps it.
func (p *person) snapshot(h *home, b *between) delivery.SnapshotBody {
	p.t.Helper()
	var s delivery.SnapshotBody
	must(p.t, json.Unmarshal(b.get(p, h.url, "/v1/snapshot"), &s))
	return s
}

// TestAttackRevokedDeviceOpensNothingNew: a revoked device holds no key of what is
// sealed after its revocation, and what it still can seal is not taken for the
// account's state, whatever the service shows.
func TestAttackRevokedDeviceOpensNothingNew(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	phone, tablet := ada.linked("phone"), ada.linked("tablet")
	before, owned := ada.through(), tablet.through()
	must(t, tablet.Sync(ctx))
	must(t, ada.Sync(ctx))
	if g, err := phone.OpenSnapshot(ctx, ada.snapshot(h, before).Sealed); err != nil || g != 1 {
		t.Fatalf("before the revocation: generation %d, %v", g, err)
	}
	stolen, err := phone.SealSnapshot(ctx, "Mallory")
	must(t, err)
	must(t, ada.Revoke(ctx, phone.Device(), nil))
	ada.sealsUnder(2)
	now := ada.snapshot(h, before)
	if _, err := phone.OpenSnapshot(ctx, now.Sealed); !errors.Is(err, sdk.ErrKeys) {
		t.Fatalf("the revoked device opens what was sealed after: %v", err)
	}
	must(t, tablet.Sync(ctx))
	tablet.sealsUnder(2)
	if g, err := tablet.OpenSnapshot(ctx, now.Sealed); err != nil || g != 2 {
		t.Fatalf("the device that is left: generation %d, %v", g, err)
	}
	// The service and the thief together.
	body, err := json.Marshal(delivery.SnapshotBody{Version: now.Version, Sealed: stolen})
	must(t, err)
	owned.answer = func(method, path string, _ url.Values) (int, string, []byte) {
		if method == "GET" && path == "/v1/snapshot" {
			return 200, "application/json", body
		}
		return 0, "", nil
	}
	if name, err := tablet.SnapshotName(ctx); err != nil || name != "" {
		t.Fatalf("a state of before the revocation is taken: %q, %v", name, err)
	}
	owned.answer = nil
	if name, err := tablet.SnapshotName(ctx); err != nil || name != "ada" {
		t.Fatalf("%q, %v", name, err)
	}
	// A device that comes from the phrase finds the present generation by itself.
	ada.restored(h, "new").sealsUnder(2)
}

// TestAttackKeyOfTheServicesChoice: anybody can wrap a key to a device. Only what
// the account signed is one.
func TestAttackKeyOfTheServicesChoice(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, eve := newPerson(t, h, "ada"), newPerson(t, h, "eve")
	tablet := ada.linked("tablet")
	b := tablet.through()
	var list delivery.WrappedKeysResponse
	for _, w := range []struct {
		of, name        *person
		made, presented uint64
	}{
		{eve, ada, 2, 2}, // in the account's name, without its signature
		{eve, eve, 3, 3}, // in somebody else's, signed
		{ada, ada, 4, 5}, // the account's own, for another generation
	} {
		k, err := sdk.WrapTo(w.of.words, tablet.Engine, w.made, w.name.Identity())
		must(t, err)
		list.Keys = append(list.Keys, delivery.WrappedKeyView{Generation: w.presented, Wrapped: k})
	}
	body, err := json.Marshal(list)
	must(t, err)
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if path == "/v1/wrapped-keys" {
			return 200, "application/json", body
		}
		return 0, "", nil
	}
	if n, err := tablet.TakeKeys(ctx); err != nil || n != 0 {
		t.Fatalf("%d keys of the service's choice are taken, %v", n, err)
	}
	tablet.sealsUnder(1)
}

// TestCrashWhileRevoking takes the power of a device that revokes with the phrase
// at each of its writes. Started again without the phrase it finishes: the key is
// a new one, on every device that is left.
func TestCrashWhileRevoking(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	tablet, watch := ada.linked("tablet"), ada.linked("watch")
	generation := uint64(1)
	for _, kept := range []bool{false, true} {
		writtenDown := false
		for n := 1; ; n++ {
			lost := identity.DeviceID{1, byte(n)}
			if kept {
				lost[0] = 2
			}
			must(t, tablet.Close())
			config := tablet.config()
			f := &fuse{Store: config.Store, left: n, kept: kept}
			config.Store = f
			var err error
			tablet.Engine, err = sdk.Open(ctx, config)
			must(t, err)
			err = tablet.Revoke(ctx, lost, &ada.words)
			if (err != nil) != f.blown {
				t.Fatalf("write %d, kept %v: blown %v and %v", n, kept, f.blown, err)
			}
			if err != nil && !errors.Is(err, errCrash) {
				t.Fatalf("write %d, kept %v: %v", n, kept, err)
			}
			tablet.restart()
			must(t, tablet.Sync(ctx))
			devices, err := tablet.Devices(ctx)
			must(t, err)
			begun := false
			for _, d := range devices {
				begun = begun || d.Device == lost && d.Revoked
			}
			if begun {
				generation++
				writtenDown = true
			} else if writtenDown {
				t.Fatalf("write %d, kept %v: the revocation is gone", n, kept)
			}
			tablet.sealsUnder(generation)
			must(t, watch.Sync(ctx))
			watch.sealsUnder(generation)
			if name, err := watch.SnapshotName(ctx); err != nil || name != "ada" {
				t.Fatalf("write %d, kept %v: the other device reads %q, %v", n, kept, name, err)
			}
			if !f.blown {
				t.Logf("kept %v: %d writes", kept, n-1)
				break
			}
		}
	}
	must(t, ada.Sync(ctx))
	ada.sealsUnder(generation)
}

// TestTwoDevicesRevokeAtOnce: they come to one generation and one key, without
// asking each other, and so do the devices that only hold keys.
func TestTwoDevicesRevokeAtOnce(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	desk, tablet := ada.restored(h, "desk"), ada.linked("tablet")
	for round := range byte(3) {
		var wg sync.WaitGroup
		for i, p := range []*person{ada, desk} {
			wg.Go(func() {
				if err := p.Revoke(context.WithoutCancel(ctx), identity.DeviceID{round, byte(i + 1)}, nil); err != nil {
					t.Errorf("round %d, device %d: %v", round, i, err)
				}
			})
		}
		wg.Wait()
		for _, p := range []*person{ada, desk, ada, desk, tablet} {
			must(t, p.Sync(ctx))
		}
		for _, p := range []*person{ada, desk, tablet} {
			p.sealsUnder(uint64(round)*2 + 3)
			if name, err := p.SnapshotName(ctx); err != nil || name != "ada" {
				t.Fatalf("round %d: %q, %v", round, name, err)
			}
		}
	}
}

// TestRevokingOffline: what was begun without the service is finished later.
func TestRevokingOffline(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	phone := ada.linked("phone")
	b := ada.through()
	must(t, ada.Sync(ctx))
	b.answer = func(method, path string, _ url.Values) (int, string, []byte) {
		if method == "POST" && strings.HasSuffix(path, "/revocations") {
			return 503, delivery.ProblemType, []byte(`{"code":"retry","status":503,"title":"x"}`)
		}
		return 0, "", nil
	}
	if err := ada.Revoke(ctx, phone.Device(), nil); err == nil {
		t.Fatal("revoked without the service")
	}
	b.answer = nil
	must(t, ada.Sync(ctx))
	ada.sealsUnder(2)
	if err := phone.Sync(ctx); err == nil {
		t.Fatal("the revoked device goes on")
	}
}
