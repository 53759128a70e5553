package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/sdk"
)

// Faults are the chances, each between 0 and 1, of what can befall a request.
type Faults struct {
	LoseRequest float64 // it never arrives
	LoseAnswer  float64 // it is carried out, nobody hears of it
	Double      float64 // it arrives twice, the second answer counts
	CutAnswer   float64 // the answer breaks off half way
}

// Network carries requests from devices to a service by calling its handler in
// the caller's goroutine: no port, no socket, no waiting, so that one seed is
// one run. Its zero value is not usable; call NewNetwork.
type Network struct {
	mu     sync.Mutex // guards everything below
	serve  http.Handler
	random *rand.Rand
	faults Faults
	counts Carried

	between func(ctx context.Context) error // nil = nothing
	broke   error                           // what between said
}

// Carried counts what a network did with requests.
type Carried struct {
	Requests, LostRequests, LostAnswers, Doubled, Cut, Down int
	Stale                                                   int // appends that came too late for their epoch
}

// NewNetwork makes a network without a service: every request is lost until
// Attach.
func NewNetwork(random *rand.Rand) *Network { return &Network{random: random} }

// Attach connects the service; nil takes it down.
func (n *Network) Attach(h http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.serve = h
}

// SetFaults changes what befalls requests from now on.
func (n *Network) SetFaults(f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
}

// Between has f called before each request to append is carried out; nil ends that.
// An error of f fails the request, and Broke tells it.
func (n *Network) Between(f func(ctx context.Context) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.between = f
}

// Counts tells what was carried so far.
func (n *Network) Counts() Carried {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts
}

var (
	errLost   = errors.New("sim: the network lost it")
	errDown   = errors.New("sim: the service is down")
	errSocket = errors.New("sim: no sockets here, devices ask")
)

// fate is what happens to one request, drawn before it is sent so that the
// draws do not depend on its answer.
type fate struct {
	loseRequest, loseAnswer, double, cut bool
}

func (n *Network) draw() (http.Handler, fate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts.Requests++
	roll := func(p float64) bool { return n.random.Float64() < p }
	f := fate{roll(n.faults.LoseRequest), roll(n.faults.LoseAnswer), roll(n.faults.Double), roll(n.faults.CutAnswer)}
	switch {
	case n.serve == nil:
		n.counts.Down++
	case f.loseRequest:
		n.counts.LostRequests++
	case f.loseAnswer:
		n.counts.LostAnswers++
	case f.cut:
		n.counts.Cut++
	case f.double:
		n.counts.Doubled++
	}
	return n.serve, f
}

// Do implements client.Transport.
func (n *Network) Do(ctx context.Context, r client.Request) (client.Response, error) {
	serve, f := n.draw()
	if serve == nil {
		return client.Response{}, errDown
	}
	if f.loseRequest {
		return client.Response{}, errLost
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return client.Response{}, fmt.Errorf("sim: read a body: %w", err)
		}
	}
	if err := n.meanwhile(ctx, r); err != nil {
		return client.Response{}, err
	}
	answer := ask(ctx, serve, r, body)
	n.note(answer)
	if f.double {
		answer = ask(ctx, serve, r, body)
	}
	if err := ctx.Err(); err != nil {
		return client.Response{}, err
	}
	if f.loseAnswer {
		return client.Response{}, errLost
	}
	content := io.Reader(answer.Body)
	if f.cut && answer.Body.Len() > 1 {
		content = io.MultiReader(bytes.NewReader(answer.Body.Bytes()[:answer.Body.Len()/2]), cut{})
	}
	return client.Response{Status: answer.Code, Header: answer.Header().Get, Body: io.NopCloser(content)}, nil
}

// meanwhile lets others act before an append arrives.
func (n *Network) meanwhile(ctx context.Context, r client.Request) error {
	n.mu.Lock()
	between := n.between
	n.mu.Unlock()
	if between == nil || !strings.HasSuffix(r.URL, "/append") {
		return nil
	}
	err := between(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broke = errors.Join(n.broke, err)
	return err
}

// Broke is what went wrong in between.
func (n *Network) Broke() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.broke
}

// note counts answers of note.
func (n *Network) note(answer *httptest.ResponseRecorder) {
	var p delivery.Problem
	if answer.Code < http.StatusBadRequest || json.Unmarshal(answer.Body.Bytes(), &p) != nil {
		return
	}
	if p.Err().Code == delivery.CodeStaleEpoch {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.counts.Stale++
	}
}

// cut is where an answer breaks off.
type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func ask(ctx context.Context, serve http.Handler, r client.Request, body []byte) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(body))
	for k, v := range r.Header {
		req.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	serve.ServeHTTP(w, req)
	return w
}

// Dial implements client.Transport: a simulated device has no socket, it reads.
func (n *Network) Dial(context.Context, string) (client.Socket, error) { return nil, errSocket }

// sent is an entry that a device asked the service to append.
type sent struct {
	room delivery.RoomID
	hash [32]byte
	by   *device
	id   content.MessageID // of the message in it; zero = none
}

// sending is the network as one device sees it. What it asks to append is noted.
type sending struct {
	*Network
	w *World
	d *device
}

// Do implements client.Transport.
func (s sending) Do(ctx context.Context, r client.Request) (client.Response, error) {
	path, tail := strings.CutSuffix(r.URL, "/append")
	if !tail || r.Body == nil {
		return s.Network.Do(ctx, r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return client.Response{}, fmt.Errorf("sim: read a body: %w", err)
	}
	room, err := delivery.ParseRoomID(path[strings.LastIndexByte(path, '/')+1:])
	if err != nil {
		return client.Response{}, fmt.Errorf("sim: an append to %s: %w", r.URL, err)
	}
	a, err := delivery.ParseAppend(body)
	if err != nil {
		return client.Response{}, fmt.Errorf("sim: an append to %s: %w", r.URL, err)
	}
	id, err := s.d.waits(ctx, a.Entry)
	if err != nil {
		return client.Response{}, err
	}
	s.w.sent = append(s.w.sent, sent{room, sha256.Sum256(a.Entry), s.d, id})
	r.Body = bytes.NewReader(body)
	return s.Network.Do(ctx, r)
}

// waits is the message in a device's outbox whose entry this is.
func (d *device) waits(ctx context.Context, entry []byte) (id content.MessageID, err error) {
	err = d.store.View(ctx, func(tx sdk.Tx) error {
		return tx.Scan(sdk.TableOutbox, "", "", func(_ string, value []byte) (bool, error) {
			var w struct {
				ID    content.MessageID `json:"id"`
				Entry []byte            `json:"entry"`
			}
			if err := json.Unmarshal(value, &w); err != nil {
				return false, fmt.Errorf("sim: the outbox: %w", err)
			}
			if bytes.Equal(w.Entry, entry) {
				id = w.ID
			}
			return id.IsZero(), nil
		})
	})
	return id, err
}
