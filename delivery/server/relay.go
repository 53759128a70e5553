package server

import (
	"context"
	"fmt"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// kicks wake the loops of [Server.Run] before their time.
type kicks struct{ relays, removals kick }

type kick chan struct{}

func newKicks() kicks { return kicks{make(kick, 1), make(kick, 1)} }

func (k kick) kick() {
	select {
	case k <- struct{}{}:
	default:
	}
}

// every runs fn at once, when kicked, and at intervals, until ctx ends.
func (k kick) every(ctx context.Context, interval time.Duration, fn func(context.Context)) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		fn(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-k:
		}
	}
}

const (
	relayBatch  = 256
	relayAtOnce = 16 // joiners whose pointers are written before the commit is answered
)

// relayLoop pays the mailbox pointers that commits owe to joiners. The commit's
// transaction noted the debt; each pointer has a key, so paying twice, here or
// at another instance, puts it once.
func (s *Server) relayLoop(ctx context.Context) {
	s.kicks.relays.every(ctx, 5*time.Second, func(ctx context.Context) {
		for ctx.Err() == nil {
			n, err := s.Relay(ctx)
			s.failed("relaying mailbox pointers", err)
			if n < relayBatch {
				return
			}
		}
	})
}

// Relay pays up to a batch of mailbox pointers and says how many.
func (s *Server) Relay(ctx context.Context) (int, error) {
	owed, err := s.store.PendingRelays(ctx, relayBatch)
	if err != nil {
		return 0, err
	}
	for i, r := range owed {
		if err := s.point(ctx, r); err != nil {
			return i, err
		}
		if err := s.store.FinishRelay(ctx, r); err != nil {
			return i, err
		}
	}
	return len(owed), nil
}

// point puts the pointer to a Welcome into the joiner's mailbox, once.
func (s *Server) point(ctx context.Context, r delivery.Relay) error {
	return s.mail(ctx, r.Device, delivery.MailItem{
		Kind: delivery.MailWelcome, Room: r.Room, Epoch: r.Epoch, StartSeq: r.StartSeq,
		CreatedMS: s.nowMS(), Key: fmt.Sprintf("welcome:%x:%d", r.Room[:], r.Epoch),
	})
}

// invite points the joiners of an accepted commit to their Welcome. Of a few it
// does so before the commit is answered: whoever is told at once that they were
// added finds the invitation. The debt stays until the loop, which it wakes, has
// seen to it: what goes wrong here is paid there.
func (s *Server) invite(ctx context.Context, room delivery.RoomID, epoch, seq uint64, joiners []delivery.Joiner) {
	for _, j := range joiners[:min(len(joiners), relayAtOnce)] {
		if err := s.point(ctx, delivery.Relay{Room: room, Epoch: epoch, Device: j.Device, StartSeq: seq}); err != nil {
			s.failed("relaying a mailbox pointer", err)
			break
		}
	}
	s.kicks.relays.kick()
}
