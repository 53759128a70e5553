package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/askucher/compax-core/blob/disk"
	"github.com/askucher/compax-core/bus/local"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/server"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/store/postgres"
	"github.com/askucher/compax-core/store/sqlite"
)

// Node is a service that is open and not yet serving.
type Node struct {
	config   Config
	store    delivery.Store
	blobs    *disk.Store
	bus      *local.Bus
	service  *server.Server
	registry *prometheus.Registry
	api      net.Listener
	metrics  net.Listener // nil when off
	token    string
	home     identity.Home
}

// maxSubjects bounds the in-process budgets, about 100 bytes each.
const maxSubjects = 500_000

// New opens everything in order: directory, listeners and store, blobs, bus,
// service. What it opened it closes again when a later part fails. Errors
// name what to do; those of the configuration, and what others hold, are named
// all at once.
func New(ctx context.Context, c Config) (_ *Node, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	n := &Node{config: c, registry: prometheus.NewRegistry()}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if err := notHalfRestored(c.Dir); err != nil {
		return nil, err
	}
	dir := filepath.Join(c.Dir, "server")
	_, there := os.Stat(dir)
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	// A restore that began in between is seen now, or sees the folder.
	if err := notHalfRestored(c.Dir); err != nil {
		if errors.Is(there, fs.ErrNotExist) {
			_ = os.Remove(dir) // only while nothing is in it
		}
		return nil, err
	}
	if err := n.acquire(ctx, dir); err != nil {
		return nil, err
	}
	if n.blobs, err = disk.Open(filepath.Join(dir, "blobs")); err != nil {
		return nil, fmt.Errorf("open the blobs: %w", err)
	}
	if err := claimLocation(ctx, n.store, n.blobs.Location(), c.Now()); err != nil {
		return nil, err
	}
	if n.home, err = homeLabel(ctx, n.store, c.Home); err != nil {
		return nil, err
	}
	if err := firstStart(ctx, n.store, c.Dir, c.Now()); err != nil {
		return nil, fmt.Errorf("begin to heal: %w", err)
	}
	n.bus = local.NewBus()
	n.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	proxies, err := prefixes(c.TrustedProxies)
	if err != nil {
		return nil, err
	}
	n.api = newCrowd(n.api, c.MaxConnections, c.MaxPerAddress, proxies, n.registry)
	n.service, err = server.New(ctx, server.Config{
		Store: n.store, Blobs: n.blobs, Bus: n.bus, Buckets: local.NewBuckets(maxSubjects), Home: n.home,
		Domain: c.Domain, Name: c.Name, Version: c.Version, Digest: c.Digest,
		Retention: days(c.RetentionDays), ArchiveRetention: days(c.ArchiveRetentionDays), MaxBlob: c.MaxBlobBytes, MaxMembers: c.MaxMembers,
		MaxDevices: c.MaxDevices, MaxRevocations: c.MaxRevocations,
		Limits: server.Limits{Buckets: c.Buckets, Work: c.Work, Archive: c.Archive, Congestion: c.Congestion}, Rules: c.Rules, Machine: machine{},
		ClientAddress: clientAddress(proxies), Now: c.Now, Log: c.Log, Metrics: n.registry,
	})
	if err != nil {
		return nil, err
	}
	if n.token, err = metricsToken(c); err != nil {
		return nil, err
	}
	return n, nil
}

// acquire takes what others may have: the ports and the store. It tries all of
// them, so that one start names all that stands in the way. Who connects before
// the node serves waits for a moment.
func (n *Node) acquire(ctx context.Context, dir string) error {
	var errs []error
	failed := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	var listen net.ListenConfig
	var err error
	n.api, err = listen.Listen(ctx, "tcp", n.config.Listen)
	failed("listen for the API", err)
	if n.config.MetricsListen != "off" {
		n.metrics, err = listen.Listen(ctx, "tcp", n.config.MetricsListen)
		failed("listen for metrics", err)
	}
	n.store, err = openStore(ctx, n.config.Database, filepath.Join(dir, "compax.db"))
	failed("open the store", err)
	return errors.Join(errs...)
}

// openStore opens the database of a URL, or the embedded one at path.
func openStore(ctx context.Context, url, path string) (delivery.Store, error) {
	if url == "" {
		s, err := sqlite.Open(ctx, path)
		if err != nil {
			return nil, err // not a *sqlite.Store that is nil
		}
		return s, nil
	}
	s, err := postgres.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func days(n int) time.Duration { return time.Duration(n) * 24 * time.Hour }

// makeDir makes a directory for this user alone.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a directory needs its x bit
			return fmt.Errorf("close the data directory to others: %w", err)
		}
	}
	return nil
}

// settingHome is the home label, three bytes.
const settingHome = "home"

// homeLabel is the label of this deployment: minted once, kept in the store.
func homeLabel(ctx context.Context, store delivery.Store, want string) (identity.Home, error) {
	var h identity.Home
	for h == (identity.Home{}) {
		if _, err := rand.Read(h[:]); err != nil {
			return h, err
		}
	}
	if want != "" {
		if err := h.UnmarshalText([]byte(want)); err != nil {
			return h, err
		}
	}
	kept, err := store.InitSetting(ctx, settingHome, h[:])
	if err != nil {
		return h, fmt.Errorf("read the home label: %w", err)
	}
	if len(kept) != len(h) {
		return h, fmt.Errorf("the kept home label has %d bytes, not %d", len(kept), len(h))
	}
	if want != "" && identity.Home(kept) != h {
		return h, fmt.Errorf("home: the configuration says %s, this store has been %s since its first start; rooms keep their home for good", h, identity.Home(kept))
	}
	return identity.Home(kept), nil
}

// URL is where the API is served.
func (n *Node) URL() string { return "http://" + n.api.Addr().String() }

// MetricsURL is where the metrics are served; empty when they are off.
func (n *Node) MetricsURL() string {
	if n.metrics == nil {
		return ""
	}
	return "http://" + n.metrics.Addr().String() + "/metrics"
}

// MetricsToken is what the metrics are read with.
func (n *Node) MetricsToken() string { return n.token }

// Home is the label of this deployment.
func (n *Node) Home() identity.Home { return n.home }

// Service is the delivery service inside, for who embeds a node.
func (n *Node) Service() *server.Server { return n.service }

// Run serves until ctx ends, then tells sockets to go, lets requests finish,
// and closes everything in reverse order. A node runs once.
func (n *Node) Run(ctx context.Context) error {
	api := &http.Server{
		Handler: n.handler(), ReadHeaderTimeout: n.config.HeadTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 128 << 10,
		DisableGeneralOptionsHandler: true, // it reads a body for as long as it takes
		ErrorLog:                     quiet(n.config.Log),
	}
	metrics := &http.Server{
		Handler: n.metricsHandler(), ReadHeaderTimeout: n.config.HeadTime, ReadTimeout: n.config.HeadTime, WriteTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: quiet(n.config.Log),
	}

	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	failed := make(chan error, 4) // one of each: who fails waits for nobody to hear of it
	start := func(what string, run func() error) {
		wg.Go(func() {
			if err := run(); err != nil && !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("%s: %w", what, err)
			}
		})
	}
	start("delivery service", func() error { return n.service.Run(background) })
	start("blob location", func() error { return n.keepLocation(background) })
	start("API", func() error { return api.Serve(n.api) })
	if n.metrics != nil {
		start("metrics", func() error { return metrics.Serve(n.metrics) })
	}

	var errs []error
	select {
	case <-ctx.Done():
	case err := <-failed:
		errs = append(errs, err)
	}
	grace := time.Duration(n.config.DrainSeconds) * time.Second
	drain, cancel := context.WithTimeout(background, grace)
	n.service.Drain(drain, grace)
	cancel()
	finish, cancel := context.WithTimeout(background, 30*time.Second)
	defer cancel()
	if err := api.Shutdown(finish); err != nil {
		errs = append(errs, fmt.Errorf("requests were cut off: %w", err), api.Close())
	}
	if n.metrics != nil {
		errs = append(errs, metrics.Close())
	}
	stop()
	wg.Wait()
	return errors.Join(append(errs, n.close())...)
}

// close releases what is open, in reverse order.
func (n *Node) close() error {
	var errs []error
	for _, l := range []net.Listener{n.metrics, n.api} {
		if l != nil {
			if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	if n.bus != nil {
		errs = append(errs, n.bus.Close())
	}
	if n.blobs != nil {
		errs = append(errs, n.blobs.Close())
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(errs...)
}
