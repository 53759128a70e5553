package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// plan is what the check of a handshake found, for the epoch and the held
// proposals that it was checked against. nil for application messages and for
// handshakes of another epoch than the room's.
type plan struct {
	before  *followed
	held    [][]byte // refs
	ref     []byte   // of a proposal
	must    bool
	drop    [][]byte // proposals that this one displaces
	after   *followed
	advance delivery.Advance
	reissue bool // the home's Removes were dropped and are owed again
}

// outcome is what the room's transaction did.
type outcome struct {
	accepted delivery.Accepted
	opened   bool // the room was healing, and is no more
}

// heldProposal is a held proposal, decoded.
type heldProposal struct {
	delivery.HeldProposal
	message *wire.PublicMessage
}

// prepare checks a handshake against the room's public state, outside any lock.
func (s *Server) prepare(ctx context.Context, in *incoming) (*plan, error) {
	if in.kind == delivery.KindApplication {
		return nil, nil
	}
	f, err := s.follow(ctx, in.room)
	if err != nil {
		return nil, err
	}
	if f.epoch != in.epoch {
		return nil, nil // a retry of what is in the log already, or stale: the transaction knows
	}
	held, err := s.held(ctx, in.room)
	if err != nil {
		return nil, err
	}
	p := &plan{before: f, held: make([][]byte, len(held))}
	for i, h := range held {
		p.held[i] = h.Ref
	}
	if in.kind == delivery.KindProposal {
		err = s.prepareProposal(p, in, held)
	} else {
		err = s.prepareCommit(ctx, p, in, held)
	}
	if err != nil {
		return nil, s.invalid(ctx, in, err)
	}
	return p, nil
}

// invalid decides what a handshake that does not verify is told. A device that
// sends again what is in the log already is answered from there, even though
// the room is somewhere else now.
func (s *Server) invalid(ctx context.Context, in *incoming, err error) error {
	var known delivery.Accepted
	var dup bool
	look := s.store.WithRoom(ctx, in.room, func(tx delivery.RoomTx) (err error) {
		known, dup, err = tx.Duplicate(in.device.ID, in.hash)
		return err
	})
	if look == nil && dup {
		return &answered{known}
	}
	if errors.Is(err, policy.ErrRemovalFirst) {
		return &delivery.Error{Code: delivery.CodeCommitFirst, Detail: "the room holds a member's removal: a member commits it, then come in", Epoch: in.epoch}
	}
	for _, cause := range policy.Causes() {
		if errors.Is(err, cause) {
			return delivery.Refuse(delivery.CodeRefused, cause.Error()) // without what it wraps: that may name somebody
		}
	}
	if isInvalid(err) {
		return delivery.Refuse(delivery.CodeBadRequest, "the handshake is not valid: "+invalidity(err))
	}
	return err
}

// answered carries the first answer of a duplicate out of the checks.
type answered struct{ delivery.Accepted }

func (*answered) Error() string { return "server: answered before" }

// held reads the proposals that a room holds.
func (s *Server) held(ctx context.Context, room delivery.RoomID) ([]heldProposal, error) {
	list, err := s.store.Held(ctx, room)
	if err != nil {
		return nil, err
	}
	out := make([]heldProposal, len(list))
	for i, h := range list {
		var m wire.MLSMessage
		if err := wire.Unmarshal(h.Bytes, &m); err != nil || m.WireFormat != wire.WireFormatPublicMessage {
			return nil, fmt.Errorf("server: a stored proposal cannot be read: %w", err)
		}
		out[i] = heldProposal{h, m.PublicMessage}
	}
	return out, nil
}

func policyHeld(held []heldProposal) []policy.Proposal {
	out := make([]policy.Proposal, len(held))
	for i, h := range held {
		out[i] = policy.ProposalOf(h.Ref, h.message)
	}
	return out
}

// ownLeaf checks that a member's handshake is signed by the leaf of the device
// that sends it.
func ownLeaf(f *followed, in *incoming) error {
	if in.old != nil {
		return nil
	}
	// A blank leaf is no device's; a device's id is made of its identity and key.
	m, _ := f.roster.At(in.public.Content.Sender.LeafIndex)
	if m.Device != in.device.ID {
		return delivery.Refuse(delivery.CodeRefused, "the handshake is not signed by this device's leaf")
	}
	return nil
}

func (s *Server) prepareProposal(p *plan, in *incoming, held []heldProposal) error {
	if t := in.public.Content.Sender.SenderType; t != wire.SenderTypeMember && !(in.old != nil && t == wire.SenderTypeExternal) {
		return delivery.Refuse(delivery.CodeRefused, "only members propose; who is no member asks one")
	}
	if err := ownLeaf(p.before, in); err != nil {
		return err
	}
	return s.judgeProposal(p, in.public, held, in.at(s.Now()))
}

// judgeProposal checks a proposal of a member or of the home.
func (s *Server) judgeProposal(p *plan, m *wire.PublicMessage, held []heldProposal, now time.Time) (err error) {
	if p.ref, err = p.before.checkProposal(m, now); err != nil {
		return err
	}
	judged := policy.ProposalOf(p.ref, m)
	p.must = judged.Must()
	p.drop, err = policy.CheckProposal(p.before.room, p.before.roster, policyHeld(held), judged)
	return err
}

func (s *Server) prepareCommit(ctx context.Context, p *plan, in *incoming, held []heldProposal) error {
	external := in.public.Content.Sender.SenderType == wire.SenderTypeNewMemberCommit
	if !external {
		if in.public.Content.Sender.SenderType != wire.SenderTypeMember {
			return delivery.Refuse(delivery.CodeRefused, "only members and joining devices commit")
		}
		if err := ownLeaf(p.before, in); err != nil {
			return err
		}
	}
	staged, err := p.before.stage(in.public, held, in.at(s.Now()))
	if err != nil {
		return err
	}
	change := staged.change
	change.Held = policyHeld(held)
	roster, err := policy.CheckCommit(p.before.roster, change)
	if err != nil {
		return err
	}
	if in.old == nil {
		if err := s.checkSize(p.before.room, change.After); err != nil {
			return err
		}
	}
	if external && in.old == nil {
		m, _ := roster.At(change.Committer)
		if m.Device != in.device.ID {
			return delivery.Refuse(delivery.CodeRefused, "the external commit adds another device than the one that sends it")
		}
		if err := s.resyncRate(ctx, p.before, in); err != nil {
			return err
		}
	}
	if err := staged.checkParts(in); err != nil {
		return err
	}
	var joiners []delivery.Joiner
	if in.old == nil { // else the Welcome is gone, and who joined by it has it
		if joiners, err = s.joiners(ctx, staged); err != nil {
			return err
		}
	}
	p.after = staged.followed(change.After, roster)
	added, removed, updated := policy.Memberships(in.room, p.before.roster, roster)
	p.advance = delivery.Advance{
		Epoch: p.after.epoch, Delta: staged.delta, GroupInfo: in.request.GroupInfo,
		Added: added, Removed: removed, Updated: updated, Welcome: in.request.Welcome, Joiners: joiners,
	}
	p.reissue = external
	return nil
}

// resyncRate: a device that keeps rejoining is held back, not helped.
func (s *Server) resyncRate(ctx context.Context, f *followed, in *incoming) error {
	if _, resync := f.roster.Device(in.device.ID); !resync {
		return nil
	}
	s.metrics.resyncs.Inc()
	err := s.spend(ctx, "resync", in.device.ID.String()+":"+in.room.String(), 1)
	var e *delivery.Error
	if errors.As(err, &e) {
		return s.broken(RuleResyncRate, e)
	}
	return err
}

// joiners finds whose the added key packages are. Each must have been published
// here, by the device that its leaf attests, and that device must not be
// revoked: the room may not know of it yet.
func (s *Server) joiners(ctx context.Context, st *staged) ([]delivery.Joiner, error) {
	var out []delivery.Joiner
	for i, a := range st.change.Added {
		cred, err := policy.CheckLeaf(a.Node)
		if err != nil {
			return nil, err
		}
		switch _, err := s.store.Revoked(ctx, cred.Identity(), cred.DeviceID()); {
		case err == nil:
			return nil, delivery.Refuse(delivery.CodeRefused, policy.ErrRevoked.Error())
		case !errors.Is(err, delivery.ErrNotFound):
			return nil, err
		}
		// A reference is the hash of its package, which only its own device published.
		ref := st.addedRefs[i]
		device, err := s.store.PackageDevice(ctx, ref)
		if errors.Is(err, delivery.ErrNotFound) {
			return nil, delivery.Refuse(delivery.CodeRefused, "an added key package was not published here: claim a fresh one")
		}
		if err != nil {
			return nil, err
		}
		out = append(out, delivery.Joiner{Ref: ref, Device: device})
	}
	return out, nil
}

// order is the room's transaction: duplicate first, then status, membership,
// epoch and barrier, then the entry, then what a handshake changes.
func (s *Server) order(ctx context.Context, in *incoming, p *plan) (outcome, error) {
	var done outcome
	now := s.Now()
	known := s.audience.has(in.room, in.epoch, in.device.ID)
	accepted := in.at(now).UnixMilli()
	err := s.store.WithRoom(ctx, in.room, func(tx delivery.RoomTx) error {
		done = outcome{} // it may run again
		first, dup, err := tx.Duplicate(in.device.ID, in.hash)
		if err != nil {
			return err
		}
		if dup {
			first.Duplicate = true
			done.accepted = first
			return nil
		}
		room := tx.Room()
		if done.opened, err = s.open(tx, in, known && room.Epoch == in.epoch, now); err != nil {
			return err
		}
		if room.Incarnation > 0 {
			// A member may have offered this very entry while the room healed.
			first, dup, err := tx.Duplicate(identity.DeviceID{}, in.hash)
			if err != nil {
				return err
			}
			if dup {
				first.Duplicate = true
				done.accepted = first
				return nil
			}
		}
		if in.old != nil && !in.old.gaps && room.NextSeq != in.old.place() {
			return delivery.Refuse(delivery.CodeConflict, "the entries before this one have not been offered yet")
		}
		if in.epoch != room.Epoch {
			return &delivery.Error{Code: delivery.CodeStaleEpoch, Detail: "the room is in another epoch: catch up and send anew", Epoch: room.Epoch, Seq: room.NextSeq - 1}
		}
		if in.old != nil && in.kind == delivery.KindApplication && !in.old.vouched {
			return delivery.Refuse(delivery.CodeRefused, "who offers a message was in the room at its epoch")
		}
		held, err := tx.Proposals()
		if err != nil {
			return err
		}
		if in.kind == delivery.KindApplication {
			if len(held) > 0 {
				return &delivery.Error{Code: delivery.CodeCommitFirst, Detail: "the room holds proposals: commit them, then send", Epoch: room.Epoch, Seq: room.NextSeq - 1}
			}
		} else if p == nil || !sameHeld(p.held, held) {
			return errMoved
		}
		done.accepted, err = tx.Append(delivery.NewEntry{
			Device: in.device.ID, Hash: in.hash, Epoch: in.epoch, Kind: in.kind,
			AcceptedMS: accepted, Bytes: in.request.Entry, Blobs: in.request.Blobs,
		})
		if errors.Is(err, delivery.ErrNotFound) {
			return delivery.Refuse(delivery.CodeRefused, noBlob)
		}
		if err != nil {
			return err
		}
		return p.apply(tx, in, &done)
	})
	if errors.Is(err, delivery.ErrNotFound) {
		return done, delivery.Refuse(delivery.CodeNotFound, "no such room, or this device is not in it")
	}
	if err == nil && done.opened {
		s.healing.forget(in.room)
	}
	return done, err
}

// open checks what stands before the epoch: the room takes entries, and the
// device is in it, unless that is known already. A joining device is not, yet. A
// room that has waited long enough for its members it opens.
func (s *Server) open(tx delivery.RoomTx, in *incoming, member bool, now time.Time) (opened bool, err error) {
	if in.old != nil {
		if tx.Room().Status != delivery.RoomHealing {
			return false, delivery.Refuse(delivery.CodeConflict, "the room is not healing")
		}
		return false, nil
	}
	external := in.kind == delivery.KindCommit && in.public.Content.Sender.SenderType == wire.SenderTypeNewMemberCommit
	if !external && !member && in.device.ID != (identity.DeviceID{}) {
		if _, err := tx.Member(in.device.ID); err != nil {
			return false, err
		}
	}
	switch room := tx.Room(); room.Status {
	case delivery.RoomSucceeded:
		return false, delivery.Refuse(delivery.CodeSucceeded, "the room has a successor and takes no more entries")
	case delivery.RoomHealing:
		// The home's own proposals wait for somebody who may hold what came before.
		s.healing.begun(room, now)
		if in.device.ID == (identity.DeviceID{}) || !s.healed(room, now) {
			return false, &delivery.Error{Code: delivery.CodeHealing, Detail: "the room is being put together again: offer kept entries, wait, send again", RetryAfter: healRetry}
		}
		return true, tx.SetStatus(delivery.RoomOpen, nil)
	}
	return false, nil
}

func sameHeld(refs [][]byte, held []delivery.HeldProposal) bool {
	if len(refs) != len(held) {
		return false
	}
	for i, h := range held {
		if !bytes.Equal(refs[i], h.Ref) {
			return false
		}
	}
	return true
}

// apply does what the handshake changes beside its entry.
func (p *plan) apply(tx delivery.RoomTx, in *incoming, done *outcome) error {
	switch in.kind {
	case delivery.KindProposal:
		if len(p.drop) > 0 {
			if err := tx.Unhold(p.drop...); err != nil {
				return err
			}
		}
		proposer := delivery.NoLeaf
		if sender := in.public.Content.Sender; sender.SenderType == wire.SenderTypeMember {
			proposer = sender.LeafIndex
		}
		return tx.Hold(delivery.HeldProposal{Ref: p.ref, Seq: done.accepted.Seq, Epoch: in.epoch, Proposer: proposer, Must: p.must, Bytes: in.request.Entry})
	case delivery.KindCommit:
		if err := tx.Advance(p.advance); err != nil {
			return err
		}
		done.accepted.Epoch = p.advance.Epoch
	}
	return nil
}
