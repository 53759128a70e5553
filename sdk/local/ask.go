package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// errMoved: the owner is about to end; the call goes to the next one.
var errMoved = errors.New("sdk/local: the owner ends")

// patient is a connection to an owner that waits for it no longer than patience.
type patient struct {
	net.Conn
	patience time.Duration
}

// Read waits in two halves: to a process that was stopped itself a deadline has passed
// when it goes on, although what it waits for is there.
func (p patient) Read(b []byte) (n int, err error) {
	for range 2 {
		if err := p.SetReadDeadline(time.Now().Add(p.patience / 2)); err != nil {
			return 0, err
		}
		if n, err = p.Conn.Read(b); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	return 0, p.busy()
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(p.patience)); err != nil {
		return 0, err
	}
	n, err := p.Conn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = p.busy()
	}
	return n, err
}

func (p patient) busy() error { return fmt.Errorf("%w (for %v)", ErrBusy, p.patience) }

// ask carries one call over a fresh connection, which it closes.
func ask[Req, Resp, Event any](ctx context.Context, conn patient, name string, req Req, resp *Resp, event func(Event) error) error {
	defer conn.Close()
	// A context that ends closes the connection: that is how the owner learns it.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	raw, err := json.Marshal(req)
	if err != nil {
		return fmt.Errorf("sdk/local: encode a request: %w", err)
	}
	if err := writeFrame(conn, frameHello, hello{protocol, name, raw, conn.patience.Milliseconds()}); err != nil {
		return lost(ctx, err)
	}
	for {
		t, body, err := readFrame(conn, maxAnswer)
		if err != nil {
			return lost(ctx, err)
		}
		switch t {
		case frameEvent:
			var e Event
			if err := json.Unmarshal(body, &e); err != nil {
				return fmt.Errorf("%w: event of %s: %w", ErrFrame, name, err)
			}
			err := event(e)
			if err != nil && !errors.Is(err, ErrStop) {
				return err // closing the connection, unacknowledged, tells the owner
			}
			// The last one is acknowledged too, so that the owner's cursor passes it.
			answer := taken{Stop: err != nil}
			if err := writeFrame(conn, frameTaken, answer); err != nil {
				return lost(ctx, err)
			}
		case frameDone:
			if err := json.Unmarshal(body, resp); err != nil {
				return fmt.Errorf("%w: answer to %s: %w", ErrFrame, name, err)
			}
			return nil
		case frameFailed:
			failure := new(Error)
			if err := json.Unmarshal(body, failure); err != nil {
				return fmt.Errorf("%w: refusal of %s: %w", ErrFrame, name, err)
			}
			return failure
		case frameMoved:
			return errMoved
		case frameAlive:
		default:
			return fmt.Errorf("%w: type %d", ErrFrame, t)
		}
	}
}

// taken acknowledges an event.
type taken struct {
	Stop bool `json:"stop,omitempty"` // and no more of them
}

// lost says what a broken connection means.
func lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrFrame):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}
