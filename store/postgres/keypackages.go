package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// PublishKeyPackages adds a batch.
func (s *Store) PublishKeyPackages(ctx context.Context, batch []delivery.StoredKeyPackage) error {
	if len(batch) == 0 {
		return nil
	}
	for _, p := range batch {
		if p.Device != batch[0].Device {
			return errors.New("postgres: a batch of key packages is one device's")
		}
	}
	return s.write(ctx, func(tx pgx.Tx) error {
		if err := holdDevice(ctx, tx, batch[0].Device); err != nil {
			return err
		}
		for _, p := range batch {
			var n int64
			err := tx.QueryRow(ctx, `INSERT INTO key_packages(ref, device, identity, suite, not_after_ms, last_resort, bytes)
				VALUES($1, $2, $3, $4, $5, $6, $7) ON CONFLICT(ref) DO NOTHING RETURNING n`,
				notNull(p.Ref), p.Device[:], p.Identity[:], int64(p.Suite), p.NotAfterMS, p.LastResort, notNull(p.Bytes)).Scan(&n)
			if errors.Is(err, pgx.ErrNoRows) {
				continue
			}
			if err == nil && p.LastResort {
				_, err = tx.Exec(ctx, "UPDATE key_packages SET claimed = true, bytes = '' WHERE device = $1 AND suite = $2 AND last_resort AND NOT claimed AND n <> $3",
					p.Device[:], int64(p.Suite), n)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

const packageColumns = "k.ref, k.device, k.identity, k.suite, k.bytes, k.not_after_ms, k.last_resort"

func packages(list *[]delivery.StoredKeyPackage) func(func(...any) error) error {
	return func(scan func(...any) error) error {
		var device, owner []byte
		var p delivery.StoredKeyPackage
		if err := scan(&p.Ref, &device, &owner, &p.Suite, &p.Bytes, &p.NotAfterMS, &p.LastResort); err != nil {
			return err
		}
		copy(p.Device[:], device)
		copy(p.Identity[:], owner)
		*list = append(*list, p)
		return nil
	}
}

// ClaimKeyPackages takes one package of each device: the oldest ordinary one
// that no other claim holds just now, else the last resort.
func (s *Store) ClaimKeyPackages(ctx context.Context, id identity.PublicKey, suite uint16, nowMS int64) (taken []delivery.StoredKeyPackage, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		taken = nil
		rows, err := tx.Query(ctx, `WITH owner AS (
				SELECT DISTINCT device FROM key_packages WHERE identity = $1 AND suite = $2 AND NOT claimed AND NOT last_resort),
			k AS (SELECT p.* FROM owner CROSS JOIN LATERAL (
				SELECT n, `+packageColumns+` FROM key_packages k WHERE k.identity = $1 AND k.suite = $2 AND k.device = owner.device
					AND NOT k.last_resort AND NOT k.claimed AND k.not_after_ms > $3 ORDER BY k.n LIMIT 1 FOR UPDATE SKIP LOCKED) AS p)
			UPDATE key_packages c SET claimed = true, bytes = '' FROM k WHERE c.n = k.n RETURNING `+packageColumns, id[:], int64(suite), nowMS)
		if err != nil {
			return err
		}
		if err := eachRow(rows, packages(&taken)); err != nil {
			return err
		}
		served := make([][]byte, 0, len(taken))
		for i := range taken {
			served = append(served, taken[i].Device[:])
		}
		rows, err = tx.Query(ctx, "SELECT "+packageColumns+` FROM key_packages k WHERE k.identity = $1 AND k.suite = $2
			AND k.last_resort AND NOT k.claimed AND k.not_after_ms > $3 AND k.device <> ALL($4)`, id[:], int64(suite), nowMS, served)
		if err != nil {
			return err
		}
		return eachRow(rows, packages(&taken))
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(taken, func(a, b delivery.StoredKeyPackage) int { return bytes.Compare(a.Device[:], b.Device[:]) })
	return taken, nil
}

// CountKeyPackages counts what a device has left.
func (s *Store) CountKeyPackages(ctx context.Context, device identity.DeviceID, suite uint16, nowMS int64) (n int, lastResort bool, err error) {
	err = s.read(ctx, `SELECT count(*) FILTER (WHERE NOT last_resort), count(*) FILTER (WHERE last_resort) > 0
		FROM key_packages WHERE device = $1 AND suite = $2 AND NOT claimed AND not_after_ms > $3`, []any{device[:], int64(suite), nowMS}, &n, &lastResort)
	return n, lastResort, err
}

// PackageDevice finds whose package a ref is.
func (s *Store) PackageDevice(ctx context.Context, ref []byte) (device identity.DeviceID, err error) {
	var id []byte
	err = s.read(ctx, "SELECT device FROM key_packages WHERE ref = $1", []any{notNull(ref)}, &id)
	copy(device[:], id)
	return device, err
}
