package server

import (
	"errors"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// refound makes a room again that was made after the backup, from the request
// that it was made by. That is what the caller could ask of [Server.createRoom] as
// well, under the same checks: the group has one leaf, the caller's, which signed
// it for this room id, and no room has the id. Everybody else comes in again by
// the commits that are offered behind it; so nobody is in the room by anybody's
// word. Where the creator is gone the others make a successor room.
func (s *Server) refound(c *call, id delivery.RoomID, founding []byte) error {
	last, err := incarnation(c, s.store)
	if err != nil {
		return err
	}
	if last.n == 0 || len(founding) == 0 {
		return delivery.ErrNotFound
	}
	req, err := delivery.ParseCreateRoom(founding)
	if err != nil {
		return bad("the founding is not a CreateRoomRequest")
	}
	r, f, err := s.newRoom(c, req)
	if err != nil {
		return err
	}
	if r.ID != id {
		return bad("the founding is of another room")
	}
	r.Incarnation, r.RestoredMS, r.Marker = last.n, s.nowMS(), last.marker
	r.CreatedMS = max(min(foundedMS(f), last.since.UnixMilli()), s.Now().Add(-s.Retention).UnixMilli())
	switch err := s.store.CreateRoom(c, r); {
	case errors.Is(err, delivery.ErrExists):
		return nil // it is there again already
	case err != nil:
		return err
	}
	s.metrics.rooms.Inc()
	s.follows.put(id, f)
	return nil
}

// foundedMS is from when on the creator's leaf is valid: the room is not older.
func foundedMS(f *followed) int64 {
	leaf := f.group.Leaf(tree.LeafIndex(f.roster.Members()[0].Leaf))
	if leaf == nil || leaf.LeafNodeSource != wire.LeafNodeSourceKeyPackage {
		return 0
	}
	return int64(min(leaf.Lifetime.NotBefore, 1<<40)) * 1000
}
