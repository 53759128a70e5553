package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Schema changes are numbered files, each run once, in order. A file that was
// released is never edited.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock under which instances migrate: "compax"
// in hex. It is the transaction's, so a pooler may put anybody behind it.
const migrationLock = 0x636f6d706178

// migrate brings the schema to the newest version, all steps in one
// transaction: an instance that dies half way leaves what was there.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)"); err != nil {
			return err
		}
		var version int
		if err := tx.QueryRow(ctx, "SELECT coalesce(max(version), 0)::bigint FROM schema_version").Scan(&version); err != nil {
			return err
		}
		if version > len(files) {
			return fmt.Errorf("%w: version %d, this program knows %d", ErrNewer, version, len(files))
		}
		for i := version; i < len(files); i++ {
			script, err := migrations.ReadFile(files[i])
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, string(script)); err != nil {
				return fmt.Errorf("migration %s: %w", files[i], err)
			}
			if _, err := tx.Exec(ctx, "INSERT INTO schema_version(version) VALUES($1)", int64(i+1)); err != nil {
				return err
			}
		}
		return nil
	})
}
