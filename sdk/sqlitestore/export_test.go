package sqlitestore

import "context"

// Limit lets the file have no more pages than it has: a full disk.
func (s *Store) Limit(ctx context.Context) error {
	s.db.SetMaxOpenConns(1)
	_, err := s.db.ExecContext(ctx, "PRAGMA max_page_count = 1")
	return err
}

// Unlimit is room on the disk again.
func (s *Store) Unlimit(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "PRAGMA max_page_count = 1000000")
	return err
}
