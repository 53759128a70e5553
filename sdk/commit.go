package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/wire"
)

// change is what a commit is to do, worked out anew for every epoch it is tried
// in: proposals by value, and nothing = true when the room is as wanted already.
type change func(ctx context.Context) (proposals []wire.Proposal, nothing bool, err error)

// commit changes the room. The loser of a race catches up, works its change out
// again and tries again. The caller holds the room's turn.
func (e *Engine) commit(ctx context.Context, r *room, plan change) error {
	for try := range maxTries {
		if err := e.renew(ctx, r); err != nil {
			return err
		}
		if err := e.catchUp(ctx, r); err != nil {
			return err
		}
		if err := e.mayAct(r); err != nil {
			return err
		}
		if e.underRemoval(r) {
			return errLeaves
		}
		proposals, nothing, err := plan(ctx)
		if err != nil {
			return err
		}
		if nothing && len(r.state.group.Proposals()) == 0 {
			return nil
		}
		again, err := e.tryCommit(ctx, r, try, proposals)
		if !again {
			return err
		}
		if err := e.pause(ctx, try, err); err != nil {
			return err
		}
	}
	return goesOn("others change the chat faster than this device: try again")
}

// tryCommit makes a commit, keeps it, sends it and applies it.
func (e *Engine) tryCommit(ctx context.Context, r *room, try int, proposals []wire.Proposal) (again bool, err error) {
	g := r.state.group
	proposals = append(slices.Clip(proposals), leaveTogether(r, proposals)...)
	skip, referenced := chosen(r, proposals)
	if due := policy.RevocationsDue(r.state.policy, referenced); due != nil {
		proposals = append([]wire.Proposal{mls.AppDataUpdateProposal(policy.ComponentRevocations, due)}, proposals...)
	}
	c, err := g.Commit(mls.CommitParams{
		Random: e.Random, Now: e.Now(), Proposals: proposals, Skip: skip, GroupInfoExtensions: policy.Inviter(e.credential()),
	})
	if err != nil {
		return false, fmt.Errorf("sdk: make a change of the chat: %w", err)
	}
	request := delivery.AppendRequest{Entry: c.Message, Welcome: c.Welcome, GroupInfo: c.GroupInfo}
	if err := e.advance(ctx, r, *c.Keep(), func(tx Tx) error { return keepFlying(tx, r.rec.ID, request) }); err != nil {
		return false, err
	}
	epoch := g.Epoch()
	got, err := e.client.Append(ctx, r.rec.ID, request)
	switch code := delivery.CodeOf(err); code {
	case "":
		if err != nil {
			return false, err // no answer: it may come back in the log, and is kept for that
		}
	case delivery.CodeStaleEpoch, delivery.CodeCommitFirst, delivery.CodeConflict:
		if err := e.discard(ctx, r); err != nil {
			return false, err
		}
		if c := e.catchUp(ctx, r); c != nil {
			return false, c
		}
		if r.state.group != nil && r.state.group.Epoch() == epoch && delivery.CodeOf(err) == delivery.CodeStaleEpoch {
			if b := e.behindUs(ctx, r, err); b != nil {
				return false, b
			}
		}
		return true, err
	case delivery.CodeHealing:
		err = errors.Join(e.discard(ctx, r), e.heal(ctx, r, try, err))
		return err == nil, err
	case delivery.CodeSucceeded:
		return false, errors.Join(err, e.succeeded(ctx, r))
	default:
		if !definite(code) {
			return false, e.fail(ctx, err)
		}
		return false, errors.Join(e.fail(ctx, err), e.discard(ctx, r))
	}
	if got.Seq != r.rec.Cursor+1 {
		return false, e.catchUp(ctx, r)
	}
	return false, e.take(ctx, r, []delivery.Entry{{Seq: got.Seq, Epoch: epoch, Kind: delivery.KindCommit, AcceptedMS: got.AcceptedMS, Bytes: c.Message}})
}

// leaveTogether removes the other devices of who leaves by a held SelfRemove: an
// identity goes with all its leaves.
func leaveTogether(r *room, own []wire.Proposal) (more []wire.Proposal) {
	for _, leaf := range policy.RemovalsDue(r.state.roster, judged(r.state.group.Proposals())) {
		if !removes(own, leaf) {
			more = append(more, mls.RemoveProposal(leaf))
		}
	}
	return more
}

func removes(own []wire.Proposal, leaf uint32) bool {
	return slices.ContainsFunc(own, func(p wire.Proposal) bool { return p.Remove != nil && p.Remove.Removed == leaf })
}

// chosen sorts the held proposals: every removal must be committed, an update of
// the committer itself cannot be, and what the commit does itself is not done
// twice.
func chosen(r *room, own []wire.Proposal) (skip []wire.ProposalRef, referenced []policy.Proposal) {
	held := r.state.group.Proposals()
	all := judged(held)
	for i, p := range all {
		leaf, about := p.Leaf()
		switch {
		case !p.Must() && (about && (leaf == r.state.group.OwnLeaf() || policy.UnderRemoval(all, leaf) || removes(own, leaf)) || doubles(held[i], own)):
			skip = append(skip, p.Ref)
		default:
			referenced = append(referenced, p)
		}
	}
	return skip, referenced
}

// doubles reports whether a held proposal is about what the commit's own
// proposals do already.
func doubles(p follower.Proposal, own []wire.Proposal) bool {
	for _, o := range own {
		if o.ProposalType != p.Proposal.ProposalType {
			continue
		}
		switch o.ProposalType {
		case wire.ProposalTypeAdd:
			if string(o.Add.KeyPackage.LeafNode.SignatureKey) == string(p.Proposal.Add.KeyPackage.LeafNode.SignatureKey) {
				return true
			}
		case wire.ProposalTypeAppDataUpdate:
			if o.AppDataUpdate.ComponentID == p.Proposal.AppDataUpdate.ComponentID {
				return true
			}
		}
	}
	return false
}

// commitHeld commits what others proposed.
func (e *Engine) commitHeld(ctx context.Context, r *room) error {
	return e.commit(ctx, r, func(context.Context) ([]wire.Proposal, bool, error) { return nil, true, nil })
}

// underRemoval: a held proposal removes this device, or this account is leaving by
// another one. It may not commit.
func (e *Engine) underRemoval(r *room) bool {
	return r.state.group != nil && r.state.roster != nil && policy.Going(r.state.roster, judged(r.state.group.Proposals()), r.state.group.OwnLeaf())
}

// tidy commits held removals of others, so that nobody who left or was revoked
// reads on. Every member that is awake tries after a random wait; one wins.
func (e *Engine) tidy(ctx context.Context, r *room) error {
	if r.rec.Status == StatusOpen && r.rec.Leaving && r.state.roster != nil {
		return e.leave(ctx, r)
	}
	if r.state.group == nil || r.rec.Status != StatusOpen || len(r.state.group.Proposals()) == 0 || e.underRemoval(r) {
		return nil
	}
	if err := e.pause(ctx, 0, nil); err != nil {
		return err
	}
	return e.commitHeld(ctx, r)
}
