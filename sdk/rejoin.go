package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

func offline(err error) bool { return errors.Is(err, client.ErrOffline) && !errors.Is(err, ErrClosed) }

// renew replaces this leaf when another copy of the profile may have used its
// keys. Until then nothing is sent.
func (e *Engine) renew(ctx context.Context, r *room) error {
	if err := e.ensure(ctx); err != nil { // only a login tells of copies
		return err
	}
	if err := e.load(ctx, r, r.rec.ID); err != nil {
		return err
	}
	if r.rec.Status != StatusOpen {
		return nil
	}
	// Since the last session a copy of this profile may have written to the room:
	// what it wrote is read before anything is sent.
	if r.rec.Renew != "" || r.upto != e.logins.Load() {
		if err := e.catchUp(ctx, r); err != nil && (r.rec.Renew != "" || !errors.Is(err, ErrOut)) {
			return err
		}
	}
	if r.rec.Renew == "" || r.rec.Status != StatusOpen {
		return nil
	}
	return e.rejoin(ctx, r, r.rec.Renew)
}

// mustRenew notes that this leaf has to be replaced before anything is sent.
func (e *Engine) mustRenew(ctx context.Context, r *room, why string) error {
	before := r.rec.Renew
	r.rec.Renew = why
	err := e.Store.Update(ctx, r.save)
	if err != nil {
		r.rec.Renew = before
	}
	return err
}

// outside is a room as somebody sees it who stands outside: verified, but without
// its secrets.
type outside struct {
	info, tree []byte
	public     *follower.Group
	state      state // without group
	removals   [][]byte
	signer     policy.Member
	leaving    []uint32 // leaves whose SelfRemove is in removals, signed by them
}

// leaves reports whether somebody is on the way out of the room: by their own will, an
// identity goes with all its leaves.
func (o *outside) leaves(who identity.PublicKey) bool {
	return slices.ContainsFunc(o.leaving, func(leaf uint32) bool {
		m, in := o.state.roster.At(leaf)
		return in && m.Identity == who
	})
}

// publicOptions are how a room's state is judged from outside it.
var publicOptions = follower.Options{Credentials: policy.Credentials{}, AppData: policy.ApplyUpdate}

// look reads the room's present state and verifies it. now is when leaves are
// judged.
func (e *Engine) look(ctx context.Context, id delivery.RoomID) (*outside, error) {
	o := &outside{}
	info, err := e.shown(ctx, id, o)
	if err != nil {
		return nil, err
	}
	if o.tree, err = e.client.Tree(ctx, id, info.GroupContext.Epoch); err != nil {
		return nil, e.fail(ctx, err)
	}
	cs, err := suite.Lookup(info.GroupContext.CipherSuite)
	if err != nil {
		return nil, fmt.Errorf("sdk: %w", err)
	}
	t, err := tree.ParseBytes(cs, o.tree)
	if err != nil {
		return nil, fmt.Errorf("sdk: the room's tree: %w", err)
	}
	if o.public, err = follower.Join(cs, info, t, publicOptions); err != nil {
		return nil, fmt.Errorf("sdk: the room's state: %w", err)
	}
	if string(o.public.GroupID()) != string(id[:]) {
		return nil, fmt.Errorf("%w: the state of another room", client.ErrGarbage)
	}
	if o.state.policy, err = policy.CheckContext(o.public.Context(), nil); err != nil {
		return nil, err
	}
	if o.state.roster, err = policy.TrustedRoster(func(yield func(uint32, *wire.LeafNode) bool) {
		for l, n := range o.public.Tree().Leaves() {
			if !yield(uint32(l), n) {
				return
			}
		}
	}); err != nil {
		return nil, err
	}
	o.signer, _ = o.state.roster.At(info.Signer)
	return o, e.readRemovals(ctx, id, o)
}

// shown reads the GroupInfo that a room has now. One that was put together again has
// none until somebody comes who is in its present epoch.
func (e *Engine) shown(ctx context.Context, id delivery.RoomID, o *outside) (*wire.GroupInfo, error) {
	var err error
	if o.info, err = e.client.CurrentGroupInfo(ctx, id); err != nil {
		return nil, e.fail(ctx, err)
	}
	if len(o.info) == 0 {
		return nil, fmt.Errorf("%w: the service was restored to a state of it by which nobody comes in. It goes on when somebody comes who is in that state, or in a new chat", ErrStuck)
	}
	var m wire.MLSMessage
	if err := wire.Unmarshal(o.info, &m); err != nil || m.WireFormat != wire.WireFormatGroupInfo {
		return nil, fmt.Errorf("%w: a room without a GroupInfo", client.ErrGarbage)
	}
	return m.GroupInfo, nil
}

// readRemovals finds the SelfRemoves that an external commit has to honour.
func (e *Engine) readRemovals(ctx context.Context, id delivery.RoomID, o *outside) error {
	held, err := e.client.Held(ctx, id)
	if err != nil {
		return e.fail(ctx, err)
	}
	for _, h := range held.Entries {
		var m wire.MLSMessage
		if wire.Unmarshal(h.Bytes, &m) != nil || m.WireFormat != wire.WireFormatPublicMessage || h.Epoch != o.public.Epoch() {
			continue
		}
		if p := m.PublicMessage.Content.Proposal; p != nil && p.ProposalType == wire.ProposalTypeSelfRemove {
			o.removals = append(o.removals, h.Bytes)
			if _, err := o.public.HoldProposal(follower.Authenticated(m.PublicMessage), publicOptions); err == nil {
				o.leaving = append(o.leaving, m.PublicMessage.Content.Sender.LeafIndex)
			}
		}
	}
	return nil
}

// rejoin replaces this device's leaf, whose keys another copy of the profile may
// have used or whose state the service no longer has.
func (e *Engine) rejoin(ctx context.Context, r *room, why string) error {
	return e.comeIn(ctx, r, r.rec.ID, why, groundRenewed)
}

// comeIn enters a room by external commit, and leaves one line that says which
// messages are missing and why; r may be empty. A room that is being put together
// again opens when its time is over, minutes later: that is its answer
// ([delivery.CodeHealing]).
func (e *Engine) comeIn(ctx context.Context, r *room, id delivery.RoomID, why string, g ground) error {
	for try := range maxTries {
		if err := e.settleFlight(ctx, r); err != nil {
			return err
		}
		o, err := e.look(ctx, id)
		if err != nil {
			return err
		}
		if err := e.proven(ctx, r, o, g); err != nil {
			return err
		}
		if _, in := o.state.roster.Device(e.account.Device); in && o.leaves(e.account.Identity) {
			return errLeaves
		}
		got, message, step, err := e.enterFromOutside(ctx, id, o)
		if again(err) && delivery.CodeOf(err) != delivery.CodeHealing {
			if err := e.pause(ctx, try, err); err != nil {
				return err
			}
			continue
		}
		if delivery.CodeOf(err) == delivery.CodeSlowDown {
			return &goesOnError{err} // what may come in so often is one device in one room
		}
		if err != nil {
			return e.fail(ctx, err)
		}
		return e.entered(ctx, r, got, message, step, why)
	}
	return goesOn("the chat changes faster than this device can come back: try again")
}

func again(err error) bool {
	switch delivery.CodeOf(err) {
	case delivery.CodeStaleEpoch, delivery.CodeCommitFirst, delivery.CodeHealing, delivery.CodeRetry:
		return true
	}
	return false
}

// enterFromOutside makes the external commit and sends it.
func (e *Engine) enterFromOutside(ctx context.Context, id delivery.RoomID, o *outside) (got delivery.Accepted, message []byte, staged *mls.StagedCommit, err error) {
	p := mls.ExternalJoinParams{
		Random: e.Random, Now: e.Now(), GroupInfo: o.info, Tree: o.tree, Signer: e.signer(o.public.Suite().ID()), Credential: e.credential(),
		Capabilities: policy.Capabilities(), LeafExtensions: policy.LeafExtensions(), SelfRemoves: o.removals,
	}
	if old, in := o.state.roster.Device(e.account.Device); in {
		p.Resync = &old.Leaf
	}
	c, err := e.mls.ExternalJoin(p)
	if err != nil {
		return got, nil, nil, fmt.Errorf("sdk: enter by external commit: %w", err)
	}
	// Before it is sent: a device that never hears the answer has a leaf in a room that it
	// does not know, and may read in the log how it came there.
	err = e.Store.Update(ctx, func(tx Tx) error {
		if err := keepMade(tx, id, c.Message); err != nil {
			return err
		}
		return tx.Put(TableSetting, settingComing+id.String(), []byte{1})
	})
	if err != nil {
		return got, nil, nil, err
	}
	got, err = e.client.Append(ctx, id, delivery.AppendRequest{Entry: c.Message, GroupInfo: c.GroupInfo})
	if err != nil {
		return got, nil, nil, err
	}
	staged, err = c.Apply(nil, e.Now())
	if err != nil {
		return got, nil, nil, fmt.Errorf("sdk: enter by external commit: %w", err)
	}
	return got, c.Message, staged, nil
}

func (e *Engine) signer(id wire.CipherSuite) *suite.SignatureKey {
	for _, s := range e.mls.Signers {
		if s.Suite().ID() == id {
			return s
		}
	}
	return e.mls.Signers[0]
}

// entered stores the room as it is after an external commit of this device.
func (e *Engine) entered(ctx context.Context, r *room, got delivery.Accepted, message []byte, c *mls.StagedCommit, why string) error {
	s, err := newState(c.Next)
	if err != nil {
		return err
	}
	id, err := delivery.RoomIDFromBytes(c.Next.GroupID())
	if err != nil {
		return err
	}
	before := r.rec
	rec := before
	if rec.ID != id {
		rec = e.newRecord(id, s, got.Seq)
		rec.Past = got.Seq
	} else if got.Seq > before.Cursor+1 {
		rec.Gaps = before.Gaps.with(Span{before.Cursor + 1, got.Seq - 1})
	}
	rec.Status, rec.Renew, rec.Joined, rec.Cursor, rec.Epoch = StatusOpen, "", got.Seq, got.Seq, c.Next.Epoch()
	rec.Caught, rec.Since, rec.Met, rec.Beside = e.nowMS(), e.nowMS(), false, nil
	err = e.Store.Update(ctx, func(tx Tx) error {
		if err := forgetGroup(tx, id); err != nil {
			return err
		}
		if err := forgetFlying(tx, id); err != nil {
			return err
		}
		if err := tx.Delete(TableSetting, settingComing+id.String()); err != nil {
			return err
		}
		if err := writeDelta(tx, id, c.Delta); err != nil {
			return err
		}
		if rec.Title == "" {
			var kept snapshotRoom
			if _, err := get(tx, TableSetting, settingKept+id.String(), &kept); err != nil {
				return err
			}
			rec.Title, rec.Disappear = kept.Title, kept.Disappear
		}
		entry := delivery.Entry{Seq: got.Seq, Epoch: c.Next.Epoch() - 1, Kind: delivery.KindCommit, AcceptedMS: got.AcceptedMS, Bytes: message}
		if err := putRaw(tx, id, delivery.KeptEntry{Entry: entry}); err != nil {
			return err
		}
		if before.ID == id && got.Seq > before.Cursor+delivery.IncarnationJump/2 {
			rec.Lost, rec.Anew, r.given, r.told = max(before.Joined, 1), got.Seq, 0, told{} // the restore lies between
			if err := oweBack(tx); err != nil {
				return err
			}
		} else if rec.Lost > 0 {
			rec.Anew = min(rec.anew(), got.Seq)
			if why == earlierState {
				rec.Apart = got.Seq
			}
		}
		r.rec = rec
		if before.ID == id && got.Seq > before.Cursor+1 {
			if err := e.gap(tx, r, before.Cursor+1, got.Seq-1, why); err != nil {
				return err
			}
		}
		if rec.Past != before.Past || !slices.Equal(rec.lacks(), before.lacks()) {
			if err := wantHistory(tx); err != nil {
				return err
			}
		}
		return put(tx, TableRoom, id.String(), rec)
	})
	if err != nil {
		r.rec = before
		return err
	}
	c.Forget()
	r.state, r.seen = s, nil
	r.stale.Store(false)
	e.changed()
	return nil
}

// lateRoom says what becomes of a room that is being put together again. Nobody of its
// devices has to come for it to open: who asked once finds it open a little later.
const lateRoom = "the service was restored from a backup and puts a chat together again: it opens within a quarter of an hour, and this device comes in when it looks again after that"

// joinOwnRooms enters the rooms that only other devices of this account are in, and
// those that another copy of this profile came into. One that cannot be entered
// keeps nobody from the others.
func (e *Engine) joinOwnRooms(ctx context.Context) error {
	var copied []byte
	err := e.Store.View(ctx, func(tx Tx) (err error) {
		copied, err = tx.Get(TableSetting, settingCopied)
		return err
	})
	if err != nil {
		return err
	}
	list, err := e.client.Rooms(ctx)
	if err != nil {
		return e.fail(ctx, err)
	}
	for _, v := range list {
		skip, err := e.skipRoom(ctx, v, copied != nil)
		if err != nil {
			return err
		}
		if skip {
			continue
		}
		if err := e.joinOwn(ctx, v.Room); err != nil {
			if isNet(err) && !aboutRoom(err) || errors.Is(err, ErrRevoked) {
				return err
			}
			if delivery.CodeOf(err) == delivery.CodeHealing {
				e.Warn("%s", lateRoom)
				continue
			}
			if delivery.CodeOf(err) == delivery.CodeSucceeded {
				continue // what is said is said in the successor, and this device enters that
			}
			e.Warn("a chat of another device of this account cannot be entered: %v", err)
		}
	}
	if copied == nil {
		return nil
	}
	return e.Store.Update(ctx, func(tx Tx) error { return tx.Delete(TableSetting, settingCopied) })
}

// skipRoom: rooms that are here, that wait as requests, or that were left. Where
// this device is in the room already its Welcome is on the way, unless it was
// another copy of the profile that came in, or this device without hearing of it.
func (e *Engine) skipRoom(ctx context.Context, v delivery.RoomView, copied bool) (skip bool, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		var rec Room
		found, err := get(tx, TableRoom, v.Room.String(), &rec)
		if err != nil {
			return err
		}
		var kept snapshotRoom
		if _, err := get(tx, TableSetting, settingKept+v.Room.String(), &kept); err != nil {
			return err
		}
		waits, err := tx.Get(TableRequest, v.Room.String())
		if err != nil {
			return err
		}
		declined, err := tx.Get(TableSetting, "declined."+v.Room.String())
		if err != nil {
			return err
		}
		coming, err := tx.Get(TableSetting, settingComing+v.Room.String())
		skip = found && rec.Status != StatusOut || waits != nil || declined != nil || kept.Left || v.Member && !copied && coming == nil
		return err
	})
	return skip, err
}

func (e *Engine) joinOwn(ctx context.Context, id delivery.RoomID) error {
	r, done, err := e.enterAny(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	return e.comeIn(ctx, r, id, "this device was not in the chat", groundFresh)
}

// behindUs: the service refuses this device's epoch and has nothing newer in the
// log: it was restored from a backup and nobody brought back what it lost.
func (e *Engine) behindUs(ctx context.Context, r *room, err error) error {
	var refusal *delivery.Error
	if !errors.As(err, &refusal) || r.state.group == nil || refusal.Epoch >= r.state.group.Epoch() {
		return nil
	}
	if err := e.mustRenew(ctx, r, earlierState); err != nil {
		return err
	}
	return e.rejoin(ctx, r, earlierState)
}
