package sqlite

import (
	"context"
)

// Setting reads a value.
func (s *Store) Setting(ctx context.Context, key string) (value []byte, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one("SELECT value FROM settings WHERE key = ?", key)
		if err == nil {
			value = r.blob(0)
		}
		return err
	})
	return value, err
}

// InitSetting sets a value unless there is one.
func (s *Store) InitSetting(ctx context.Context, key string, value []byte) (stands []byte, err error) {
	err = s.write(ctx, func(c *change) error {
		if _, err := c.exec("INSERT INTO settings(key, value) VALUES(?, ?) ON CONFLICT DO NOTHING", key, value); err != nil {
			return err
		}
		r, err := c.one("SELECT value FROM settings WHERE key = ?", key)
		if err == nil {
			stands = r.blob(0)
		}
		return err
	})
	return stands, err
}

// PutSetting sets a value.
func (s *Store) PutSetting(ctx context.Context, key string, value []byte) error {
	return s.write(ctx, func(c *change) error { return putSetting(c, key, value) })
}

func putSetting(c *change, key string, value []byte) error {
	_, err := c.exec("INSERT INTO settings(key, value) VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value", key, value)
	return err
}
