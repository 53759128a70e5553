package appends

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls/wire"
)

// sender sends one entry after the other on a connection of its own, and waits
// for each answer. It shares the processors with what it measures, so it does no
// more than a load has to: a room's request is encoded once and only its
// ciphertext drawn anew, and of an answer it reads the status line, the length and
// the body.
type sender struct {
	*person
	conn   net.Conn
	answer *bufio.Reader
}

// target is a room as its only sender sees it.
type target struct {
	request    []byte // head and body
	ciphertext []byte // within request
	next       uint64 // the seq that is due
}

// connect opens a person's connection to the service.
func (p *person) connect(base string) (*sender, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		return nil, err
	}
	return &sender{person: p, conn: conn, answer: bufio.NewReaderSize(conn, 1<<10)}, nil
}

// sealed is how much of an entry is ciphertext: 512 bytes less what stands around.
const sealed = size - 80

// target makes the request for a room: an AppendRequest with a PrivateMessage of the
// room's first epoch whose ciphertext is random. The service cannot open it and
// does not have to.
func (p *person) target(room delivery.RoomID) *target {
	marker := bytes.Repeat([]byte{0xa5}, sealed)
	entry := wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatPrivateMessage, PrivateMessage: &wire.PrivateMessage{
		GroupID: room[:], ContentType: wire.ContentTypeApplication, EncryptedSenderData: make([]byte, 28), Ciphertext: marker,
	}})
	body := (&delivery.AppendRequest{Entry: entry}).AppendTo(nil)
	t := &target{next: 1}
	t.request = fmt.Appendf(nil, "POST /v1/rooms/%s/append HTTP/1.1\r\nHost: compax\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		room, p.token, delivery.BinaryType, len(body), body)
	at := bytes.Index(t.request, marker)
	t.ciphertext = t.request[at : at+sealed]
	return t
}

// append sends an entry that the service has not seen to the person's room i, and
// checks that it is the next of that room.
func (s *sender) append(i int, random *rand.ChaCha8) error {
	t := s.rooms[i]
	if _, err := random.Read(t.ciphertext); err != nil {
		return err
	}
	if _, err := s.conn.Write(t.request); err != nil {
		return err
	}
	body, err := s.readAnswer()
	if err != nil {
		return err
	}
	// delivery.Accepted: {"seq":"N","epoch":"0","accepted_ms":M}, and nothing about a duplicate.
	rest, ok := bytes.CutPrefix(body, strconv.AppendUint([]byte(`{"seq":"`), t.next, 10))
	if ms, found := bytes.CutPrefix(rest, []byte(`","epoch":"0","accepted_ms":`)); !ok || !found || string(bytes.TrimLeft(ms, "0123456789")) != "}" {
		return fmt.Errorf("seq %d was due: %s", t.next, body)
	}
	t.next++
	return nil
}

// readAnswer reads one answer, which has to be 200 and say its length. The body
// is good until the next call.
func (s *sender) readAnswer() ([]byte, error) {
	status, err := s.answer.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	ok := bytes.HasPrefix(status, []byte("HTTP/1.1 200 "))
	length := 0
	for {
		line, err := s.answer.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		if len(line) <= 2 {
			break
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return nil, err
			}
		}
	}
	body, err := s.answer.Peek(length)
	if err != nil {
		return nil, err
	}
	if _, err := s.answer.Discard(length); err != nil {
		return nil, err
	}
	if !ok || length == 0 {
		return nil, fmt.Errorf("not a 200 with a length: %s", body)
	}
	return body, nil
}

// connectAll opens a connection for each person.
func connectAll(b *testing.B, base string, all []*person) []*sender {
	b.Helper()
	out := make([]*sender, len(all))
	for i, p := range all {
		s, err := p.connect(base)
		check(b, err)
		b.Cleanup(func() { check(b, s.conn.Close()) })
		out[i] = s
	}
	return out
}
