package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
)

// A room that a restored service does not know comes back when its creator's device
// offers what it was made by. Where that device is gone, one of the others makes a
// successor with the same people, roles, bans and revocations. There is no log any
// more that could order who makes it, so its id decides: it follows from the old one's,
// and the service makes one room of an id. Who made it invites the others, which enter
// it without asking their person; everybody there brings along who is listed and could
// not be added yet. See decision 0029.

const (
	// lostWait is how long a room is left to its creator's device, and how long one
	// that made a successor is left to invite.
	lostWait = 24 * time.Hour
	// lostStep is by how much a device waits longer than the one in the leaf before it.
	lostStep = 10 * time.Minute
	lostRows = 11 // steps at most
	// lostCarry is for how long who is missing in a successor is brought along, and
	// lostEach how often that is tried.
	lostCarry = 30 * 24 * time.Hour
	lostEach  = time.Hour
)

// lapse is what a device remembers of a room that a restored service did not know.
// Times are in milliseconds, of this device's clock.
type lapse struct {
	FirstMS   int64  `json:"first_ms"`             // when that was seen first
	SinceMS   int64  `json:"since_ms,omitempty"`   // since when it is so; 0 = the service knows the room again
	Taken     uint32 `json:"taken,omitempty"`      // successors that others made, and into which nobody invited
	MovedMS   int64  `json:"moved_ms,omitempty"`   // when this device went on in the successor
	BroughtMS int64  `json:"brought_ms,omitempty"` // when it last tried to bring along who is missing there
}

// lapsed notes that the service does not know the room.
func (r *room) lapsed(nowMS int64) {
	if r.rec.Lapse.SinceMS > 0 {
		return
	}
	r.rec.Lapse.SinceMS = nowMS
	if r.rec.Lapse.FirstMS == 0 {
		r.rec.Lapse.FirstMS = nowMS
	}
}

// mayGoOnIn reports whether a room is one that may succeed this one, which a restored
// service has lost. Once this device has gone on in one, no other is.
func (r Room) mayGoOnIn(id delivery.RoomID) bool {
	if r.Lapse.FirstMS == 0 || r.Status != StatusOpen || r.Successor != nil {
		return false
	}
	for n := range uint32(delivery.MaxSuccessors) {
		if delivery.SuccessorID(r.ID, n) == id {
			return true
		}
	}
	return false
}

// moveLost makes successors of rooms that the restored service has lost and that
// nobody has brought back, and brings along who is missing in them.
func (e *Engine) moveLost(ctx context.Context) error {
	var rooms []Room
	err := e.Store.View(ctx, func(tx Tx) (err error) {
		rooms, err = scan[Room](tx, TableRoom, "")
		return err
	})
	if err != nil {
		return err
	}
	for _, rec := range rooms {
		if rec.Lapse.FirstMS == 0 || rec.Kind == delivery.RoomSelf {
			continue
		}
		err := e.replaceLost(ctx, rec.ID)
		if err == nil {
			err = e.bringAlong(ctx, rec.ID)
		}
		switch {
		case err == nil, errors.Is(err, ErrOut):
		case isNet(err) && !aboutRoom(err), errors.Is(err, ErrRevoked):
			return err
		default:
			e.Warn("a chat that the restored service has lost does not go on: %v", err)
		}
	}
	return nil
}

// replaceLost makes the successor when it is this device's turn.
func (e *Engine) replaceLost(ctx context.Context, id delivery.RoomID) error {
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if r.rec.Status != StatusOpen || r.rec.Successor != nil || r.state.roster == nil {
		return nil
	}
	in, found, err := e.inSuccessor(ctx, r)
	if err != nil {
		return err
	}
	if found {
		return e.leaveFor(ctx, r, in)
	}
	if !e.turnToMove(r) {
		return nil
	}
	if info, err := e.home(ctx); err != nil || info.Incarnation == 0 {
		return err // it says itself that it lost nothing
	}
	before := r.rec
	next := delivery.SuccessorID(id, r.rec.Lapse.Taken)
	_, err = e.createRoom(ctx, newRoom{
		kind: r.rec.Kind, title: r.rec.Title, others: r.goOn(e.account.Identity), suite: r.state.group.CipherSuite(), succeeds: r, id: &next,
	})
	if delivery.CodeOf(err) == delivery.CodeConflict {
		r.rec.Lapse.Taken++
		err = e.Store.Update(ctx, r.save)
	} else if err == nil {
		e.Warn("the service was restored from a backup that lacks a chat, and nobody brought it back: it goes on in a new one with the same people")
	}
	if err != nil {
		r.rec = before
	}
	return err
}

// inSuccessor finds a successor that this device is in already: it was stopped before it
// noted so, or somebody whom it knows brought it there as into any room.
func (e *Engine) inSuccessor(ctx context.Context, r *room) (id delivery.RoomID, found bool, err error) {
	for n := range uint32(delivery.MaxSuccessors) {
		id = delivery.SuccessorID(r.rec.ID, n)
		known := false
		err := e.Store.View(ctx, func(tx Tx) (err error) {
			var rec Room
			known, err = get(tx, TableRoom, id.String(), &rec)
			return err
		})
		if err != nil {
			return id, false, err
		}
		if !known {
			continue
		}
		to, done, err := e.enter(ctx, id)
		if err != nil {
			return id, false, err
		}
		found = to.rec.Status == StatusOpen && to.state.policy != nil &&
			policy.CheckSuccession(r.state.policy, r.state.roster, judged(r.state.group.Proposals()), to.state.policy) == nil
		done()
		if found {
			return id, true, nil
		}
	}
	return id, false, nil
}

// turnToMove reports whether the room was given up and this device is the one to make
// its successor now: the one in the lowest leaf first.
func (e *Engine) turnToMove(r *room) bool {
	l := r.rec.Lapse
	me, in := e.member(r)
	if l.SinceMS == 0 || l.Taken >= delivery.MaxSuccessors || !in || r.rec.Successor != nil || e.mayAct(r) != nil || e.underRemoval(r) {
		return false
	}
	before := 0
	for _, m := range r.state.roster.Members() {
		if m.Leaf < me.Leaf {
			before++
		}
	}
	wait := lostWait + time.Duration(min(before, lostRows))*lostStep + time.Duration(l.Taken)*lostWait
	return e.nowMS()-l.SinceMS >= wait.Milliseconds()
}

// goOn are the people who go on in a room's successor, without one of them.
func (r *room) goOn(self identity.PublicKey) (people []identity.PublicKey) {
	settled := r.state.policy.Settled(r.state.roster, judged(r.state.group.Proposals()))
	for _, p := range r.state.roster.Identities() {
		if p != self && settled.Participants.Role(p) >= policy.RoleMember {
			people = append(people, p)
		}
	}
	return people
}

// movedInto notes that a room which was lost goes on in one that this device has
// entered. Who has brought the old one back meanwhile closes it, so that nobody stays
// behind there.
func (e *Engine) movedInto(ctx context.Context, next delivery.RoomID) error {
	before, err := e.movedTo(ctx, next)
	if err != nil {
		return err
	}
	for _, old := range before {
		if err := e.leaveLost(ctx, old, next); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) leaveLost(ctx context.Context, old, next delivery.RoomID) error {
	r, done, err := e.enter(ctx, old)
	if err != nil {
		return err
	}
	defer done()
	return e.leaveFor(ctx, r, next)
}

func (e *Engine) leaveFor(ctx context.Context, r *room, next delivery.RoomID) error {
	if !r.rec.mayGoOnIn(next) {
		return nil
	}
	if r.rec.Lapse.SinceMS == 0 && r.decides(e.account.Identity) {
		if err := e.client.Succeed(ctx, r.rec.ID, next); err != nil {
			e.Warn("a chat that came back after it had moved stays open: %v", err)
		}
	}
	before := r.rec
	r.goesOnAt(next, e.nowMS())
	if err := e.Store.Update(ctx, r.save); err != nil {
		r.rec = before
		return err
	}
	return nil
}

// goesOnAt notes where a lost room goes on.
func (r *room) goesOnAt(next delivery.RoomID, nowMS int64) {
	r.rec.Status, r.rec.Successor, r.rec.Lapse.MovedMS = StatusSucceeded, &next, nowMS
}

// bringAlong adds whoever is listed in a lost room's successor and is not there yet:
// after a restore nobody has key packages until their device comes by.
func (e *Engine) bringAlong(ctx context.Context, old delivery.RoomID) error {
	r, done, err := e.enter(ctx, old)
	if err != nil {
		return err
	}
	defer done()
	l, now := r.rec.Lapse, e.nowMS()
	if r.rec.Status != StatusSucceeded || r.rec.Successor == nil || l.MovedMS == 0 ||
		now-l.MovedMS > lostCarry.Milliseconds() || now-l.BroughtMS < lostEach.Milliseconds() {
		return nil
	}
	missing, err := e.missingIn(ctx, *r.rec.Successor)
	if err != nil {
		return err
	}
	for _, p := range missing {
		switch err := e.Add(ctx, *r.rec.Successor, p); {
		case err == nil, errors.Is(err, ErrNobody):
		case isNet(err), errors.Is(err, ErrRevoked):
			return fmt.Errorf("bring %s along: %w", p, err)
		default:
			e.Warn("%s could not be brought along: %v", p, err)
		}
	}
	r.rec.Lapse.BroughtMS = now
	return e.Store.Update(ctx, r.save)
}

// missingIn lists who belongs into a room and has no device there.
func (e *Engine) missingIn(ctx context.Context, id delivery.RoomID) (missing []identity.PublicKey, err error) {
	r, done, err := e.writable(ctx, id)
	if err != nil {
		return nil, err
	}
	defer done()
	for _, p := range r.state.policy.Participants {
		if p.Role >= policy.RoleMember && r.state.roster.Has(p.Identity) == 0 {
			missing = append(missing, p.Identity)
		}
	}
	return slices.Clip(missing), nil
}
