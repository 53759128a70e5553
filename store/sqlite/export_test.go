package sqlite

import (
	"context"
	"strconv"
)

// SetPatience sets how long the store's writer waits for another program's lock.
func SetPatience(ctx context.Context, s *Store, ms int) error {
	return s.write(ctx, func(c *change) error {
		_, err := c.one("PRAGMA busy_timeout = " + strconv.Itoa(ms))
		return err
	})
}

// LimitPages makes the file full at a number of pages; 0 lifts the limit.
func LimitPages(ctx context.Context, s *Store, pages int) error {
	if pages == 0 {
		pages = 1<<32 - 2
	}
	return s.write(ctx, func(c *change) error {
		_, err := c.one("PRAGMA max_page_count = " + strconv.Itoa(pages))
		return err
	})
}

// Pages is how many pages the file has.
func Pages(ctx context.Context, s *Store) (n int, err error) {
	err = s.write(ctx, func(c *change) error {
		r, err := c.one("PRAGMA page_count")
		if err == nil {
			n = int(r.int(0))
		}
		return err
	})
	return n, err
}
