package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// revoke ends a device for good, on its identity's word. The tombstone and the
// device's row go in one transaction; then its sockets are closed everywhere,
// its siblings are told, and its rooms are asked to remove it.
func (s *Server) revoke(c *call) error {
	var req delivery.RevokeRequest
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if err := s.spendAddress(c, "revoke"); err != nil {
		return err
	}
	u, err := identity.ParseRevocation(req.Revocation)
	if err != nil {
		return bad("the revocation cannot be read")
	}
	r, err := u.Verify()
	if err != nil {
		return delivery.Refuse(delivery.CodeRefused, "the revocation is not signed by its identity")
	}
	f := r.Fields()
	switch d, err := s.store.Device(c, f.DeviceID); {
	case err == nil && d.Identity != f.Identity:
		return delivery.Refuse(delivery.CodeRefused, "the device is another identity's")
	case err != nil && !errors.Is(err, delivery.ErrNotFound):
		return err
	}
	fresh, err := s.store.Revoke(c, delivery.StoredRevocation{Identity: f.Identity, Device: f.DeviceID, Bytes: r.Bytes(), RevokedMS: s.nowMS()}, s.deviceBound())
	if errors.Is(err, delivery.ErrLimit) {
		return delivery.Refuse(delivery.CodeRefused, fmt.Sprintf(
			"the device is not enrolled here, and its identity has as many devices and revocations as are kept of one: %d", s.MaxRevocations))
	}
	if err != nil {
		return err
	}
	// Told again even when it was known: the first telling may have been lost.
	s.sessions.forget(f.DeviceID)
	s.ring(c, []identity.DeviceID{f.DeviceID}, delivery.Hint{Kind: delivery.HintRevoked})
	s.kicks.removals.kick()
	if fresh {
		s.metrics.revoked.Inc()
		s.later(c, func(ctx context.Context) { s.tellSiblings(ctx, f.Identity, f.DeviceID) })
	}
	return c.nothing()
}

// tellSiblings puts a notice into the mailboxes of an identity's other devices:
// account keys have to be rotated.
func (s *Server) tellSiblings(ctx context.Context, id identity.PublicKey, revoked identity.DeviceID) {
	devices, err := s.store.Devices(ctx, id)
	s.failed("telling of a revocation", err)
	for _, d := range devices {
		item := delivery.MailItem{Kind: delivery.MailReissued, CreatedMS: s.nowMS(), Key: fmt.Sprintf("revoked:%x", revoked[:])}
		s.failed("telling of a revocation", s.mail(ctx, d.ID, item))
	}
}
