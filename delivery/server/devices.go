package server

import (
	"errors"
	"fmt"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// enrol makes a device known that its identity attests. No session: the
// credential signs for itself.
func (s *Server) enrol(c *call) error {
	var req delivery.EnrolRequest
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if err := s.spendAddress(c, "enrol"); err != nil {
		return err
	}
	u, err := identity.ParseCredential(req.Credential)
	if err != nil {
		return bad("the credential cannot be read")
	}
	cred, err := u.Verify()
	if err != nil {
		return delivery.Refuse(delivery.CodeRefused, "the credential is not signed by its identity and its device")
	}
	a := cred.Attestation()
	if a.Role != identity.RoleMember {
		return delivery.Refuse(delivery.CodeRefused, "a request signer is not enrolled")
	}
	if a.Version > delivery.MaxNumber {
		return bad("an attestation's version is at most 2^62 here")
	}
	now := s.nowMS()
	switch err := s.store.Enrol(c, delivery.Device{
		ID: a.DeviceID, Identity: a.Identity, Key: a.DevicePubkey, Role: a.Role, Version: a.Version,
		Credential: cred.Bytes(), EnrolledMS: now, SeenMS: now,
	}, s.deviceBound()); {
	case errors.Is(err, delivery.ErrLimit):
		return delivery.Refuse(delivery.CodeRefused, fmt.Sprintf(
			"an identity has at most %d devices here, and with those that it has revoked at most %d: revoke a device that is not used any more, then enrol this one",
			s.MaxDevices, s.MaxRevocations))
	case errors.Is(err, delivery.ErrChanged):
		return delivery.Refuse(delivery.CodeConflict, "a newer attestation of this device is known")
	case err != nil:
		return err
	}
	s.sessions.forget(a.DeviceID) // its credential may be newer now
	s.metrics.enrolled.Inc()
	return c.nothing()
}

func (s *Server) ownDevices(c *call) error { return s.listDevices(c, c.who.Device.Identity, true) }

func (s *Server) personsDevices(c *call) error {
	id, err := identity.ParsePublicKey(c.r.PathValue("identity"))
	if err != nil {
		return bad("the path names no identity")
	}
	if err := s.spend(c, "search", c.device().String(), 1); err != nil {
		return err
	}
	return s.listDevices(c, id, id == c.who.Device.Identity)
}

func (s *Server) listDevices(c *call, id identity.PublicKey, own bool) error {
	devices, err := s.store.Devices(c, id)
	if err != nil {
		return err
	}
	revoked, err := s.store.Revocations(c, id)
	if err != nil {
		return err
	}
	out := delivery.DevicesResponse{Devices: make([]delivery.DeviceView, len(devices)), Revocations: make([][]byte, len(revoked))}
	for i, d := range devices {
		out.Devices[i] = delivery.DeviceView{Device: d.ID, Credential: d.Credential}
		if own { // when somebody was here last is nobody else's business
			out.Devices[i].EnrolledMS, out.Devices[i].SeenMS = d.EnrolledMS, d.SeenMS
		}
	}
	for i, r := range revoked {
		out.Revocations[i] = r.Bytes
	}
	return c.json(out)
}
