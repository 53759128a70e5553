package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

func idOrNull[T ~[16]byte](id *T) []byte {
	if id == nil {
		return nil
	}
	b := [16]byte(*id)
	return b[:]
}

// lockRoom holds a room's row until the transaction ends.
func lockRoom(ctx context.Context, tx pgx.Tx, id delivery.RoomID) (n int64, r delivery.Room, err error) {
	n, r, err = scanRoom(tx.QueryRow(ctx, "SELECT "+roomColumns+" FROM rooms WHERE id = $1 FOR UPDATE", id[:]).Scan)
	return n, r, noRows(err)
}

// CreateRoom inserts the room, its first state and its members.
func (s *Store) CreateRoom(ctx context.Context, r delivery.NewRoom) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		var n int64
		err := tx.QueryRow(ctx, `INSERT INTO rooms(id, epoch, next_seq, first_seq, kind, status, created_ms, changed_ms)
			VALUES($1, $2, 1, 1, $3, $4, $5, $5) RETURNING n`,
			r.ID[:], int64(r.Epoch), int64(r.Kind), int64(delivery.RoomOpen), r.CreatedMS).Scan(&n)
		if err != nil {
			return err
		}
		var b pgx.Batch
		b.Queue("INSERT INTO bases(room, epoch, state) VALUES($1, $2, $3)", n, int64(r.Epoch), notNull(r.State))
		b.Queue("INSERT INTO group_infos(room, epoch, bytes) VALUES($1, $2, $3)", n, int64(r.Epoch), notNull(r.GroupInfo))
		queueMembers(&b, n, r.Members, 0)
		if r.Incarnation > 0 {
			first := r.Marker.First(1)
			b.Queue("INSERT INTO log(room, seq, epoch, kind, accepted_ms, bytes) VALUES($1, $2, $3, $4, $5, $6)",
				n, int64(first), int64(r.Epoch), int64(delivery.KindIncarnation), r.RestoredMS, r.Marker.Bytes())
			b.Queue("UPDATE rooms SET next_seq = $2, first_ms = $3, changed_ms = $3, status = $4, incarnation = $5 WHERE n = $1",
				n, int64(first+1), r.RestoredMS, int64(delivery.RoomHealing), int64(r.Incarnation))
		}
		return tx.SendBatch(ctx, &b).Close()
	})
}

// arrays are memberships by column.
func arrays(list []delivery.Membership) (devices, identities [][]byte, leaves []int64) {
	for i := range list {
		m := &list[i]
		devices, identities, leaves = append(devices, m.Device[:]), append(identities, m.Identity[:]), append(leaves, int64(m.Leaf))
	}
	return devices, identities, leaves
}

func queueMembers(b *pgx.Batch, n int64, list []delivery.Membership, from uint64) {
	devices, identities, leaves := arrays(list)
	b.Queue(`INSERT INTO memberships(room, device, from_seq, until_seq, identity, leaf)
		SELECT $1, v.device, $2, 0, v.identity, v.leaf FROM unnest($3::bytea[], $4::bytea[], $5::bigint[]) AS v(device, identity, leaf)`,
		n, int64(from), devices, identities, leaves)
}

// Room reads the row.
func (s *Store) Room(ctx context.Context, id delivery.RoomID) (delivery.Room, error) {
	if s.closed.Load() {
		return delivery.Room{}, ErrClosed
	}
	_, r, err := scanRoom(s.pool.QueryRow(ctx, "SELECT "+roomColumns+" FROM rooms WHERE id = $1", id[:]).Scan)
	return r, translate(noRows(err))
}

// memberships reads rows of (room id, device, identity, leaf, from_seq,
// until_seq); a row without a device is none.
func memberships(list *[]delivery.Membership) func(func(...any) error) error {
	return func(scan func(...any) error) error {
		var room, device, id []byte
		var leaf, from, until *int64
		if err := scan(&room, &device, &id, &leaf, &from, &until); err != nil || device == nil {
			return err
		}
		m := delivery.Membership{Leaf: uint32(*leaf), From: uint64(*from), Until: uint64(*until)}
		copy(m.Room[:], room)
		copy(m.Device[:], device)
		copy(m.Identity[:], id)
		*list = append(*list, m)
		return nil
	}
}

const memberColumns = "r.id, m.device, m.identity, m.leaf, m.from_seq, m.until_seq"

// members reads memberships of one room; a room without any gives a row too.
func (s *Store) members(ctx context.Context, query string, args ...any) (list []delivery.Membership, err error) {
	known := false
	each := memberships(&list)
	err = s.list(ctx, query, args, func(scan func(...any) error) error {
		known = true
		return each(scan)
	})
	if err == nil && !known {
		err = delivery.ErrNotFound
	}
	return list, err
}

// Memberships reads one device's intervals in one room.
func (s *Store) Memberships(ctx context.Context, id delivery.RoomID, device identity.DeviceID) ([]delivery.Membership, error) {
	return s.members(ctx, "SELECT "+memberColumns+" FROM rooms r LEFT JOIN memberships m ON m.room = r.n AND m.device = $2 WHERE r.id = $1 ORDER BY m.from_seq",
		id[:], device[:])
}

// Members reads the current members.
func (s *Store) Members(ctx context.Context, id delivery.RoomID) ([]delivery.Membership, error) {
	return s.members(ctx, "SELECT "+memberColumns+" FROM rooms r LEFT JOIN memberships m ON m.room = r.n AND m.until_seq = 0 WHERE r.id = $1 ORDER BY m.leaf", id[:])
}

// RoomsOf reads the device's current memberships.
func (s *Store) RoomsOf(ctx context.Context, device identity.DeviceID) (list []delivery.Membership, err error) {
	err = s.list(ctx, "SELECT "+memberColumns+" FROM memberships m JOIN rooms r ON r.n = m.room WHERE m.device = $1 AND m.until_seq = 0 ORDER BY r.id",
		[]any{device[:]}, memberships(&list))
	return list, err
}

// HeadsOf reads how far the device's rooms are.
func (s *Store) HeadsOf(ctx context.Context, device identity.DeviceID) (heads map[delivery.RoomID]uint64, err error) {
	heads = map[delivery.RoomID]uint64{}
	err = s.list(ctx, "SELECT r.id, r.next_seq - 1 FROM memberships m JOIN rooms r ON r.n = m.room WHERE m.device = $1 AND m.until_seq = 0",
		[]any{device[:]}, func(scan func(...any) error) error {
			var id []byte
			var head int64
			if err := scan(&id, &head); err != nil {
				return err
			}
			heads[delivery.RoomID(id)] = uint64(head)
			return nil
		})
	return heads, err
}

// RoomsOfIdentity reads the rooms that any device of the identity is in.
func (s *Store) RoomsOfIdentity(ctx context.Context, id identity.PublicKey) (list []delivery.RoomID, err error) {
	err = s.list(ctx, "SELECT DISTINCT r.id FROM memberships m JOIN rooms r ON r.n = m.room WHERE m.identity = $1 AND m.until_seq = 0 ORDER BY r.id",
		[]any{id[:]}, func(scan func(...any) error) error {
			var room []byte
			if err := scan(&room); err != nil {
				return err
			}
			list = append(list, delivery.RoomID(room))
			return nil
		})
	return list, err
}

// heldProposals reads rows of (ref, seq, epoch, proposer, must, bytes); a row
// without a ref is none.
func heldProposals(list *[]delivery.HeldProposal) func(func(...any) error) error {
	return func(scan func(...any) error) error {
		var seq, epoch, proposer *int64
		var must *bool
		var p delivery.HeldProposal
		if err := scan(&p.Ref, &seq, &epoch, &proposer, &must, &p.Bytes); err != nil || seq == nil {
			return err
		}
		p.Seq, p.Epoch, p.Proposer, p.Must = uint64(*seq), uint64(*epoch), uint32(*proposer), *must
		if len(p.Bytes) == 0 {
			p.Bytes = nil
		}
		*list = append(*list, p)
		return nil
	}
}

// Held reads the held proposals.
func (s *Store) Held(ctx context.Context, id delivery.RoomID) (list []delivery.HeldProposal, err error) {
	known := false
	each := heldProposals(&list)
	err = s.list(ctx, `SELECT p.ref, p.seq, p.epoch, p.proposer, p.must, p.bytes FROM rooms r LEFT JOIN proposals p ON p.room = r.n
		WHERE r.id = $1 ORDER BY p.seq, p.n`, []any{id[:]}, func(scan func(...any) error) error {
		known = true
		return each(scan)
	})
	if err == nil && !known {
		err = delivery.ErrNotFound
	}
	return list, err
}
