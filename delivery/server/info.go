package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
)

func (s *Server) info(c *call) error {
	last, err := incarnation(c, s.store)
	if err != nil {
		return err
	}
	level := s.Level(c)
	out := delivery.Info{
		Name: s.Name, Version: s.Version, Home: s.Home, Domain: s.Domain, ConfigDigest: s.Digest,
		SenderKey: s.SenderKey(), SenderIndex: policy.HomeSenderIndex,
		RetentionDays: int(s.Retention / (24 * time.Hour)), ArchiveDays: int(s.ArchiveRetention / (24 * time.Hour)), MaxBlobBytes: s.Limits.Congestion.maxUpload(level, s.MaxBlob),
		Level: level.String(), Refused: s.Limits.Congestion.refused(level), TimeMS: s.nowMS(), Incarnation: last.n,
	}
	if last.n > 0 {
		out.RestoredMS = last.since.UnixMilli()
	}
	for _, id := range policy.Suites {
		out.Suites = append(out.Suites, uint16(id))
	}
	for r := range rules {
		if s.mode(r) == ModeShadow {
			out.Shadow = append(out.Shadow, string(r))
		}
	}
	return c.json(out)
}

// live: the process answers.
func (s *Server) live(c *call) error { return c.json(delivery.Health{Status: "ok"}) }

// ready: it can take work now.
func (s *Server) ready(c *call) error {
	h, ok := s.parts(c)
	h.Parts = nil
	return c.healthy(h, ok)
}

func (s *Server) health(c *call) error {
	h, ok := s.parts(c)
	return c.healthy(h, ok)
}

// checkup is what the parts said last. Anybody may ask, and the store answers by a
// write, so it is asked once a second for all who want to know.
type checkup struct {
	mu   sync.Mutex // guards last
	last *checked
}

// checked is one look at the parts, under way until done is closed.
type checked struct {
	at           time.Time
	done         chan struct{}
	store, blobs bool
}

const (
	checkupGood = time.Second
	checkupTime = 5 * time.Second // for the parts to answer
)

func (s *Server) parts(ctx context.Context) (delivery.Health, bool) {
	c := s.look(ctx)
	h := delivery.Health{Status: "ok", Parts: map[string]string{"store": "ok", "blobs": "ok"}}
	if !c.store {
		h.Parts["store"], h.Status = "failing", "failing"
	}
	if !c.blobs {
		h.Parts["blobs"], h.Status = "failing", "failing"
	}
	if s.draining.Load() {
		h.Status = "draining"
	}
	return h, h.Status == "ok"
}

// look gives the last look at the parts, or takes one that others wait for, too.
func (s *Server) look(ctx context.Context) *checked {
	now := s.Now()
	s.checkup.mu.Lock()
	c := s.checkup.last
	fresh := c == nil || now.Before(c.at) || now.Sub(c.at) >= checkupGood
	if fresh {
		c = &checked{at: now, done: make(chan struct{})}
		s.checkup.last = c
	}
	s.checkup.mu.Unlock()
	if !fresh {
		select {
		case <-c.done:
			return c
		case <-ctx.Done():
			return &checked{} // nobody is told
		}
	}
	defer close(c.done)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkupTime)
	defer cancel()
	_, err := s.Blobs.Free(ctx)
	c.store, c.blobs = s.store.Ping(ctx) == nil, err == nil
	return c
}

func (c *call) healthy(h delivery.Health, ok bool) error {
	if ok {
		return c.json(h)
	}
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = c.w.Write(b) // the caller is gone: nobody to tell
	return nil
}

func (s *Server) openAPIDocument(c *call) error { return c.send("application/json", s.openapi) }
