package server

import (
	"context"
	"errors"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// A revoked device keeps its leaves until members remove them. The home, the
// only external sender of its rooms, proposes that: one Remove for each leaf,
// with the revocation in authenticated_data. What is owed is read from the
// store (a current membership of a revoked device), so no crash forgets it; an
// external commit drops held Removes, and the next round proposes them again.

func (s *Server) removalLoop(ctx context.Context) {
	s.kicks.removals.every(ctx, time.Minute, func(ctx context.Context) {
		s.failed("proposing removals", s.ProposeRemovals(ctx))
	})
}

// ProposeRemovals proposes every removal that a room owes and does not hold, batch
// by batch. What waits for members to commit it stays owed and is passed over, so
// rooms where nobody is awake hide no other.
func (s *Server) ProposeRemovals(ctx context.Context) error {
	var last delivery.Membership
	for {
		owed, err := s.store.RevokedMembers(ctx, last, s.RemovalBatch)
		if err != nil {
			return err
		}
		for _, m := range owed {
			if m.Room.Home() == s.Home {
				s.countRemoval(s.proposeRemoval(ctx, m))
			}
			last = m
		}
		if len(owed) < s.RemovalBatch {
			return nil
		}
	}
}

// countRemoval counts what came of a removal, unless the room holds it, is over,
// or cannot take it yet.
func (s *Server) countRemoval(err error) {
	result := "proposed"
	switch code := delivery.CodeOf(err); {
	case errors.Is(err, errHeldAlready), code == delivery.CodeSucceeded, code == delivery.CodeHealing:
		return
	case err != nil:
		result = "failed"
		s.failed("proposing a removal", err)
	}
	s.metrics.removals.WithLabelValues(result).Inc()
}

var errHeldAlready = errors.New("server: the room holds this removal already")

func (s *Server) proposeRemoval(ctx context.Context, m delivery.Membership) error {
	revoked, err := s.store.Revoked(ctx, m.Identity, m.Device)
	if err != nil {
		return err
	}
	for range maxTries {
		in, p, err := s.removal(ctx, m, revoked.Bytes)
		if err != nil {
			return err
		}
		done, err := s.order(ctx, in, p)
		if errors.Is(err, errMoved) || delivery.CodeOf(err) == delivery.CodeStaleEpoch {
			continue
		}
		if err != nil {
			return err
		}
		s.appended(ctx, in, p, done)
		return nil
	}
	return errMoved
}

// removal makes and checks the home's proposal in the room's present epoch.
func (s *Server) removal(ctx context.Context, m delivery.Membership, revocation []byte) (*incoming, *plan, error) {
	f, err := s.follow(ctx, m.Room)
	if err != nil {
		return nil, nil, err
	}
	target, in := f.roster.Device(m.Device)
	if !in {
		return nil, nil, errHeldAlready // it is out already
	}
	held, err := s.held(ctx, m.Room)
	if err != nil {
		return nil, nil, err
	}
	if policy.UnderRemoval(policyHeld(held), target.Leaf) {
		return nil, nil, errHeldAlready
	}
	message := wire.PublicMessage{Content: wire.FramedContent{
		GroupID: m.Room[:], Epoch: f.epoch,
		Sender:            wire.Sender{SenderType: wire.SenderTypeExternal, SenderIndex: policy.HomeSenderIndex},
		AuthenticatedData: revocation, ContentType: wire.ContentTypeProposal,
		Proposal: &wire.Proposal{ProposalType: wire.ProposalTypeRemove, Remove: &wire.Remove{Removed: target.Leaf}},
	}}
	tbs := wire.FramedContentTBS{WireFormat: wire.WireFormatPublicMessage, Content: &message.Content}
	if message.Auth.Signature, err = s.secrets.sender.SignWithLabel("FramedContentTBS", wire.Marshal(&tbs)); err != nil {
		return nil, nil, err
	}
	entry := wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatPublicMessage, PublicMessage: &message})
	parsed, err := parseEntry(m.Room, delivery.AppendRequest{Entry: entry})
	if err != nil {
		return nil, nil, err
	}
	parsed.device = delivery.Device{ID: identity.DeviceID{}}
	p := &plan{before: f, held: make([][]byte, len(held))}
	for i, h := range held {
		p.held[i] = h.Ref
	}
	return parsed, p, s.judgeProposal(p, parsed.public, held, s.Now())
}
