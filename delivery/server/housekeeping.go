package server

import (
	"context"
	"errors"
	"time"

	"github.com/askucher/compax-core/delivery"
)

const (
	sweepEvery = 6 * time.Hour
	sweepRows  = 500 // a transaction: appends wait behind it for some milliseconds
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
// time, and the bytes of blobs that nothing refers to, in pieces, until ctx ends. It
// may run on every instance at once. What fails of the blobs it says at the end,
// when the rest is done.
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
	if now.Before(s.secrets.present.since.Add(looseBlobs)) {
		plan.UploadsBefore = 0 // entries that refer to them may still be offered again
	}
	var stays error
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := s.store.Sweep(ctx, plan)
		gone, failed := s.deleteBlobs(ctx, n.Blobs)
		for kind, rows := range map[string]int64{
			"entries": n.Entries, "sessions": n.Sessions, "key_packages": n.KeyPackages, "nonces": n.Nonces,
			"mail": n.Mail, "archive": n.Archive, "states": n.States, "welcomes": n.Welcomes, "blobs": gone,
		} {
			s.metrics.swept.WithLabelValues(kind).Add(float64(rows))
		}
		if err != nil {
			return err
		}
		if stays == nil {
			stays = failed
		}
		if len(n.Blobs) > 0 {
			plan.BlobsAfter = n.Blobs[len(n.Blobs)-1]
		}
		more = n.More
	}
	if stays != nil {
		return stays
	}
	s.metrics.sweptAt.Set(float64(s.Now().Unix()))
	return nil
}

// deleteBlobs deletes bytes and then rows, in this order: a crash in between leaves
// a row that is found again. One that cannot be deleted stays and holds up no other;
// the error is the first of them.
func (s *Server) deleteBlobs(ctx context.Context, ids []delivery.BlobID) (gone int64, first error) {
	for _, id := range ids {
		err := s.Blobs.Delete(ctx, id)
		if err == nil {
			err = s.store.DeleteBlob(ctx, id)
		}
		switch {
		case err == nil:
			gone++
		case errors.Is(err, delivery.ErrNotFound): // another instance was faster
		case first == nil:
			first = err
		}
	}
	return gone, first
}
