package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// Succeed moves a room's conversation into a new room with the same people, roles
// and settings: for another suite, or when its commits cannot be processed. suite
// 0 keeps the room's. Who was interrupted calls it again and goes on where it
// stopped; when the room has moved already, its successor is given. Only an admin
// moves a room whose commits can be processed (ErrSuite, ErrOut).
func (e *Engine) Succeed(ctx context.Context, id delivery.RoomID, suite wire.CipherSuite, why string) (delivery.RoomID, error) {
	r, done, err := e.find(ctx, id)
	if err != nil {
		return delivery.RoomID{}, err
	}
	defer done()
	if next, moved, err := e.movedOn(ctx, r); moved || err != nil {
		return next, err
	}
	next, people, err := e.successorOf(ctx, r, suite)
	if err != nil {
		return next, err
	}
	if err := e.tellSuccessor(ctx, r, next, why); err != nil {
		e.Warn("the old chat could not be told where the conversation goes on: %v", err)
	}
	for _, p := range people {
		if err := e.Add(ctx, next, p); err != nil {
			if isNet(err) || errors.Is(err, ErrRevoked) {
				return next, err // called again, it goes on here
			}
			e.Warn("%s could not be brought along: %v", p, err)
		}
	}
	if err := e.keepUp(ctx, r, next); err != nil {
		if isNet(err) {
			return next, err
		}
		e.Warn("the new chat could not be brought to what was decided in the old one: %v", err)
	}
	err = e.client.Succeed(ctx, id, next)
	if delivery.CodeOf(err) == delivery.CodeConflict {
		return next, errors.Join(e.fail(ctx, err), e.succeeded(ctx, r))
	}
	if err != nil {
		return next, e.fail(ctx, err)
	}
	err = e.rewrite(ctx, r, func(rec *Room) { rec.Status, rec.Successor, rec.Named = StatusSucceeded, &next, true })
	return next, errors.Join(err, e.flushSnapshot(ctx))
}

// movedOn reads the room to its end and tells where it has gone, if it has.
func (e *Engine) movedOn(ctx context.Context, r *room) (next delivery.RoomID, moved bool, err error) {
	if r.rec.Kind == delivery.RoomSelf {
		return next, false, ErrDirect
	}
	if r.rec.Status == StatusOpen {
		if err := e.catchUp(ctx, r); err != nil && !errors.Is(err, ErrStuck) {
			return next, false, err
		}
	}
	if err := e.followed(ctx, r); err != nil {
		return next, false, err
	}
	if r.rec.Status == StatusSucceeded && r.rec.Successor != nil {
		return *r.rec.Successor, true, nil
	}
	if r.state.roster == nil || r.rec.Status != StatusOpen && r.rec.Status != StatusStuck || e.underRemoval(r) {
		return next, false, ErrOut
	}
	me, in := e.member(r)
	if !in || r.rec.Status == StatusOpen && !policy.IsAdmin(r.state.policy, r.state.roster, me) {
		return next, false, delivery.Refuse(delivery.CodeRefused, "only an admin moves a chat that works")
	}
	return next, false, nil
}

// successorOf gives the room to go on in, made unless this device had begun with
// one, and who is to be brought into it.
func (e *Engine) successorOf(ctx context.Context, r *room, suite wire.CipherSuite) (next delivery.RoomID, people []identity.PublicKey, err error) {
	people = r.goOn(e.account.Identity)
	if begun := r.rec.Successor; begun != nil {
		known := false
		err := e.Store.View(ctx, func(tx Tx) error {
			var rec Room
			known, err = get(tx, TableRoom, begun.String(), &rec)
			return err
		})
		if err != nil {
			return next, nil, err
		}
		if !known {
			return *begun, nil, delivery.Refuse(delivery.CodeConflict, "somebody else is moving this chat already")
		}
		return *begun, people, nil
	}
	if suite == 0 {
		suite = r.state.group.CipherSuite()
	}
	next, err = e.createRoom(ctx, newRoom{kind: r.rec.Kind, title: r.rec.Title, others: people, suite: suite, succeeds: r})
	return next, people, err
}

// keepUp brings a successor that was begun to what was decided in the old room since.
func (e *Engine) keepUp(ctx context.Context, old *room, next delivery.RoomID) error {
	r, done, err := e.writable(ctx, next)
	if err != nil {
		return err
	}
	defer done()
	return e.commit(ctx, r, func(context.Context) ([]wire.Proposal, bool, error) {
		var out []wire.Proposal
		participants, revocations, gone := policy.SuccessionDue(old.state.policy, old.state.roster, judged(old.state.group.Proposals()), r.state.policy)
		if participants != nil {
			out = append(out, mls.AppDataUpdateProposal(policy.ComponentParticipants, participants))
		}
		if revocations != nil {
			out = append(out, mls.AppDataUpdateProposal(policy.ComponentRevocations, revocations))
		}
		for _, m := range r.state.roster.Members() {
			if slices.Contains(gone, m.Identity) {
				out = append(out, mls.RemoveProposal(m.Leaf))
			}
		}
		return out, len(out) == 0, nil
	})
}

// tellSuccessor says in the old room where the conversation goes on.
func (e *Engine) tellSuccessor(ctx context.Context, r *room, next delivery.RoomID, why string) error {
	if err := e.mayAct(r); err != nil {
		return err
	}
	_, err := e.write(ctx, r, nil, func(h content.Header) (content.Message, error) {
		h.Expires = nil
		return content.New(h, content.Successor{Room: next.String(), Reason: why})
	})
	return err
}

// decides reports whether an identity may move the room's conversation.
func (r *room) decides(id identity.PublicKey) bool {
	return r.state.roster != nil && r.state.roster.Has(id) > 0 && policy.IsAdmin(r.state.policy, r.state.roster, policy.Member{Identity: id})
}

// followed asks whether a room that is being moved is closed by now.
func (e *Engine) followed(ctx context.Context, r *room) error {
	if r.rec.Status != StatusOpen || r.rec.Successor == nil {
		return nil
	}
	head, err := e.client.Room(ctx, r.rec.ID)
	if err != nil {
		return e.fail(ctx, err)
	}
	if head.Status != delivery.RoomSucceeded {
		return nil
	}
	return e.succeeded(ctx, r)
}

// succeeded notes that a room's conversation goes on elsewhere.
func (e *Engine) succeeded(ctx context.Context, r *room) error {
	head, err := e.client.Room(ctx, r.rec.ID)
	if err != nil {
		return e.fail(ctx, err)
	}
	return e.rewrite(ctx, r, func(rec *Room) {
		rec.Status = StatusSucceeded
		if s := head.Successor; s != nil && (rec.Successor == nil || *s != *rec.Successor) {
			rec.Successor, rec.Named = s, false
		}
	})
}

// succeedsKnown reports whether a room that this device is invited to goes on with
// the conversation of one it is in, for nobody whom that one has not: a person who is
// somewhere with strangers already is not asked about them again, and meets no further
// ones by it. The service's word is not enough, it could send everybody anywhere: an
// admin named the room in the old one, or a device known there made it for exactly the
// same people. Anything else is a request.
func (e *Engine) succeedsKnown(ctx context.Context, id delivery.RoomID, by policy.Member, to *policy.Room) (bool, error) {
	before, err := e.movedTo(ctx, id)
	for _, old := range before {
		r, done, err := e.enter(ctx, old)
		if err != nil {
			return false, err
		}
		succeeds := r.goesOnIn(by, to)
		done()
		if succeeds {
			return true, nil
		}
	}
	return false, err
}

// movedTo lists the rooms whose conversation is said to go on in the given one, or may
// because the service has lost them.
func (e *Engine) movedTo(ctx context.Context, id delivery.RoomID) (before []delivery.RoomID, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		rooms, err := scan[Room](tx, TableRoom, "")
		for _, r := range rooms {
			if r.Successor != nil && *r.Successor == id && r.Status != StatusLeft || r.mayGoOnIn(id) {
				before = append(before, r.ID)
			}
		}
		return err
	})
	return before, err
}

// goesOnIn reports whether a room, which is said to be this one's successor, may be
// entered without asking: it keeps what was decided here, and lists nobody else. by is
// the device that invites to it.
func (r *room) goesOnIn(by policy.Member, to *policy.Room) bool {
	if r.state.roster == nil || policy.CheckSuccession(r.state.policy, r.state.roster, judged(r.state.group.Proposals()), to) != nil {
		return false
	}
	known, in := r.state.roster.Device(by.Device)
	return r.rec.Named || in && known.SameAttestation(by)
}

// joinSuccessors enters rooms that wait as requests and turned out to be where a
// conversation goes on.
func (e *Engine) joinSuccessors(ctx context.Context) error {
	waiting, err := e.Requests(ctx)
	if err != nil {
		return err
	}
	for _, q := range waiting {
		joined, s, err := e.followInto(ctx, q)
		if err == nil && joined != nil {
			if err = e.join(ctx, q.Room, q.StartSeq, q.TimeMS, joined, s); err == nil {
				err = errors.Join(e.movedInto(ctx, q.Room), e.client.AckMail(ctx, q.Mail))
			}
		}
		if err != nil {
			if isNet(err) {
				return err
			}
			e.Warn("the chat that goes on in another one cannot be followed: %v", fmt.Errorf("%s: %w", q.Room, err))
		}
	}
	return nil
}

// followInto opens the Welcome of a request that is a successor; nil: it is none.
func (e *Engine) followInto(ctx context.Context, q Request) (*mls.Joined, state, error) {
	if before, err := e.movedTo(ctx, q.Room); err != nil || len(before) == 0 {
		return nil, state{}, err
	}
	inviter, to, err := e.peek(ctx, q.Room, q.Epoch, q.Welcome)
	if err != nil {
		return nil, state{}, err
	}
	if succeeds, err := e.succeedsKnown(ctx, q.Room, inviter, to); err != nil || !succeeds {
		return nil, state{}, err
	}
	return e.tryWelcome(ctx, q.Room, q.Epoch, q.Welcome, inviter)
}
