package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// After a restore from a backup a room may be behind its members, or not be
// there at all. They offer the raw entries that they kept; the service checks
// handshakes in their order as if they were new and gives each entry a seq behind
// the incarnation (takeback.go). A room that the backup does not know is made
// again from its creator's founding (refound.go). Then the room opens: when every
// device in it has said what it has, or when the time to do so is over. A device
// that comes later sends its own messages again, and resyncs when it is ahead.

const healRetry = 10 * time.Second

// strangerCost is what an offer of a device that is not in the restored room
// costs of the bucket "heal": it may have come in after the backup, and what it
// offers is verified all the same.
const strangerCost = 20

// healing remembers who has offered. It only makes rooms open sooner and in
// better order: what decides in the end is the clock, the room's status and the
// room's rules.
type healing struct {
	mu    sync.Mutex // guards the fields below
	rooms map[delivery.RoomID]*offers
}

type offers struct {
	incarnation uint32
	since       time.Time                  // when the first offer came
	said        map[identity.DeviceID]bool // who has offered; true = all that it holds is in
	everybody   bool                       // all devices have offered
	complete    bool                       // and all that they hold is in
}

func (h *healing) init() { h.rooms = map[delivery.RoomID]*offers{} }

// of is what is known of a room's offers. h.mu is held.
func (h *healing) of(room delivery.Room, now time.Time) *offers {
	o := h.rooms[room.ID]
	if o == nil || o.incarnation != room.Incarnation {
		o = &offers{incarnation: room.Incarnation, since: now, said: map[identity.DeviceID]bool{}}
		h.rooms[room.ID] = o
	}
	return o
}

// begun notes that somebody offers.
func (h *healing) begun(room delivery.Room, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of(room, now)
}

// offered notes that a device has offered what it holds; done says that all of it
// is in.
func (h *healing) offered(room delivery.Room, device identity.DeviceID, done bool, members []delivery.Membership, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.of(room, now)
	o.said[device] = done
	o.everybody, o.complete = true, true
	for _, m := range members {
		done, said := o.said[m.Device]
		o.everybody, o.complete = o.everybody && said, o.complete && done
	}
}

// forget frees what is known of a room that is open.
func (h *healing) forget(room delivery.RoomID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.rooms, room)
}

// healed reports whether a healing room may open: when the window since the
// restore is over and, where somebody has begun to offer later than that, a fifth
// of it since then.
func (s *Server) healed(room delivery.Room, now time.Time) bool {
	s.healing.mu.Lock()
	defer s.healing.mu.Unlock()
	o := s.healing.rooms[room.ID]
	known := o != nil && o.incarnation == room.Incarnation
	if known && o.complete {
		return true
	}
	end := s.secrets.present.since.Add(s.HealWindow)
	if known && o.since.Add(s.HealWindow/5).After(end) {
		end = o.since.Add(s.HealWindow / 5)
	}
	return now.After(end)
}

// gaps reports whether a healing room takes entries behind others that nobody has
// offered: once everybody has said what they hold, or when waiting for the rest
// takes longer than a tenth of the window.
func (s *Server) gaps(room delivery.Room, now time.Time) bool {
	s.healing.mu.Lock()
	defer s.healing.mu.Unlock()
	o := s.healing.rooms[room.ID]
	return o != nil && o.incarnation == room.Incarnation && (o.everybody || now.After(o.since.Add(s.HealWindow/10)))
}

// heal takes entries that the restored service lost. Any device may offer:
// handshakes prove themselves, and messages count from a device that is in the
// room at their epoch. A device that is not in it afterwards is told nothing.
func (s *Server) heal(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	req, err := delivery.ParseHeal(c.body)
	if err != nil {
		return bad("the body is not a HealRequest")
	}
	list, err := s.store.Memberships(c, id, c.device())
	if err != nil && !errors.Is(err, delivery.ErrNotFound) {
		return err
	}
	cost := float64(1)
	if n := len(list); n == 0 || !list[n-1].Current() {
		cost = strangerCost
	}
	if err := s.spend(c, "heal", c.device().String(), cost); err != nil {
		return err
	}
	if errors.Is(err, delivery.ErrNotFound) {
		if err := s.refound(c, id, req.Founding); err != nil {
			return err
		}
	}
	room, err := s.store.Room(c, id)
	if err != nil {
		return err
	}
	var out taken
	if room.Status == delivery.RoomHealing {
		s.healing.begun(room, s.Now())
		if out, err = s.takeBack(c, room, req); err != nil {
			return err
		}
	}
	f, err := s.follow(c, id)
	if err != nil {
		return err
	}
	if _, in := f.roster.Device(c.device()); !in {
		return delivery.ErrNotFound
	}
	if err := s.completeInfo(c, id, f, req.GroupInfo); err != nil {
		return err
	}
	if room, err = s.store.Room(c, id); err != nil {
		return err
	}
	if room.Status == delivery.RoomHealing && !req.More {
		if room, err = s.finish(c, room, out.n == len(req.Entries)); err != nil {
			return err
		}
	}
	return c.json(delivery.HealResponse{
		Taken: out.n, Dropped: out.dropped, Missing: out.missing, Head: room.NextSeq - 1, Epoch: room.Epoch, Status: room.Status,
	})
}

// finish notes that the caller has nothing more to offer now, and opens the room
// when that was what it waited for.
func (s *Server) finish(c *call, room delivery.Room, done bool) (delivery.Room, error) {
	members, err := s.store.Members(c, room.ID)
	if err != nil {
		return room, err
	}
	// Of a log that begins with the restore nobody knows who came into the room: it
	// waits for the clock.
	first, err := s.store.Log(c, room.ID, delivery.LogRange{Limit: 1})
	if err != nil {
		return room, err
	}
	blind := len(first) == 0 || first[0].Kind == delivery.KindIncarnation
	now := s.Now()
	s.healing.offered(room, c.device(), done && !blind, members, now)
	if !s.healed(room, now) {
		return room, nil
	}
	return s.openRoom(c, room.ID)
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
	if err == nil {
		s.healing.forget(id)
	}
	return room, err
}

// completeInfo keeps the offered GroupInfo when the room has none of its epoch:
// healed commits come without. Without it nobody could come in by external commit.
func (s *Server) completeInfo(ctx context.Context, id delivery.RoomID, f *followed, info []byte) error {
	if len(info) == 0 {
		return nil
	}
	have, err := s.store.GroupInfo(ctx, id, f.epoch)
	if err != nil || len(have) > 0 {
		return err
	}
	var m wire.MLSMessage
	if wire.Unmarshal(info, &m) != nil || m.WireFormat != wire.WireFormatGroupInfo {
		return bad("the GroupInfo is not an MLSMessage with a GroupInfo")
	}
	if m.GroupInfo.GroupContext.Epoch != f.epoch || checkInfoForm(m.GroupInfo) != nil || f.group.CheckGroupInfo(m.GroupInfo) != nil {
		return nil // of another epoch, or of another room that the device takes for this one
	}
	return s.store.WithRoom(ctx, id, func(tx delivery.RoomTx) error {
		if tx.Room().Epoch != f.epoch {
			return nil
		}
		return tx.SetGroupInfo(info)
	})
}
