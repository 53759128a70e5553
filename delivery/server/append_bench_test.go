package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// The three levels of an append: BenchmarkStoreAppend is the store alone,
// BenchmarkAppendHandler the service without a connection, BenchmarkAppendHTTP
// (load_test.go) all of it.

// bareAnswer is the least that a handler can write to.
type bareAnswer struct {
	header http.Header
	status int
	body   []byte
}

func (a *bareAnswer) Header() http.Header { return a.header }
func (a *bareAnswer) WriteHeader(s int)   { a.status = s }
func (a *bareAnswer) Write(b []byte) (int, error) {
	a.body = append(a.body[:0], b...)
	return len(b), nil
}

// A connection has deadlines.
func (a *bareAnswer) SetReadDeadline(time.Time) error  { return nil }
func (a *bareAnswer) SetWriteDeadline(time.Time) error { return nil }

// handled appends by the handler alone, each time an entry that is new.
type handled struct {
	request *http.Request
	body    []byte
	count   []byte // within body
	answer  bareAnswer
	handler http.Handler
	n       uint64
}

func newHandled(tb testing.TB) *handled {
	w := newWorld(tb)
	w.config.Limits.Work.Off = true
	w.config.Limits.Buckets = map[string]Bucket{"room": {}}
	in := w.start()
	m := in.member(newPerson("Ada").attest(tb, "laptop"))
	room := m.create(delivery.RoomGroup)
	mark := bytes.Repeat([]byte{0xa5}, 8)
	message := wire.MLSMessage{WireFormat: wire.WireFormatPrivateMessage, PrivateMessage: &wire.PrivateMessage{
		GroupID: room[:], ContentType: wire.ContentTypeApplication, EncryptedSenderData: make([]byte, 12), Ciphertext: append(make([]byte, loadEntry-88), mark...),
	}}
	h := &handled{handler: in.Handler(), answer: bareAnswer{header: http.Header{}}}
	h.body = (&delivery.AppendRequest{Entry: wire.Marshal(&message)}).AppendTo(nil)
	at := bytes.Index(h.body, mark)
	h.count = h.body[at : at+8]
	request, err := http.NewRequest(http.MethodPost, "/v1/rooms/"+room.String()+"/append", nil)
	check(tb, err)
	request.Header.Set("Authorization", "Bearer "+m.token)
	h.request = request
	return h
}

func (h *handled) append(tb testing.TB) {
	h.n++
	binary.BigEndian.PutUint64(h.count, h.n)
	r := *h.request
	r.ContentLength = int64(len(h.body))
	r.Body = io.NopCloser(bytes.NewReader(h.body))
	h.answer.status = http.StatusOK
	h.handler.ServeHTTP(&h.answer, &r)
	if h.answer.status != http.StatusOK {
		tb.Fatalf("%d %s", h.answer.status, h.answer.body)
	}
}

func BenchmarkAppendHandler(b *testing.B) {
	h := newHandled(b)
	b.ReportAllocs()
	for b.Loop() {
		h.append(b)
	}
}

// storeAppend is what the handler asks of the store for one entry.
func storeAppend(tb testing.TB, s delivery.Store, room delivery.RoomID, n uint64, body []byte) {
	binary.BigEndian.PutUint64(body, n)
	hash := sha256.Sum256(body)
	err := s.WithRoom(tb.Context(), room, func(tx delivery.RoomTx) error {
		if _, found, err := tx.Duplicate(benchDevice, hash); err != nil || found {
			return err
		}
		if _, err := tx.Proposals(); err != nil {
			return err
		}
		_, err := tx.Append(delivery.NewEntry{Device: benchDevice, Hash: hash, Kind: delivery.KindApplication, AcceptedMS: 1, Bytes: body})
		return err
	})
	check(tb, err)
}

var benchDevice = identity.DeviceID{1, 2, 3}

func aRoom(tb testing.TB) (delivery.Store, delivery.RoomID) {
	s, room := newWorld(tb).store, delivery.RoomID{1}
	check(tb, s.CreateRoom(tb.Context(), delivery.NewRoom{ID: room, Kind: delivery.RoomGroup, CreatedMS: 1, State: []byte{1}, GroupInfo: []byte{1}}))
	return s, room
}

func BenchmarkStoreAppend(b *testing.B) {
	s, room := aRoom(b)
	body, n := make([]byte, loadEntry), uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		n++
		storeAppend(b, s, room, n, body)
	}
}

// What an append may allocate; 21 and 47 when this was written.
const storeAllocations, handlerAllocations = 25, 54

// TestAppendAllocations bounds what an append allocates, its share of the commit
// included: what comes on top is work for every message.
func TestAppendAllocations(t *testing.T) {
	s, room := aRoom(t)
	body, n := make([]byte, loadEntry), uint64(0)
	store := testing.AllocsPerRun(300, func() { n++; storeAppend(t, s, room, n, body) })
	h := newHandled(t)
	handler := testing.AllocsPerRun(300, func() { h.append(t) })
	if store > storeAllocations || handler > handlerAllocations {
		t.Errorf("the store's append allocates %.0f times, the handler's %.0f; at most %d and %d are expected", store, handler, storeAllocations, handlerAllocations)
	}
}
