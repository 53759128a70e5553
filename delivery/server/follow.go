package server

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// followed is a room's public state in one epoch: the group as anybody can
// follow it, what its context says, and who is in its tree. It is immutable.
type followed struct {
	epoch  uint64
	group  *follower.Group
	room   *policy.Room
	roster *policy.Roster
}

// packages remembers which key packages were verified when they were published:
// they come again in Adds.
var packages follower.KeyPackageCache

// options are what the service brings to a verdict. Members bring the same, with
// the time at which the entry was accepted.
func options(now time.Time) follower.Options {
	o := policy.Options()
	o.Now, o.KeyPackages = now, &packages
	return o
}

// newFollowed verifies a new room's GroupInfo, tree and context.
func newFollowed(info *wire.GroupInfo, ratchetTree, senderKey []byte, now time.Time) (*followed, error) {
	cs, err := suite.Lookup(info.GroupContext.CipherSuite)
	if err != nil {
		return nil, bad("the suite is not known here")
	}
	room, err := policy.CheckContext(&info.GroupContext, senderKey)
	if err != nil {
		return nil, err
	}
	unverified, err := tree.ParseBytes(cs, ratchetTree)
	if err != nil {
		return nil, bad("the ratchet tree cannot be read")
	}
	group, err := follower.Join(cs, info, unverified, options(now))
	if err != nil {
		return nil, err
	}
	roster, err := policy.NewRoster(policy.Leaves(group))
	if err != nil {
		return nil, err
	}
	return &followed{group.Epoch(), group, room, roster}, policy.CheckRoster(room, roster)
}

// devices are the ids of everybody in the tree.
func (f *followed) devices() []identity.DeviceID {
	members := f.roster.Members()
	out := make([]identity.DeviceID, len(members))
	for i, m := range members {
		out[i] = m.Device
	}
	return out
}

// tree is the content of a ratchet_tree extension.
func (f *followed) tree() []byte { return f.group.Tree().Marshal() }

// base is the state as the store keeps it.
func (f *followed) base() []byte { return f.group.Marshal() }

// checkProposal verifies a proposal by RFC 9420 and gives its reference.
func (f *followed) checkProposal(m *wire.PublicMessage, now time.Time) ([]byte, error) {
	p, err := f.group.VerifyProposal(follower.Authenticated(m), options(now))
	if err != nil {
		return nil, err
	}
	return p.Ref, nil
}

// staged is a commit that is valid by RFC 9420, with what it does.
type staged struct {
	*follower.Staged
	change    policy.Change
	addedRefs [][]byte // KeyPackageRefs, in the order of change.Added
	delta     []byte
}

// stage verifies a commit over the proposals that the room holds.
func (f *followed) stage(m *wire.PublicMessage, held []heldProposal, now time.Time) (*staged, error) {
	group := f.group
	for _, h := range held {
		group = group.Restore(follower.Authenticated(h.message))
	}
	st, err := group.StageCommit(follower.Authenticated(m), options(now))
	if err != nil {
		return nil, err
	}
	out := &staged{Staged: st, delta: st.Delta()}
	if out.change, err = policy.ChangeOf(f.room, st); err != nil {
		return nil, err
	}
	for _, k := range st.AddedKeyPackages() {
		out.addedRefs = append(out.addedRefs, st.Suite().KeyPackageRef(k))
	}
	return out, nil
}

// checkParts checks what travels beside the commit: the GroupInfo of the new
// epoch, and the Welcome, which there is exactly when somebody is added.
func (st *staged) checkParts(in *incoming) error {
	if in.info != nil {
		if err := checkInfoForm(in.info); err != nil {
			return err
		}
		if err := st.CheckGroupInfo(in.info); err != nil {
			return err
		}
	}
	switch adds := len(st.change.Added) > 0; {
	case in.old != nil:
		return nil
	case adds && in.welcome == nil:
		return bad("the commit adds somebody and has no Welcome")
	case !adds && in.welcome != nil:
		return bad("the commit adds nobody and has a Welcome")
	case !adds:
		return nil
	}
	return st.CheckWelcome(in.welcome)
}

func checkInfoForm(info *wire.GroupInfo) error {
	if _, has := info.Extensions.Find(wire.ExtensionTypeExternalPub); !has {
		return bad("the GroupInfo has no external_pub")
	}
	if _, has := info.Extensions.Find(wire.ExtensionTypeRatchetTree); has {
		return bad("the GroupInfo carries the tree: trees are read by epoch")
	}
	return nil
}

// followed is the state after the commit.
func (st *staged) followed(room *policy.Room, roster *policy.Roster) *followed {
	group := st.Apply()
	return &followed{group.Epoch(), group, room, roster}
}

// verifyPackage checks a key package by RFC 9420 §10.1 and gives its reference.
func verifyPackage(kp *wire.KeyPackage, now time.Time) ([]byte, error) {
	k, err := follower.UnverifiedFrom(kp).Verify(options(now))
	if err != nil {
		return nil, err
	}
	return k.Ref(), nil
}

// isInvalid reports whether an error is a refusal by the protocol's rules.
func isInvalid(err error) bool { return errors.Is(err, follower.ErrInvalid) }

// invalidity is the rule that was broken, without details of the content.
func invalidity(err error) string {
	var e *follower.InvalidError
	if errors.As(err, &e) {
		return e.Rule.Error()
	}
	return "it breaks a rule of RFC 9420"
}

// maxFollowed bounds the cache of public states to 200 MiB.
const maxFollowed = 200 << 20

// follows remembers the public state of rooms at their last known epoch. An
// entry never becomes wrong, only old.
type follows struct {
	mu    sync.Mutex // guards the fields below
	rooms map[delivery.RoomID]*list.Element
	order *list.List // of *follow, most recently used first
	left  int        // bytes
	loads map[delivery.RoomID]*load
}

type follow struct {
	room   delivery.RoomID
	state  *followed
	weight int
}

// load is a read of a room's state under way, which others wait for.
type load struct {
	epoch uint64
	done  chan struct{}
	state *followed
	err   error
}

func (f *follows) init(limit int) {
	f.rooms, f.order, f.left, f.loads = map[delivery.RoomID]*list.Element{}, list.New(), limit, map[delivery.RoomID]*load{}
}

// find looks a state up. f.mu is held.
func (f *follows) find(room delivery.RoomID, epoch uint64) *followed {
	e := f.rooms[room]
	if e == nil || e.Value.(*follow).state.epoch != epoch {
		return nil
	}
	f.order.MoveToFront(e)
	return e.Value.(*follow).state
}

const (
	stateWeight = 8 << 10 // of a state with nobody in it
	leafWeight  = 3 << 9  // of a leaf's nodes, hashes and places in the roster, beside its bytes
)

// weight is about how much memory a state takes, in bytes, and not less: what somebody
// puts into leaves and extensions counts, decoded as it is, too.
func weight(s *followed) int {
	n := stateWeight
	for _, x := range s.group.Context().Extensions {
		n += 8 * len(x.ExtensionData)
	}
	var encoded []byte
	for _, leaf := range s.group.Tree().Leaves() {
		encoded = leaf.AppendTo(encoded[:0])
		n += leafWeight + 2*len(encoded) + len(leaf.EncryptionKey) // a parent has such a key, too
	}
	return n
}

// put remembers a state unless a newer one is known.
func (f *follows) put(room delivery.RoomID, s *followed) {
	x := &follow{room, s, weight(s)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.rooms[room]; e != nil {
		if e.Value.(*follow).state.epoch >= s.epoch {
			return
		}
		f.remove(e)
	}
	f.rooms[room] = f.order.PushFront(x)
	f.left -= x.weight
	for f.left < 0 && f.order.Len() > 1 {
		f.remove(f.order.Back())
	}
}

func (f *follows) remove(e *list.Element) {
	x := f.order.Remove(e).(*follow)
	delete(f.rooms, x.room)
	f.left += x.weight
}

// loadEpoch gives a room's public state at an epoch, from the cache or the
// store. Callers that want the same one at once read it once.
func (s *Server) loadEpoch(ctx context.Context, id delivery.RoomID, epoch uint64) (*followed, error) {
	f := &s.follows
	f.mu.Lock()
	if state := f.find(id, epoch); state != nil {
		f.mu.Unlock()
		s.metrics.followers.WithLabelValues("hit").Inc()
		return state, nil
	}
	l, waits := f.loads[id]
	if !waits || l.epoch != epoch {
		l = &load{epoch: epoch, done: make(chan struct{})}
		f.loads[id] = l
		waits = false
	}
	f.mu.Unlock()
	if waits {
		select {
		case <-l.done:
			return l.state, l.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.metrics.followers.WithLabelValues("miss").Inc()
	// The one who reads does so for all who wait: not under its own deadline.
	l.state, l.err = s.readState(context.WithoutCancel(ctx), id, epoch)
	f.mu.Lock()
	if f.loads[id] == l {
		delete(f.loads, id)
	}
	f.mu.Unlock()
	close(l.done)
	if l.err == nil {
		f.put(id, l.state)
	}
	return l.state, l.err
}

func (s *Server) readState(ctx context.Context, id delivery.RoomID, epoch uint64) (*followed, error) {
	stored, err := s.store.State(ctx, id, epoch)
	if err != nil {
		return nil, err
	}
	group, err := follower.Load(stored.Base, stored.Deltas...)
	if err != nil {
		return nil, fmt.Errorf("server: a room's stored state: %w", err)
	}
	if group.Epoch() != epoch {
		return nil, fmt.Errorf("server: a room's stored state is of epoch %d, not %d", group.Epoch(), epoch)
	}
	room, err := policy.RoomOf(group.Context().Extensions)
	if err != nil {
		return nil, fmt.Errorf("server: a room's stored state: %w", err)
	}
	roster, err := policy.TrustedRoster(policy.Leaves(group))
	if err != nil {
		return nil, fmt.Errorf("server: a room's stored state: %w", err)
	}
	return &followed{epoch, group, room, roster}, nil
}

// rebaseEvery is after how many commits a room's state is written anew as one
// base: loading applies at most so many changes.
const rebaseEvery = 64

// rebase writes a room's state as one base now and then.
func (s *Server) rebase(ctx context.Context, id delivery.RoomID, f *followed) {
	if f.epoch%rebaseEvery != 0 {
		return
	}
	s.later(ctx, func(ctx context.Context) {
		s.failed("writing a room's base", s.store.Rebase(ctx, id, f.epoch, f.base()))
	})
}
