package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// helloTime is how long a connection may take until it has said what it wants:
// the other end is a program on this machine.
const helloTime = 10 * time.Second

// writeTime is how long a peer that is stopped may keep an answer waiting.
const writeTime = 5 * time.Second

// callTime is how long an owner that ends waits for calls which cannot move.
const callTime = 30 * time.Second

// maxCalls bounds the calls that run at once.
const maxCalls = 64

// owner serves the profile of this process to others.
type owner struct {
	profile  Profile
	closer   io.Closer
	explain  func(error) *Error
	listener net.Listener
	end      context.CancelFunc // ends ending
	ending   context.Context    // done when the owner is about to end: calls that can move do
	abandon  context.CancelFunc // ends patience
	patience context.Context    // done when no call is waited for any more
	grace    time.Duration
	wg       sync.WaitGroup // accept loop and calls
	places   chan struct{}
}

func serve(l net.Listener, p Profile, explain func(error) *Error) *owner {
	o := &owner{profile: p, explain: explain, listener: l, places: make(chan struct{}, maxCalls), grace: callTime}
	o.ending, o.end = context.WithCancel(context.Background())
	o.patience, o.abandon = context.WithCancel(context.Background())
	o.wg.Go(o.accept)
	return o
}

// close takes no more calls, hands over those that can be asked for again, and
// waits for the others, which have until grace is over.
func (o *owner) close() error {
	err := o.listener.Close() // removes the socket's file
	o.end()
	t := time.AfterFunc(o.grace, o.abandon)
	defer t.Stop()
	defer o.abandon()
	o.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (o *owner) accept() {
	for {
		conn, err := o.listener.Accept()
		if err != nil {
			return // closed, or of no more use: who comes then finds nobody
		}
		select {
		case o.places <- struct{}{}:
		case <-o.ending.Done():
			_ = conn.Close()
			return
		}
		o.wg.Go(func() {
			defer func() { <-o.places }()
			defer conn.Close()
			o.answer(conn)
		})
	}
}

// answer runs one call. A peer that breaks the protocol is hung up on.
func (o *owner) answer(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(helloTime)) // fails only on a closed connection
	t, body, err := readFrame(conn, maxRequest)
	if err != nil || t != frameHello {
		return
	}
	var h hello
	if json.Unmarshal(body, &h) != nil {
		return
	}
	run, known := calls[h.Call]
	if h.Protocol != protocol || !known {
		o.reply(conn, nil, fmt.Errorf("%w: end it, or use the program that it runs", ErrVersion))
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	c := &caller{conn: conn, patience: min(time.Duration(max(h.Patience, 0))*time.Millisecond, time.Hour), acks: make(chan taken)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(o.patience, cancel)()
	reader := make(chan struct{})
	go func() { defer close(reader); c.read(ctx, cancel) }()
	defer func() { _ = conn.Close(); <-reader }()
	var lives sync.WaitGroup
	defer lives.Wait()
	over, stop := context.WithCancel(ctx)
	defer stop()
	if c.patience > 0 {
		lives.Go(func() { c.live(over) })
	}
	if moves[h.Call] {
		defer context.AfterFunc(o.ending, cancel)()
	}
	resp, err := run(ctx, o.profile, h.Request, func(e any) error { return c.event(ctx, e) })
	if err != nil && ctx.Err() != nil && o.ending.Err() != nil && moves[h.Call] {
		_ = c.write(frameMoved, nil) // to nobody, when the peer has gone
		return
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	o.reply(conn, resp, err)
}

// moves are the calls that an ending owner breaks off: they lose nothing by it,
// and may last as long as they like.
var moves = map[string]bool{callListen.name: true, callSend.name: true, callGet.name: true}

// reply writes the answer; a peer that has gone does not read it.
func (o *owner) reply(conn net.Conn, resp any, err error) {
	_ = conn.SetWriteDeadline(time.Now().Add(writeTime)) // fails only on a closed connection
	if err == nil {
		err = writeFrame(conn, frameDone, resp)
		if err == nil {
			return
		}
	}
	_ = writeFrame(conn, frameFailed, o.explain(err))
}

// caller is the peer of one call.
type caller struct {
	conn     net.Conn
	patience time.Duration // of the peer
	acks     chan taken

	writing sync.Mutex // held while a frame is written, so that they do not mix
	asked   bool       // guarded by writing: an event was given and not taken
}

func (c *caller) write(t frameType, v any) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeTime)) // fails only on a closed connection
	return writeFrame(c.conn, t, v)
}

// aliveTime is how long a peer without room for five bytes is waited for: it is
// stopped, and does not wait for them.
const aliveTime = 50 * time.Millisecond

// live tells the peer all the time that this process runs, unless it is the peer's
// turn.
func (c *caller) live(ctx context.Context) {
	t := time.NewTicker(max(c.patience/4, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if !c.alive() {
			return
		}
	}
}

// alive reports whether there is somebody to say it to.
func (c *caller) alive() bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.asked {
		return true
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(aliveTime))
	n, err := c.conn.Write(appendFrame(nil, frameAlive, nil))
	if n > 0 && err != nil {
		_ = c.conn.Close() // half a frame: nothing can follow it
	}
	return err == nil || n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// read hands on acknowledgements until the peer goes, which cancels the call.
func (c *caller) read(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	for {
		t, body, err := readFrame(c.conn, maxRequest)
		var ack taken
		if err != nil || t != frameTaken || json.Unmarshal(body, &ack) != nil {
			return
		}
		select {
		case c.acks <- ack:
		case <-ctx.Done():
			return
		}
	}
}

// give writes an event, after which it is the peer's turn.
func (c *caller) give(e any) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.asked = true
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeTime))
	return writeFrame(c.conn, frameEvent, e)
}

// event gives the peer one event and waits until it has taken it.
func (c *caller) event(ctx context.Context, e any) error {
	if err := c.give(e); err != nil {
		return fmt.Errorf("%w: %w", io.ErrClosedPipe, err)
	}
	defer func() {
		c.writing.Lock()
		defer c.writing.Unlock()
		c.asked = false
	}()
	select {
	case ack := <-c.acks:
		if ack.Stop {
			return ErrStop
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
