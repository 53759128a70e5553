package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/askucher/compax-core/delivery"
)

// Connection is an open socket past its first frame.
type Connection struct {
	socket Socket
	Ready  delivery.Ready
}

// Connect opens the socket and says hello. What is appended after it returns is
// rung for; what was appended before is read from the log. A refusal in the
// service's [delivery.End] frame comes back as [*delivery.Error]; with
// [delivery.CodeLogIn] the session was dropped and Connect may be called again.
func (c *Client) Connect(ctx context.Context, cursors []delivery.Cursor) (*Connection, error) {
	token, err := c.admitted(ctx)
	if err != nil {
		return nil, err
	}
	_, path, _ := strings.Cut(delivery.RouteConnect, " ")
	s, err := c.Transport.Dial(ctx, c.Base+path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOffline, err)
	}
	conn := &Connection{socket: s}
	hello := delivery.AppendFrame(nil, &delivery.Hello{Token: token, Cursors: cursors})
	if err := s.Write(ctx, hello); err != nil {
		_ = s.Close() // the write's error says more
		return nil, fmt.Errorf("%w: %w", ErrOffline, err)
	}
	frame, err := conn.Receive(ctx)
	if delivery.CodeOf(err) == delivery.CodeLogIn {
		c.dropToken(token)
	}
	if err != nil {
		_ = s.Close() // the first error says more
		return nil, err
	}
	ready, ok := frame.(*delivery.Ready)
	if !ok {
		_ = s.Close() // the answer says more
		return nil, fmt.Errorf("%w: %T answers Hello", ErrGarbage, frame)
	}
	conn.Ready = *ready
	return conn, nil
}

// Receive waits for the next frame: *delivery.EntryFrame, *Gap, *MailFrame,
// *Ephemeral or *Drain. Frames of later protocol versions are passed over.
// [delivery.End] becomes an error; afterwards the connection is of no use.
func (c *Connection) Receive(ctx context.Context) (any, error) {
	for {
		b, err := c.socket.Read(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOffline, err)
		}
		frame, err := delivery.ParseFrame(b)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrGarbage, err)
		}
		switch f := frame.(type) {
		case nil, *delivery.Hello:
			continue
		case *delivery.End:
			return nil, delivery.Problem{Code: f.Code, Status: f.Code.Status(), Detail: f.Detail}.Err()
		}
		return frame, nil
	}
}

// SendEphemeral relays presence or typing to the room's other sockets.
func (c *Connection) SendEphemeral(ctx context.Context, e delivery.Ephemeral) error {
	if err := c.socket.Write(ctx, delivery.AppendFrame(nil, &e)); err != nil {
		return fmt.Errorf("%w: %w", ErrOffline, err)
	}
	return nil
}

// Close ends the connection; Receive returns.
func (c *Connection) Close() error { return c.socket.Close() }
