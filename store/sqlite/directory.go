package sqlite

import (
	"context"
	"strings"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

func profile(r row) delivery.Profile {
	p := delivery.Profile{Username: r.text(1), Record: r.blob(2), Version: r.uint(3), PutMS: r.int(4)}
	r.bytes(0, p.Identity[:])
	return p
}

const profileColumns = "identity, username, record, version, put_ms"

// PutProfile sets an identity's line.
func (s *Store) PutProfile(ctx context.Context, p delivery.Profile) error {
	return s.write(ctx, func(c *change) error {
		r, known, err := c.first("SELECT version FROM profiles WHERE identity = ?", p.Identity[:])
		if err != nil {
			return err
		}
		if known && p.Version <= r.uint(0) {
			return delivery.ErrChanged
		}
		var name any
		if p.Username != "" {
			name = p.Username
		}
		_, err = c.exec(`INSERT INTO profiles(identity, username, record, version, put_ms) VALUES(?, ?, ?, ?, ?) ON CONFLICT(identity) DO UPDATE
			SET username = excluded.username, record = excluded.record, version = excluded.version, put_ms = excluded.put_ms`,
			p.Identity[:], name, p.Record, p.Version, p.PutMS)
		return exists(err)
	})
}

func (s *Store) oneProfile(ctx context.Context, where string, arg any) (p delivery.Profile, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one("SELECT "+profileColumns+" FROM profiles WHERE "+where, arg)
		if err == nil {
			p = profile(r)
		}
		return err
	})
	return p, err
}

// Profile finds by identity.
func (s *Store) Profile(ctx context.Context, id identity.PublicKey) (delivery.Profile, error) {
	return s.oneProfile(ctx, "identity = ?", id[:])
}

// ProfileByUsername finds by the exact name.
func (s *Store) ProfileByUsername(ctx context.Context, username string) (delivery.Profile, error) {
	return s.oneProfile(ctx, "username = ?", username)
}

// SearchProfiles finds by prefix.
func (s *Store) SearchProfiles(ctx context.Context, prefix string, limit int) (list []delivery.Profile, err error) {
	if len([]rune(prefix)) < 2 {
		return nil, nil
	}
	err = s.read(ctx, func(c *conn) error {
		return c.query("SELECT "+profileColumns+" FROM profiles WHERE username >= ? AND username < ? ORDER BY username LIMIT ?", func(r row) error {
			list = append(list, profile(r))
			return nil
		}, prefix, prefix+"\U0010ffff", limit)
	})
	return list, err
}

// folded is the text in which a listing is searched.
func folded(l delivery.Listing) string { return strings.ToLower(l.Title + "\n" + l.About) }

// PutListing sets a room's listing.
func (s *Store) PutListing(ctx context.Context, l delivery.Listing) error {
	return s.write(ctx, func(c *change) error {
		_, err := c.exec(`INSERT INTO listings(room, title, about, folded, members, listed_ms, listed_by, picture) VALUES(?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT(room) DO UPDATE SET title = excluded.title, about = excluded.about, folded = excluded.folded, members = excluded.members,
			listed_ms = excluded.listed_ms, listed_by = excluded.listed_by, picture = excluded.picture`,
			l.Room[:], l.Title, l.About, folded(l), l.Members, l.ListedMS, l.ListedBy[:], idOrNull(l.PictureID))
		return err
	})
}

// DeleteListing makes a room private again.
func (s *Store) DeleteListing(ctx context.Context, room delivery.RoomID) error {
	return s.write(ctx, func(c *change) error {
		_, err := c.exec("DELETE FROM listings WHERE room = ?", room[:])
		return err
	})
}

const listingColumns = "room, title, about, members, listed_ms, listed_by, picture"

func listing(r row) delivery.Listing {
	l := delivery.Listing{Title: r.text(1), About: r.text(2), Members: int(r.int(3)), ListedMS: r.int(4)}
	r.bytes(0, l.Room[:])
	r.bytes(5, l.ListedBy[:])
	if !r.null(6) {
		l.PictureID = new(delivery.BlobID)
		r.bytes(6, l.PictureID[:])
	}
	return l
}

// Listing reads one listing.
func (s *Store) Listing(ctx context.Context, room delivery.RoomID) (l delivery.Listing, err error) {
	err = s.read(ctx, func(c *conn) error {
		r, err := c.one("SELECT "+listingColumns+" FROM listings WHERE room = ?", room[:])
		if err == nil {
			l = listing(r)
		}
		return err
	})
	return l, err
}

// Listings searches title and description.
func (s *Store) Listings(ctx context.Context, query string, limit, offset int) (list []delivery.Listing, err error) {
	err = s.read(ctx, func(c *conn) error {
		return c.query("SELECT "+listingColumns+" FROM listings WHERE instr(folded, ?) > 0 ORDER BY listed_ms DESC, room LIMIT ? OFFSET ?", func(r row) error {
			list = append(list, listing(r))
			return nil
		}, strings.ToLower(query), limit, offset)
	})
	return list, err
}
