package server

import (
	"context"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// overtaken is a store in which somebody else is faster with a blob.
type overtaken struct {
	delivery.Store
	first func(id delivery.BlobID) error // nil = nobody
}

func (o *overtaken) before(id delivery.BlobID) error {
	first := o.first
	o.first = nil
	if first == nil {
		return nil
	}
	return first(id)
}

func (o *overtaken) CreateBlob(ctx context.Context, m delivery.BlobMeta, most int64) error {
	if err := o.before(m.ID); err != nil {
		return err
	}
	return o.Store.CreateBlob(ctx, m, most)
}

func (o *overtaken) AdvanceBlob(ctx context.Context, id delivery.BlobID, from, to int64) error {
	if err := o.before(id); err != nil {
		return err
	}
	return o.Store.AdvanceBlob(ctx, id, from, to)
}

// TestBlobGoneBetweenCheckAndLock: an entry refers to no blob that went after it was
// looked at, and its sender hears which of the two was not found.
func TestBlobGoneBetweenCheckAndLock(t *testing.T) {
	w, checked, other, store := besides(t)
	ada := other.people("ada")[0]
	id := group(t, ada)
	blob := ada.blob(t, []byte("ciphertext"))
	ada.at = checked
	store.before(func() { check(t, w.store.DeleteBlob(t.Context(), blob)) })
	_, err := ada.post(id, delivery.AppendRequest{Entry: ada.seal(id, "look"), Blobs: []delivery.BlobID{blob}})
	wantRefusal(t, "a blob that went meanwhile", err, delivery.CodeRefused, noBlob)
}

// TestHandshakeOfAnEpochThatBeginsMeanwhile: what was of an epoch to come when it was
// looked at, and is of the present one under the lock, is checked before it counts.
func TestHandshakeOfAnEpochThatBeginsMeanwhile(t *testing.T) {
	_, checked, other, store := besides(t)
	p := other.people("ada", "bob")
	id := group(t, p...)
	first := p[0].prepare(id)
	st, err := first.Apply(p[0].in(id).group, p[0].now())
	check(t, err)
	p[0].in(id).group = st.Next
	second := p[0].prepare(id)
	st, err = second.Apply(p[0].in(id).group, p[0].now())
	check(t, err)

	store.before(func() {
		_, err := p[0].post(id, request(first))
		check(t, err)
	})
	next := request(second)
	at := *p[0].device // two requests at once
	at.at = checked
	_, err = at.call(delivery.RouteAppend, next.AppendTo(nil), "", id.String())
	check(t, err)
	p[0].in(id).group = st.Next
	agree(t, id, p...)
	if logs := checked.logs.String(); strings.Contains(logs, "fault") {
		t.Errorf("it was answered by a fault: %s", logs)
	}
}

// TestBlobIndexMovesMeanwhile: two who find the medium ahead of the index, or a blob
// that only the medium has, both find it.
func TestBlobIndexMovesMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.still = true
	plain := w.store
	store := &overtaken{Store: plain}
	w.store = store
	in := w.start()
	ada := in.people("ada")[0]

	var v delivery.BlobView
	check(t, ada.json(delivery.RouteUpload, delivery.BlobRequest{Size: 10}, &v))
	_, err := w.blobs.Append(t.Context(), v.ID, 0, strings.NewReader("0123456789"))
	check(t, err)
	store.first = func(id delivery.BlobID) error { return plain.AdvanceBlob(t.Context(), id, 0, 7) }
	if s := ada.state(t, v.ID); s.Received != 7 { // as the other one found it
		t.Errorf("%+v", s)
	}
	if s := ada.state(t, v.ID); s.Received != 10 {
		t.Errorf("%+v", s)
	}

	lost := delivery.BlobID{7}
	_, err = w.blobs.Append(t.Context(), lost, 0, strings.NewReader("found"))
	check(t, err)
	theirs := delivery.BlobMeta{ID: lost, Owner: identity.DeviceID{}, Size: 5, Received: 5, CreatedMS: 1}
	store.first = func(delivery.BlobID) error { return plain.CreateBlob(t.Context(), theirs, 100) }
	if m, err := in.adopt(t.Context(), lost); err != nil || m != theirs {
		t.Errorf("%+v %v", m, err)
	}
}
