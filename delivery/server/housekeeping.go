package server

import (
	"context"
	"time"

	"github.com/askucher/compax-core/delivery"
)

const (
	sweepEvery = 6 * time.Hour
	sweepRows  = 5000 // a table and transaction
	looseBlobs = 48 * time.Hour
)

// sweepLoop trims what retention gives up, every six hours and once shortly
// after the start, so that a service that is never up for long trims too.
func (s *Server) sweepLoop(ctx context.Context) {
	first := time.NewTimer(time.Minute)
	defer first.Stop()
	select {
	case <-ctx.Done():
		return
	case <-first.C:
	}
	make(kick).every(ctx, sweepEvery, func(ctx context.Context) {
		s.failed("housekeeping", s.Sweep(ctx))
	})
}

// Sweep drops entries, archive, uploads and expired rows that are past their
// time, and the bytes of blobs that nothing refers to. It may run on every
// instance at once.
func (s *Server) Sweep(ctx context.Context) error {
	now := s.Now()
	plan := delivery.SweepPlan{
		NowMS:          now.UnixMilli(),
		LogBefore:      now.Add(-s.Retention).UnixMilli(),
		ArchiveBefore:  now.Add(-s.ArchiveRetention).UnixMilli(),
		UploadsBefore:  now.Add(-looseBlobs).UnixMilli(),
		MailKeysBefore: now.Add(-s.Retention).UnixMilli(),
		WelcomesBefore: now.Add(-maxPackageLife).UnixMilli(),
		Limit:          sweepRows,
	}
	if now.Before(s.secrets.restored.Add(looseBlobs)) {
		plan.UploadsBefore = 0 // entries that refer to them may still be offered again
	}
	for {
		n, err := s.store.Sweep(ctx, plan)
		if err != nil {
			return err
		}
		for kind, rows := range map[string]int64{
			"entries": n.Entries, "sessions": n.Sessions, "key_packages": n.KeyPackages, "nonces": n.Nonces,
			"mail": n.Mail, "archive": n.Archive, "states": n.States, "welcomes": n.Welcomes, "blobs": int64(len(n.Blobs)),
		} {
			s.metrics.swept.WithLabelValues(kind).Add(float64(rows))
		}
		// Bytes before the row: a crash in between leaves a row that is found again.
		for _, id := range n.Blobs {
			if err := s.Blobs.Delete(ctx, id); err != nil {
				return err
			}
			if err := s.store.DeleteBlob(ctx, id); err != nil {
				s.failed("forgetting a blob", err)
			}
		}
		if !n.More {
			break
		}
	}
	s.metrics.sweptAt.Set(float64(s.Now().Unix()))
	return nil
}
