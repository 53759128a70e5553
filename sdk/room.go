package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// room is a room in memory. Whoever holds its turn owns everything in it.
type room struct {
	turn  turn
	files turn        // held while a file for the room goes up; taken before turn
	stale atomic.Bool // the record in the store is newer than rec

	rec   Room
	state state
	// seen are entries that were read before the service was restored, with their
	// blobs; nil before that.
	seen map[[32]byte][]delivery.BlobID
	// read are all entries that were read, from the first one on whose key had been
	// used: a member may send what others said again as often as it likes, and what is
	// stored is gone through for the first of these alone. nil before that.
	read  map[[32]byte][]delivery.BlobID
	given uint64    // up to which kept seq the restored service has everything
	told  told      // what a person was told of this restore
	upto  uint64    // the log was read to its end in this session (Engine.logins); 0 = in none
	calls time.Time // when a room that the service does not know is offered again
	waits time.Duration

	live live // has a lock of its own
}

// told counts what a device offered in vain since a restore: it offers again and again
// until the room is open, and says so once.
type told struct{ missing, dropped int }

// state is what a room's group is at one epoch. group is nil when this device is
// out.
type state struct {
	group  *mls.Group
	policy *policy.Room
	roster *policy.Roster
}

func leaves(g *mls.Group) iter.Seq2[uint32, *wire.LeafNode] {
	return func(yield func(uint32, *wire.LeafNode) bool) {
		for _, m := range g.Members() {
			if !yield(m.Leaf, m.Node) {
				return
			}
		}
	}
}

// newState reads rules and roster out of a group. Every credential in it was
// verified when its leaf came in, by the engine's [mls.Config], and only what was
// verified is stored: a room of a thousand is opened again without verifying two
// thousand signatures.
func newState(g *mls.Group) (state, error) {
	if !g.Active() {
		return state{group: g}, nil
	}
	p, err := policy.CheckContext(g.Context(), nil)
	if err != nil {
		return state{}, err
	}
	r, err := policy.TrustedRoster(leaves(g))
	if err != nil {
		return state{}, err
	}
	return state{g, p, r}, policy.CheckRoster(p, r)
}

func emptyRoom() *room { return &room{turn: newTurn(), files: newTurn()} }

// roomFor is a room in memory, of which nothing may have been read yet.
func (e *Engine) roomFor(id delivery.RoomID) *room {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.rooms[id]
	if r == nil {
		r = emptyRoom()
		r.stale.Store(true)
		e.rooms[id] = r
	}
	return r
}

// enter takes a room's turn, loading it if needed (ErrNoRoom, ErrRequest).
func (e *Engine) enter(ctx context.Context, id delivery.RoomID) (*room, func(), error) {
	r := e.roomFor(id)
	done, err := r.turn.take(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := e.load(ctx, r, id); err != nil {
		done()
		return nil, nil, err
	}
	return r, e.leaving(r, done), nil
}

// leaving gives a room's turn back, with what frames need of the room.
func (e *Engine) leaving(r *room, done func()) func() {
	return func() { e.publish(r); done() }
}

// load reads the room's record when it is stale, and its group the first time.
func (e *Engine) load(ctx context.Context, r *room, id delivery.RoomID) error {
	if !r.stale.Load() {
		return nil
	}
	var records []mls.Record
	err := e.Store.View(ctx, func(tx Tx) error {
		var rec Room // not the old one: JSON leaves what is not in it as it was
		found, err := get(tx, TableRoom, id.String(), &rec)
		if err != nil {
			return err
		}
		if !found {
			if waits, err := tx.Get(TableRequest, id.String()); err != nil || waits != nil {
				return errors.Join(err, ErrRequest)
			}
			return ErrNoRoom
		}
		r.rec = rec
		if r.state.group != nil {
			return nil
		}
		prefix := roomKey(id, "")
		return tx.Scan(TableMLS, prefix, "", func(key string, value []byte) (bool, error) {
			records = append(records, mls.Record{Key: strings.TrimPrefix(key, prefix), Value: value})
			return true, nil
		})
	})
	if err != nil {
		return err
	}
	r.stale.Store(false)
	if r.state.group != nil || len(records) == 0 {
		return nil
	}
	g, err := e.mls.Load(records)
	if err != nil {
		return fmt.Errorf("sdk: the stored state of a chat: %w", err)
	}
	r.state, err = newState(g)
	return err
}

// save writes the room's record. What others note in the stored one while this one is
// in memory stays: that the leaf has to be replaced, until it was, and what another
// device of the account has seen.
func (r *room) save(tx Tx) error {
	var stored Room
	if _, err := get(tx, TableRoom, r.rec.ID.String(), &stored); err != nil {
		return err
	}
	if stored.Status != r.rec.Status { // the snapshot tells it to devices that come later
		if err := tx.Put(TableSetting, settingDirty, []byte{1}); err != nil {
			return err
		}
	}
	r.rec.Renew, r.rec.Read = cmp.Or(r.rec.Renew, stored.Renew), max(r.rec.Read, stored.Read)
	if r.state.group != nil {
		r.rec.Epoch, r.rec.Suite = r.state.group.Epoch(), r.state.group.CipherSuite()
	}
	return put(tx, TableRoom, r.rec.ID.String(), r.rec)
}

// rewrite changes the room's record, in memory once it is stored: what a failing store
// does not hold is tried again. The caller holds the room's turn.
func (e *Engine) rewrite(ctx context.Context, r *room, change func(*Room)) error {
	before := r.rec
	change(&r.rec)
	err := e.Store.Update(ctx, r.save)
	if err != nil {
		r.rec = before
	}
	return err
}

// writeDelta writes what a step changes in the group's stored state.
func writeDelta(tx Tx, id delivery.RoomID, d mls.Delta) error {
	for _, key := range d.Delete {
		if err := tx.Delete(TableMLS, roomKey(id, key)); err != nil {
			return err
		}
	}
	for _, rec := range d.Put {
		if err := tx.Put(TableMLS, roomKey(id, rec.Key), rec.Value); err != nil {
			return err
		}
	}
	return nil
}

// forgetGroup takes the group's stored state away.
func forgetGroup(tx Tx, id delivery.RoomID) error {
	var keys []string
	err := tx.Scan(TableMLS, roomKey(id, ""), "", func(key string, _ []byte) (bool, error) {
		keys = append(keys, key)
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := tx.Delete(TableMLS, key); err != nil {
			return err
		}
	}
	return nil
}

// advance stores a step's delta, forgets what it consumed and goes on with its
// group. more runs in the same transaction.
func (e *Engine) advance(ctx context.Context, r *room, s mls.Step, more func(Tx) error) error {
	err := e.Store.Update(ctx, func(tx Tx) error {
		if err := writeDelta(tx, r.rec.ID, s.Delta); err != nil {
			return err
		}
		if more == nil {
			return nil
		}
		return more(tx)
	})
	if err != nil {
		return err
	}
	s.Forget()
	r.state.group = s.Next
	return nil
}

// member is this device's own entry in the roster.
func (e *Engine) member(r *room) (policy.Member, bool) {
	if r.state.roster == nil {
		return policy.Member{}, false
	}
	return r.state.roster.Device(e.account.Device)
}

// mayAct checks that this device may change or write to the room.
func (e *Engine) mayAct(r *room) error {
	switch {
	case r.rec.Status == StatusStuck:
		return ErrStuck
	case r.rec.Status != StatusOpen || r.state.group == nil || !r.state.group.Active():
		return ErrOut
	}
	return nil
}

// mayWrite is mayAct for what is said or done once this leaf was replaced, where that
// comes first.
func (e *Engine) mayWrite(r *room) error {
	if r.replaced() {
		return nil
	}
	return e.mayAct(r)
}

// other is the other person of a direct room.
func other(p *policy.Room, self identity.PublicKey) *identity.PublicKey {
	if p.Kind != delivery.RoomDirect {
		return nil
	}
	for _, x := range p.Participants {
		if x.Identity != self {
			id := x.Identity
			return &id
		}
	}
	return nil
}

// newRecord is the record of a room that this device has just come into.
func (e *Engine) newRecord(id delivery.RoomID, s state, seq uint64) Room {
	return Room{
		ID: id, Kind: s.policy.Kind, Status: StatusOpen, Other: other(s.policy, e.account.Identity), URI: s.policy.URI,
		First: seq, Joined: seq, Cursor: seq, Heard: seq, Read: seq, Epoch: s.group.Epoch(), Suite: s.group.CipherSuite(),
		Caught: e.nowMS(), Since: e.nowMS(), Profile: e.self().Profile,
	}
}
