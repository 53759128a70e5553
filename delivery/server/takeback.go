package server

import (
	"bytes"
	"context"
	"errors"
	"math"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// taken is what became of an offer.
type taken struct {
	n       int // entries dealt with, from the first on
	dropped int // of those: what fits nowhere any more
	missing int // blobs whose bytes are gone
}

// old is an entry that a member offers again while the room heals. Who sent it
// then was checked then; its signatures are checked again.
type old struct {
	seq  uint64 // before the restore
	jump uint64 // of the restore
	gaps bool   // it may follow entries that nobody has offered
	// vouched: who offers a message is in the room at its epoch.
	vouched bool
	// acceptedMS is when it was accepted: as offered, but neither before the room's
	// last entry nor after now. The lifetimes in it are judged by that time.
	acceptedMS int64
}

// place is the seq that an entry which follows the backup without a gap gets: as
// far behind the incarnation as it was behind the backup.
func (o *old) place() uint64 { return o.seq + o.jump + 1 }

// takeBack runs offered entries in order. While others may still bring what is
// between it stops at the first that does not follow what the room has; after
// that what does not fit is passed over.
func (s *Server) takeBack(c *call, room delivery.Room, req delivery.HealRequest) (out taken, err error) {
	floor, err := s.newest(c, room)
	if err != nil {
		return out, err
	}
	gaps := s.gaps(room, s.Now())
	kept, err := s.firstKept(c, room)
	if err != nil {
		return out, err
	}
	for _, e := range req.Entries {
		if e.Kind == delivery.KindIncarnation || e.Seq < kept {
			out.n++
			continue
		}
		o := &old{seq: e.Seq, jump: s.secrets.present.marker.Jump, gaps: gaps, acceptedMS: min(max(e.AcceptedMS, floor), s.nowMS())}
		fresh, missing, err := s.takeOne(c, room.ID, o, e)
		if code := delivery.CodeOf(err); code != "" && code != delivery.CodeRetry {
			if !gaps {
				return out, nil
			}
			out.dropped++
		} else if err != nil {
			return out, err
		} else if fresh {
			floor = max(floor, o.acceptedMS)
		}
		out.missing += missing
		out.n++
	}
	return out, nil
}

// firstKept is the seq before which the backup's entries are past retention, and
// so not lost.
func (s *Server) firstKept(ctx context.Context, room delivery.Room) (uint64, error) {
	list, err := s.store.Log(ctx, room.ID, delivery.LogRange{Limit: 1})
	switch {
	case err != nil:
		return 0, err
	case len(list) == 0:
		return room.NextSeq, nil
	case list[0].Kind == delivery.KindIncarnation:
		return list[0].Seq - delivery.MarkerOf(list[0]).Jump, nil
	}
	return list[0].Seq, nil
}

// newest is when the last entry that the room has was accepted, in Unix
// milliseconds: nothing that it lost is older.
func (s *Server) newest(ctx context.Context, room delivery.Room) (int64, error) {
	at := func(seq uint64) (delivery.Entry, bool, error) {
		list, err := s.store.Log(ctx, room.ID, delivery.LogRange{After: seq - 1, Upto: seq, Limit: 1})
		if err != nil || len(list) == 0 {
			return delivery.Entry{}, false, err
		}
		return list[0], true, nil
	}
	e, found, err := at(room.NextSeq - 1)
	if err == nil && found && e.Kind == delivery.KindIncarnation {
		jump := delivery.MarkerOf(e).Jump
		if found = e.Seq > jump+1; found {
			e, found, err = at(e.Seq - jump - 1)
		}
	}
	if err != nil || !found {
		return room.CreatedMS, err
	}
	return e.AcceptedMS, nil
}

// takeOne takes one entry back, unless the room has it. Codes say why it does not
// fit; fresh says that it has a seq now which it had not before.
func (s *Server) takeOne(c *call, id delivery.RoomID, o *old, e delivery.KeptEntry) (fresh bool, missing int, err error) {
	if e.Seq > delivery.MaxNumber {
		return false, 0, bad("no entry has such a seq")
	}
	// What the backup held stands at its old seq.
	known, err := s.store.Log(c, id, delivery.LogRange{After: e.Seq - 1, Upto: e.Seq, Limit: 1, MaxBytes: delivery.MaxEntry})
	if err != nil {
		return false, 0, err
	}
	if len(known) == 1 {
		if known[0].Epoch == e.Epoch && bytes.Equal(known[0].Bytes, e.Bytes) {
			return false, 0, nil
		}
		return false, 0, delivery.Refuse(delivery.CodeConflict, "another entry stands at this seq")
	}
	in, err := decodeEntry(id, delivery.AppendRequest{Entry: e.Bytes})
	if err != nil {
		return false, 0, err
	}
	if in.kind != e.Kind || in.epoch != e.Epoch {
		return false, 0, bad("an offered entry is not what it says")
	}
	in.old = o
	if in.kind == delivery.KindApplication {
		if o.vouched, err = s.mayVouch(c, id, in.epoch); err != nil {
			return false, 0, err
		}
		if in.request.Blobs, err = s.findBlobs(c, e.Blobs); err != nil {
			return false, 0, err
		}
		missing = len(e.Blobs) - len(in.request.Blobs)
	}
	acc, err := s.Append(c, in)
	if err != nil {
		return false, 0, err
	}
	if acc.Duplicate {
		return false, 0, nil
	}
	s.metrics.healed.Inc()
	return true, missing, nil
}

// mayVouch reports whether the caller is in the room at the epoch of a message: the
// service cannot verify messages, and takes them from those only who could have
// sent one then.
func (s *Server) mayVouch(c *call, id delivery.RoomID, epoch uint64) (bool, error) {
	f, err := s.follow(c, id)
	if err != nil {
		return false, err
	}
	_, in := f.roster.Device(c.device())
	return in && f.epoch == epoch, nil
}

// findBlobs gives those of the blobs whose bytes are here, and makes their rows
// again when the backup does not know them: the store of blobs may be newer. A
// blob that another entry refers to counts only when the caller may read it.
func (s *Server) findBlobs(c *call, ids []delivery.BlobID) (out []delivery.BlobID, err error) {
	for _, id := range ids {
		m, err := s.store.Blob(c, id)
		if errors.Is(err, delivery.ErrNotFound) {
			m, err = s.adopt(c, id)
		}
		if errors.Is(err, delivery.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := s.catchUp(c, &m); err != nil {
			return nil, err
		}
		may := m.Refs == 0
		if !may {
			if may, err = s.store.MayReadBlob(c, id, c.device()); err != nil {
				return nil, err
			}
		}
		if _, err := s.Blobs.Size(c, id); errors.Is(err, delivery.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		if m.Complete() && may {
			out = append(out, id)
		}
	}
	return out, nil
}

// adopt makes the row of a blob whose bytes outlived it. Nobody owns it: until an
// entry refers to it nobody reads it.
func (s *Server) adopt(ctx context.Context, id delivery.BlobID) (delivery.BlobMeta, error) {
	size, err := s.Blobs.Size(ctx, id)
	if err != nil {
		return delivery.BlobMeta{}, err
	}
	m := delivery.BlobMeta{ID: id, Owner: identity.DeviceID{}, Size: size, Received: size, CreatedMS: s.nowMS()}
	switch err := s.store.CreateBlob(ctx, m, math.MaxInt64); {
	case errors.Is(err, delivery.ErrExists): // somebody else was faster, or it is being deleted
		return s.store.Blob(ctx, id)
	case err != nil:
		return m, err
	}
	return m, nil
}

// at is the time by which an entry is judged.
func (in *incoming) at(now time.Time) time.Time {
	if in.old != nil {
		return time.UnixMilli(in.old.acceptedMS)
	}
	return now
}
