package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// A body is read whole before anything is done about it, unless its route streams. It
// takes memory as it comes, so that what is promised and not sent takes little.

const (
	// freeBody costs no more than the connection that it comes on, and is not counted.
	freeBody = 4 << 10
	// smallBody is an AppendRequest with a text of the longest and all the blobs that
	// an entry refers to.
	smallBody = delivery.MaxText + 16*delivery.MaxAppendBlobs + 64
	// bodyGrows is by how much the memory for a longer body grows when it is full.
	bodyGrows = 8
	// bodyPiece is how much of a body gives it as much time as it had for its first byte.
	bodyPiece = 4 << 20
	busyRetry = 2 * time.Second
)

// readBody reads the body within its bound and the budgets.
func (s *Server) readBody(c *call, limit int64) error {
	size := c.r.ContentLength
	switch {
	case c.r.Body == nil, size == 0:
		return nil
	case size > limit:
		return delivery.Refuse(delivery.CodeTooLarge, fmt.Sprintf("the body has %d bytes, at most %d here", size, limit))
	case size < 0:
		size = limit + 1 // of which one shows that it is too long
	}
	b := make([]byte, 0, min(size, freeBody))
	ends := time.Now().Add(s.Patience.Body) // guard has said so, too
	for given := bodyPiece; int64(len(b)) < size; {
		if len(b) == cap(b) {
			var err error
			if b, err = s.grow(c, b, size); err != nil {
				return err
			}
			if len(b) <= freeBody { // it may have waited for its turn
				ends = time.Now().Add(s.Patience.Body)
				c.bodyUntil(ends)
			}
		}
		n, err := c.r.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) && (c.r.ContentLength < 0 || int64(len(b)) == size) {
			break
		}
		if err != nil {
			return readFault(err)
		}
		for ; len(b) >= given; given += bodyPiece {
			ends = ends.Add(s.Patience.Body)
			c.bodyUntil(ends)
		}
	}
	if int64(len(b)) > limit {
		return delivery.Refuse(delivery.CodeTooLarge, fmt.Sprintf("the body has more than %d bytes", limit))
	}
	c.bodyUntil(time.Time{}) // net/http goes on reading, to see the caller leave
	c.body = b
	return nil
}

// grow gives a body that is full more memory, of at most size bytes in all.
func (s *Server) grow(c *call, b []byte, size int64) ([]byte, error) {
	more := held{s.bodies, s.holder(c), min(size, bodyGrows*int64(cap(b)))}
	if cap(b) <= freeBody {
		more.budget, more.bytes = s.text, min(size, smallBody)
		if err := more.budget.wait(c, more.who, more.bytes); err != nil {
			return nil, delivery.Refuse(delivery.CodeRetry, "the request was given up")
		}
	} else if !more.budget.try(more.who, more.bytes) {
		return nil, errBusy
	}
	b = append(make([]byte, 0, more.bytes), b...)
	c.holds.release(0)
	c.holds = more
	return b, nil
}

// bodyUntil says until when the body, or its next piece, has to come.
func (c *call) bodyUntil(at time.Time) {
	// It fails only where no deadline can be set, as in tests without a socket.
	if g, ok := c.w.(*guarded); ok {
		g.extend() // for the 100 Continue that may stand before the body
		_ = g.control.SetReadDeadline(at)
	}
}

// readFault says why a body was not read to its end.
func readFault(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return delivery.Refuse(delivery.CodeRetry, "the body came too slowly")
	}
	return delivery.Refuse(delivery.CodeBadRequest, "the body ends early or cannot be read")
}

// readJSON decodes the body: one object, known fields only, nothing behind it.
func (c *call) readJSON(v any) error {
	d := json.NewDecoder(bytes.NewReader(c.body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return bad("the body is not the JSON object of this route")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad("something follows the JSON object")
	}
	return nil
}
