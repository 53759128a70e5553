package server

import (
	"errors"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// idleDevices tells a member which devices of its room have been away so long that
// they keep the keys of the epoch in which they went. It is advice: only the owner's
// revocation takes a device out. An identity's last leaf is never among them: of one
// whose devices are all away the latest is left out.
func (s *Server) idleDevices(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	f, err := s.follow(c, id)
	if err != nil {
		return err
	}
	if _, in := f.roster.Device(c.device()); !in {
		return delivery.ErrNotFound
	}
	limit := s.Now().Add(-delivery.IdleAfter).UnixMilli()
	away := map[identity.PublicKey][]delivery.Device{}
	out := delivery.IdleResponse{Devices: []identity.DeviceID{}}
	for _, m := range f.roster.Members() {
		if f.roster.Has(m.Identity) < 2 {
			continue // its only leaf
		}
		d, err := s.store.Device(c, m.Device)
		switch {
		case errors.Is(err, delivery.ErrNotFound): // revoked, and being removed
		case err != nil:
			return err
		case d.SeenMS <= limit:
			away[m.Identity] = append(away[m.Identity], d)
		}
	}
	for who, list := range away {
		latest := -1
		if len(list) == f.roster.Has(who) {
			latest = 0
			for i, d := range list {
				if d.SeenMS > list[latest].SeenMS {
					latest = i
				}
			}
		}
		for i, d := range list {
			if i != latest {
				out.Devices = append(out.Devices, d.ID)
			}
		}
	}
	return c.json(out)
}
