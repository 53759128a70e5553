package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
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
	c := &caller{conn: conn, acks: make(chan taken)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(o.patience, cancel)()
	reader := make(chan struct{})
	go func() { defer close(reader); c.read(ctx, cancel) }()
	defer func() { _ = conn.Close(); <-reader }()
	if moves[h.Call] {
		defer context.AfterFunc(o.ending, cancel)()
	}
	resp, err := run(ctx, o.profile, h.Request, func(e any) error { return c.event(ctx, e) })
	if err != nil && ctx.Err() != nil && o.ending.Err() != nil && moves[h.Call] {
		_ = conn.SetWriteDeadline(time.Now().Add(writeTime))
		_ = writeFrame(conn, frameMoved, nil) // to nobody, when the peer has gone
		return
	}
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
	conn net.Conn
	acks chan taken
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

// event gives the peer one event and waits until it has taken it.
func (c *caller) event(ctx context.Context, e any) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeTime))
	if err := writeFrame(c.conn, frameEvent, e); err != nil {
		return fmt.Errorf("%w: %w", io.ErrClosedPipe, err)
	}
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
