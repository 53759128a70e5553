package sdk_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/askucher/compax-core/sdk"
)

// again is a further device of a person's account, from their phrase.
func (p *person) again(h *home) *person {
	p.t.Helper()
	d := &person{t: p.t, path: filepath.Join(p.t.TempDir(), "again.db"), seal: bytes.Repeat([]byte{9}, sdk.SealKeySize)}
	var err error
	d.Engine, err = sdk.Restore(p.t.Context(), d.config(), h.url, p.words)
	must(p.t, err)
	p.t.Cleanup(func() { _ = d.Close() })
	return d
}

// TestAVerificationTakenBackStaysSo: neither the snapshot nor another device, which
// has not read of it, brings it back.
func TestAVerificationTakenBackStaysSo(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	id, err := ada.Find(ctx, "@bob")
	must(t, err)
	verified := func(p *person) bool {
		t.Helper()
		known, err := p.Person(ctx, bob.Identity())
		must(t, err)
		return known.Verified
	}
	must(t, ada.Verify(ctx, id, false))
	must(t, ada.Sync(ctx))
	second := ada.again(h)
	if !verified(second) {
		t.Fatal("the verification does not come with the phrase")
	}
	must(t, ada.Verify(ctx, id, true))
	must(t, ada.Sync(ctx))
	if verified(ada.again(h)) {
		t.Error("what was taken back came back from the snapshot")
	}
	// The second device has not read of it, and writes what it knows into the snapshot.
	must(t, second.WriteSnapshot(ctx))
	if verified(ada.again(h)) {
		t.Error("what was taken back came back from another device")
	}
	must(t, second.Sync(ctx))
	if verified(second) {
		t.Error("the other device was not told")
	}
	must(t, second.Verify(ctx, id, false))
	must(t, ada.Sync(ctx))
	if !verified(ada) || !verified(ada.again(h)) {
		t.Error("it cannot be said again")
	}
}
