package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// CreateBlob notes an upload that begins. Those of one owner begin one after the
// other, so that their sum holds.
func (s *Store) CreateBlob(ctx context.Context, m delivery.BlobMeta, most int64) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		if err := lockKey(ctx, tx, append([]byte("blobs"), m.Owner[:]...)); err != nil {
			return err
		}
		var loose int64
		err := tx.QueryRow(ctx, "SELECT coalesce(sum(size), 0)::bigint FROM blobs WHERE owner = $1 AND refs = 0 AND NOT dead", m.Owner[:]).Scan(&loose)
		if err != nil {
			return err
		}
		if m.Size > most-loose {
			return delivery.ErrLimit
		}
		_, err = tx.Exec(ctx, "INSERT INTO blobs(id, owner, size, received, created_ms) VALUES($1, $2, $3, $4, $5)", m.ID[:], m.Owner[:], m.Size, m.Received, m.CreatedMS)
		return err
	})
}

// Blob reads what is known of a blob.
func (s *Store) Blob(ctx context.Context, id delivery.BlobID) (delivery.BlobMeta, error) {
	m := delivery.BlobMeta{ID: id}
	var owner []byte
	err := s.read(ctx, "SELECT owner, size, received, created_ms, refs FROM blobs WHERE id = $1 AND NOT dead", []any{id[:]}, &owner, &m.Size, &m.Received, &m.CreatedMS, &m.Refs)
	copy(m.Owner[:], owner)
	return m, err
}

// AdvanceBlob notes that more of it is durable.
func (s *Store) AdvanceBlob(ctx context.Context, id delivery.BlobID, from, to int64) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		var size, received int64
		err := row(tx.QueryRow(ctx, "SELECT size, received FROM blobs WHERE id = $1 AND NOT dead FOR UPDATE", id[:]), &size, &received)
		switch {
		case err != nil:
			return err
		case received != from:
			return delivery.ErrChanged
		case to < from || to > size:
			return errors.New("postgres: a blob grows, up to its declared size")
		}
		_, err = tx.Exec(ctx, "UPDATE blobs SET received = $1 WHERE id = $2", to, id[:])
		return err
	})
}

// MayReadBlob reports whether the device may have the bytes.
func (s *Store) MayReadBlob(ctx context.Context, id delivery.BlobID, device identity.DeviceID) (may bool, err error) {
	err = s.read(ctx, `SELECT EXISTS (SELECT 1 FROM blobs b WHERE b.id = $1 AND NOT b.dead AND (b.owner = $2 OR EXISTS (
		SELECT 1 FROM blob_refs f JOIN memberships m ON m.room = f.room AND m.device = $2 AND m.until_seq = 0 WHERE f.blob = b.id)))`,
		[]any{id[:], device[:]}, &may)
	return may, err
}

// DeleteBlob forgets a blob that no entry refers to.
func (s *Store) DeleteBlob(ctx context.Context, id delivery.BlobID) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		var refs int64
		if err := row(tx.QueryRow(ctx, "SELECT refs FROM blobs WHERE id = $1 FOR UPDATE", id[:]), &refs); err != nil {
			return err
		}
		if refs > 0 {
			return delivery.ErrExists
		}
		_, err := tx.Exec(ctx, "DELETE FROM blobs WHERE id = $1", id[:])
		return err
	})
}
