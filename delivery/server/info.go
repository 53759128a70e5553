package server

import (
	"context"
	"encoding/json"
	"net/http"
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

func (s *Server) parts(ctx context.Context) (delivery.Health, bool) {
	h := delivery.Health{Status: "ok", Parts: map[string]string{"store": "ok", "blobs": "ok"}}
	ok := true
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		h.Parts["store"], h.Status, ok = "failing", "failing", false
	}
	if _, err := s.Blobs.Free(ctx); err != nil {
		h.Parts["blobs"], h.Status, ok = "failing", "failing", false
	}
	if s.draining.Load() {
		h.Status, ok = "draining", false
	}
	return h, ok
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
