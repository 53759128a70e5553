package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

const (
	// maxPackages bounds a device's unclaimed packages of one suite.
	maxPackages = 500
	// maxPackageLife bounds how long a package may lie here.
	maxPackageLife = policy.MaxLifetime
	// clockSlack is how far ahead a device's clock may be.
	clockSlack = time.Hour
)

// publish takes a batch of key packages of the calling device: each valid by
// RFC 9420 §10.1, each the device's own by its attested credential.
func (s *Server) publish(c *call) error {
	var req delivery.PublishRequest
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if len(req.Packages) == 0 || len(req.Packages) > delivery.MaxKeyPackages {
		return bad(fmt.Sprintf("publish 1 to %d packages at once", delivery.MaxKeyPackages))
	}
	if err := s.spend(c, "publish", c.device().String(), 1); err != nil {
		return err
	}
	batch := make([]delivery.StoredKeyPackage, len(req.Packages))
	fresh := map[uint16]int{}
	for i, raw := range req.Packages {
		p, err := s.checkPackage(raw, c.who.Device)
		if err != nil {
			return err
		}
		batch[i] = p
		if !p.LastResort {
			fresh[p.Suite]++
		}
	}
	for id, n := range fresh {
		have, _, err := s.store.CountKeyPackages(c, c.device(), id, s.nowMS())
		if err != nil {
			return err
		}
		if have+n > maxPackages {
			return delivery.Refuse(delivery.CodeTooLarge, fmt.Sprintf("a device keeps at most %d packages of a suite here", maxPackages))
		}
	}
	if err := s.store.PublishKeyPackages(c, batch); err != nil {
		return err
	}
	s.metrics.published.Add(float64(len(batch)))
	return s.count(c, batch[0].Suite)
}

// checkPackage verifies one package of a device.
func (s *Server) checkPackage(raw []byte, d delivery.Device) (delivery.StoredKeyPackage, error) {
	var m wire.MLSMessage
	if wire.Unmarshal(raw, &m) != nil || m.WireFormat != wire.WireFormatKeyPackage {
		return delivery.StoredKeyPackage{}, bad("a package is not an MLSMessage with a KeyPackage")
	}
	kp := m.KeyPackage
	if !slices.Contains(policy.Suites, kp.CipherSuite) {
		return delivery.StoredKeyPackage{}, delivery.Refuse(delivery.CodeRefused, "a package's suite is not one of this service's rooms")
	}
	now := s.Now()
	ref, err := verifyPackage(kp, now.Add(clockSlack))
	if err != nil {
		if refusal := s.policyRefusal(err); delivery.CodeOf(refusal) != "" {
			return delivery.StoredKeyPackage{}, refusal
		}
		return delivery.StoredKeyPackage{}, bad("a package does not verify (RFC 9420 §10.1)")
	}
	cred, err := policy.CheckLeaf(&kp.LeafNode)
	if err != nil {
		return delivery.StoredKeyPackage{}, s.policyRefusal(err)
	}
	if cred.DeviceID() != d.ID { // which is made of the identity and the key
		return delivery.StoredKeyPackage{}, delivery.Refuse(delivery.CodeRefused, "a package is another device's")
	}
	life := kp.LeafNode.Lifetime
	if life.NotAfter > uint64(now.Add(maxPackageLife).Unix()) { // one that has ended did not verify
		return delivery.StoredKeyPackage{}, bad("a package must end within 120 days from now")
	}
	return delivery.StoredKeyPackage{
		Ref: ref, Device: d.ID, Identity: d.Identity, Suite: uint16(kp.CipherSuite), Bytes: raw,
		NotAfterMS: int64(life.NotAfter) * 1000, LastResort: wire.IsLastResort(kp.Extensions),
	}, nil
}

// policyRefusal says which rule was broken, without what the error wraps: that
// may name somebody.
func (s *Server) policyRefusal(err error) error {
	for _, cause := range policy.Causes() {
		if errors.Is(err, cause) {
			return delivery.Refuse(delivery.CodeRefused, cause.Error())
		}
	}
	return err
}

func (s *Server) countPackages(c *call) error {
	id, err := c.number("suite", uint64(policy.Suites[0]))
	if err != nil || id > 0xffff {
		return bad("the parameter suite is not a cipher suite")
	}
	return s.count(c, uint16(id))
}

func (s *Server) count(c *call, id uint16) error {
	n, last, err := s.store.CountKeyPackages(c, c.device(), id, s.nowMS())
	if err != nil {
		return err
	}
	return c.json(delivery.KeyPackageCount{Suite: id, Unclaimed: n, LastResort: last, LowWater: s.LowWater})
}

// claim takes one package of each device of an identity. Two budgets stand
// before it: the requester's, and the requester's on this one identity, so that
// nobody drains a person's packages alone.
func (s *Server) claim(c *call) error {
	var req delivery.ClaimRequest
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if !slices.Contains(policy.Suites, wire.CipherSuite(req.Suite)) {
		return bad("no room has this cipher suite")
	}
	if err := s.claimFor(c, req.Room); err != nil {
		return err
	}
	who := c.who.Device.Identity
	if err := s.spend(c, "claim", who.String(), 1); err != nil {
		return err
	}
	if req.Identity != who {
		if err := s.spend(c, "drain", who.String()+":"+req.Identity.String(), 1); err != nil {
			return err
		}
	}
	devices, err := s.store.Devices(c, req.Identity)
	if err != nil {
		return err
	}
	if len(devices) == 0 {
		return delivery.Refuse(delivery.CodeNotFound, "no device of this identity is known here")
	}
	got, err := s.store.ClaimKeyPackages(c, req.Identity, req.Suite, s.nowMS())
	if err != nil {
		return err
	}
	out := delivery.ClaimResponse{Packages: [][]byte{}}
	has := make(map[identity.DeviceID]bool, len(got))
	for _, p := range got {
		has[p.Device] = true
		out.Packages = append(out.Packages, p.Bytes)
		kind := "ordinary"
		if p.LastResort {
			kind = "last_resort"
		}
		s.metrics.claimed.WithLabelValues(kind).Inc()
	}
	for _, d := range devices {
		if !has[d.ID] {
			out.Missing = append(out.Missing, d.ID)
			s.metrics.claimed.WithLabelValues("none").Inc()
		}
	}
	s.later(c, func(ctx context.Context) { s.lowWater(ctx, devices, req.Suite) })
	return c.json(out)
}

// claimFor checks what the packages are for: a room of this home has to have
// the claiming device as a member. Another home's rooms are unknown here.
func (s *Server) claimFor(c *call, room delivery.RoomID) error {
	if _, err := delivery.RoomIDFromBytes(room[:]); err != nil {
		return bad("a claim names the room that it is for")
	}
	if room.Home() != s.Home {
		return nil
	}
	list, err := s.store.Memberships(c, room, c.device())
	if err != nil && !errors.Is(err, delivery.ErrNotFound) {
		return err
	}
	if n := len(list); n > 0 && list[n-1].Current() {
		return nil
	}
	return s.broken(RuleClaimMember, delivery.Refuse(delivery.CodeRefused, "packages are claimed for a room that this device is in"))
}

// lowWater tells devices whose packages run out to publish more.
func (s *Server) lowWater(ctx context.Context, devices []delivery.Device, suite uint16) {
	now := s.Now()
	for _, d := range devices {
		n, _, err := s.store.CountKeyPackages(ctx, d.ID, suite, now.UnixMilli())
		s.failed("counting key packages", err)
		if err != nil || n >= s.LowWater {
			continue
		}
		item := delivery.MailItem{Kind: delivery.MailLowKeys, CreatedMS: now.UnixMilli(), Key: fmt.Sprintf("low:%d:%d", suite, now.Unix()/(6*3600))}
		s.failed("telling of low key packages", s.mail(ctx, d.ID, item))
	}
}
