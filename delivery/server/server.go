package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Config says what a service stands on. The four ports and Home are needed;
// everything else has a default.
type Config struct {
	Store   delivery.Store
	Blobs   delivery.BlobStore
	Bus     delivery.Bus
	Buckets delivery.Buckets
	Home    identity.Home // this service's label

	Domain  string // for mimi:// names; "localhost"
	Name    string // shown by /v1/info; "Compax"
	Version string
	Digest  string // of the configuration

	Retention        time.Duration // of the log; 30 days
	ArchiveRetention time.Duration // of sealed history; as Retention
	SessionLife      time.Duration // 30 days
	HealWindow       time.Duration // how long a room waits for members after a restore; 15 minutes
	MaxBlob          int64         // bytes; 4 GiB
	MaxLooseBlobs    int64         // bytes that a device may have uploaded and not yet sent; twice MaxBlob
	LowWater         int           // key packages; 20
	MaxMembers       int           // participants that a room lists; 2,000
	MaxDevices       int           // enrolled devices of one identity; 64
	MaxRevocations   int           // of one identity, for good; its enrolled devices count; 512
	RemovalBatch     int           // owed removals read at once; 256
	Limits           Limits
	Patience         Patience
	Rules            map[Rule]Mode // refusal rules that are policy; see rules.go
	Machine          Machine       // what congestion is read from; nil: always calm

	// ClientAddress gives the IP of a request's sender; the peer's when nil. Set
	// it where a proxy stands in front.
	ClientAddress func(*http.Request) string

	Now     func() time.Time // time.Now
	Random  io.Reader        // crypto/rand
	Log     *slog.Logger     // slog.Default
	Metrics prometheus.Registerer
}

func (c *Config) defaults() error {
	if c.Store == nil || c.Blobs == nil || c.Bus == nil || c.Buckets == nil {
		return errors.New("server: store, blobs, bus and buckets are needed")
	}
	if c.Home == (identity.Home{}) {
		return errors.New("server: the home label is needed: three random bytes, kept for good")
	}
	def(&c.Domain, "localhost")
	def(&c.Name, "Compax")
	def(&c.Version, "dev")
	def(&c.Retention, 30*24*time.Hour)
	def(&c.ArchiveRetention, c.Retention)
	def(&c.SessionLife, 30*24*time.Hour)
	def(&c.HealWindow, 15*time.Minute)
	def(&c.MaxBlob, 4<<30)
	def(&c.MaxLooseBlobs, 2*c.MaxBlob)
	def(&c.LowWater, 20)
	def(&c.MaxMembers, 2000)
	def(&c.MaxDevices, 64)
	def(&c.MaxRevocations, 512)
	def(&c.RemovalBatch, 256)
	def(&c.Limits.Archive.Keys, c.MaxRevocations+1) // each revocation begins a generation
	c.Limits.defaults()
	c.Patience.defaults()
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return checkRules(c.Rules)
}

func def[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// Server is one instance of the service. Make it with [New], serve [Server.Handler],
// and let [Server.Run] do what no request does.
type Server struct {
	Config
	store    delivery.Store
	secrets  secrets
	sessions sessions
	follows  follows
	audience audience
	sockets  sockets
	usages   usages
	healing  healing
	removals removals
	pressure pressure
	checkup  checkup
	text     *budget // of bodies of up to smallBody
	bodies   *budget // of longer ones
	metrics  *metrics
	handler  http.Handler
	openapi  []byte

	draining atomic.Bool
	drained  chan struct{} // closed when draining begins
	once     sync.Once
	kicks    kicks
	work     sync.WaitGroup // what outlives its request; Run waits for it
}

// New makes an instance over ports that are open already. It reads or mints the
// deployment's secrets: the home's external-sender key and the MAC keys of
// challenges and work.
func New(ctx context.Context, c Config) (*Server, error) {
	if err := c.defaults(); err != nil {
		return nil, err
	}
	s := &Server{Config: c, store: c.Store, drained: make(chan struct{}), kicks: newKicks()}
	var err error
	if s.secrets, err = loadSecrets(ctx, c); err != nil {
		return nil, fmt.Errorf("server: secrets of the deployment: %w", err)
	}
	if s.metrics, err = newMetrics(c.Metrics); err != nil {
		return nil, fmt.Errorf("server: metrics: %w", err)
	}
	s.sessions.init()
	s.follows.init(maxFollowed)
	s.audience.init(maxAudienceDevices)
	s.sockets.init()
	s.usages.init()
	s.healing.init()
	s.text, s.bodies = newBudget(s.Limits.Memory.Text, 16), newBudget(s.Limits.Memory.Bodies, 4)
	if s.openapi, err = openAPI(s.Name, s.Version); err != nil {
		return nil, fmt.Errorf("server: OpenAPI document: %w", err)
	}
	s.handler = s.routes()
	return s, nil
}

// Handler serves the API.
func (s *Server) Handler() http.Handler { return s.handler }

// Run does the work that no request does, until ctx ends: relays mailbox
// pointers, proposes owed removals, sweeps. It returns when all of it has ended.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, loop := range []func(context.Context){s.relayLoop, s.removalLoop, s.sweepLoop, s.pressureLoop} {
		wg.Add(1)
		go func() {
			defer wg.Done()
			loop(ctx)
		}()
	}
	wg.Wait()
	s.work.Wait()
	return nil
}

// Drain tells every socket to connect elsewhere within the given time, makes
// /health/ready fail, and returns when the sockets are gone or ctx ends; those
// that are left are closed.
func (s *Server) Drain(ctx context.Context, within time.Duration) {
	s.once.Do(func() {
		s.draining.Store(true)
		close(s.drained)
	})
	s.sockets.drain(ctx, within)
}

// SenderKey is the public half of the home's external-sender key.
func (s *Server) SenderKey() []byte { return s.secrets.sender.Public() }

// deviceBound is how many devices and revocations an identity may have.
func (s *Server) deviceBound() delivery.DeviceBound {
	return delivery.DeviceBound{Devices: s.MaxDevices, Revocations: s.MaxRevocations}
}

func (s *Server) nowMS() int64 { return s.Now().UnixMilli() }

// later runs fn after the request, within the life of the process: what may be
// lost with it because a loop or a retry does it again.
func (s *Server) later(ctx context.Context, fn func(context.Context)) {
	ctx = context.WithoutCancel(ctx)
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		fn(ctx)
	})
}

// failed logs an error that is nobody's request's fault.
func (s *Server) failed(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		s.Log.Error("delivery service: "+what+" failed", "error", err)
	}
}
