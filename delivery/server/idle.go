package server

import (
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
	var asked []identity.DeviceID
	owner := map[identity.DeviceID]identity.PublicKey{}
	for _, m := range f.roster.Members() {
		if f.roster.Has(m.Identity) > 1 { // else it is its only leaf
			asked = append(asked, m.Device)
			owner[m.Device] = m.Identity
		}
	}
	seen, err := s.store.LastSeen(c, asked) // none of those that are revoked, and being removed
	if err != nil {
		return err
	}
	away := map[identity.PublicKey][]identity.DeviceID{}
	for _, d := range asked {
		if at, enrolled := seen[d]; enrolled && at <= limit {
			away[owner[d]] = append(away[owner[d]], d)
		}
	}
	out := delivery.IdleResponse{Devices: []identity.DeviceID{}}
	for who, list := range away {
		latest := -1
		if len(list) == f.roster.Has(who) {
			latest = 0
			for i, d := range list {
				if seen[d] > seen[list[latest]] {
					latest = i
				}
			}
		}
		for i, d := range list {
			if i != latest {
				out.Devices = append(out.Devices, d)
			}
		}
	}
	return c.json(out)
}
