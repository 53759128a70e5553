package server

import (
	"errors"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// maxEnvelopeBody bounds a signed body on every route: the signature covers all of
// it, so it has to be here before anything is known for certain.
const maxEnvelopeBody = 8 << 20

// openEnvelope authenticates a call by the signed envelope in its header: over
// the raw request target and the exact body, for this home, within a minute of
// the clock, and once (see package identity). What can be said without the body is
// said before it is read.
func (s *Server) openEnvelope(rt route, c *call, header string) error {
	if len(c.r.Header.Values(delivery.HeaderEnvelope)) != 1 {
		return bad("more than one signed envelope")
	}
	u, err := identity.ParseEnvelopeHeader(header)
	if err != nil {
		return bad("the signed envelope cannot be read")
	}
	now := s.Now()
	if err := envelopeRefusal(u, u.Check(c.r.Method, c.r.RequestURI, s.Home, now, identity.EnvelopeSkew)); err != nil {
		return err
	}
	device, err := s.store.DeviceByKey(c, u.DevicePubkey)
	if errors.Is(err, delivery.ErrNotFound) {
		return errLogIn
	}
	if err != nil {
		return err
	}
	if device.Role != identity.RoleMember {
		return delivery.Refuse(delivery.CodeRefused, "only a member's device signs requests here")
	}
	if err := s.readBody(c, min(rt.limit, maxEnvelopeBody)); err != nil {
		return err
	}
	e, err := u.Verify(c.r.Method, c.r.RequestURI, c.body, s.Home, now, identity.EnvelopeSkew)
	if err != nil {
		return envelopeRefusal(u, err)
	}
	if e.Predates(s.secrets.born) {
		return delivery.Refuse(delivery.CodeRetry, "the envelope is older than what this service remembers: sign anew in a minute")
	}
	fresh, err := s.store.UseNonce(c, e.Device(), e.Nonce(), e.NonceExpiry().UnixMilli())
	if err != nil {
		return err // nonces fail closed
	}
	if !fresh {
		return delivery.Refuse(delivery.CodeRetry, "the envelope was used before: sign anew")
	}
	c.who = delivery.Session{Device: device, ExpiresMS: now.Add(identity.EnvelopeSkew).UnixMilli()}
	return nil
}

// envelopeRefusal says what is wrong with an envelope; nil for no error.
func envelopeRefusal(u identity.UnverifiedEnvelope, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, identity.ErrWrongHome):
		home := u.Home
		return &delivery.Error{Code: delivery.CodeGoElsewhere, Detail: "the envelope is for another home", Home: &home}
	case errors.Is(err, identity.ErrSkew):
		return delivery.Refuse(delivery.CodeRetry, "the envelope is off this service's clock by more than a minute: set the clock, sign anew")
	}
	return delivery.Refuse(delivery.CodeLogIn, "the envelope does not sign this request")
}
