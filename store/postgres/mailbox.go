package postgres

import (
	"context"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// PutMail adds an item unless its key is known. The device's row is the lock
// under which its ids ascend.
func (s *Store) PutMail(ctx context.Context, device identity.DeviceID, m delivery.MailItem) (id uint64, put bool, err error) {
	err = s.write(ctx, func(tx pgx.Tx) error {
		id, put = 0, false
		if err := row(tx.QueryRow(ctx, "SELECT next_mail FROM devices WHERE id = $1 FOR UPDATE", device[:]), &id); err != nil {
			return err
		}
		var key *string
		if m.Key != "" {
			key = &m.Key
			var known uint64
			err := row(tx.QueryRow(ctx, "SELECT id FROM mail WHERE device = $1 AND key = $2", device[:], m.Key), &known)
			if err == nil {
				id = known
			}
			if !errors.Is(err, delivery.ErrNotFound) {
				return err
			}
		}
		if _, err := tx.Exec(ctx, "UPDATE devices SET next_mail = next_mail + 1 WHERE id = $1", device[:]); err != nil {
			return err
		}
		put = true
		_, err := tx.Exec(ctx, "INSERT INTO mail(device, id, kind, room, epoch, start_seq, payload, created_ms, key) VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9)",
			device[:], int64(id), int64(m.Kind), m.Room[:], int64(m.Epoch), int64(m.StartSeq), notNull(m.Payload), m.CreatedMS, key)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return id, put, nil
}

// Mail reads items after an id.
func (s *Store) Mail(ctx context.Context, device identity.DeviceID, after uint64, limit int) (list []delivery.MailItem, err error) {
	err = s.list(ctx, `SELECT id, kind, room, epoch, start_seq, payload, created_ms, coalesce(key, '') FROM mail
		WHERE device = $1 AND id > $2 AND NOT acked ORDER BY id LIMIT $3`, []any{device[:], int64(min(after, math.MaxInt64)), int64(limit)}, func(scan func(...any) error) error {
		var m delivery.MailItem
		var room []byte
		err := scan(&m.ID, &m.Kind, &room, &m.Epoch, &m.StartSeq, &m.Payload, &m.CreatedMS, &m.Key)
		copy(m.Room[:], room)
		list = append(list, m)
		return err
	})
	return list, err
}

// AckMail forgets items; of one with a key the key stays.
func (s *Store) AckMail(ctx context.Context, device identity.DeviceID, ids []uint64) error {
	list := make([]int64, len(ids))
	for i, id := range ids {
		list[i] = int64(id)
	}
	return s.write(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM mail WHERE device = $1 AND id = ANY($2) AND key IS NULL", device[:], list); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE mail SET acked = true, payload = '' WHERE device = $1 AND id = ANY($2) AND NOT acked", device[:], list)
		return err
	})
}
