package server

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// After a restore from a backup a room may be behind its members. They offer
// the raw entries that they kept; the service checks handshakes in their order
// as if they were new and gives each entry a seq behind the incarnation. Then
// the room opens: when every device in it has said what it has, or when the
// window since the restore is over. A device that comes later and is ahead of
// the room resyncs, or the room gets a successor.

const healRetry = 10 * time.Second

// healing remembers who has offered. It only makes rooms open sooner: what
// decides in the end is the clock and the room's incarnation entry.
type healing struct {
	mu    sync.Mutex // guards the fields below
	rooms map[delivery.RoomID]*offers
}

type offers struct {
	incarnation uint32
	devices     map[identity.DeviceID]bool
	complete    bool
}

func (h *healing) init() { h.rooms = map[delivery.RoomID]*offers{} }

// offered notes that a device has nothing newer, and whether all have now.
func (h *healing) offered(room delivery.Room, device identity.DeviceID, members []delivery.Membership) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.rooms[room.ID]
	if o == nil || o.incarnation != room.Incarnation {
		o = &offers{incarnation: room.Incarnation, devices: map[identity.DeviceID]bool{}}
		h.rooms[room.ID] = o
	}
	o.devices[device] = true
	o.complete = true
	for _, m := range members {
		o.complete = o.complete && o.devices[m.Device]
	}
	return o.complete
}

// healed reports whether a healing room may open.
func (s *Server) healed(room delivery.Room, now time.Time) bool {
	if now.After(s.secrets.restored.Add(s.HealWindow)) {
		return true
	}
	s.healing.mu.Lock()
	defer s.healing.mu.Unlock()
	o := s.healing.rooms[room.ID]
	return o != nil && o.incarnation == room.Incarnation && o.complete
}

// heal takes entries that the restored service lost.
func (s *Server) heal(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	req, err := delivery.ParseHeal(c.body)
	if err != nil {
		return bad("the body is not a HealRequest")
	}
	if err := s.spend(c, "heal", c.device().String(), 1); err != nil {
		return err
	}
	list, err := s.store.Memberships(c, id, c.device())
	if err != nil {
		return err
	}
	if n := len(list); n == 0 || !list[n-1].Current() {
		return delivery.ErrNotFound
	}
	out, err := s.takeBack(c, id, req)
	if err != nil {
		return err
	}
	room, err := s.store.Room(c, id)
	if err != nil {
		return err
	}
	if room.Status == delivery.RoomHealing {
		members, err := s.store.Members(c, id)
		if err != nil {
			return err
		}
		if out == len(req.Entries) && s.healing.offered(room, c.device(), members) || s.healed(room, s.Now()) {
			if room, err = s.openRoom(c, id); err != nil {
				return err
			}
		}
	}
	return c.json(delivery.HealResponse{Taken: out, Head: room.NextSeq - 1, Epoch: room.Epoch, Status: room.Status})
}

func (s *Server) openRoom(ctx context.Context, id delivery.RoomID) (room delivery.Room, err error) {
	err = s.store.WithRoom(ctx, id, func(tx delivery.RoomTx) error {
		if tx.Room().Status == delivery.RoomHealing {
			if err := tx.SetStatus(delivery.RoomOpen, nil); err != nil {
				return err
			}
		}
		room = tx.Room()
		return nil
	})
	return room, err
}

// takeBack runs offered entries in order, and says how many are in the log now,
// known ones included. It stops at the first that does not fit: what comes
// behind it cannot fit either.
func (s *Server) takeBack(ctx context.Context, id delivery.RoomID, req delivery.HealRequest) (int, error) {
	last := -1
	for i, e := range req.Entries {
		if e.Kind == delivery.KindCommit {
			last = i
		}
	}
	for i, e := range req.Entries {
		if e.Kind == delivery.KindIncarnation {
			continue
		}
		a := delivery.AppendRequest{Entry: e.Bytes}
		if i == last {
			a.GroupInfo = req.GroupInfo
		}
		err := s.takeOne(ctx, id, a, e)
		if delivery.CodeOf(err) != "" {
			return i, nil
		}
		if err != nil {
			return i, err
		}
	}
	return len(req.Entries), nil
}

func (s *Server) takeOne(ctx context.Context, id delivery.RoomID, a delivery.AppendRequest, e delivery.Entry) error {
	// What the backup held stands at its old seq.
	known, err := s.store.Log(ctx, id, delivery.LogRange{After: e.Seq - 1, Upto: e.Seq, Limit: 1, MaxBytes: delivery.MaxEntry})
	if err != nil {
		return err
	}
	if len(known) == 1 {
		if known[0].Epoch == e.Epoch && bytes.Equal(known[0].Bytes, e.Bytes) {
			return nil
		}
		return delivery.Refuse(delivery.CodeConflict, "another entry stands at this seq")
	}
	in, err := decodeEntry(id, a)
	if err != nil {
		return err
	}
	if in.kind != e.Kind || in.epoch != e.Epoch {
		return bad("an offered entry is not what it says")
	}
	in.old, in.acceptedMS = true, e.AcceptedMS
	if in.kind == delivery.KindCommit && len(a.GroupInfo) > 0 {
		if err := in.parseInfo(); err != nil {
			return err
		}
	}
	acc, err := s.Append(ctx, in)
	if err == nil && !acc.Duplicate {
		s.metrics.healed.Inc()
	}
	return err
}
