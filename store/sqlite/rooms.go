package sqlite

import (
	"context"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

const roomColumns = "n, id, epoch, next_seq, first_seq, kind, status, incarnation, successor, created_ms, changed_ms"

func roomByID(c *conn, id delivery.RoomID) (int64, delivery.Room, error) {
	r, err := c.one("SELECT "+roomColumns+" FROM rooms WHERE id = ?", id[:])
	if err != nil {
		return 0, delivery.Room{}, err
	}
	room := delivery.Room{
		ID: id, Epoch: r.uint(2), NextSeq: r.uint(3), FirstSeq: r.uint(4),
		Kind: delivery.RoomKind(r.int(5)), Status: delivery.RoomStatus(r.int(6)), Incarnation: uint32(r.int(7)),
		CreatedMS: r.int(9), ChangedMS: r.int(10),
	}
	if !r.null(8) {
		room.Successor = new(delivery.RoomID)
		r.bytes(8, room.Successor[:])
	}
	return r.int(0), room, nil
}

func roomNumber(c *conn, id delivery.RoomID) (int64, error) {
	r, err := c.one("SELECT n FROM rooms WHERE id = ?", id[:])
	if err != nil {
		return 0, err
	}
	return r.int(0), nil
}

func idOrNull[T ~[16]byte](id *T) any {
	if id == nil {
		return nil
	}
	b := [16]byte(*id)
	return b[:]
}

// CreateRoom inserts the room, its first state and its members.
func (s *Store) CreateRoom(ctx context.Context, r delivery.NewRoom) error {
	return s.write(ctx, func(c *change) error {
		_, err := c.exec(`INSERT INTO rooms(id, epoch, next_seq, first_seq, kind, status, created_ms, changed_ms)
			VALUES(?, ?, 1, 1, ?, ?, ?, ?)`, r.ID[:], r.Epoch, r.Kind, delivery.RoomOpen, r.CreatedMS, r.CreatedMS)
		if err != nil {
			return exists(err)
		}
		n, err := roomNumber(c.conn, r.ID)
		if err != nil {
			return err
		}
		if _, err := c.exec("INSERT INTO bases(room, epoch, state) VALUES(?, ?, ?)", n, r.Epoch, r.State); err != nil {
			return err
		}
		if _, err := c.exec("INSERT INTO group_infos(room, epoch, bytes) VALUES(?, ?, ?)", n, r.Epoch, r.GroupInfo); err != nil {
			return err
		}
		for _, m := range r.Members {
			if err := addMember(c, n, m, 0); err != nil {
				return err
			}
		}
		if r.Incarnation == 0 {
			return nil
		}
		first, at := r.Marker.First(1), c.tail.give()
		if _, err := c.exec("INSERT INTO log(at, room, seq, epoch, kind, accepted_ms, bytes) VALUES(?, ?, ?, ?, ?, ?, ?)",
			at, n, first, r.Epoch, delivery.KindIncarnation, r.RestoredMS, r.Marker.Bytes()); err != nil {
			return err
		}
		if _, err := c.exec(placeOne, n, first, at); err != nil {
			return err
		}
		_, err = c.exec("UPDATE rooms SET next_seq = ?, first_ms = ?, changed_ms = ?, status = ?, incarnation = ? WHERE n = ?",
			first+1, r.RestoredMS, r.RestoredMS, delivery.RoomHealing, r.Incarnation, n)
		return err
	})
}

// Room reads the row.
func (s *Store) Room(ctx context.Context, id delivery.RoomID) (room delivery.Room, err error) {
	last, ok := s.writer.tail.view().newest(id)
	err = s.read(ctx, func(c *conn) error {
		_, room, err = roomByID(c, id)
		return err
	})
	if err == nil && ok {
		last.extend(&room)
	}
	return room, err
}

func membership(room delivery.RoomID, r row) delivery.Membership {
	m := delivery.Membership{Room: room, Leaf: uint32(r.int(2)), From: r.uint(3), Until: r.uint(4)}
	r.bytes(0, m.Device[:])
	r.bytes(1, m.Identity[:])
	return m
}

// membershipIn is membership with the room's id in column 5.
func membershipIn(r row) delivery.Membership {
	var id delivery.RoomID
	r.bytes(5, id[:])
	return membership(id, r)
}

func addMember(c *change, n int64, m delivery.Membership, from uint64) error {
	_, err := c.exec("INSERT INTO memberships(room, device, from_seq, until_seq, identity, leaf) VALUES(?, ?, ?, 0, ?, ?)",
		n, m.Device[:], from, m.Identity[:], m.Leaf)
	return exists(err)
}

// members reads memberships of one room.
func (s *Store) members(ctx context.Context, id delivery.RoomID, query string, args ...any) (list []delivery.Membership, err error) {
	err = s.snapshot(ctx, func(c *conn) error {
		n, err := roomNumber(c, id)
		if err != nil {
			return err
		}
		return c.query(query, func(r row) error {
			list = append(list, membership(id, r))
			return nil
		}, append([]any{n}, args...)...)
	})
	return list, err
}

// Memberships reads one device's intervals in one room.
func (s *Store) Memberships(ctx context.Context, id delivery.RoomID, device identity.DeviceID) ([]delivery.Membership, error) {
	return s.members(ctx, id, "SELECT device, identity, leaf, from_seq, until_seq FROM memberships WHERE room = ? AND device = ? ORDER BY from_seq", device[:])
}

// Members reads the current members.
func (s *Store) Members(ctx context.Context, id delivery.RoomID) ([]delivery.Membership, error) {
	return s.members(ctx, id, "SELECT device, identity, leaf, from_seq, until_seq FROM memberships WHERE room = ? AND until_seq = 0 ORDER BY leaf")
}

// RoomsOf reads the device's current memberships.
func (s *Store) RoomsOf(ctx context.Context, device identity.DeviceID) (list []delivery.Membership, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query(`SELECT m.device, m.identity, m.leaf, m.from_seq, m.until_seq, r.id FROM memberships m JOIN rooms r ON r.n = m.room
			WHERE m.device = ? AND m.until_seq = 0 ORDER BY r.id`, func(r row) error {
			list = append(list, membershipIn(r))
			return nil
		}, device[:])
	})
	return list, err
}

// HeadsOf reads how far the device's rooms are.
func (s *Store) HeadsOf(ctx context.Context, device identity.DeviceID) (heads map[delivery.RoomID]uint64, err error) {
	heads = map[delivery.RoomID]uint64{}
	tail := s.writer.tail.view()
	err = s.read(ctx, func(c *conn) error {
		return c.query("SELECT r.id, r.next_seq - 1 FROM memberships m JOIN rooms r ON r.n = m.room WHERE m.device = ? AND m.until_seq = 0", func(r row) error {
			var id delivery.RoomID
			r.bytes(0, id[:])
			heads[id] = r.uint(1)
			if last, ok := tail.newest(id); ok {
				heads[id] = max(heads[id], last.seq)
			}
			return nil
		}, device[:])
	})
	return heads, err
}

// RoomsOfIdentity reads the rooms that any device of the identity is in.
func (s *Store) RoomsOfIdentity(ctx context.Context, id identity.PublicKey) (list []delivery.RoomID, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query(`SELECT DISTINCT r.id FROM memberships m JOIN rooms r ON r.n = m.room
			WHERE m.identity = ? AND m.until_seq = 0 ORDER BY r.id`, func(r row) error {
			var id delivery.RoomID
			r.bytes(0, id[:])
			list = append(list, id)
			return nil
		}, id[:])
	})
	return list, err
}

func held(c *conn, n int64) (list []delivery.HeldProposal, err error) {
	err = c.query("SELECT ref, seq, epoch, proposer, must, bytes FROM proposals WHERE room = ? ORDER BY seq, n", func(r row) error {
		list = append(list, delivery.HeldProposal{Ref: r.blob(0), Seq: r.uint(1), Epoch: r.uint(2), Proposer: uint32(r.int(3)), Must: r.bool(4), Bytes: r.blob(5)})
		return nil
	}, n)
	return list, err
}

// Held reads the held proposals.
func (s *Store) Held(ctx context.Context, id delivery.RoomID) (list []delivery.HeldProposal, err error) {
	err = s.snapshot(ctx, func(c *conn) error {
		n, err := roomNumber(c, id)
		if err != nil {
			return err
		}
		list, err = held(c, n)
		return err
	})
	return list, err
}
