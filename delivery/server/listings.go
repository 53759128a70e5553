package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
)

const (
	maxTitle       = 256
	maxAbout       = 1024
	maxNote        = 512
	listingsPage   = 50
	maxAskedDevice = 100 // mailboxes that one request to join goes to
)

// list makes a room public, or changes what is said about it.
func (s *Server) list(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	var req delivery.ListingBody
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if req.Title == "" || len(req.Title) > maxTitle || len(req.About) > maxAbout { // JSON is UTF-8 already
		return bad("a title has 1 to 256 bytes, a description at most 1024")
	}
	f, err := s.adminOf(c, id)
	if err != nil {
		return err
	}
	if err := s.spend(c, "listing", c.device().String(), 1); err != nil {
		return err
	}
	err = s.store.PutListing(c, delivery.Listing{
		Room: id, Title: req.Title, About: req.About, Members: len(f.roster.Identities()), ListedMS: s.nowMS(), ListedBy: c.who.Device.Identity,
	})
	if err != nil {
		return err
	}
	return c.nothing()
}

// adminOf checks that the caller may speak for a group.
func (s *Server) adminOf(c *call, id delivery.RoomID) (*followed, error) {
	f, err := s.follow(c, id)
	if err != nil {
		return nil, err
	}
	m, in := f.roster.Device(c.device())
	if !in {
		return nil, delivery.Refuse(delivery.CodeNotFound, "no such room, or this device is not in it")
	}
	if f.room.Kind != delivery.RoomGroup {
		return nil, delivery.Refuse(delivery.CodeRefused, "only groups are listed")
	}
	if !policy.IsAdmin(f.room, f.roster, m) {
		return f, s.broken(RuleListAdmin, delivery.Refuse(delivery.CodeRefused, "only an admin lists a room"))
	}
	return f, nil
}

func (s *Server) unlist(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	if _, err := s.adminOf(c, id); err != nil {
		return err
	}
	if err := s.store.DeleteListing(c, id); err != nil && !errors.Is(err, delivery.ErrNotFound) {
		return err
	}
	return c.nothing()
}

func (s *Server) listings(c *call) error {
	offset, err := c.number("offset", 0)
	if err != nil {
		return err
	}
	query := c.r.URL.Query().Get("query")
	if len(query) > maxTitle || offset > 100_000 {
		return bad("the query or the offset is too large")
	}
	if err := s.spend(c, "search", c.device().String(), 1); err != nil {
		return err
	}
	list, err := s.store.Listings(c, query, listingsPage, int(offset))
	if err != nil {
		return err
	}
	out := delivery.ListingsResponse{Listings: []delivery.ListingBody{}}
	for _, l := range list {
		out.Listings = append(out.Listings, delivery.ListingBody{Room: l.Room, Title: l.Title, About: l.About, Members: l.Members})
	}
	return c.json(out)
}

// ask puts a request to be added into the mailboxes of a listed room's admins,
// or of its members when it has none. A member adds, or nobody does.
func (s *Server) ask(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	var req delivery.AskRequest
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if len(req.Note) > maxNote {
		return bad("a note has at most 512 bytes")
	}
	if _, err := s.store.Listing(c, id); err != nil {
		return err
	}
	if err := s.spend(c, "ask", c.who.Device.Identity.String(), 1); err != nil {
		return err
	}
	f, err := s.follow(c, id)
	if err != nil {
		return err
	}
	who := c.who.Device.Identity
	switch {
	case f.roster.Has(who) > 0:
		return delivery.Refuse(delivery.CodeConflict, "this identity is in the room already")
	case f.room.Participants.Role(who) == policy.RoleBanned:
		return delivery.Refuse(delivery.CodeRefused, "this identity may not join the room")
	}
	note, err := json.Marshal(delivery.AskNote{Identity: who, Note: req.Note})
	if err != nil {
		return fmt.Errorf("encode a request to join: %w", err)
	}
	s.later(c, func(ctx context.Context) {
		for _, d := range asked(f) {
			item := delivery.MailItem{Kind: delivery.MailAsk, Room: id, Payload: note, CreatedMS: s.nowMS(), Key: fmt.Sprintf("ask:%x:%x", id[:], who[:])}
			s.failed("putting a request to join", s.mail(ctx, d, item))
		}
	})
	return c.nothing()
}

func asked(f *followed) []identity.DeviceID {
	var out []identity.DeviceID
	for _, m := range f.roster.Members() {
		if policy.IsAdmin(f.room, f.roster, m) && len(out) < maxAskedDevice {
			out = append(out, m.Device)
		}
	}
	slices.SortFunc(out, func(a, b identity.DeviceID) int { return slices.Compare(a[:], b[:]) })
	return out
}
