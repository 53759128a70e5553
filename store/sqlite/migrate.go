package sqlite

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
)

// Schema changes are numbered files, each run once, in order, with the number
// in user_version moved in the same transaction. A file that was released is
// never edited.
//
//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks a database file as ours: "CPXs".
const applicationID = 0x43507873

// schemaVersion is how many migrations the file has had: 0 for a new one.
func schemaVersion(c *conn) (int, error) {
	r, err := c.one("SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)")
	if err != nil {
		return 0, err
	}
	id, version, objects := r.int(0), int(r.int(1)), r.int(2)
	if id != applicationID && (id != 0 || version != 0 || objects != 0) {
		return 0, ErrForeign
	}
	return version, nil
}

// migrate brings the schema from version to the newest.
func migrate(ctx context.Context, c *conn, version int) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	if version > len(files) {
		return fmt.Errorf("%w: version %d, this program knows %d", ErrNewer, version, len(files))
	}
	for i := version; i < len(files); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := migrations.ReadFile(files[i])
		if err != nil {
			return err
		}
		if err := step(c, i+1, string(text)); err != nil {
			return fmt.Errorf("migration %s: %w", files[i], err)
		}
	}
	return nil
}

// step runs one migration in one transaction.
func step(c *conn, version int, script string) (err error) {
	if _, err := c.exec("BEGIN EXCLUSIVE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = c.exec("ROLLBACK")
		}
	}()
	if _, err := c.exec(script); err != nil {
		return err
	}
	if _, err := c.exec(fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		return err
	}
	if _, err := c.exec(fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	_, err = c.exec("COMMIT")
	return err
}
