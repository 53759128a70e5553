package sqlite

import (
	"context"
	"math"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// PutMail adds an item unless its key is known.
func (s *Store) PutMail(ctx context.Context, device identity.DeviceID, m delivery.MailItem) (id uint64, put bool, err error) {
	err = s.write(ctx, func(c *change) error {
		id, put = 0, false
		var key any
		if m.Key != "" {
			key = m.Key
			r, known, err := c.first("SELECT id FROM mail WHERE device = ? AND key = ?", device[:], m.Key)
			if err != nil || known {
				if known {
					id = r.uint(0)
				}
				return err
			}
		}
		r, err := c.one("SELECT next_mail FROM devices WHERE id = ?", device[:])
		if err != nil {
			return err
		}
		id = r.uint(0)
		if _, err := c.exec("UPDATE devices SET next_mail = next_mail + 1 WHERE id = ?", device[:]); err != nil {
			return err
		}
		_, err = c.exec("INSERT INTO mail(device, id, kind, room, epoch, start_seq, payload, created_ms, key) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
			device[:], id, m.Kind, m.Room[:], m.Epoch, m.StartSeq, m.Payload, m.CreatedMS, key)
		put = true
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return id, put, nil
}

// Mail reads items after an id.
func (s *Store) Mail(ctx context.Context, device identity.DeviceID, after uint64, limit int) (list []delivery.MailItem, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query(`SELECT id, kind, room, epoch, start_seq, payload, created_ms, key FROM mail
			WHERE device = ? AND id > ? AND acked = 0 ORDER BY id LIMIT ?`, func(r row) error {
			m := delivery.MailItem{
				ID: r.uint(0), Kind: delivery.MailKind(r.int(1)), Epoch: r.uint(3), StartSeq: r.uint(4),
				Payload: r.blob(5), CreatedMS: r.int(6), Key: r.text(7),
			}
			r.bytes(2, m.Room[:])
			list = append(list, m)
			return nil
		}, device[:], int64(min(after, math.MaxInt64)), limit)
	})
	return list, err
}

// AckMail forgets items; of one with a key the key stays.
func (s *Store) AckMail(ctx context.Context, device identity.DeviceID, ids []uint64) error {
	return s.write(ctx, func(c *change) error {
		for _, id := range ids {
			if _, err := c.exec("DELETE FROM mail WHERE device = ? AND id = ? AND key IS NULL", device[:], id); err != nil {
				return err
			}
			if _, err := c.exec("UPDATE mail SET acked = 1, payload = x'' WHERE device = ? AND id = ? AND acked = 0", device[:], id); err != nil {
				return err
			}
		}
		return nil
	})
}
