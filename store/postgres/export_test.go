package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// OpenPooled opens a store whose every transaction finds a session that knows
// nothing, as behind a pooler in transaction mode.
func OpenPooled(ctx context.Context, url string) (*Store, error) {
	return open(ctx, url, func(c *pgxpool.Config) {
		c.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
			_, err := conn.Exec(ctx, "DISCARD ALL")
			return err == nil, err
		}
	})
}

// Sessions runs fn on every idle connection.
func Sessions(ctx context.Context, s *Store, fn func(*pgx.Conn) error) error {
	for _, c := range s.pool.AcquireAllIdle(ctx) {
		err := fn(c.Conn())
		c.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// MaxPooled is the pool's limit.
func MaxPooled(s *Store) int { return int(s.pool.Config().MaxConns) }
