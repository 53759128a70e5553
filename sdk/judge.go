package sdk

import (
	"fmt"

	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/follower"
)

// judged turns held or committed proposals into the terms of the room's rules.
func judged(list []follower.Proposal) []policy.Proposal {
	out := make([]policy.Proposal, len(list))
	for i := range list {
		p := &list[i]
		out[i] = policy.Proposal{Ref: p.Ref, Sender: p.Sender, Proposal: p.Proposal, AuthenticatedData: p.AuthenticatedData()}
	}
	return out
}

// judge decides by the room's rules about a commit that is valid by RFC 9420,
// exactly as the service did, and gives the state after it. A commit by which
// this device goes leads to a state without roster.
func judge(s state, c *mls.StagedCommit) (state, error) {
	after, err := policy.RoomOf(c.Extensions)
	if err != nil {
		return state{}, err
	}
	change := policy.Change{
		Before: s.policy, After: after, Committer: c.Committer.Leaf, External: c.External,
		Proposals: judged(c.Proposals), Held: judged(s.group.Proposals()),
	}
	for _, m := range c.Removed {
		change.Removed = append(change.Removed, m.Leaf)
	}
	for _, m := range c.Updated {
		change.Updated = append(change.Updated, policy.Leaf{Index: m.Leaf, Node: m.Node})
	}
	for _, m := range c.Added {
		change.Added = append(change.Added, policy.Leaf{Index: m.Leaf, Node: m.Node})
	}
	if c.External {
		change.Joined = c.Committer.Node
	} else {
		change.Updated = append(change.Updated, policy.Leaf{Index: c.Committer.Leaf, Node: c.Committer.Node})
	}
	roster, err := policy.CheckCommit(s.roster, change)
	if err != nil {
		return state{}, fmt.Errorf("%w: %w", ErrStuck, err)
	}
	if c.SelfRemoved {
		return state{group: c.Next}, nil
	}
	return state{c.Next, after, roster}, nil
}
