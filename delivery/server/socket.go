package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/askucher/compax-core/delivery"
)

// A socket is a doorbell. One goroutine reads what the device sends, one writes
// and is the only one that does. Between the bus and the writer stands a
// bounded queue; when it overflows, all of it is dropped and each room that
// lost something gets a Gap: the log is the truth.

const (
	pingTime   = 30 * time.Second
	writeTime  = 20 * time.Second
	lookTime   = 2 * time.Minute // how long a lost hint may delay an entry
	maxQueue   = 128             // frames
	maxQueued  = 1 << 20         // bytes of entries in them
	maxCarried = delivery.MaxText + 4<<10
	maxHello   = 256 << 10
	maxUp      = delivery.MaxEphemeral + 256
)

type socket struct {
	s      *Server
	conn   *websocket.Conn
	device delivery.ConnectedDevice
	token  string
	hash   [32]byte // of token

	wake   chan struct{}  // the writer has something to do
	asking sync.WaitGroup // pings under way

	mu    sync.Mutex // guards the fields below; never held while writing
	queue []queued
	bytes int
	gaps  map[delivery.RoomID]uint64 // rooms that lost frames: read after
	mail  bool
	end   *delivery.End // the last frame, then close
	drain *delivery.Drain
	pongs int                        // pings that are not answered
	rung  map[delivery.RoomID]uint64 // seq up to which each room was rung for
}

// queued is an entry or an ephemeral frame that waits for the writer.
type queued struct {
	room  delivery.RoomID
	entry *delivery.Entry
	frame []byte // instead of entry
}

// connect upgrades and serves a socket until it ends. A browser of any origin
// may open one: nothing is granted before the first frame, which carries the
// token, and no cookie is looked at.
func (s *Server) connect(c *call) error {
	if s.draining.Load() {
		return &delivery.Error{Code: delivery.CodeRetry, Detail: "this instance is stopping", RetryAfter: time.Second}
	}
	conn, err := websocket.Accept(c.w, c.r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return nil // Accept has answered
	}
	defer func() { _ = conn.CloseNow() }()
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context))
	defer cancel()
	k := &socket{s: s, conn: conn, wake: make(chan struct{}, 1)}
	hello, err := k.hello(ctx)
	if err != nil {
		k.refuse(ctx, s.refusal(c, err))
		return nil
	}
	k.serve(ctx, cancel, hello)
	return nil
}

func (k *socket) hello(ctx context.Context) (*delivery.Hello, error) {
	ctx, cancel := context.WithTimeout(ctx, k.s.Patience.Hello)
	defer cancel()
	k.conn.SetReadLimit(maxHello)
	frame, err := k.read(ctx)
	if err != nil {
		return nil, bad("no Hello within ten seconds")
	}
	hello, ok := frame.(*delivery.Hello)
	if !ok {
		return nil, bad("the first frame is not Hello")
	}
	found, err := k.s.lookup(ctx, hello.Token)
	if err != nil {
		return nil, err
	}
	k.token, k.hash = hello.Token, found.token
	k.device = delivery.ConnectedDevice{Device: found.session.Device.ID, Identity: found.session.Device.Identity}
	k.conn.SetReadLimit(maxUp)
	return hello, nil
}

func (k *socket) read(ctx context.Context) (any, error) {
	kind, data, err := k.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	if kind != websocket.MessageBinary {
		return nil, errors.New("server: a text message on a socket")
	}
	return delivery.ParseFrame(data)
}

// refuse says why before anything was attached.
func (k *socket) refuse(ctx context.Context, e *delivery.Error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	end := delivery.End{Code: e.Code, Detail: e.Detail}
	_ = k.conn.Write(ctx, websocket.MessageBinary, delivery.AppendFrame(nil, &end)) // it may be gone
	_ = k.conn.Close(websocket.StatusPolicyViolation, string(e.Code))
}

// serve attaches first and answers then: nothing appended after Ready goes unrung.
func (k *socket) serve(ctx context.Context, cancel context.CancelFunc, hello *delivery.Hello) {
	detach, err := k.s.Bus.Attach(k.device.Device, k.hint)
	if err != nil {
		k.s.failed("attaching a socket", err)
		k.refuse(ctx, delivery.Refuse(delivery.CodeRetry, "the service could not attach the socket"))
		return
	}
	defer detach()
	if err := k.s.sockets.add(k); err != nil {
		k.refuse(ctx, err)
		return
	}
	defer k.s.sockets.remove(k)
	// A revocation between lookup and Attach rang for nobody: look again.
	k.s.sessions.drop(k.hash)
	if _, err := k.s.lookup(ctx, k.token); err != nil {
		k.refuse(ctx, delivery.Refuse(delivery.CodeLogIn, "the session ended"))
		return
	}
	ready := delivery.Ready{TimeMS: k.s.nowMS(), PingSeconds: uint32(pingTime / time.Second)}
	if err := k.write(ctx, delivery.AppendFrame(nil, &ready)); err != nil {
		return
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		defer cancel()
		k.writeLoop(ctx)
	})
	k.catchUp(ctx, hello.Cursors)
	k.readLoop(ctx)
	cancel()
	writer.Wait()
	k.asking.Wait()
}

// catchUp rings for the rooms whose log is past the device's cursor.
func (k *socket) catchUp(ctx context.Context, cursors []delivery.Cursor) {
	if len(cursors) == 0 {
		return
	}
	heads, err := k.s.store.HeadsOf(ctx, k.device.Device)
	if err != nil {
		k.s.failed("reading how far a device's rooms are", err)
		return
	}
	for _, c := range cursors {
		head, in := heads[c.Room]
		if !in {
			continue
		}
		delete(heads, c.Room) // a room counts once, however often it is named
		if head > c.After {
			k.gap(c.Room, c.After)
			k.ringing(c.Room, head)
		} else {
			k.ringing(c.Room, c.After)
		}
	}
}

// ringing notes that the device was told of a room up to a seq.
func (k *socket) ringing(room delivery.RoomID, seq uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.note(room, seq)
}

// note is ringing with k.mu held.
func (k *socket) note(room delivery.RoomID, seq uint64) {
	if k.rung == nil {
		k.rung = map[delivery.RoomID]uint64{}
	}
	k.rung[room] = max(k.rung[room], seq)
}

// look reads what hints may have failed to say: rooms whose log is past what the
// device was rung for. A room that is seen for the first time begins here.
func (k *socket) look(ctx context.Context) {
	heads, err := k.s.store.HeadsOf(ctx, k.device.Device)
	if err != nil {
		k.s.failed("reading how far a device's rooms are", err)
		return
	}
	for room, head := range heads {
		k.mu.Lock()
		told, known := k.rung[room]
		k.note(room, head)
		missed := known && head > told
		if missed {
			k.behind(room, told)
		}
		k.mu.Unlock()
		if missed {
			k.s.metrics.missed.Inc()
			k.rouse()
		}
	}
}

func (k *socket) readLoop(ctx context.Context) {
	for {
		frame, err := k.read(ctx)
		if err != nil {
			return
		}
		e, ok := frame.(*delivery.Ephemeral)
		if !ok {
			if frame == nil {
				continue // of a later protocol
			}
			k.finish(delivery.CodeBadRequest, "a device sends Ephemeral after Hello and nothing else")
			continue
		}
		k.s.ephemeral(ctx, k.device, e)
	}
}

// hint is called by the bus and returns at once.
func (k *socket) hint(h delivery.Hint) {
	switch h.Kind {
	case delivery.HintEntry:
		if h.Entry == nil || len(h.Entry.Bytes) > maxQueued {
			k.ringing(h.Room, h.Seq)
			k.gap(h.Room, h.Seq-1)
			return
		}
		k.push(queued{room: h.Room, entry: h.Entry})
	case delivery.HintEphemeral:
		k.push(queued{room: h.Room, frame: h.Payload})
	case delivery.HintMail:
		k.mu.Lock()
		k.mail = true
		k.mu.Unlock()
		k.rouse()
	case delivery.HintRevoked:
		k.s.sessions.forget(k.device.Device)
		k.finish(delivery.CodeRevoked, "this device was revoked by its owner")
	case delivery.HintSessions:
		k.s.sessions.forget(k.device.Device)
		k.s.later(context.Background(), k.checkSession)
	}
}

func (k *socket) checkSession(ctx context.Context) {
	if _, err := k.s.lookup(ctx, k.token); delivery.CodeOf(err) == delivery.CodeLogIn {
		k.finish(delivery.CodeLogIn, "the session ended")
	}
}

func (k *socket) push(q queued) {
	k.mu.Lock()
	defer k.rouse()
	defer k.mu.Unlock()
	if q.entry != nil {
		k.note(q.room, q.entry.Seq)
	}
	if _, behind := k.gaps[q.room]; behind && q.entry != nil {
		k.s.metrics.dropped.WithLabelValues("gap").Inc()
		return // the log is read after the gap anyway
	}
	size := len(q.frame)
	if q.entry != nil && len(q.entry.Bytes) <= maxCarried {
		size = len(q.entry.Bytes)
	}
	if len(k.queue) >= maxQueue || k.bytes+size > maxQueued {
		if q.entry == nil {
			k.s.metrics.dropped.WithLabelValues("ephemeral").Inc()
			return
		}
		k.overflow()
		k.lose(q)
		return
	}
	k.queue = append(k.queue, q)
	k.bytes += size
}

// overflow drops the queue and notes what each room lost. k.mu is held.
func (k *socket) overflow() {
	k.s.metrics.dropped.WithLabelValues("slow").Add(float64(len(k.queue)))
	for _, q := range k.queue {
		k.lose(q)
	}
	k.queue, k.bytes = nil, 0
}

// lose notes a gap for an entry that is not sent. k.mu is held.
func (k *socket) lose(q queued) {
	if q.entry != nil {
		k.behind(q.room, q.entry.Seq-1)
	}
}

func (k *socket) behind(room delivery.RoomID, after uint64) {
	if k.gaps == nil {
		k.gaps = map[delivery.RoomID]uint64{}
	}
	if old, known := k.gaps[room]; !known || after < old {
		k.gaps[room] = after
	}
}

func (k *socket) gap(room delivery.RoomID, after uint64) {
	k.mu.Lock()
	k.behind(room, after)
	k.mu.Unlock()
	k.rouse()
}

// finish ends the socket once the frame that says why is out.
func (k *socket) finish(code delivery.Code, detail string) {
	k.mu.Lock()
	if k.end == nil {
		k.end = &delivery.End{Code: code, Detail: detail}
	}
	k.mu.Unlock()
	k.rouse()
}

func (k *socket) askToLeave(within time.Duration) {
	k.mu.Lock()
	k.drain = &delivery.Drain{WithinMS: uint32(within.Milliseconds())}
	k.mu.Unlock()
	k.rouse()
}

func (k *socket) rouse() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *socket) writeLoop(ctx context.Context) {
	ping := time.NewTicker(pingTime)
	defer ping.Stop()
	look := time.NewTicker(lookTime)
	defer look.Stop()
	var buffer []byte
	for {
		select {
		case <-ctx.Done():
			return
		case <-ping.C:
			if !k.ping(ctx) {
				return
			}
		case <-look.C:
			k.s.later(ctx, k.look)
		case <-k.wake:
			ok := false
			if buffer, ok = k.flush(ctx, buffer); !ok {
				return
			}
		}
		if cap(buffer) > 64<<10 {
			buffer = nil
		}
	}
}

// flush writes what waits, entries before gaps; false ends the socket.
func (k *socket) flush(ctx context.Context, buffer []byte) ([]byte, bool) {
	for {
		k.mu.Lock()
		queue, gaps, mail, end, drain := k.queue, k.gaps, k.mail, k.end, k.drain
		k.queue, k.bytes, k.gaps, k.mail, k.drain = nil, 0, nil, false, nil
		k.mu.Unlock()
		if end != nil {
			// Whoever is told to go is not told anything else.
			_ = k.write(ctx, delivery.AppendFrame(buffer[:0], end)) // it may be gone
			_ = k.conn.Close(websocket.StatusPolicyViolation, string(end.Code))
			return buffer, false
		}
		if len(queue) == 0 && len(gaps) == 0 && !mail && drain == nil {
			return buffer, true
		}
		var frames int
		send := func(frame any) bool {
			buffer = delivery.AppendFrame(buffer[:0], frame)
			frames++
			return k.write(ctx, buffer) == nil
		}
		if drain != nil && !send(drain) {
			return buffer, false
		}
		for _, q := range queue {
			if q.entry == nil {
				frames++
				if k.write(ctx, q.frame) != nil {
					return buffer, false
				}
				continue
			}
			f := delivery.EntryFrame{Room: q.room, Entry: *q.entry}
			if len(f.Entry.Bytes) > maxCarried {
				f.Entry.Bytes = nil
			}
			if !send(&f) {
				return buffer, false
			}
		}
		for room, after := range gaps {
			if !send(&delivery.Gap{Room: room, From: after}) {
				return buffer, false
			}
		}
		if mail && !send(&delivery.MailFrame{}) {
			return buffer, false
		}
		k.s.metrics.sent.Add(float64(frames))
	}
}

func (k *socket) write(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	return k.conn.Write(ctx, websocket.MessageBinary, frame)
}

// ping asks whether the other end lives, and the store whether the session
// does: a hint that was lost costs at most this long. Two pings without an
// answer end the socket.
func (k *socket) ping(ctx context.Context) bool {
	k.mu.Lock()
	k.pongs++
	missed := k.pongs
	k.mu.Unlock()
	if missed > 2 {
		k.s.metrics.dropped.WithLabelValues("dead").Inc()
		return false
	}
	k.asking.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, 2*pingTime)
		defer cancel()
		if k.conn.Ping(ctx) == nil {
			k.mu.Lock()
			k.pongs = 0
			k.mu.Unlock()
		}
		k.checkSession(ctx)
	})
	return true
}
