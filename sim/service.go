package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/askucher/compax-core/blob/disk"
	"github.com/askucher/compax-core/bus/local"
	"github.com/askucher/compax-core/delivery/server"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/store/sqlite"
)

// service is the delivery service of a world, on disk below dir.
type service struct {
	dir     string
	clock   *Clock
	random  io.Reader
	network *Network

	store *sqlite.Store
	blobs *disk.Store
	bus   *local.Bus
	s     *server.Server
}

var home = identity.Home{0x51, 0x3d, 0x0e}

func (v *service) running() bool { return v.s != nil }

// start opens the service on what is on its disk.
func (v *service) start(ctx context.Context) (err error) {
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	if v.store, err = sqlite.Open(ctx, filepath.Join(v.dir, "compax.db")); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	if v.blobs, err = disk.Open(filepath.Join(v.dir, "blobs")); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	v.bus = local.NewBus()
	v.s, err = server.New(ctx, server.Config{
		Store: v.store, Blobs: v.blobs, Bus: v.bus, Buckets: local.NewBuckets(10_000), Home: home,
		Domain: "sim.example", Now: v.clock.Now, Random: v.random, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	v.network.Attach(v.s.Handler())
	return nil
}

// stop takes the service down as a kill does, as far as one process can: what
// was not durable is not there at the next start.
func (v *service) stop() error {
	if !v.running() {
		return nil
	}
	v.network.Attach(nil)
	v.s = nil
	return errors.Join(v.bus.Close(), v.blobs.Close(), v.store.Close())
}

// chores does what the service does between requests.
func (v *service) chores(ctx context.Context) error {
	for {
		n, err := v.s.Relay(ctx)
		if err != nil {
			return fmt.Errorf("sim: relay: %w", err)
		}
		if n == 0 {
			break
		}
	}
	if err := v.s.ProposeRemovals(ctx); err != nil {
		return fmt.Errorf("sim: propose removals: %w", err)
	}
	return nil
}

// backup copies the service's disk to a folder while it is stopped.
func (v *service) backup(to string) error {
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	return copyTree(to, v.dir)
}

// restore puts a backup in place and begins a new incarnation of it.
func (v *service) restore(ctx context.Context, from string) error {
	if err := os.RemoveAll(v.dir); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	if err := copyTree(v.dir, from); err != nil {
		return err
	}
	store, err := sqlite.Open(ctx, filepath.Join(v.dir, "compax.db"))
	if err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	return errors.Join(server.StartIncarnation(ctx, store, v.clock.Now()), store.Close())
}

// copyTree copies a folder.
func copyTree(to, from string) error {
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o600)
	})
	if err != nil {
		return fmt.Errorf("sim: copy: %w", err)
	}
	return nil
}
