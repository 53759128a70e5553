package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

const profileColumns = "identity, coalesce(username, ''), record, version, put_ms"

func scanProfile(scan func(...any) error) (p delivery.Profile, err error) {
	var id []byte
	err = noRows(scan(&id, &p.Username, &p.Record, &p.Version, &p.PutMS))
	copy(p.Identity[:], id)
	return p, err
}

// PutProfile sets an identity's line.
func (s *Store) PutProfile(ctx context.Context, p delivery.Profile) error {
	var name *string
	if p.Username != "" {
		name = &p.Username
	}
	return s.write(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `INSERT INTO profiles(identity, username, record, version, put_ms) VALUES($1, $2, $3, $4, $5) ON CONFLICT(identity) DO UPDATE
			SET username = excluded.username, record = excluded.record, version = excluded.version, put_ms = excluded.put_ms
			WHERE profiles.version < excluded.version`, p.Identity[:], name, notNull(p.Record), int64(p.Version), p.PutMS)
		if err == nil && tag.RowsAffected() == 0 {
			err = delivery.ErrChanged
		}
		return err
	})
}

func (s *Store) oneProfile(ctx context.Context, where string, arg any) (delivery.Profile, error) {
	if s.closed.Load() {
		return delivery.Profile{}, ErrClosed
	}
	p, err := scanProfile(s.pool.QueryRow(ctx, "SELECT "+profileColumns+" FROM profiles WHERE "+where, arg).Scan)
	return p, translate(err)
}

// Profile finds by identity.
func (s *Store) Profile(ctx context.Context, id identity.PublicKey) (delivery.Profile, error) {
	return s.oneProfile(ctx, "identity = $1", id[:])
}

// ProfileByUsername finds by the exact name.
func (s *Store) ProfileByUsername(ctx context.Context, username string) (delivery.Profile, error) {
	return s.oneProfile(ctx, "username = $1", username)
}

// SearchProfiles finds by prefix.
func (s *Store) SearchProfiles(ctx context.Context, prefix string, limit int) (list []delivery.Profile, err error) {
	if len([]rune(prefix)) < 2 {
		return nil, nil
	}
	err = s.list(ctx, "SELECT "+profileColumns+" FROM profiles WHERE username >= $1 AND username < $2 ORDER BY username LIMIT $3",
		[]any{prefix, prefix + "\U0010ffff", int64(limit)}, func(scan func(...any) error) error {
			p, err := scanProfile(scan)
			list = append(list, p)
			return err
		})
	return list, err
}

// folded is the text in which a listing is searched.
func folded(l delivery.Listing) string { return strings.ToLower(l.Title + "\n" + l.About) }

// PutListing sets a room's listing.
func (s *Store) PutListing(ctx context.Context, l delivery.Listing) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO listings(room, title, about, folded, members, listed_ms, listed_by, picture) VALUES($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT(room) DO UPDATE SET title = excluded.title, about = excluded.about, folded = excluded.folded, members = excluded.members,
			listed_ms = excluded.listed_ms, listed_by = excluded.listed_by, picture = excluded.picture`,
			l.Room[:], l.Title, l.About, folded(l), int64(l.Members), l.ListedMS, l.ListedBy[:], idOrNull(l.PictureID))
		return err
	})
}

// DeleteListing makes a room private again.
func (s *Store) DeleteListing(ctx context.Context, room delivery.RoomID) error {
	return s.write(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM listings WHERE room = $1", room[:])
		return err
	})
}

const listingColumns = "room, title, about, members, listed_ms, listed_by, picture"

func scanListing(scan func(...any) error) (l delivery.Listing, err error) {
	var room, by, picture []byte
	err = noRows(scan(&room, &l.Title, &l.About, &l.Members, &l.ListedMS, &by, &picture))
	copy(l.Room[:], room)
	copy(l.ListedBy[:], by)
	if picture != nil {
		l.PictureID = new(delivery.BlobID)
		copy(l.PictureID[:], picture)
	}
	return l, err
}

// Listing reads one listing.
func (s *Store) Listing(ctx context.Context, room delivery.RoomID) (delivery.Listing, error) {
	if s.closed.Load() {
		return delivery.Listing{}, ErrClosed
	}
	l, err := scanListing(s.pool.QueryRow(ctx, "SELECT "+listingColumns+" FROM listings WHERE room = $1", room[:]).Scan)
	return l, translate(err)
}

// Listings searches title and description.
func (s *Store) Listings(ctx context.Context, query string, limit, offset int) (list []delivery.Listing, err error) {
	err = s.list(ctx, "SELECT "+listingColumns+" FROM listings WHERE position($1 IN folded) > 0 ORDER BY listed_ms DESC, room LIMIT $2 OFFSET $3",
		[]any{strings.ToLower(query), int64(limit), int64(offset)}, func(scan func(...any) error) error {
			l, err := scanListing(scan)
			list = append(list, l)
			return err
		})
	return list, err
}
