package server

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/askucher/compax-core/blob/disk"
	"github.com/askucher/compax-core/bus/local"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/store/sqlite"
)

// clock is a test's time; it moves only when told.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// patience is how long a test waits for what takes milliseconds: only a fault
// waits that long, also on a loaded machine under the race detector.
const patience = time.Minute

// world is a deployment: one store, one bus, and any number of instances.
type world struct {
	t       testing.TB
	clock   *clock
	store   delivery.Store
	blobs   delivery.BlobStore
	bus     delivery.Bus
	buckets delivery.Buckets
	config  Config
	path    string
	suite   wire.CipherSuite // of rooms and key packages; 1

	still bool // instances do nothing by themselves: the test calls Relay and the like
	// retry is asked after a refusal that says retry: where to send the same
	// bytes again, nil to give up.
	retry func() *instance
}

var testHome = identity.Home{0xa1, 0xb2, 0xc3}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{now: time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)}, path: t.TempDir(), suite: policy.Suites[0]}
	w.openStore()
	blobs, err := disk.Open(filepath.Join(w.path, "blobs"))
	check(t, err)
	t.Cleanup(func() { check(t, blobs.Close()) })
	bus := local.NewBus()
	t.Cleanup(func() { check(t, bus.Close()) })
	w.blobs, w.bus, w.buckets = blobs, bus, local.NewBuckets(10_000)
	return w
}

// eachSuite runs a test in a world of each suite that rooms can have.
func eachSuite(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	for _, id := range policy.Suites {
		cs, err := suite.Lookup(id)
		check(t, err)
		t.Run(cs.String(), func(t *testing.T) {
			w := newWorld(t)
			w.suite = id
			test(t, w)
		})
	}
}

func (w *world) openStore() {
	w.t.Helper()
	store, err := sqlite.Open(context.Background(), filepath.Join(w.path, "compax.db"))
	check(w.t, err)
	w.t.Cleanup(func() { check(w.t, store.Close()) })
	w.store = store
}

// instance starts one more service over the world's ports.
type instance struct {
	*Server
	w    *world
	http *httptest.Server
	logs *syncBuffer
	stop func() // ends it; the world's end does so too
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (w *world) start() *instance {
	w.t.Helper()
	c := w.config
	in := &instance{w: w, logs: &syncBuffer{}}
	c.Store, c.Blobs, c.Bus, c.Buckets, c.Home, c.Now = w.store, w.blobs, w.bus, w.buckets, testHome, w.clock.Now
	c.Log = slog.New(slog.NewTextHandler(in.logs, nil))
	s, err := New(context.Background(), c)
	check(w.t, err)
	in.Server = s
	doc, err := readDocument()
	check(w.t, err)
	in.http = httptest.NewServer(doc.held(w.t, s.Handler()))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	if w.still {
		done <- nil
	} else {
		go func() { done <- s.Run(ctx) }()
	}
	in.stop = sync.OnceFunc(func() {
		gone, stop := context.WithTimeout(context.Background(), time.Second)
		s.Drain(gone, time.Second)
		stop()
		in.http.Close()
		cancel()
		check(w.t, <-done)
		s.work.Wait()
		if text := in.logs.String(); text != "" {
			w.t.Logf("the instance logged:\n%s", text)
		}
	})
	w.t.Cleanup(in.stop)
	return in
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// person and device are accounts as a client would hold them.
type person struct {
	key ed25519.PrivateKey
	id  identity.PublicKey
}

type device struct {
	owner person
	key   ed25519.PrivateKey
	cred  identity.Credential
	token string
	at    *instance
	have  [16]byte
}

func newPerson(name string) person {
	seed := make([]byte, 32)
	copy(seed, "person "+name)
	k := ed25519.NewKeyFromSeed(seed)
	return person{k, identity.PublicKey(k.Public().(ed25519.PublicKey))}
}

func (p person) attest(t testing.TB, name string, edit ...func(*identity.Attestation)) *device {
	t.Helper()
	seed := make([]byte, 32)
	copy(seed, "device "+name)
	k := ed25519.NewKeyFromSeed(seed)
	a := identity.Attestation{Home: testHome, Identity: p.id, DevicePubkey: identity.DevicePublicKey(k.Public().(ed25519.PublicKey)), Version: 1, IssuedAt: 1}
	for _, f := range edit {
		f(&a)
	}
	c, err := identity.Attest(a, p.key, k)
	check(t, err)
	return &device{owner: p, key: k, cred: c}
}

func (d *device) id() identity.DeviceID { return d.cred.DeviceID() }

func (d *device) revocation(t testing.TB, by person) identity.Revocation {
	t.Helper()
	r, err := identity.Revoke(identity.RevocationFields{Identity: by.id, DeviceID: d.id(), IssuedAt: 1}, by.key)
	check(t, err)
	return r
}

// enrolled makes a device of a new person known at an instance and logs it in.
func (in *instance) enrolled(name string) *device {
	return in.join(newPerson(name).attest(in.w.t, name))
}

func (in *instance) join(d *device) *device {
	in.w.t.Helper()
	d.at = in
	check(in.w.t, d.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: d.cred.Bytes()}, nil))
	check(in.w.t, d.login())
	return d
}

func (d *device) login() error {
	want := d.have
	want[0]++
	s, err := d.session(want, false)
	if err != nil {
		return err
	}
	if s.Copied {
		return errors.New("copied")
	}
	d.have, d.token = want, s.Token
	return nil
}

// resume asks for another session as a process that had one.
func (d *device) resume() (delivery.SessionResponse, error) {
	want := d.have
	want[1]++
	return d.session(want, true)
}

func (d *device) session(want [16]byte, resume bool) (s delivery.SessionResponse, err error) {
	var c delivery.ChallengeResponse
	if err := d.json(delivery.RouteChallenge, delivery.ChallengeRequest{Device: d.id()}, &c); err != nil {
		return s, err
	}
	sig, err := identity.SignLogin(c.Home, c.Challenge, d.key)
	if err != nil {
		return s, err
	}
	req := delivery.SessionRequest{Device: d.id(), Challenge: c.Challenge, Signature: sig[:], Have: d.have[:], Want: want[:], Resume: resume}
	return s, d.json(delivery.RouteLogin, req, &s)
}

// path fills a route's wildcards in order.
func path(pattern string, args ...string) (method, target string) {
	method, target, _ = strings.Cut(pattern, " ")
	for _, a := range args {
		i, j := strings.Index(target, "{"), strings.Index(target, "}")
		target = target[:i] + a + target[j+1:]
	}
	return method, target
}

// json calls a route with a JSON body and reads a JSON answer.
func (d *device) json(pattern string, body, out any, args ...string) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	answer, err := d.call(pattern, raw, "", args...)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

func (d *device) call(pattern string, body []byte, query string, args ...string) ([]byte, error) {
	for {
		answer, err := d.once(pattern, body, query, args...)
		if delivery.CodeOf(err) != delivery.CodeRetry || d.at.w.retry == nil {
			return answer, err
		}
		next := d.at.w.retry()
		if next == nil {
			return answer, err
		}
		d.at = next
	}
}

func (d *device) once(pattern string, body []byte, query string, args ...string) ([]byte, error) {
	method, target := path(pattern, args...)
	req, err := http.NewRequest(method, d.at.http.URL+target+query, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	return do(req)
}

func do(req *http.Request) ([]byte, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	if e := resp.Body.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		var p delivery.Problem
		if err := json.Unmarshal(answer, &p); err != nil {
			return nil, fmt.Errorf("status %d with %q: %w", resp.StatusCode, answer, err)
		}
		if p.Status != resp.StatusCode || resp.Header.Get("Content-Type") != delivery.ProblemType {
			return nil, fmt.Errorf("status %d and type %q of a problem %+v", resp.StatusCode, resp.Header.Get("Content-Type"), p)
		}
		return nil, p.Err()
	}
	return answer, nil
}

func wantCode(t testing.TB, err error, code delivery.Code) *delivery.Error {
	t.Helper()
	var e *delivery.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

// connected is a socket of a device, past its Ready.
type connected struct {
	t      testing.TB
	conn   *websocket.Conn
	frames chan any // closed at the socket's end
}

func (d *device) connect(t testing.TB, cursors ...delivery.Cursor) *connected {
	t.Helper()
	k := d.dial(t)
	k.send(&delivery.Hello{Token: d.token, Cursors: cursors})
	if _, ok := k.next().(*delivery.Ready); !ok {
		t.Fatal("no Ready")
	}
	return k
}

func (d *device) dial(t testing.TB) *connected {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, d.at.http.URL+"/v1/connect", nil)
	check(t, err)
	if resp.Body != nil {
		_ = resp.Body.Close()
	}
	conn.SetReadLimit(delivery.MaxFrame)
	k := &connected{t: t, conn: conn, frames: make(chan any, 1024)}
	go func() {
		defer close(k.frames)
		for {
			_, data, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			f, err := delivery.ParseFrame(data)
			if err != nil {
				t.Errorf("a frame that cannot be read: %v", err)
				return
			}
			k.frames <- f
		}
	}()
	t.Cleanup(func() { _ = conn.CloseNow() })
	return k
}

func (k *connected) send(frame any) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	check(k.t, k.conn.Write(ctx, websocket.MessageBinary, delivery.AppendFrame(nil, frame)))
}

// next is the next frame, nil at the end.
func (k *connected) next() any {
	k.t.Helper()
	select {
	case f := <-k.frames:
		return f
	case <-time.After(patience):
		k.t.Fatalf("no frame within %v", patience)
		return nil
	}
}

func sha(b []byte) [32]byte { return sha256.Sum256(b) }
