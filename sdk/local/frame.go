package local

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// The conversation. One connection carries one call.
//
//	client: hello{version, call, request, patience}
//	owner:  alive             every quarter of the client's patience
//	owner:  event{…}          any number, of calls that stream
//	client: taken             after each event; the owner waits for it
//	owner:  done{answer} | failed{error} | moved
//
// A client that closes its end cancels the call. "moved" says that the owner is
// about to end and that nothing of the call is lost: it is asked for again, by
// the client itself as the next owner or of whoever is faster.
//
// An owner from which nothing comes for the client's patience was stopped or hangs:
// the client goes. While the owner waits for "taken" it sends nothing.
//
// A frame is its length in four bytes, big-endian, one byte of type, and JSON.
type frameType byte

const (
	frameHello  frameType = 1
	frameEvent  frameType = 2
	frameTaken  frameType = 3
	frameDone   frameType = 4
	frameFailed frameType = 5
	frameMoved  frameType = 6
	frameAlive  frameType = 7
)

// protocol changes whenever a frame's meaning does. Owners of 1 do not say that they
// are alive.
const protocol = 2

const (
	// maxRequest bounds what an owner reads, in bytes: a text of 64 KiB whose every
	// character is escaped in JSON, and a path.
	maxRequest = 1 << 20
	// maxAnswer bounds what a client reads: a list of some ten thousand members.
	maxAnswer = 16 << 20
)

type hello struct {
	Protocol int             `json:"protocol"`
	Call     string          `json:"call"`
	Request  json.RawMessage `json:"request"`
	Patience int64           `json:"patience_ms"` // how long the client waits for a frame
}

func writeFrame(w io.Writer, t frameType, v any) error {
	var body []byte
	if v != nil {
		var err error
		if body, err = json.Marshal(v); err != nil {
			return fmt.Errorf("sdk/local: encode a frame: %w", err)
		}
	}
	if len(body)+1 > maxAnswer {
		return fmt.Errorf("sdk/local: an answer of %d bytes is over the limit of %d", len(body), maxAnswer)
	}
	_, err := w.Write(appendFrame(make([]byte, 0, 5+len(body)), t, body))
	return err
}

func appendFrame(b []byte, t frameType, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)+1))
	return append(append(b, byte(t)), body...)
}

// readFrame reads one frame of at most limit bytes. It takes memory as bytes
// arrive, not as the length promises. io.EOF: the peer closed between frames.
func readFrame(r io.Reader, limit int) (frameType, json.RawMessage, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size == 0 || size > int64(limit) {
		return 0, nil, fmt.Errorf("%w: %d bytes, want 1 to %d", ErrFrame, size, limit)
	}
	body, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return 0, nil, err
	}
	if int64(len(body)) < size {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return frameType(body[0]), body[1:], nil
}
