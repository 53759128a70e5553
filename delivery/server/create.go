package server

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls/wire"
)

// createRoom makes a room of a group that has one leaf, the caller's: everybody
// else comes in by a commit that the room has ordered. The same request again
// gets the same answer.
func (s *Server) createRoom(c *call) error {
	req, err := delivery.ParseCreateRoom(c.body)
	if err != nil {
		return bad("the body is not a CreateRoomRequest")
	}
	r, f, err := s.newRoom(c, req)
	if err != nil {
		return err
	}
	switch err := s.store.CreateRoom(c, r); {
	case errors.Is(err, delivery.ErrExists):
		old, err := s.store.GroupInfo(c, r.ID, f.epoch)
		if err != nil && !errors.Is(err, delivery.ErrNotFound) {
			return err
		}
		if !bytes.Equal(old, req.GroupInfo) {
			return delivery.Refuse(delivery.CodeConflict, "a room of this id exists")
		}
	case err != nil:
		return err
	default:
		s.metrics.rooms.Inc()
		s.follows.put(r.ID, f)
	}
	return c.json(delivery.RoomHead{Room: r.ID, Epoch: f.epoch, FirstSeq: 1, Kind: f.room.Kind, Status: delivery.RoomOpen})
}

// newRoom checks a request to make a room.
func (s *Server) newRoom(c *call, req delivery.CreateRoomRequest) (r delivery.NewRoom, f *followed, err error) {
	var m wire.MLSMessage
	if wire.Unmarshal(req.GroupInfo, &m) != nil || m.WireFormat != wire.WireFormatGroupInfo {
		return r, nil, bad("the GroupInfo is not an MLSMessage with a GroupInfo")
	}
	id, err := delivery.RoomIDFromBytes(m.GroupInfo.GroupContext.GroupID)
	if err != nil {
		return r, nil, bad("the group id is not a room id")
	}
	if err := s.here(id); err != nil {
		return r, nil, err
	}
	if m.GroupInfo.GroupContext.Epoch > delivery.MaxNumber {
		return r, nil, bad("a room begins at an epoch of at most 2^62")
	}
	if f, err = s.foundRoom(c.who.Device, m.GroupInfo, req.Tree); err != nil {
		return r, nil, s.founding(err)
	}
	if err := s.spend(c, "room", c.who.Device.Identity.String(), 1); err != nil {
		return r, nil, err
	}
	return delivery.NewRoom{
		ID: id, Epoch: f.epoch, Kind: f.room.Kind, CreatedMS: s.nowMS(), State: f.base(), GroupInfo: req.GroupInfo,
		Members: []delivery.Membership{f.roster.Members()[0].Membership(id)},
	}, f, nil
}

// foundRoom checks a new room's group: GroupInfo and tree by RFC 9420, its
// context and its one leaf by policy.
func (s *Server) foundRoom(d delivery.Device, info *wire.GroupInfo, tree []byte) (*followed, error) {
	if _, has := info.Extensions.Find(wire.ExtensionTypeExternalPub); !has {
		return nil, bad("the GroupInfo has no external_pub: nobody could ever join by external commit")
	}
	if _, has := info.Extensions.Find(wire.ExtensionTypeRatchetTree); has {
		return nil, bad("the tree comes beside the GroupInfo, not in it")
	}
	f, err := newFollowed(info, tree, s.SenderKey(), s.Now())
	if err != nil {
		return nil, err
	}
	members := f.roster.Members()
	if len(members) != 1 { // whose GroupInfo is signed by a leaf
		return nil, delivery.Refuse(delivery.CodeRefused, "a new room has one leaf, its creator's")
	}
	if members[0].Device != d.ID {
		return nil, delivery.Refuse(delivery.CodeRefused, "the room's first leaf is another device's")
	}
	if want := delivery.RoomID(info.GroupContext.GroupID).URI(s.Domain); f.room.URI != want {
		return nil, delivery.Refuse(delivery.CodeRefused, "the room's URI is not of this service's domain: it is mimi://"+s.Domain+"/r/ and the room's id")
	}
	return f, s.checkSize(nil, f.room)
}

func (s *Server) founding(err error) error {
	if refusal := s.policyRefusal(err); delivery.CodeOf(refusal) != "" {
		return refusal
	}
	if isInvalid(err) {
		return bad("the group does not verify: " + invalidity(err))
	}
	return fmt.Errorf("server: found a room: %w", err)
}

// checkSize holds a room's list of participants, banned ones included, to the
// service's bound. One that is above it already may shrink and stay; before is nil
// for a new room.
func (s *Server) checkSize(before, after *policy.Room) error {
	was := 0
	if before != nil {
		was = len(before.Participants)
	}
	if now := len(after.Participants); now > s.MaxMembers && now > was {
		return delivery.Refuse(delivery.CodeRefused, fmt.Sprintf("a room here has at most %d participants, this one would list %d", s.MaxMembers, now))
	}
	return nil
}
