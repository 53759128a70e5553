package server

import (
	"context"
	"errors"

	"github.com/askucher/compax-core/delivery"
)

// listRooms answers with the rooms of this device, and those that only other
// devices of its identity are in: it may join them by external commit.
func (s *Server) listRooms(c *call) error {
	mine, err := s.store.RoomsOf(c, c.device())
	if err != nil {
		return err
	}
	all, err := s.store.RoomsOfIdentity(c, c.who.Device.Identity)
	if err != nil {
		return err
	}
	out := delivery.RoomsResponse{Rooms: []delivery.RoomView{}}
	seen := make(map[delivery.RoomID]bool, len(mine))
	for _, m := range mine {
		seen[m.Room] = true
		out.Rooms = append(out.Rooms, delivery.RoomView{Room: m.Room, Member: true})
	}
	for _, id := range all {
		if !seen[id] {
			out.Rooms = append(out.Rooms, delivery.RoomView{Room: id})
		}
	}
	return c.json(out)
}

// insight says what a device may see of a room's present.
type insight struct {
	room   delivery.Room
	member bool // this device has a leaf
	joins  bool // another device of its identity has: it may join
}

// see finds a room for a device; one that it has nothing to do with is not
// told from one that does not exist.
func (s *Server) see(c *call, id delivery.RoomID) (insight, error) {
	room, err := s.store.Room(c, id)
	if err != nil {
		return insight{}, err
	}
	in := insight{room: room}
	f, err := s.follow(c, id)
	if err != nil {
		return in, err
	}
	in.room.Epoch = f.epoch
	_, in.member = f.roster.Device(c.device())
	in.joins = f.roster.Has(c.who.Device.Identity) > 0
	return in, nil
}

func (s *Server) roomHead(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	in, err := s.see(c, id)
	if err != nil {
		return err
	}
	if !in.member && !in.joins {
		if !s.wasMember(c, id) {
			return delivery.ErrNotFound
		}
		// Who was in it may know that it is out, and nothing of what came later.
		return c.json(delivery.RoomHead{Room: id, Kind: in.room.Kind, Status: in.room.Status, Successor: in.room.Successor})
	}
	room, err := s.store.Room(c, id)
	if err != nil {
		return err
	}
	held, err := s.store.Held(c, id)
	if err != nil {
		return err
	}
	h := delivery.RoomHead{
		Room: id, Epoch: room.Epoch, LastSeq: room.NextSeq - 1, FirstSeq: room.FirstSeq, Kind: room.Kind,
		Status: room.Status, Incarnation: room.Incarnation, Successor: room.Successor,
	}
	if room.Status == delivery.RoomHealing && s.healed(room, s.Now()) {
		h.Status = delivery.RoomOpen
	}
	for _, p := range held {
		if p.Epoch == room.Epoch {
			h.Proposals = append(h.Proposals, delivery.HeldRef{Ref: p.Ref, Seq: p.Seq})
		}
	}
	return c.json(h)
}

func (s *Server) wasMember(c *call, id delivery.RoomID) bool {
	list, err := s.store.Memberships(c, id, c.device())
	return err == nil && len(list) > 0
}

// mayRead checks that the caller may read a room's public state at an epoch:
// members and who may join read any that is kept; a device that a Welcome waits
// for reads that epoch's, also when it was removed again meanwhile.
func (s *Server) mayRead(c *call) (delivery.RoomID, uint64, error) {
	id, err := s.room(c)
	if err != nil {
		return id, 0, err
	}
	in, err := s.see(c, id)
	if err != nil {
		return id, 0, err
	}
	epoch, err := c.number("epoch", in.room.Epoch)
	if err != nil {
		return id, 0, err
	}
	if in.member || in.joins {
		return id, epoch, nil
	}
	_, err = s.store.Welcome(c, id, epoch, c.device())
	return id, epoch, err
}

func (s *Server) groupInfo(c *call) error {
	id, epoch, err := s.mayRead(c)
	if err != nil {
		return err
	}
	b, err := s.store.GroupInfo(c, id, epoch)
	if err != nil {
		return gone(err)
	}
	return c.binary(b)
}

func (s *Server) ratchetTree(c *call) error {
	id, epoch, err := s.mayRead(c)
	if err != nil {
		return err
	}
	f, err := s.follow(c, id)
	if err != nil {
		return err
	}
	if f.epoch != epoch {
		if f, err = s.loadEpoch(c, id, epoch); err != nil {
			return gone(err)
		}
	}
	return c.binary(f.tree())
}

// gone: an epoch that is not kept is past retention, not unknown.
func gone(err error) error {
	if errors.Is(err, delivery.ErrNotFound) {
		return delivery.Refuse(delivery.CodeTrimmed, "this epoch's public state is not kept any more")
	}
	return err
}

// heldProposals gives the entries of the held proposals to who may join: an
// external commit has to reference the SelfRemoves among them.
func (s *Server) heldProposals(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	in, err := s.see(c, id)
	if err != nil {
		return err
	}
	if !in.member && !in.joins {
		return delivery.ErrNotFound
	}
	held, err := s.store.Held(c, id)
	if err != nil {
		return err
	}
	page := delivery.LogPage{Head: in.room.NextSeq - 1, First: in.room.FirstSeq}
	for _, h := range held {
		page.Entries = append(page.Entries, delivery.Entry{Seq: h.Seq, Epoch: h.Epoch, Kind: delivery.KindProposal, Bytes: h.Bytes})
	}
	return c.binary(page.AppendTo(nil))
}

// follow is the room's public state at its present epoch.
func (s *Server) follow(ctx context.Context, id delivery.RoomID) (*followed, error) {
	room, err := s.store.Room(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.loadEpoch(ctx, id, room.Epoch)
}
