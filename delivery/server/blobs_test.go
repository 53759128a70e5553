package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
)

func (d *device) upload(id delivery.BlobID, offset int64, body io.Reader) (delivery.BlobView, error) {
	method, target := path(delivery.RouteUploadTo, id.String())
	var v delivery.BlobView
	req, err := http.NewRequest(method, d.at.http.URL+target, body)
	if err != nil {
		return v, err
	}
	req.Header.Set("Authorization", "Bearer "+d.token)
	req.Header.Set(delivery.HeaderOffset, fmt.Sprint(offset))
	raw, err := do(req)
	if err != nil {
		return v, err
	}
	return v, unmarshal(raw, &v)
}

// blob uploads bytes whole.
func (d *device) blob(t testing.TB, data []byte) delivery.BlobID {
	t.Helper()
	var v delivery.BlobView
	check(t, d.json(delivery.RouteUpload, delivery.BlobRequest{Size: int64(len(data))}, &v))
	got, err := d.upload(v.ID, 0, bytes.NewReader(data))
	check(t, err)
	if got.Received != int64(len(data)) {
		t.Fatalf("%+v", got)
	}
	return v.ID
}

func (d *device) state(t testing.TB, id delivery.BlobID) delivery.BlobView {
	t.Helper()
	var v delivery.BlobView
	check(t, d.json(delivery.RouteBlobState, nil, &v, id.String()))
	return v
}

func TestUploadInPieces(t *testing.T) {
	in := newWorld(t).start()
	ada, eve := in.enrolled("ada"), in.enrolled("eve")
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB
	var v delivery.BlobView
	check(t, ada.json(delivery.RouteUpload, delivery.BlobRequest{Size: int64(len(data))}, &v))
	_, err := eve.upload(v.ID, 0, bytes.NewReader(data))
	wantCode(t, err, delivery.CodeNotFound)
	_, err = ada.upload(v.ID, 5, bytes.NewReader(data[5:]))
	wantCode(t, err, delivery.CodeConflict)
	got, err := ada.upload(v.ID, 0, bytes.NewReader(data[:1000]))
	check(t, err)
	if got.Received != 1000 {
		t.Fatalf("%+v", got)
	}
	_, err = ada.call(delivery.RouteBlob, nil, "", v.ID.String())
	wantCode(t, err, delivery.CodeConflict) // not complete
	_, err = ada.upload(v.ID, 0, bytes.NewReader(data))
	if e := wantCode(t, err, delivery.CodeConflict); e.Seq != 1000 {
		t.Errorf("the refusal names offset %d", e.Seq)
	}
	_, err = ada.upload(v.ID, 1000, bytes.NewReader(append(bytes.Clone(data[1000:]), 0)))
	wantCode(t, err, delivery.CodeTooLarge)
	if s := ada.state(t, v.ID); s.Received != int64(len(data)) {
		t.Errorf("%+v", s)
	}
	whole, err := ada.call(delivery.RouteBlob, nil, "", v.ID.String())
	check(t, err)
	if !bytes.Equal(whole, data) {
		t.Error("other bytes came back")
	}
	_, err = eve.call(delivery.RouteBlob, nil, "", v.ID.String())
	wantCode(t, err, delivery.CodeNotFound)
}

// TestUploadSurvivesABrokenConnection: what arrived counts, and the device goes
// on from there.
func TestUploadSurvivesABrokenConnection(t *testing.T) {
	in := newWorld(t).start()
	ada := in.enrolled("ada")
	var v delivery.BlobView
	check(t, ada.json(delivery.RouteUpload, delivery.BlobRequest{Size: 100_000}, &v))
	conn, err := net.Dial("tcp", strings.TrimPrefix(in.http.URL, "http://"))
	check(t, err)
	_, err = fmt.Fprintf(conn, "PATCH /v1/blobs/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nUpload-Offset: 0\r\nContent-Length: 100000\r\n\r\n%s", v.ID, ada.token, strings.Repeat("x", 40_000))
	check(t, err)
	check(t, conn.(*net.TCPConn).CloseWrite())
	_, _ = io.ReadAll(conn)
	check(t, conn.Close())
	s := ada.state(t, v.ID)
	got, err := ada.upload(v.ID, s.Received, strings.NewReader(strings.Repeat("x", int(100_000-s.Received))))
	check(t, err)
	if got.Received != 100_000 {
		t.Errorf("%+v", got)
	}
}

// TestIndexCatchesUpWithTheMedium: a crash between the bytes and the index.
func TestIndexCatchesUpWithTheMedium(t *testing.T) {
	in := newWorld(t).start()
	ada := in.enrolled("ada")
	var v delivery.BlobView
	check(t, ada.json(delivery.RouteUpload, delivery.BlobRequest{Size: 10}, &v))
	_, err := in.w.blobs.Append(context.Background(), v.ID, 0, strings.NewReader("01234"))
	check(t, err)
	if s := ada.state(t, v.ID); s.Received != 5 {
		t.Fatalf("%+v", s)
	}
	got, err := ada.upload(v.ID, 5, strings.NewReader("56789"))
	check(t, err)
	if got.Received != 10 {
		t.Errorf("%+v", got)
	}
}

func TestBlobRanges(t *testing.T) {
	in := newWorld(t).start()
	ada := in.enrolled("ada")
	id := ada.blob(t, []byte("0123456789"))
	for header, want := range map[string]string{"bytes=2-4": "234", "bytes=7-": "789", "bytes=-2": "89", "": "0123456789"} {
		_, target := path(delivery.RouteBlob, id.String())
		req, err := http.NewRequest("GET", in.http.URL+target, nil)
		check(t, err)
		req.Header.Set("Authorization", "Bearer "+ada.token)
		if header != "" {
			req.Header.Set("Range", header)
		}
		got, err := do(req)
		check(t, err)
		if string(got) != want {
			t.Errorf("%s: %q", header, got)
		}
	}
}

// TestBlobWithoutItsBytes: of bytes that the medium has lost, all or the end, nothing is
// promised.
func TestBlobWithoutItsBytes(t *testing.T) {
	in := newWorld(t).start()
	ada := in.enrolled("ada")
	for _, left := range []string{"", "0123"} {
		id := ada.blob(t, []byte("0123456789"))
		_, err := ada.call(delivery.RouteBlob, nil, "", id.String())
		check(t, err)
		check(t, in.w.blobs.Delete(t.Context(), id))
		if left != "" {
			_, err := in.w.blobs.Append(t.Context(), id, 0, strings.NewReader(left))
			check(t, err)
		}
		_, err = ada.call(delivery.RouteBlob, nil, "", id.String())
		wantCode(t, err, delivery.CodeNotFound)
	}
}

func TestBlobLimits(t *testing.T) {
	w := newWorld(t)
	w.config.MaxBlob, w.config.MaxLooseBlobs = 1000, 1500
	in := w.start()
	ada := in.enrolled("ada")
	begin := func(size int64) error {
		return ada.json(delivery.RouteUpload, delivery.BlobRequest{Size: size}, nil)
	}
	wantCode(t, begin(0), delivery.CodeBadRequest)
	wantCode(t, begin(-1), delivery.CodeBadRequest)
	wantCode(t, begin(1001), delivery.CodeTooLarge)
	check(t, begin(1000))
	if e := wantCode(t, begin(501), delivery.CodeTooLarge); !strings.Contains(e.Detail, "at most 1500 bytes a device: send or wait") {
		t.Errorf("the refusal says %q", e.Detail)
	}
	check(t, begin(500))
	// Two days later the loose uploads are gone, rows and bytes.
	w.clock.add(looseBlobs + time.Second)
	check(t, in.Sweep(context.Background()))
	check(t, ada.login())
	check(t, begin(1000))
}

// stubborn is a medium that does not give up one blob.
type stubborn struct {
	delivery.BlobStore
	keeps delivery.BlobID
}

func (s stubborn) Delete(ctx context.Context, id delivery.BlobID) error {
	if id == s.keeps {
		return errors.New("it stays")
	}
	return s.BlobStore.Delete(ctx, id)
}

// TestABlobThatStaysHoldsUpNoOther: housekeeping goes on behind a blob that cannot
// be deleted, ends, and says so.
func TestABlobThatStaysHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	ada := in.enrolled("ada")
	ids := []delivery.BlobID{ada.blob(t, []byte("a")), ada.blob(t, []byte("b")), ada.blob(t, []byte("c"))}
	slices.SortFunc(ids, func(a, b delivery.BlobID) int { return bytes.Compare(a[:], b[:]) })
	in.Blobs = stubborn{w.blobs, ids[0]}
	w.clock.add(looseBlobs + time.Second)
	if err := in.Sweep(t.Context()); err == nil {
		t.Error("nothing is wrong")
	}
	for i, id := range ids {
		if _, err := w.blobs.Size(t.Context(), id); errors.Is(err, delivery.ErrNotFound) != (i > 0) {
			t.Errorf("blob %d: %v", i, err)
		}
	}
	in.Blobs = w.blobs
	check(t, in.Sweep(t.Context()))
	if _, err := w.blobs.Size(t.Context(), ids[0]); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
}
