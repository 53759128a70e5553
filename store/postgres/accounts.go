package postgres

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

const deviceColumns = "d.id, d.identity, d.key, d.role, d.version, d.credential, d.enrolled_ms, d.seen_ms"

func scanDevice(scan func(...any) error, more ...any) (d delivery.Device, err error) {
	var id, owner, key []byte
	err = noRows(scan(append([]any{&id, &owner, &key, &d.Role, &d.Version, &d.Credential, &d.EnrolledMS, &d.SeenMS}, more...)...))
	copy(d.ID[:], id)
	copy(d.Identity[:], owner)
	copy(d.Key[:], key)
	return d, err
}

// lockIdentity serialises enrolment and revocation of an identity's devices, which
// may have no row yet.
func lockIdentity(ctx context.Context, tx pgx.Tx, id identity.PublicKey) error {
	return lockKey(ctx, tx, append([]byte("devices"), id[:]...))
}

// lockKey serialises until the transaction's end what is done about one key.
func lockKey(ctx context.Context, tx pgx.Tx, key []byte) error {
	h := fnv.New64a()
	_, _ = h.Write(key)
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(h.Sum64()))
	return err
}

// Enrol makes a device known, or takes its newer credential.
func (s *Store) Enrol(ctx context.Context, d delivery.Device, most delivery.DeviceBound) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		if err := lockIdentity(ctx, tx, d.Identity); err != nil {
			return err
		}
		var revoked bool
		err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM revocations WHERE identity = $1 AND device = $2)", d.Identity[:], d.ID[:]).Scan(&revoked)
		if err != nil {
			return err
		}
		if revoked {
			return delivery.ErrRevoked
		}
		old, err := scanDevice(tx.QueryRow(ctx, "SELECT "+deviceColumns+" FROM devices d WHERE d.id = $1 FOR UPDATE", d.ID[:]).Scan)
		switch {
		case errors.Is(err, delivery.ErrNotFound):
			devices, revocations, err := countDevices(ctx, tx, d.Identity)
			if err != nil {
				return err
			}
			if !most.MayEnrol(devices, revocations) {
				return delivery.ErrLimit
			}
			_, err = tx.Exec(ctx, `INSERT INTO devices(id, identity, key, role, version, credential, enrolled_ms, seen_ms)
				VALUES($1, $2, $3, $4, $5, $6, $7, $8)`,
				d.ID[:], d.Identity[:], d.Key[:], int64(d.Role), int64(d.Version), notNull(d.Credential), d.EnrolledMS, d.SeenMS)
			return err
		case err != nil:
			return err
		case old.Identity != d.Identity || old.Key != d.Key:
			return delivery.ErrExists
		case d.Version == old.Version && bytes.Equal(d.Credential, old.Credential):
			return nil
		case d.Version <= old.Version:
			return delivery.ErrChanged
		}
		_, err = tx.Exec(ctx, "UPDATE devices SET role = $1, version = $2, credential = $3 WHERE id = $4", int64(d.Role), int64(d.Version), notNull(d.Credential), d.ID[:])
		return err
	})
}

// countDevices says how many devices and revocations an identity has.
func countDevices(ctx context.Context, tx pgx.Tx, id identity.PublicKey) (devices, revocations int, err error) {
	err = tx.QueryRow(ctx, "SELECT (SELECT count(*) FROM devices WHERE identity = $1), (SELECT count(*) FROM revocations WHERE identity = $1)", id[:]).
		Scan(&devices, &revocations)
	return devices, revocations, err
}

func (s *Store) oneDevice(ctx context.Context, where string, key []byte) (delivery.Device, error) {
	if s.closed.Load() {
		return delivery.Device{}, ErrClosed
	}
	d, err := scanDevice(s.pool.QueryRow(ctx, "SELECT "+deviceColumns+" FROM devices d WHERE "+where, key).Scan)
	return d, translate(err)
}

// Device finds a device by id.
func (s *Store) Device(ctx context.Context, id identity.DeviceID) (delivery.Device, error) {
	return s.oneDevice(ctx, "d.id = $1", id[:])
}

// DeviceByKey finds a device by its public key.
func (s *Store) DeviceByKey(ctx context.Context, key identity.DevicePublicKey) (delivery.Device, error) {
	return s.oneDevice(ctx, "d.key = $1", key[:])
}

// Devices reads an identity's devices.
func (s *Store) Devices(ctx context.Context, id identity.PublicKey) (list []delivery.Device, err error) {
	err = s.list(ctx, "SELECT "+deviceColumns+" FROM devices d WHERE d.identity = $1 ORDER BY d.n", []any{id[:]}, func(scan func(...any) error) error {
		d, err := scanDevice(scan)
		list = append(list, d)
		return err
	})
	return list, err
}

// seenAtOnce is how many devices one statement asks for: it bounds a message to the
// database to 32 KiB.
const seenAtOnce = 1024

// LastSeen reads when devices were last seen.
func (s *Store) LastSeen(ctx context.Context, ids []identity.DeviceID) (map[identity.DeviceID]int64, error) {
	seen := make(map[identity.DeviceID]int64, len(ids))
	for piece := range slices.Chunk(ids, seenAtOnce) {
		list := make([][]byte, len(piece))
		for i := range piece {
			list[i] = piece[i][:]
		}
		if err := s.list(ctx, "SELECT id, seen_ms FROM devices WHERE id = ANY($1)", []any{list}, func(scan func(...any) error) error {
			var raw []byte
			var at int64
			if err := scan(&raw, &at); err != nil {
				return err
			}
			seen[identity.DeviceID(raw)] = at
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// cascade is what goes with a device's row. Whoever adds to it holds the row.
var cascade = []string{
	"DELETE FROM sessions WHERE device = $1",
	"DELETE FROM key_packages WHERE device = $1",
	"DELETE FROM mail WHERE device = $1",
	"DELETE FROM wrapped_keys WHERE device = $1",
	"UPDATE blobs SET dead = true WHERE owner = $1 AND refs = 0 AND NOT dead",
	"DELETE FROM devices WHERE id = $1",
}

// Revoke keeps the tombstone and deletes what the device had.
func (s *Store) Revoke(ctx context.Context, r delivery.StoredRevocation, most delivery.DeviceBound) (fresh bool, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if err := lockIdentity(ctx, tx, r.Identity); err != nil {
			return err
		}
		var before bool
		err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM revocations WHERE identity = $1 AND device = $2)", r.Identity[:], r.Device[:]).Scan(&before)
		if fresh = !before; err != nil || before {
			return err
		}
		var one int
		err = row(tx.QueryRow(ctx, "SELECT 1 FROM devices WHERE id = $1 AND identity = $2 FOR UPDATE", r.Device[:], r.Identity[:]), &one)
		enrolled := err == nil
		if err != nil && !errors.Is(err, delivery.ErrNotFound) {
			return err
		}
		if !enrolled {
			devices, revocations, err := countDevices(ctx, tx, r.Identity)
			if err != nil {
				return err
			}
			if !most.MayRevoke(devices, revocations) {
				return delivery.ErrLimit
			}
		}
		if _, err := tx.Exec(ctx, "INSERT INTO revocations(device, identity, bytes, revoked_ms) VALUES($1, $2, $3, $4)",
			r.Device[:], r.Identity[:], notNull(r.Bytes), r.RevokedMS); err != nil || !enrolled {
			return err
		}
		for _, query := range cascade {
			if _, err := tx.Exec(ctx, query, r.Device[:]); err != nil {
				return err
			}
		}
		return nil
	})
	return fresh && err == nil, err
}

func scanRevocation(scan func(...any) error) (v delivery.StoredRevocation, err error) {
	var owner, device []byte
	err = noRows(scan(&owner, &device, &v.Bytes, &v.RevokedMS))
	copy(v.Identity[:], owner)
	copy(v.Device[:], device)
	return v, err
}

// Revocations reads an identity's tombstones.
func (s *Store) Revocations(ctx context.Context, id identity.PublicKey) (list []delivery.StoredRevocation, err error) {
	err = s.list(ctx, "SELECT identity, device, bytes, revoked_ms FROM revocations WHERE identity = $1 ORDER BY n", []any{id[:]}, func(scan func(...any) error) error {
		v, err := scanRevocation(scan)
		list = append(list, v)
		return err
	})
	return list, err
}

// Revoked looks one device up.
func (s *Store) Revoked(ctx context.Context, id identity.PublicKey, device identity.DeviceID) (delivery.StoredRevocation, error) {
	if s.closed.Load() {
		return delivery.StoredRevocation{}, ErrClosed
	}
	v, err := scanRevocation(s.pool.QueryRow(ctx, "SELECT identity, device, bytes, revoked_ms FROM revocations WHERE identity = $1 AND device = $2", id[:], device[:]).Scan)
	return v, translate(err)
}

// RevokedMembers reads current memberships of revoked devices, behind one.
func (s *Store) RevokedMembers(ctx context.Context, after delivery.Membership, limit int) (list []delivery.OwedRemoval, err error) {
	err = s.list(ctx, "SELECT "+memberColumns+`, r.epoch, r.incarnation FROM revocations v
		JOIN memberships m ON m.device = v.device AND m.identity = v.identity AND m.until_seq = 0
		JOIN rooms r ON r.n = m.room AND r.status <> $4
		WHERE v.device >= $1 AND (v.device > $1 OR m.room > coalesce((SELECT n FROM rooms WHERE id = $2), 0))
		ORDER BY v.device, m.room LIMIT $3`,
		[]any{after.Device[:], after.Room[:], int64(limit), int64(delivery.RoomSucceeded)}, func(scan func(...any) error) error {
			var owed delivery.OwedRemoval
			var one []delivery.Membership
			err := memberships(&one)(func(dst ...any) error { return scan(append(dst, &owed.Epoch, &owed.Incarnation)...) })
			if err != nil {
				return err
			}
			owed.Membership = one[0]
			list = append(list, owed)
			return nil
		})
	return list, err
}

// holdDevice keeps a device's row from being deleted until the transaction
// ends; delivery.ErrNotFound when it is not enrolled, or not any more.
func holdDevice(ctx context.Context, tx pgx.Tx, id identity.DeviceID) error {
	var one int
	return row(tx.QueryRow(ctx, "SELECT 1 FROM devices WHERE id = $1 FOR KEY SHARE", id[:]), &one)
}

// OpenSession inserts the session, ends the device's others and swaps the copy counter.
func (s *Store) OpenSession(ctx context.Context, n delivery.NewSession) (copied bool, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		var stored []byte
		var told bool
		err := row(tx.QueryRow(ctx, "SELECT counter, copied FROM devices WHERE id = $1 FOR UPDATE", n.Device[:]), &stored, &told)
		if err != nil {
			return err
		}
		copied = n.Copied(stored, told)
		if copied && n.Resume {
			return nil
		}
		if _, err := tx.Exec(ctx, "UPDATE devices SET counter = $1, copied = $2, seen_ms = greatest(seen_ms, $3) WHERE id = $4", n.Want[:], copied, n.NowMS, n.Device[:]); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM sessions WHERE device = $1 AND token <> $2", n.Device[:], n.Token[:]); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO sessions(token, device, expires_ms) VALUES($1, $2, $3)", n.Token[:], n.Device[:], n.ExpiresMS)
		return err
	})
	return copied && err == nil, err
}

// seenEvery is how rarely a session's use is noted, in milliseconds.
const seenEvery = 60_000

// Session finds a live session.
func (s *Store) Session(ctx context.Context, token [32]byte, nowMS int64) (v delivery.Session, err error) {
	if s.closed.Load() {
		return v, ErrClosed
	}
	v.Device, err = scanDevice(s.pool.QueryRow(ctx, "SELECT "+deviceColumns+`, s.expires_ms FROM sessions s JOIN devices d ON d.id = s.device
		WHERE s.token = $1 AND s.expires_ms > $2`, token[:], nowMS).Scan, &v.ExpiresMS)
	if err != nil || nowMS-v.Device.SeenMS < seenEvery {
		return v, translate(err)
	}
	v.Device.SeenMS = nowMS
	// Only a note: where nothing can be written, people still read.
	_ = s.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE devices SET seen_ms = $1 WHERE id = $2 AND seen_ms < $1", nowMS, v.Device.ID[:])
		return err
	})
	return v, nil
}

// CloseSession ends one session.
func (s *Store) CloseSession(ctx context.Context, token [32]byte) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM sessions WHERE token = $1", token[:])
		return err
	})
}

// UseNonce spends a nonce.
func (s *Store) UseNonce(ctx context.Context, key identity.DevicePublicKey, nonce [16]byte, expiresMS int64) (fresh bool, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "INSERT INTO nonces(key, nonce, expires_ms) VALUES($1, $2, $3) ON CONFLICT DO NOTHING", key[:], nonce[:], expiresMS)
		fresh = tag.RowsAffected() == 1
		return err
	})
	return fresh && err == nil, err
}
