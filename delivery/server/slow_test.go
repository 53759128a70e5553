package server

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// TestQueueOverflowBecomesGaps: the queue is bounded in frames and bytes; what
// it loses is named by the lowest seq of each room.
func TestQueueOverflowBecomesGaps(t *testing.T) {
	in := newWorld(t).start()
	k := &socket{s: in.Server, wake: make(chan struct{}, 1)}
	entry := func(room byte, seq uint64, size int) delivery.Hint {
		return delivery.Hint{Kind: delivery.HintEntry, Room: delivery.RoomID{room}, Seq: seq, Entry: &delivery.Entry{Seq: seq, Bytes: make([]byte, size)}}
	}
	k.hint(delivery.Hint{Kind: delivery.HintMail})
	for seq := uint64(1); seq <= maxQueue; seq++ {
		k.hint(entry(byte(seq%2), seq, 100))
	}
	if len(k.queue) != maxQueue || k.gaps != nil {
		t.Fatalf("%d queued, gaps %v", len(k.queue), k.gaps)
	}
	k.hint(entry(1, 500, 100))
	if len(k.queue) != 0 || k.gaps[delivery.RoomID{0}] != 1 || k.gaps[delivery.RoomID{1}] != 0 || len(k.gaps) != 2 || !k.mail {
		t.Fatalf("%d queued, gaps %v", len(k.queue), k.gaps)
	}
	k.hint(entry(1, 501, 100)) // read with the gap
	k.hint(entry(2, 7, 100))   // another room goes on
	if len(k.queue) != 1 || k.queue[0].room != (delivery.RoomID{2}) {
		t.Fatalf("%v", k.queue)
	}
	k = &socket{s: in.Server, wake: make(chan struct{}, 1)}
	for seq := uint64(1); seq <= 40; seq++ {
		k.hint(entry(1, seq, 60<<10))
	}
	if k.bytes > maxQueued || k.gaps[delivery.RoomID{1}] != 0 || len(k.gaps) != 1 {
		t.Errorf("%d bytes queued, gaps %v", k.bytes, k.gaps)
	}
	k.hint(delivery.Hint{Kind: delivery.HintEntry, Room: delivery.RoomID{3}, Seq: 9}) // from another instance
	if k.gaps[delivery.RoomID{3}] != 8 {
		t.Errorf("gaps %v", k.gaps)
	}
}

// pipes is a listener whose connections hold no byte: what one end writes waits
// until the other reads it.
type pipes struct{ conns chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.conns <- server
	return client, nil
}

// TestSlowSocketLosesNothing: a device that does not read its socket holds up
// nobody, and finds everything in the log.
func TestSlowSocketLosesNothing(t *testing.T) {
	w := newWorld(t)
	w.config.Limits.Work.Off = true
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	between := pipes{make(chan net.Conn, 1)}
	t.Cleanup(func() { close(between.conns) })
	go func() { _ = http.Serve(between, in.Handler()) }() // ends with the listener
	dialer := &http.Client{Transport: &http.Transport{DialContext: between.dial}}
	conn, resp, err := websocket.Dial(t.Context(), "ws://pipe/v1/connect", &websocket.DialOptions{HTTPClient: dialer})
	check(t, err)
	if resp.Body != nil {
		check(t, resp.Body.Close())
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(delivery.MaxFrame)
	check(t, conn.Write(t.Context(), websocket.MessageBinary, delivery.AppendFrame(nil, &delivery.Hello{Token: p[1].token})))
	_, _, err = conn.Read(t.Context())
	check(t, err)
	const size, n = 60 << 10, maxQueued/(60<<10) + 10 // one is being written, the others queue
	text := string(bytes.Repeat([]byte("x"), size))
	for range n {
		p[0].say(id, text)
	}
	in.work.Wait() // all have been rung for
	for last, gap := uint64(1), false; !gap; {
		_, data, err := conn.Read(t.Context())
		check(t, err)
		f, err := delivery.ParseFrame(data)
		check(t, err)
		switch f := f.(type) {
		case *delivery.EntryFrame:
			if f.Entry.Seq != last+1 {
				t.Fatalf("seq %d after %d without a gap", f.Entry.Seq, last)
			}
			last = f.Entry.Seq
		case *delivery.Gap:
			if f.Room != id || f.From > last {
				t.Fatalf("%+v after %d", f, last)
			}
			gap = true
		}
		if last == n+1 {
			t.Fatal("everything was kept in memory")
		}
	}
	p[1].sync(id)
	if got := len(p[1].in(id).texts); got != n {
		t.Errorf("%d of %d entries read", got, n)
	}
}

// deaf is a bus that loses every hint.
type deaf struct{ delivery.Bus }

func (deaf) Publish(context.Context, []identity.DeviceID, delivery.Hint) error { return nil }

// TestLostHintsAreFoundByLooking: hints may be lost; a socket reads what they
// would have said.
func TestLostHintsAreFoundByLooking(t *testing.T) {
	w := newWorld(t)
	w.bus = deaf{w.bus}
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	ring := p[1].connect(t, delivery.Cursor{Room: id, After: 1})
	p[0].say(id, "unheard")
	in.sockets.mu.Lock()
	var open []*socket
	for k := range in.sockets.open {
		open = append(open, k)
	}
	in.sockets.mu.Unlock()
	if len(open) != 1 {
		t.Fatalf("%d sockets", len(open))
	}
	open[0].look(t.Context())
	if g, ok := ring.next().(*delivery.Gap); !ok || g.Room != id || g.From != 1 {
		t.Errorf("%+v", g)
	}
	open[0].look(t.Context())
	open[0].mu.Lock()
	defer open[0].mu.Unlock()
	if len(open[0].gaps) != 0 {
		t.Errorf("rung twice: %v", open[0].gaps)
	}
}

// counting is a store that counts how often rooms' rows are read.
type counting struct {
	delivery.Store
	reads *atomic.Int64
}

func (c counting) Room(ctx context.Context, id delivery.RoomID) (delivery.Room, error) {
	c.reads.Add(1)
	return c.Store.Room(ctx, id)
}

func (c counting) HeadsOf(ctx context.Context, device identity.DeviceID) (map[delivery.RoomID]uint64, error) {
	c.reads.Add(1)
	return c.Store.HeadsOf(ctx, device)
}

// TestAttackCursorsOfOneRoom: a Hello that names one room as often as it can costs
// one look at it.
func TestAttackCursorsOfOneRoom(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "eve")
	id := group(t, p...)
	var reads atomic.Int64
	w.store = counting{w.store, &reads}
	other := w.start()
	p[1].at = other
	ring := p[1].connect(t, slices.Repeat([]delivery.Cursor{{Room: id}}, 10_000)...)
	if f, ok := ring.next().(*delivery.Gap); !ok || f.Room != id || f.From != 0 {
		t.Errorf("%+v", f)
	}
	p[0].say(id, "rung for behind the cursors")
	if f, ok := ring.next().(*delivery.EntryFrame); !ok || f.Room != id {
		t.Errorf("%+v", f)
	}
	if n := reads.Load(); n != 1 {
		t.Errorf("the room was read %d times", n)
	}
}

// departing is a store whose caller is gone once a room's change is durable.
type departing struct {
	delivery.Store
	leave context.CancelFunc
}

func (d departing) WithRoom(ctx context.Context, id delivery.RoomID, fn func(delivery.RoomTx) error) error {
	err := d.Store.WithRoom(ctx, id, fn)
	d.leave()
	return err
}

// TestASenderThatIsGoneStillRings: what is in the log is rung for, also when the
// sender's connection broke while it was written.
func TestASenderThatIsGoneStillRings(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	ring := p[1].connect(t)
	sender, err := in.store.Device(t.Context(), p[0].id())
	check(t, err)
	ctx, leave := context.WithCancel(t.Context())
	w.store = departing{w.store, leave}
	other := w.start() // its caches are empty: who is in the room is read, too
	entry, err := parseEntry(id, delivery.AppendRequest{Entry: p[0].seal(id, "and gone")})
	check(t, err)
	entry.device = sender
	acc, err := other.Append(ctx, entry)
	check(t, err)
	if ctx.Err() == nil {
		t.Fatal("the sender is still there")
	}
	if f, ok := ring.next().(*delivery.EntryFrame); !ok || f.Entry.Seq != acc.Seq {
		t.Errorf("%+v", f)
	}
}

// FuzzEntry: whatever a device appends is decoded or refused, and the bytes of
// what is decoded are accounted for.
func FuzzEntry(f *testing.F) {
	room := delivery.RoomID{1}
	private := wire.MLSMessage{WireFormat: wire.WireFormatPrivateMessage, PrivateMessage: &wire.PrivateMessage{GroupID: room[:], ContentType: wire.ContentTypeApplication, Ciphertext: []byte("x")}}
	f.Add(wire.Marshal(&private), []byte{}, []byte{})
	public := wire.MLSMessage{WireFormat: wire.WireFormatPublicMessage, PublicMessage: &wire.PublicMessage{Content: wire.FramedContent{
		GroupID: room[:], Sender: wire.Sender{SenderType: wire.SenderTypeMember}, ContentType: wire.ContentTypeCommit, Commit: &wire.Commit{},
	}}}
	f.Add(wire.Marshal(&public), []byte{0, 1, 0, 4}, []byte{0, 1, 0, 3})
	f.Fuzz(func(t *testing.T, entry, info, welcome []byte) {
		in, err := parseEntry(room, delivery.AppendRequest{Entry: entry, GroupInfo: info, Welcome: welcome})
		if err != nil {
			if delivery.CodeOf(err) != delivery.CodeBadRequest {
				t.Errorf("refused with %v", err)
			}
			return
		}
		if in.kind == delivery.KindCommit && in.info == nil || in.kind != delivery.KindCommit && (in.info != nil || in.welcome != nil) {
			t.Errorf("%+v", in)
		}
	})
}
