package sdk

import (
	"context"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// expelFrom commits the removal of a revoked device with its revocation.
func (e *Engine) expelFrom(ctx context.Context, id delivery.RoomID, rev identity.Revocation) error {
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	f := rev.Fields()
	return e.commit(ctx, r, func(context.Context) ([]wire.Proposal, bool, error) {
		leaf, in := r.state.roster.Device(f.DeviceID)
		if !in || leaf.Identity != f.Identity {
			return nil, true, nil
		}
		held := judged(r.state.group.Proposals())
		if policy.UnderRemoval(held, leaf.Leaf) {
			return nil, false, nil // the home has proposed it; its revocation comes along
		}
		var out []wire.Proposal
		if !r.state.policy.Revocations.Covers(f.Identity, f.DeviceID) {
			out = append(out, mls.AppDataUpdateProposal(policy.ComponentRevocations, policy.RevocationsUpdate(rev)))
		}
		return append(out, mls.RemoveProposal(leaf.Leaf)), false, nil
	})
}
