package server

import (
	"errors"
	"strings"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

const (
	maxPeople = 20
	minPrefix = 2
)

// putProfile sets the caller's signed username record. Who comes first has the
// name; a record is replaced by one of a higher version only.
func (s *Server) putProfile(c *call) error {
	var req delivery.ProfileBody
	if err := c.readJSON(&req); err != nil {
		return err
	}
	u, err := identity.ParseUsernameRecord(req.Record)
	if err != nil {
		return bad("the username record cannot be read")
	}
	r, err := u.Verify()
	if err != nil {
		return delivery.Refuse(delivery.CodeRefused, "the username record is not signed by its identity")
	}
	f := r.Fields()
	if f.Identity != c.who.Device.Identity {
		return delivery.Refuse(delivery.CodeRefused, "the username record is another identity's")
	}
	if f.Version > delivery.MaxNumber {
		return bad("a username record's version is at most 2^62 here")
	}
	if err := s.spend(c, "profile", f.Identity.String(), 1); err != nil {
		return err
	}
	err = s.store.PutProfile(c, delivery.Profile{Identity: f.Identity, Username: f.Username, Record: r.Bytes(), Version: f.Version, PutMS: s.nowMS()})
	switch {
	case errors.Is(err, delivery.ErrExists):
		return delivery.Refuse(delivery.CodeConflict, "the username is taken")
	case errors.Is(err, delivery.ErrChanged):
		old, err := s.store.Profile(c, f.Identity)
		if err == nil && string(old.Record) == string(r.Bytes()) {
			return c.nothing() // the same record again
		}
		return delivery.Refuse(delivery.CodeConflict, "a record of this version or a higher one is known")
	case err != nil:
		return err
	}
	return c.nothing()
}

// people finds by exact username or by a prefix of it.
func (s *Server) people(c *call) error {
	q := c.r.URL.Query()
	name, prefix := q.Get("username"), q.Get("prefix")
	if err := s.spend(c, "search", c.device().String(), 1); err != nil {
		return err
	}
	out := delivery.ProfilesResponse{Records: [][]byte{}}
	switch {
	case name != "" && prefix == "":
		name, err := identity.NormalizeUsername(name)
		if err != nil {
			return bad("not a username")
		}
		p, err := s.store.ProfileByUsername(c, name)
		if errors.Is(err, delivery.ErrNotFound) {
			return c.json(out)
		}
		if err != nil {
			return err
		}
		out.Records = append(out.Records, p.Record)
	case prefix != "" && name == "":
		prefix = strings.ToLower(strings.TrimPrefix(prefix, "@"))
		if len(prefix) < minPrefix || len(prefix) > identity.MaxUsername {
			return bad("a prefix has 2 to 32 characters")
		}
		list, err := s.store.SearchProfiles(c, prefix, maxPeople)
		if err != nil {
			return err
		}
		for _, p := range list {
			out.Records = append(out.Records, p.Record)
		}
	default:
		return bad("give either username or prefix")
	}
	return c.json(out)
}

func (s *Server) person(c *call) error {
	id, err := identity.ParsePublicKey(c.r.PathValue("identity"))
	if err != nil {
		return bad("the path names no identity")
	}
	if err := s.spend(c, "search", c.device().String(), 1); err != nil {
		return err
	}
	p, err := s.store.Profile(c, id)
	if err != nil {
		return err
	}
	return c.json(delivery.ProfileBody{Record: p.Record})
}
