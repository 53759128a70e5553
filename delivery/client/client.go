// Package client is a device's end of the delivery protocol: one typed method
// for each route, over one [Transport] port. It holds no MLS state and reads no
// message; package sdk does. It opens no connection itself: client/native does
// it by net/http, a browser's fetch can do it as well.
//
// Every error that a service gave is a [*delivery.Error] with the service's own
// code; when no answer came it wraps [ErrOffline], when what came was no answer
// of a delivery service it wraps [ErrGarbage].
//
// Begin reading at [Client.Append].
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

var (
	// ErrOffline: no answer came. The request may or may not have arrived; the
	// same bytes can be sent again.
	ErrOffline = errors.New("delivery/client: the service cannot be reached")
	// ErrGarbage: what answered does not speak the delivery protocol: a proxy's
	// page, a wrong address, a broken server.
	ErrGarbage = errors.New("delivery/client: what answered is no delivery service")
	// ErrCopied: another copy of this profile is in use. It has this device's
	// session, and this client is of no use any more.
	ErrCopied = errors.New("another copy of this profile is in use, so this one has stopped")
)

// Transport carries requests and opens sockets.
type Transport interface {
	// Do sends a request. An error means that no answer came; a refusal is an
	// answer. The caller closes Response.Body.
	Do(ctx context.Context, r Request) (Response, error)
	// Dial opens a WebSocket for binary messages of at most delivery.MaxFrame bytes.
	Dial(ctx context.Context, url string) (Socket, error)
}

// Request is one HTTP request.
type Request struct {
	Method string
	URL    string
	Header map[string]string
	Body   io.Reader // nil = none
	Size   int64     // of Body in bytes
}

// Response is its answer.
type Response struct {
	Status int
	Header func(name string) string
	Body   io.ReadCloser
}

// Socket is an open WebSocket. Read and Write may be used by one goroutine each.
type Socket interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, message []byte) error
	// Close may be called at any time, more than once; it ends Read and Write.
	Close() error
}

// Account is what logging in needs of a device.
type Account interface {
	Device() identity.DeviceID
	// SignLogin signs identity.LoginMessage(home, challenge) with the device key.
	SignLogin(home identity.Home, challenge []byte) ([]byte, error)
	// CopyCounter gives the counter that this profile holds and a fresh random
	// one, which it has made durable before returning.
	CopyCounter(ctx context.Context) (have, want [16]byte, err error)
	// LoggedIn makes want the counter that is held. copied means that another
	// copy of this profile has logged in since: the device must stop sending and
	// resync. An error ends the login.
	LoggedIn(ctx context.Context, want [16]byte, copied bool) error
	// CutOff is told that another copy of this profile has taken over the session
	// that this client had. The counter stays as it is, and this client opens no
	// session any more: who goes on in this place makes a new client.
	CutOff(ctx context.Context) error
}

// Config makes a [Client]. Base and Transport are required; without an Account
// only the routes that need no session work.
type Config struct {
	Base      string // https://chat.example.org, without a path
	Transport Transport
	Account   Account
	// Kept is the session that an earlier process of the same profile left (see
	// [Client.Leave]); empty = none. It is tried before anything is sent under it, and
	// one that is over is replaced by a login.
	Kept Token
	// Sleep waits between tries; nil waits on a timer. Tests pass their own.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter gives numbers in [0, 1) to spread tries; nil means the middle, 0.5.
	Jitter func() float64
	// Tries is how often a request that met a temporary fault is sent in all; 0 means 4.
	Tries int
}

// Client speaks to one service. It is safe for concurrent use.
type Client struct {
	Config
	clock atomic.Int64 // the service's clock minus ours, ms, as of the last answer

	login sync.Mutex // held while logging in, so that it happens once
	mu    sync.Mutex // guards the fields below
	token string
	kept  Token // of an earlier process, not tried yet
	had   bool  // it had a session
	cut   bool  // another copy of the profile has it now
}

// New makes a client. It sends nothing yet.
func New(c Config) *Client {
	c.Base = strings.TrimRight(c.Base, "/")
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.Jitter == nil {
		c.Jitter = func() float64 { return 0.5 }
	}
	if c.Tries == 0 {
		c.Tries = 4
	}
	return &Client{Config: c, kept: c.Kept}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// ServiceTimeMS is the service's clock in its latest answer, Unix
// milliseconds; 0 before the first.
func (c *Client) ServiceTimeMS() int64 { return c.clock.Load() }

// call is one request to a route, before it has a token.
type call struct {
	route  string // a Route constant of package delivery
	path   []string
	query  map[string]string
	body   []byte
	media  string
	work   []byte // answer to a demand for work
	open   bool   // needs no session
	token  string // to carry with open
	once   bool   // do not repeat: the caller does
	header map[string]string
	stream io.Reader // instead of body; implies once
	size   int64
}

// send does a call: with a session, repeated while it meets temporary faults,
// with the same bytes. The caller closes the answer's body.
func (c *Client) send(ctx context.Context, q call) (Response, error) {
	loggedIn := false
	for try := 1; ; try++ {
		token, err := q.token, error(nil)
		if !q.open {
			if token, err = c.admitted(ctx); err != nil {
				return Response{}, err // it has had tries of its own
			}
		}
		r, err := c.try(ctx, q, token)
		if err == nil {
			return r, nil
		}
		var refusal *delivery.Error
		switch {
		case ctx.Err() != nil:
			return Response{}, fmt.Errorf("%w: %w", ErrOffline, ctx.Err())
		case errors.As(err, &refusal) && refusal.Code == delivery.CodeLogIn && !q.open && c.Account != nil && !loggedIn:
			loggedIn = true
			c.dropToken(token)
			if q.stream != nil {
				return Response{}, err
			}
			continue
		case errors.As(err, &refusal) && refusal.Code == delivery.CodeSolveWork && refusal.Work != nil && q.work == nil && c.Account != nil && q.stream == nil:
			q.work, err = solve(ctx, *refusal.Work, c.Account.Device(), q.body)
			if err != nil {
				return Response{}, err
			}
			continue
		}
		repeat := errors.Is(err, ErrOffline) || refusal != nil && (refusal.Code == delivery.CodeRetry || refusal.Code == delivery.CodeSlowDown)
		if !repeat || q.once || q.stream != nil || try >= c.Tries {
			return Response{}, err
		}
		if err := c.Sleep(ctx, c.pause(try, refusal)); err != nil {
			return Response{}, fmt.Errorf("%w: %w", ErrOffline, err)
		}
	}
}

// pause is how long to wait after a try: what the service asks, or 0.2 s
// doubled each time up to 10 s; in both cases spread by half.
func (c *Client) pause(try int, refusal *delivery.Error) time.Duration {
	d := min(100*time.Millisecond<<min(try, 10), 10*time.Second)
	if refusal != nil && refusal.RetryAfter > 0 {
		d = min(refusal.RetryAfter, time.Minute)
	}
	return d + time.Duration(c.Jitter()*float64(d)/2)
}

func (c *Client) try(ctx context.Context, q call, token string) (Response, error) {
	method, pattern, ok := strings.Cut(q.route, " ")
	if !ok {
		return Response{}, fmt.Errorf("delivery/client: %q is no route", q.route)
	}
	req := Request{Method: method, URL: c.Base + fill(pattern, q.path) + encodeQuery(q.query), Header: map[string]string{}}
	for k, v := range q.header {
		req.Header[k] = v
	}
	switch {
	case q.stream != nil:
		req.Body, req.Size = q.stream, q.size
		req.Header["Content-Type"] = "application/octet-stream"
	case q.body != nil:
		req.Body, req.Size = bytes.NewReader(q.body), int64(len(q.body))
		req.Header["Content-Type"] = q.media
	}
	if q.work != nil {
		req.Header[delivery.HeaderWork] = fmt.Sprintf("%x", q.work)
	}
	if token != "" {
		req.Header["Authorization"] = "Bearer " + token
	}
	r, err := c.Transport.Do(ctx, req)
	if err != nil {
		return Response{}, fmt.Errorf("%w: %w", ErrOffline, err)
	}
	if ms, err := strconv.ParseInt(r.Header(delivery.HeaderTime), 10, 64); err == nil {
		c.clock.Store(ms)
	}
	if r.Status == 200 || r.Status == 201 || r.Status == 204 || r.Status == 206 {
		return r, nil
	}
	defer func() { _ = r.Body.Close() }() // read whole or given up: nothing to learn from closing
	return Response{}, refusal(r)
}

// refusal reads a problem document.
func refusal(r Response) error {
	media, _, _ := strings.Cut(r.Header("Content-Type"), ";")
	b, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("%w: the answer broke off: %w", ErrOffline, err)
	}
	var p delivery.Problem
	if strings.TrimSpace(media) != delivery.ProblemType || json.Unmarshal(b, &p) != nil {
		if r.Status >= 500 {
			// A proxy in front whose service is away.
			return &delivery.Error{Code: delivery.CodeRetry, Detail: fmt.Sprintf("HTTP status %d without a reason", r.Status)}
		}
		return fmt.Errorf("%w: HTTP status %d and %q", ErrGarbage, r.Status, media)
	}
	if p.Status == 0 {
		p.Status = r.Status
	}
	return p.Err()
}

// readBody reads a whole answer of at most limit bytes.
func readBody(r Response, limit int64) ([]byte, error) {
	defer func() { _ = r.Body.Close() }() // read whole or given up: nothing to learn from closing
	b, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the answer broke off: %w", ErrOffline, err)
	case int64(len(b)) > limit:
		return nil, fmt.Errorf("%w: an answer of more than %d bytes", ErrGarbage, limit)
	}
	return b, nil
}

// json does a call whose answer is JSON; out nil drops it.
func (c *Client) json(ctx context.Context, q call, in, out any) error {
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("delivery/client: encode a request: %w", err)
		}
		q.body, q.media = b, "application/json"
	}
	r, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	b, err := readBody(r, 32<<20)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%w: %s answers no such JSON", ErrGarbage, q.route)
	}
	return nil
}

// binary does a call whose answer is bytes.
func (c *Client) binary(ctx context.Context, q call, limit int64) ([]byte, error) {
	r, err := c.send(ctx, q)
	if err != nil {
		return nil, err
	}
	media, _, _ := strings.Cut(r.Header("Content-Type"), ";")
	b, err := readBody(r, limit)
	if err == nil && strings.TrimSpace(media) != delivery.BinaryType {
		err = fmt.Errorf("%w: %s answers %q", ErrGarbage, q.route, media)
	}
	return b, err
}

// fill puts values into a pattern's {names}, in order, percent-encoded.
func fill(pattern string, values []string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(pattern, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, pattern, _ = strings.Cut(rest, "}")
		b.WriteString(escape(values[0]))
		values = values[1:]
	}
}

func encodeQuery(query map[string]string) string {
	sep, out := "?", ""
	for _, k := range sortedKeys(query) {
		if v := query[k]; v != "" {
			out += sep + k + "=" + escape(v)
			sep = "&"
		}
	}
	return out
}
