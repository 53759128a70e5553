package postgres

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Snapshot reads an account's sealed state.
func (s *Store) Snapshot(ctx context.Context, id identity.PublicKey) (version uint64, sealed []byte, err error) {
	err = s.read(ctx, "SELECT version, sealed FROM snapshots WHERE identity = $1", []any{id[:]}, &version, &sealed)
	if errors.Is(err, delivery.ErrNotFound) {
		return 0, nil, nil
	}
	return version, sealed, err
}

// PutSnapshot replaces exactly the given version.
func (s *Store) PutSnapshot(ctx context.Context, id identity.PublicKey, version uint64, sealed []byte) error {
	return s.write(ctx, func(tx pgx.Tx) (err error) {
		var tag pgconn.CommandTag
		if version == 0 {
			tag, err = tx.Exec(ctx, "INSERT INTO snapshots(identity, version, sealed) VALUES($1, 1, $2) ON CONFLICT DO NOTHING", id[:], notNull(sealed))
		} else {
			tag, err = tx.Exec(ctx, "UPDATE snapshots SET version = version + 1, sealed = $2 WHERE identity = $1 AND version = $3", id[:], notNull(sealed), int64(version))
		}
		if err == nil && tag.RowsAffected() == 0 {
			err = delivery.ErrChanged
		}
		return err
	})
}

// PutArchive keeps a segment. What one identity keeps changes by one writer at a
// time, so that its sum holds.
func (s *Store) PutArchive(ctx context.Context, a delivery.ArchiveSegment, replaces [32]byte, most delivery.ArchiveBound) error {
	if len(a.Name) > delivery.MaxSegmentName {
		return errors.New("postgres: the name of an archive segment has more than 128 bytes")
	}
	return s.write(ctx, func(tx pgx.Tx) error {
		if err := lockKey(ctx, tx, append([]byte("archive"), a.Identity[:]...)); err != nil {
			return err
		}
		var sealed []byte
		err := tx.QueryRow(ctx, "SELECT sealed FROM archive WHERE identity = $1 AND name = $2", a.Identity[:], []byte(a.Name)).Scan(&sealed)
		old, stands := int64(-1), [32]byte{}
		switch {
		case err == nil:
			if old, stands = int64(len(sealed)), sha256.Sum256(sealed); stands == sha256.Sum256(a.Sealed) {
				return nil
			}
		case !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		if stands != replaces {
			return delivery.ErrChanged
		}
		var count, size int64
		err = tx.QueryRow(ctx, "SELECT count(*), coalesce(sum(size), 0)::bigint FROM archive WHERE identity = $1", a.Identity[:]).Scan(&count, &size)
		if err != nil {
			return err
		}
		if !most.Fits(int(count), size, old, int64(len(a.Sealed))) {
			return delivery.ErrLimit
		}
		_, err = tx.Exec(ctx, `INSERT INTO archive(identity, name, size, created_ms, sealed) VALUES($1, $2, $3, $4, $5)
			ON CONFLICT(identity, name) DO UPDATE SET size = excluded.size, created_ms = excluded.created_ms, sealed = excluded.sealed`,
			a.Identity[:], []byte(a.Name), int64(len(a.Sealed)), a.CreatedMS, notNull(a.Sealed))
		return err
	})
}

// Archive lists segments.
func (s *Store) Archive(ctx context.Context, id identity.PublicKey, after string, limit int) (list []delivery.ArchiveSegment, err error) {
	err = s.list(ctx, "SELECT name, size, created_ms FROM archive WHERE identity = $1 AND name > $2 ORDER BY name LIMIT $3",
		[]any{id[:], []byte(after), int64(limit)}, func(scan func(...any) error) error {
			a := delivery.ArchiveSegment{Identity: id}
			var name []byte
			err := scan(&name, &a.Size, &a.CreatedMS)
			a.Name = string(name)
			list = append(list, a)
			return err
		})
	return list, err
}

// ArchiveSegment reads one segment.
func (s *Store) ArchiveSegment(ctx context.Context, id identity.PublicKey, name string) (delivery.ArchiveSegment, error) {
	a := delivery.ArchiveSegment{Identity: id, Name: name}
	err := s.read(ctx, "SELECT size, created_ms, sealed FROM archive WHERE identity = $1 AND name = $2", []any{id[:], []byte(name)}, &a.Size, &a.CreatedMS, &a.Sealed)
	return a, err
}

// PutWrappedKey keeps a wrapped key.
func (s *Store) PutWrappedKey(ctx context.Context, k delivery.WrappedKey, most int) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		if err := lockKey(ctx, tx, append([]byte("wrapped"), k.Device[:]...)); err != nil {
			return err
		}
		if err := holdDevice(ctx, tx, k.Device); err != nil {
			return err
		}
		var others int
		err := tx.QueryRow(ctx, "SELECT count(*) FROM wrapped_keys WHERE device = $1 AND generation <> $2", k.Device[:], int64(k.Generation)).Scan(&others)
		if err != nil {
			return err
		}
		if others >= most {
			return delivery.ErrLimit
		}
		_, err = tx.Exec(ctx, `INSERT INTO wrapped_keys(device, generation, wrapped) VALUES($1, $2, $3)
			ON CONFLICT(device, generation) DO UPDATE SET wrapped = excluded.wrapped`, k.Device[:], int64(k.Generation), notNull(k.Wrapped))
		return err
	})
}

// WrappedKeys reads a device's wrapped keys.
func (s *Store) WrappedKeys(ctx context.Context, id identity.DeviceID) (list []delivery.WrappedKey, err error) {
	err = s.list(ctx, "SELECT generation, wrapped FROM wrapped_keys WHERE device = $1 ORDER BY generation", []any{id[:]}, func(scan func(...any) error) error {
		k := delivery.WrappedKey{Device: id}
		err := scan(&k.Generation, &k.Wrapped)
		list = append(list, k)
		return err
	})
	return list, err
}

// Setting reads a value.
func (s *Store) Setting(ctx context.Context, key string) (value []byte, err error) {
	err = s.read(ctx, "SELECT value FROM settings WHERE key = $1", []any{key}, &value)
	return value, err
}

// InitSetting sets a value unless there is one.
func (s *Store) InitSetting(ctx context.Context, key string, value []byte) (stands []byte, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO settings(key, value) VALUES($1, $2) ON CONFLICT DO NOTHING", key, notNull(value)); err != nil {
			return err
		}
		return tx.QueryRow(ctx, "SELECT value FROM settings WHERE key = $1", key).Scan(&stands)
	})
	return stands, err
}

// PutSetting sets a value.
func (s *Store) PutSetting(ctx context.Context, key string, value []byte) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, putSetting, key, notNull(value))
		return err
	})
}

const putSetting = "INSERT INTO settings(key, value) VALUES($1, $2) ON CONFLICT(key) DO UPDATE SET value = excluded.value"
