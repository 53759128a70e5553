package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// faulty is a store of which single answers fail, or are not given at all.
type faulty struct {
	delivery.Store
	count, revoked func() error // nil = the store's own answer
}

func (f *faulty) CountKeyPackages(ctx context.Context, d identity.DeviceID, suite uint16, nowMS int64) (int, bool, error) {
	if f.count != nil {
		return 0, false, f.count()
	}
	return f.Store.CountKeyPackages(ctx, d, suite, nowMS)
}

func (f *faulty) Revoked(ctx context.Context, who identity.PublicKey, d identity.DeviceID) (delivery.StoredRevocation, error) {
	if f.revoked != nil {
		return delivery.StoredRevocation{}, f.revoked()
	}
	return f.Store.Revoked(ctx, who, d)
}

func withFaults(t *testing.T) (*instance, *faulty) {
	w := newWorld(t)
	w.still = true
	f := &faulty{Store: w.store}
	w.store = f
	return w.start(), f
}

// TestPanicIsAnswered: a fault of the program is an answer that says to try again, and a
// line in the log that names where it happened and nothing of what it was about.
func TestPanicIsAnswered(t *testing.T) {
	in, f := withFaults(t)
	ada := in.people("ada")[0]
	for name, fault := range map[string]func() error{
		"a panic that tells":  func() error { panic("no row for " + ada.id().String()) },
		"an index":            func() error { return []error{}[len(in.logs.String())] },
		"an error that tells": func() error { panic(errors.New(ada.owner.id.String())) },
	} {
		f.count = fault
		_, err := ada.once(delivery.RouteKeyCount, nil, "?suite=1")
		if delivery.CodeOf(err) != delivery.CodeRetry {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.count = nil
	_, err := ada.once(delivery.RouteKeyCount, nil, "?suite=1")
	check(t, err)
	logs := in.logs.String()
	for _, want := range []string{"a fault of the program", "faulty).CountKeyPackages", delivery.RouteKeyCount, "index out of range"} {
		if !strings.Contains(logs, want) {
			t.Errorf("the log lacks %q: %s", want, logs)
		}
	}
	for _, secret := range []string{ada.id().String(), ada.owner.id.String(), ada.token} {
		if strings.Contains(logs, secret) {
			t.Errorf("the log names %q", secret)
		}
	}
}

// TestAddWhileTheStoreFails: when it cannot be looked up whether a device is revoked,
// nobody adds it.
func TestAddWhileTheStoreFails(t *testing.T) {
	in, f := withFaults(t)
	p := in.people("ada", "bob")
	id := p[0].create(delivery.RoomGroup)
	before, err := in.w.store.Room(t.Context(), id)
	check(t, err)
	add := request(p[0].prepare(id, p[0].adding(id, p[1].owner)...))
	f.revoked = func() error { return errors.New("the disk does not answer") }
	wantCode(t, once(p[0], delivery.RouteAppend, add.AppendTo(nil), "", id.String()), delivery.CodeRetry)
	f.revoked = nil
	after, err := in.w.store.Room(t.Context(), id)
	check(t, err)
	if after.NextSeq != before.NextSeq || after.Epoch != before.Epoch {
		t.Errorf("the room went from %d/%d to %d/%d", before.Epoch, before.NextSeq, after.Epoch, after.NextSeq)
	}
	check(t, once(p[0], delivery.RouteAppend, add.AppendTo(nil), "", id.String()))
}
