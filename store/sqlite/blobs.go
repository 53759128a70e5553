package sqlite

import (
	"context"
	"errors"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// CreateBlob notes an upload that begins, within the owner's bound.
func (s *Store) CreateBlob(ctx context.Context, m delivery.BlobMeta, most int64) error {
	return s.write(ctx, func(c *change) error {
		r, err := c.one("SELECT coalesce(sum(size), 0) FROM blobs WHERE owner = ? AND refs = 0 AND dead = 0", m.Owner[:])
		if err != nil {
			return err
		}
		if m.Size > most-r.int(0) {
			return delivery.ErrLimit
		}
		_, err = c.exec("INSERT INTO blobs(id, owner, size, received, created_ms) VALUES(?, ?, ?, ?, ?)", m.ID[:], m.Owner[:], m.Size, m.Received, m.CreatedMS)
		return exists(err)
	})
}

// Blob reads what is known of a blob.
func (s *Store) Blob(ctx context.Context, id delivery.BlobID) (m delivery.BlobMeta, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one("SELECT owner, size, received, created_ms, refs FROM blobs WHERE id = ? AND dead = 0", id[:])
		if err == nil {
			m = delivery.BlobMeta{ID: id, Size: r.int(1), Received: r.int(2), CreatedMS: r.int(3), Refs: r.int(4)}
			r.bytes(0, m.Owner[:])
		}
		return err
	})
	return m, err
}

// AdvanceBlob notes that more of it is durable.
func (s *Store) AdvanceBlob(ctx context.Context, id delivery.BlobID, from, to int64) error {
	return s.write(ctx, func(c *change) error {
		r, err := c.one("SELECT size, received FROM blobs WHERE id = ? AND dead = 0", id[:])
		switch {
		case err != nil:
			return err
		case r.int(1) != from:
			return delivery.ErrChanged
		case to < from || to > r.int(0):
			return errors.New("sqlite: a blob grows, up to its declared size")
		}
		_, err = c.exec("UPDATE blobs SET received = ? WHERE id = ?", to, id[:])
		return err
	})
}

// MayReadBlob reports whether the device may have the bytes.
func (s *Store) MayReadBlob(ctx context.Context, id delivery.BlobID, device identity.DeviceID) (may bool, err error) {
	err = s.read(ctx, func(c *conn) error {
		_, may, err = c.first(`SELECT 1 FROM blobs b WHERE b.id = ? AND b.dead = 0 AND (b.owner = ? OR EXISTS (
			SELECT 1 FROM blob_refs f JOIN memberships m ON m.room = f.room AND m.device = ? AND m.until_seq = 0 WHERE f.blob = b.id))`,
			id[:], device[:], device[:])
		return err
	})
	return may, err
}

// DeleteBlob forgets a blob that no entry refers to.
func (s *Store) DeleteBlob(ctx context.Context, id delivery.BlobID) error {
	return s.write(ctx, func(c *change) error {
		r, err := c.one("SELECT refs FROM blobs WHERE id = ?", id[:])
		if err != nil {
			return err
		}
		if r.int(0) > 0 {
			return delivery.ErrExists
		}
		_, err = c.exec("DELETE FROM blobs WHERE id = ?", id[:])
		return err
	})
}
