package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

const deviceColumns = "d.id, d.identity, d.key, d.role, d.version, d.credential, d.enrolled_ms, d.seen_ms"

func device(r row) delivery.Device {
	d := delivery.Device{
		Role: identity.Role(r.int(3)), Version: r.uint(4), Credential: r.blob(5), EnrolledMS: r.int(6), SeenMS: r.int(7),
	}
	r.bytes(0, d.ID[:])
	r.bytes(1, d.Identity[:])
	r.bytes(2, d.Key[:])
	return d
}

// Enrol makes a device known, or takes its newer credential.
func (s *Store) Enrol(ctx context.Context, d delivery.Device, most delivery.DeviceBound) error {
	return s.write(ctx, func(c *change) error {
		_, revoked, err := c.first("SELECT 1 FROM revocations WHERE identity = ? AND device = ?", d.Identity[:], d.ID[:])
		if err != nil {
			return err
		}
		if revoked {
			return delivery.ErrRevoked
		}
		r, known, err := c.first("SELECT "+deviceColumns+" FROM devices d WHERE d.id = ?", d.ID[:])
		if err != nil {
			return err
		}
		if !known {
			devices, revocations, err := countDevices(c.conn, d.Identity)
			if err != nil {
				return err
			}
			if !most.MayEnrol(devices, revocations) {
				return delivery.ErrLimit
			}
			_, err = c.exec(`INSERT INTO devices(id, identity, key, role, version, credential, enrolled_ms, seen_ms)
				VALUES(?, ?, ?, ?, ?, ?, ?, ?)`,
				d.ID[:], d.Identity[:], d.Key[:], int(d.Role), d.Version, d.Credential, d.EnrolledMS, d.SeenMS)
			return exists(err)
		}
		switch old := device(r); {
		case old.Identity != d.Identity || old.Key != d.Key:
			return delivery.ErrExists
		case d.Version == old.Version && bytes.Equal(d.Credential, old.Credential):
			return nil
		case d.Version <= old.Version:
			return delivery.ErrChanged
		}
		_, err = c.exec("UPDATE devices SET role = ?, version = ?, credential = ? WHERE id = ?", int(d.Role), d.Version, d.Credential, d.ID[:])
		return err
	})
}

// countDevices says how many devices and revocations an identity has.
func countDevices(c *conn, id identity.PublicKey) (devices, revocations int, err error) {
	r, err := c.one("SELECT (SELECT count(*) FROM devices WHERE identity = ?1), (SELECT count(*) FROM revocations WHERE identity = ?1)", id[:])
	if err != nil {
		return 0, 0, err
	}
	return int(r.int(0)), int(r.int(1)), nil
}

func (s *Store) oneDevice(ctx context.Context, where string, key []byte) (d delivery.Device, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one("SELECT "+deviceColumns+" FROM devices d WHERE "+where, key)
		if err == nil {
			d = device(r)
		}
		return err
	})
	return d, err
}

// Device finds a device by id.
func (s *Store) Device(ctx context.Context, id identity.DeviceID) (delivery.Device, error) {
	return s.oneDevice(ctx, "d.id = ?", id[:])
}

// DeviceByKey finds a device by its public key.
func (s *Store) DeviceByKey(ctx context.Context, key identity.DevicePublicKey) (delivery.Device, error) {
	return s.oneDevice(ctx, "d.key = ?", key[:])
}

// Devices reads an identity's devices.
func (s *Store) Devices(ctx context.Context, id identity.PublicKey) (list []delivery.Device, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query("SELECT "+deviceColumns+" FROM devices d WHERE d.identity = ? ORDER BY d.n", func(r row) error {
			list = append(list, device(r))
			return nil
		}, id[:])
	})
	return list, err
}

// seenAtOnce is how many devices one statement asks for: each needs a parameter,
// and every number of them would be a statement of its own to keep.
const seenAtOnce = 64

var lastSeen = "SELECT id, seen_ms FROM devices WHERE id IN (?" + strings.Repeat(", ?", seenAtOnce-1) + ")"

// LastSeen reads when devices were last seen.
func (s *Store) LastSeen(ctx context.Context, ids []identity.DeviceID) (map[identity.DeviceID]int64, error) {
	seen := make(map[identity.DeviceID]int64, len(ids))
	err := s.read(ctx, func(c *conn) error {
		args := make([]any, seenAtOnce)
		for piece := range slices.Chunk(ids, seenAtOnce) {
			if err := ctx.Err(); err != nil {
				return err
			}
			clear(args) // NULL is nobody's id
			for i := range piece {
				args[i] = piece[i][:]
			}
			if err := c.query(lastSeen, func(r row) error {
				var id identity.DeviceID
				r.bytes(0, id[:])
				seen[id] = r.int(1)
				return nil
			}, args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return seen, nil
}

// cascade is what goes with a device's row.
var cascade = []string{
	"DELETE FROM sessions WHERE device = ?",
	"DELETE FROM key_packages WHERE device = ?",
	"DELETE FROM mail WHERE device = ?",
	"DELETE FROM wrapped_keys WHERE device = ?",
	"UPDATE blobs SET dead = 1 WHERE owner = ? AND refs = 0 AND dead = 0",
	"DELETE FROM devices WHERE id = ?",
}

// Revoke keeps the tombstone and deletes what the device had.
func (s *Store) Revoke(ctx context.Context, r delivery.StoredRevocation, most delivery.DeviceBound) (fresh bool, err error) {
	err = s.write(ctx, func(c *change) error {
		_, before, err := c.first("SELECT 1 FROM revocations WHERE identity = ? AND device = ?", r.Identity[:], r.Device[:])
		if fresh = !before; err != nil || before {
			return err
		}
		_, enrolled, err := c.first("SELECT 1 FROM devices WHERE id = ? AND identity = ?", r.Device[:], r.Identity[:])
		if err != nil {
			return err
		}
		if !enrolled {
			devices, revocations, err := countDevices(c.conn, r.Identity)
			if err != nil {
				return err
			}
			if !most.MayRevoke(devices, revocations) {
				return delivery.ErrLimit
			}
		}
		if _, err := c.exec("INSERT INTO revocations(device, identity, bytes, revoked_ms) VALUES(?, ?, ?, ?)",
			r.Device[:], r.Identity[:], r.Bytes, r.RevokedMS); err != nil || !enrolled {
			return err
		}
		for _, query := range cascade {
			if _, err := c.exec(query, r.Device[:]); err != nil {
				return err
			}
		}
		return nil
	})
	return fresh && err == nil, err
}

func revocation(r row) delivery.StoredRevocation {
	v := delivery.StoredRevocation{Bytes: r.blob(2), RevokedMS: r.int(3)}
	r.bytes(0, v.Identity[:])
	r.bytes(1, v.Device[:])
	return v
}

// Revocations reads an identity's tombstones.
func (s *Store) Revocations(ctx context.Context, id identity.PublicKey) (list []delivery.StoredRevocation, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query("SELECT identity, device, bytes, revoked_ms FROM revocations WHERE identity = ? ORDER BY n", func(r row) error {
			list = append(list, revocation(r))
			return nil
		}, id[:])
	})
	return list, err
}

// Revoked looks one device up.
func (s *Store) Revoked(ctx context.Context, id identity.PublicKey, device identity.DeviceID) (v delivery.StoredRevocation, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one("SELECT identity, device, bytes, revoked_ms FROM revocations WHERE identity = ? AND device = ?", id[:], device[:])
		if err == nil {
			v = revocation(r)
		}
		return err
	})
	return v, err
}

// RevokedMembers reads current memberships of revoked devices, behind one.
func (s *Store) RevokedMembers(ctx context.Context, after delivery.Membership, limit int) (list []delivery.OwedRemoval, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query(`SELECT m.device, m.identity, m.leaf, m.from_seq, m.until_seq, r.id, r.epoch, r.incarnation
			FROM revocations v JOIN memberships m ON m.device = v.device AND m.identity = v.identity AND m.until_seq = 0
			JOIN rooms r ON r.n = m.room AND r.status <> ?4
			WHERE v.device >= ?1 AND (v.device > ?1 OR m.room > coalesce((SELECT n FROM rooms WHERE id = ?2), 0))
			ORDER BY v.device, m.room LIMIT ?3`, func(r row) error {
			list = append(list, delivery.OwedRemoval{Membership: membershipIn(r), Epoch: r.uint(6), Incarnation: uint32(r.int(7))})
			return nil
		}, after.Device[:], after.Room[:], limit, delivery.RoomSucceeded)
	})
	return list, err
}

// OpenSession inserts the session, ends the device's others and swaps the copy counter.
func (s *Store) OpenSession(ctx context.Context, n delivery.NewSession) (copied bool, err error) {
	err = s.write(ctx, func(c *change) error {
		r, err := c.one("SELECT counter, copied FROM devices WHERE id = ?", n.Device[:])
		if err != nil {
			return err
		}
		copied = n.Copied(r.blob(0), r.int(1) != 0)
		if copied && n.Resume {
			return nil
		}
		if _, err := c.exec("UPDATE devices SET counter = ?, copied = ?, seen_ms = max(seen_ms, ?) WHERE id = ?", n.Want[:], copied, n.NowMS, n.Device[:]); err != nil {
			return err
		}
		if _, err := c.exec("DELETE FROM sessions WHERE device = ? AND token <> ?", n.Device[:], n.Token[:]); err != nil {
			return err
		}
		_, err = c.exec("INSERT INTO sessions(token, device, expires_ms) VALUES(?, ?, ?)", n.Token[:], n.Device[:], n.ExpiresMS)
		return exists(err)
	})
	return copied && err == nil, err
}

// seenEvery is how rarely a session's use is noted, in milliseconds.
const seenEvery = 60_000

// Session finds a live session.
func (s *Store) Session(ctx context.Context, token [32]byte, nowMS int64) (v delivery.Session, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one("SELECT "+deviceColumns+", s.expires_ms FROM sessions s JOIN devices d ON d.id = s.device WHERE s.token = ? AND s.expires_ms > ?",
			token[:], nowMS)
		if err == nil {
			v = delivery.Session{Device: device(r), ExpiresMS: r.int(8)}
		}
		return err
	})
	if err != nil || nowMS-v.Device.SeenMS < seenEvery {
		return v, err
	}
	v.Device.SeenMS = nowMS
	// Only a note: where nothing can be written, people still read.
	_ = s.write(ctx, func(c *change) error {
		_, err := c.exec("UPDATE devices SET seen_ms = ? WHERE id = ? AND seen_ms < ?", nowMS, v.Device.ID[:], nowMS)
		return err
	})
	return v, nil
}

// CloseSession ends one session.
func (s *Store) CloseSession(ctx context.Context, token [32]byte) error {
	return s.write(ctx, func(c *change) error {
		_, err := c.exec("DELETE FROM sessions WHERE token = ?", token[:])
		return err
	})
}

// UseNonce spends a nonce.
func (s *Store) UseNonce(ctx context.Context, key identity.DevicePublicKey, nonce [16]byte, expiresMS int64) (fresh bool, err error) {
	err = s.write(ctx, func(c *change) error {
		n, err := c.exec("INSERT INTO nonces(key, nonce, expires_ms) VALUES(?, ?, ?) ON CONFLICT DO NOTHING", key[:], nonce[:], expiresMS)
		fresh = n == 1
		return err
	})
	return fresh && err == nil, err
}

// Snapshot reads an account's sealed state.
func (s *Store) Snapshot(ctx context.Context, id identity.PublicKey) (version uint64, sealed []byte, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, found, err := c.first("SELECT version, sealed FROM snapshots WHERE identity = ?", id[:])
		if found {
			version, sealed = r.uint(0), r.blob(1)
		}
		return err
	})
	return version, sealed, err
}

// PutSnapshot replaces exactly the given version.
func (s *Store) PutSnapshot(ctx context.Context, id identity.PublicKey, version uint64, sealed []byte) error {
	return s.write(ctx, func(c *change) error {
		query, args := "UPDATE snapshots SET version = version + 1, sealed = ? WHERE identity = ? AND version = ?", []any{sealed, id[:], version}
		if version == 0 {
			query, args = "INSERT INTO snapshots(sealed, identity, version) VALUES(?, ?, 1) ON CONFLICT DO NOTHING", args[:2]
		}
		n, err := c.exec(query, args...)
		if err == nil && n == 0 {
			err = delivery.ErrChanged
		}
		return err
	})
}

// PutArchive keeps a segment.
func (s *Store) PutArchive(ctx context.Context, a delivery.ArchiveSegment, replaces [32]byte, most delivery.ArchiveBound) error {
	if len(a.Name) > delivery.MaxSegmentName {
		return errors.New("sqlite: the name of an archive segment has more than 128 bytes")
	}
	return s.write(ctx, func(c *change) error {
		r, found, err := c.first("SELECT sealed FROM archive WHERE identity = ? AND name = ?", a.Identity[:], []byte(a.Name))
		if err != nil {
			return err
		}
		old, stands := int64(-1), [32]byte{}
		if found {
			sealed := r.blob(0)
			if old, stands = int64(len(sealed)), sha256.Sum256(sealed); stands == sha256.Sum256(a.Sealed) {
				return nil
			}
		}
		if stands != replaces {
			return delivery.ErrChanged
		}
		if r, err = c.one("SELECT count(*), coalesce(sum(size), 0) FROM archive WHERE identity = ?", a.Identity[:]); err != nil {
			return err
		}
		if !most.Fits(int(r.int(0)), r.int(1), old, int64(len(a.Sealed))) {
			return delivery.ErrLimit
		}
		_, err = c.exec(`INSERT INTO archive(identity, name, size, created_ms, sealed) VALUES(?, ?, ?, ?, ?)
			ON CONFLICT(identity, name) DO UPDATE SET size = excluded.size, created_ms = excluded.created_ms, sealed = excluded.sealed`,
			a.Identity[:], []byte(a.Name), len(a.Sealed), a.CreatedMS, a.Sealed)
		return err
	})
}

// Archive lists segments.
func (s *Store) Archive(ctx context.Context, id identity.PublicKey, after string, limit int) (list []delivery.ArchiveSegment, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query("SELECT name, size, created_ms FROM archive WHERE identity = ? AND name > ? ORDER BY name LIMIT ?", func(r row) error {
			list = append(list, delivery.ArchiveSegment{Identity: id, Name: string(r.blob(0)), Size: int(r.int(1)), CreatedMS: r.int(2)})
			return nil
		}, id[:], []byte(after), limit)
	})
	return list, err
}

// ArchiveSegment reads one segment.
func (s *Store) ArchiveSegment(ctx context.Context, id identity.PublicKey, name string) (a delivery.ArchiveSegment, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one("SELECT size, created_ms, sealed FROM archive WHERE identity = ? AND name = ?", id[:], []byte(name))
		if err == nil {
			a = delivery.ArchiveSegment{Identity: id, Name: name, Size: int(r.int(0)), CreatedMS: r.int(1), Sealed: r.blob(2)}
		}
		return err
	})
	return a, err
}

// deviceKnown is delivery.ErrNotFound for a device that is not enrolled: what
// belongs to a device must not come after its revocation.
func deviceKnown(c *conn, id identity.DeviceID) error {
	_, err := c.one("SELECT 1 FROM devices WHERE id = ?", id[:])
	return err
}

// PutWrappedKey keeps a wrapped key.
func (s *Store) PutWrappedKey(ctx context.Context, k delivery.WrappedKey, most int) error {
	return s.write(ctx, func(c *change) error {
		if err := deviceKnown(c.conn, k.Device); err != nil {
			return err
		}
		r, err := c.one("SELECT count(*) FROM wrapped_keys WHERE device = ? AND generation <> ?", k.Device[:], k.Generation)
		if err != nil {
			return err
		}
		if r.int(0) >= int64(most) {
			return delivery.ErrLimit
		}
		_, err = c.exec(`INSERT INTO wrapped_keys(device, generation, wrapped) VALUES(?, ?, ?)
			ON CONFLICT(device, generation) DO UPDATE SET wrapped = excluded.wrapped`, k.Device[:], k.Generation, k.Wrapped)
		return err
	})
}

// WrappedKeys reads a device's wrapped keys.
func (s *Store) WrappedKeys(ctx context.Context, id identity.DeviceID) (list []delivery.WrappedKey, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query("SELECT generation, wrapped FROM wrapped_keys WHERE device = ? ORDER BY generation", func(r row) error {
			list = append(list, delivery.WrappedKey{Device: id, Generation: r.uint(0), Wrapped: r.blob(1)})
			return nil
		}, id[:])
	})
	return list, err
}
