package server

import (
	"context"
	"errors"
	"sync"
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

// removals are the owed removals that their rooms are known to hold: of each where
// the room stood when it was seen. While the room stands there nothing drops one, so
// what waits for weeks for members to commit it is not looked for every minute.
type removals struct {
	mu   sync.Mutex // guards held
	held map[owedBy]standing
}

// owedBy names a removal, standing an epoch of a room that may have been restored.
type (
	owedBy struct {
		room   delivery.RoomID
		device identity.DeviceID
	}
	standing struct {
		epoch       uint64
		incarnation uint32
	}
)

// maxHeldRemovals bounds what is remembered to about 6 MiB; further ones are looked
// for in each round.
const maxHeldRemovals = 1 << 16

func (r *removals) known(o delivery.OwedRemoval) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.held[owedBy{o.Room, o.Device}]
	return known && at == standing{o.Epoch, o.Incarnation}
}

// ProposeRemovals proposes every removal that a room owes and does not hold, batch
// by batch. What waits for members to commit it stays owed and is passed over, so
// rooms where nobody is awake hide no other.
func (s *Server) ProposeRemovals(ctx context.Context) error {
	held := map[owedBy]standing{} // of this round: what is not owed any more is forgotten
	var last delivery.Membership
	for {
		owed, err := s.store.RevokedMembers(ctx, last, s.RemovalBatch)
		if err != nil {
			return err
		}
		for _, o := range owed {
			last = o.Membership
			if o.Room.Home() != s.Home {
				continue
			}
			if !s.removals.known(o) {
				epoch, err := s.proposeRemoval(ctx, o.Membership)
				s.countRemoval(err)
				if err != nil && !errors.Is(err, errHeldAlready) || epoch != o.Epoch {
					continue // the next round looks again
				}
			}
			if len(held) < maxHeldRemovals {
				held[owedBy{o.Room, o.Device}] = standing{o.Epoch, o.Incarnation}
			}
		}
		if len(owed) < s.RemovalBatch {
			s.removals.mu.Lock()
			defer s.removals.mu.Unlock()
			s.removals.held = held
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

// proposeRemoval has the room hold the removal and says in which epoch: nil when it
// was proposed, errHeldAlready when it was held.
func (s *Server) proposeRemoval(ctx context.Context, m delivery.Membership) (epoch uint64, err error) {
	revoked, err := s.store.Revoked(ctx, m.Identity, m.Device)
	if err != nil {
		return 0, err
	}
	for range maxTries {
		f, err := s.follow(ctx, m.Room)
		if err != nil {
			return 0, err
		}
		in, p, err := s.removal(ctx, f, m, revoked.Bytes)
		if err != nil {
			return f.epoch, err
		}
		done, err := s.order(ctx, in, p)
		if errors.Is(err, errMoved) || delivery.CodeOf(err) == delivery.CodeStaleEpoch {
			continue
		}
		if err != nil {
			return f.epoch, err
		}
		s.appended(ctx, in, p, done)
		return f.epoch, nil
	}
	return 0, errMoved
}

// removal makes and checks the home's proposal in an epoch of the room.
func (s *Server) removal(ctx context.Context, f *followed, m delivery.Membership, revocation []byte) (*incoming, *plan, error) {
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
