package sqlite

import (
	"context"
	"errors"

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
			return errors.New("sqlite: a batch of key packages is one device's")
		}
	}
	return s.write(ctx, func(c *change) error {
		if err := deviceKnown(c.conn, batch[0].Device); err != nil {
			return err
		}
		for _, p := range batch {
			_, known, err := c.first("SELECT 1 FROM key_packages WHERE ref = ?", p.Ref)
			if err != nil {
				return err
			}
			if known {
				continue
			}
			if p.LastResort {
				_, err := c.exec("UPDATE key_packages SET claimed = 1, bytes = x'' WHERE device = ? AND suite = ? AND last_resort = 1", p.Device[:], p.Suite)
				if err != nil {
					return err
				}
			}
			_, err = c.exec("INSERT INTO key_packages(ref, device, identity, suite, not_after_ms, last_resort, bytes) VALUES(?, ?, ?, ?, ?, ?, ?)",
				p.Ref, p.Device[:], p.Identity[:], p.Suite, p.NotAfterMS, p.LastResort, p.Bytes)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ClaimKeyPackages takes one package of each device.
func (s *Store) ClaimKeyPackages(ctx context.Context, id identity.PublicKey, suite uint16, nowMS int64) (taken []delivery.StoredKeyPackage, err error) {
	err = s.write(ctx, func(c *change) error {
		taken = nil
		// Of each device the oldest ordinary package, else the last resort. min()
		// in a query without other aggregates picks the row it came from.
		err := c.query(`SELECT ref, device, identity, suite, bytes, not_after_ms, last_resort, n, min(last_resort << 62 | n)
			FROM key_packages WHERE claimed = 0 AND identity = ? AND suite = ? AND not_after_ms > ? GROUP BY device ORDER BY device`, func(r row) error {
			p := delivery.StoredKeyPackage{Ref: r.blob(0), Suite: suite, Bytes: r.blob(4), NotAfterMS: r.int(5), LastResort: r.bool(6)}
			r.bytes(1, p.Device[:])
			r.bytes(2, p.Identity[:])
			taken = append(taken, p)
			return nil
		}, id[:], suite, nowMS)
		if err != nil {
			return err
		}
		for _, p := range taken {
			if p.LastResort {
				continue
			}
			if _, err := c.exec("UPDATE key_packages SET claimed = 1, bytes = x'' WHERE ref = ?", p.Ref); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

// CountKeyPackages counts what a device has left.
func (s *Store) CountKeyPackages(ctx context.Context, device identity.DeviceID, suite uint16, nowMS int64) (n int, lastResort bool, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one(`SELECT count(*) FILTER (WHERE last_resort = 0), count(*) FILTER (WHERE last_resort = 1)
			FROM key_packages WHERE device = ? AND suite = ? AND claimed = 0 AND not_after_ms > ?`, device[:], suite, nowMS)
		if err == nil {
			n, lastResort = int(r.int(0)), r.int(1) > 0
		}
		return err
	})
	return n, lastResort, err
}

// PackageDevice finds whose package a ref is.
func (s *Store) PackageDevice(ctx context.Context, ref []byte) (device identity.DeviceID, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one("SELECT device FROM key_packages WHERE ref = ?", ref)
		if err == nil {
			r.bytes(0, device[:])
		}
		return err
	})
	return device, err
}
