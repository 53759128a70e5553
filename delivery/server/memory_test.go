package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// TestBudgets: what is over the bound waits in the order in which it came, unless
// its holder has its share; who holds nothing is never too large; who gives up
// stands in nobody's way.
func TestBudgets(t *testing.T) {
	b := newBudget(100, 4)
	ada, bob, eve := holder{device: identity.DeviceID{1}}, holder{device: identity.DeviceID{2}}, holder{device: identity.DeviceID{3}}
	wait := func(ctx context.Context, who holder, n int64) <-chan error {
		b.mu.Lock()
		before := b.waiting.Len()
		b.mu.Unlock()
		out := make(chan error, 1)
		go func() { out <- b.wait(ctx, who, n) }()
		for now := before; now == before && len(out) == 0; { // it waits, or has it
			b.mu.Lock()
			now = b.waiting.Len()
			b.mu.Unlock()
		}
		return out
	}
	if !b.try(ada, 90) {
		t.Fatal("who holds nothing is refused")
	}
	if b.try(ada, 1) || b.try(bob, 11) || b.try(holder{}, 11) {
		t.Fatal("more than there is, or than a share")
	}
	mine := wait(t.Context(), ada, 5) // over its share for as long as it holds the 90
	gone, leave := context.WithCancel(t.Context())
	first, second, third := wait(gone, bob, 20), wait(t.Context(), eve, 15), wait(t.Context(), holder{}, 40)
	if len(mine)+len(first)+len(second)+len(third) != 0 {
		t.Fatal("somebody does not wait")
	}
	b.give(ada, 5) // 15 are free: enough for the second, who came later
	if len(second) != 0 {
		t.Fatal("who came later is served first")
	}
	leave()
	if err := <-first; err == nil {
		t.Fatal("who has left has bytes")
	}
	check(t, <-second)
	b.give(ada, 85)
	check(t, <-mine)
	check(t, <-third)
	b.give(ada, 5)
	b.give(eve, 15)
	b.give(holder{}, 40)
	if b.used != 0 || len(b.of) != 0 || b.waiting.Len() != 0 {
		t.Errorf("%d bytes of %d holders are in use, %d wait", b.used, len(b.of), b.waiting.Len())
	}
	if !b.try(eve, 1000) || b.try(bob, 1) {
		t.Error("what is larger than all has it alone")
	}
}

// stalling is a body that stands still behind its first bytes.
type stalling struct {
	io.Reader
	stands sync.Once
	still  chan struct{} // closed when it does
	goOn   chan struct{}
	rest   io.Reader
}

func stall(first int, rest []byte) *stalling {
	return &stalling{Reader: bytes.NewReader(make([]byte, first)), still: make(chan struct{}), goOn: make(chan struct{}), rest: bytes.NewReader(rest)}
}

func (s *stalling) Read(p []byte) (int, error) {
	if n, err := s.Reader.Read(p); n > 0 || err == nil {
		return n, nil
	}
	s.stands.Do(func() { close(s.still) })
	<-s.goOn
	return s.rest.Read(p)
}

// ask sends a request to the handler itself and gives what it answers.
func (d *device) ask(pattern string, body io.Reader, size int64, args ...string) error {
	method, target := path(pattern, args...)
	req := httptest.NewRequest(method, target, body)
	req.ContentLength = size
	req.Header.Set("Authorization", "Bearer "+d.token)
	return d.at.answer(req)
}

func (in *instance) answer(req *http.Request) error {
	answer := httptest.NewRecorder()
	in.Handler().ServeHTTP(answer, req)
	if answer.Code < 300 {
		return nil
	}
	var p delivery.Problem
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		return err
	}
	return p.Err()
}

// text is an entry of the longest that counts as one.
func longText(id delivery.RoomID, mark byte) []byte {
	message := wire.PrivateMessage{GroupID: id[:], ContentType: wire.ContentTypeApplication, EncryptedSenderData: []byte{mark}}
	entry := func(n int) []byte {
		message.Ciphertext = make([]byte, n)
		return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatPrivateMessage, PrivateMessage: &message})
	}
	n := delivery.MaxText - len(entry(delivery.MaxText/2)) + delivery.MaxText/2
	return (&delivery.AppendRequest{Entry: entry(n)}).AppendTo(nil)
}

// TestAttackBodiesThatFillTheMemory: long bodies hold together what they may, and
// each device its share; over that they are told to come again, and a text of the
// longest goes through all the while, with its length and without.
func TestAttackBodiesThatFillTheMemory(t *testing.T) {
	const long = 1 << 20
	w := newWorld(t)
	w.config.Limits.Memory.Bodies = 16 * long // of which a device has 4, and needs more than one while it grows
	in := w.start()
	p := in.people("ada", "b", "c", "d", "e", "f", "g")
	id := p[0].create(delivery.RoomGroup)
	var open []*stalling
	ended := make(chan error, 15)
	for _, d := range p[1:6] {
		for range 3 {
			b := stall(long-1, make([]byte, 1))
			open = append(open, b)
			go func() { ended <- d.ask(delivery.RouteAppend, b, long, id.String()) }()
			select {
			case <-b.still:
			case err := <-ended:
				t.Fatalf("%d are under way, the next is told %v", len(open)-1, err)
			}
		}
		e := wantCode(t, d.ask(delivery.RouteAppend, bytes.NewReader(make([]byte, long-1)), long, id.String()), delivery.CodeRetry)
		if e.RetryAfter <= 0 {
			t.Error("nobody says when to come again")
		}
	}
	wantCode(t, p[6].ask(delivery.RouteAppend, bytes.NewReader(make([]byte, long-1)), long, id.String()), delivery.CodeRetry)
	for i, size := range []int64{int64(len(longText(id, 0))), -1} {
		check(t, p[0].ask(delivery.RouteAppend, bytes.NewReader(longText(id, byte(i))), size, id.String()))
	}
	for _, b := range open {
		close(b.goOn)
		wantCode(t, <-ended, delivery.CodeBadRequest) // it is no entry
	}
	if in.bodies.used != 0 || in.text.used != 0 || len(in.bodies.of) != 0 {
		t.Errorf("%d and %d bytes are still in use", in.bodies.used, in.text.used)
	}
	wantCode(t, p[6].ask(delivery.RouteAppend, bytes.NewReader(make([]byte, long)), long, id.String()), delivery.CodeBadRequest)
}

// TestTextWaitsForItsTurn: when texts hold all that they may, the next ones wait and
// go through, and what fits into the first piece does not even wait.
func TestTextWaitsForItsTurn(t *testing.T) {
	w := newWorld(t)
	w.config.Limits.Memory.Text = smallBody
	in := w.start()
	p := in.people("ada", "eve")
	id := p[0].create(delivery.RoomGroup)
	b := stall(delivery.MaxText-1, make([]byte, 1))
	slow, text := make(chan error, 1), make(chan error, 1)
	go func() { slow <- p[1].ask(delivery.RouteAppend, b, delivery.MaxText, id.String()) }()
	<-b.still
	go func() { text <- p[0].ask(delivery.RouteAppend, bytes.NewReader(longText(id, 1)), -1, id.String()) }()
	for waits := 0; waits == 0 && len(text) == 0; {
		in.text.mu.Lock()
		waits = in.text.waiting.Len()
		in.text.mu.Unlock()
	}
	p[0].say(id, "short")
	if len(text) != 0 {
		t.Fatalf("it did not wait: %v", <-text)
	}
	close(b.goOn)
	wantCode(t, <-slow, delivery.CodeBadRequest)
	check(t, <-text)
}

// TestEnvelopesAreRefusedBeforeTheirBody: what can be said of an envelope without
// the body is said before a byte of it is read; and of no route a signed body is long.
func TestEnvelopesAreRefusedBeforeTheirBody(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	w.clock.add(2 * identity.EnvelopeSkew) // past the birth of the nonce store
	ada, eve := in.enrolled("ada"), newPerson("eve").attest(t, "eve")
	for name, c := range map[string]struct {
		device *device
		edit   func(*identity.EnvelopeRequest)
		size   int64
		code   delivery.Code
	}{
		"another home":   {ada, func(r *identity.EnvelopeRequest) { r.Home[0]++ }, -1, delivery.CodeGoElsewhere},
		"another time":   {ada, func(r *identity.EnvelopeRequest) { r.IssuedAt -= 61 }, -1, delivery.CodeRetry},
		"another path":   {ada, func(r *identity.EnvelopeRequest) { r.Target = "/v1/rooms" }, -1, delivery.CodeLogIn},
		"an unknown key": {eve, func(*identity.EnvelopeRequest) {}, -1, delivery.CodeLogIn},
		"a long body":    {ada, func(*identity.EnvelopeRequest) {}, maxEnvelopeBody + 1, delivery.CodeTooLarge},
	} {
		method, target := path(delivery.RouteAppend, "a1b2c301-0000-8000-8000-000000000000")
		r := identity.EnvelopeRequest{Home: testHome, Method: method, Target: target, IssuedAt: uint64(w.clock.Now().Unix()), Nonce: identity.Nonce{1}}
		c.edit(&r)
		h, err := identity.Seal(c.device.key, r)
		check(t, err)
		body := &endless{}
		req := httptest.NewRequest(method, target, body)
		req.ContentLength = c.size
		req.Header.Set(delivery.HeaderEnvelope, h)
		if code := delivery.CodeOf(in.answer(req)); code != c.code || body.read > 0 {
			t.Errorf("%s: %s after %d bytes", name, code, body.read)
		}
	}
}
