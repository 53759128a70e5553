package policy

import (
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// MaxLifetime is the longest total lifetime of a key package, from not_before to
// not_after, that service and members take (RFC 9420 §7.2). Devices make them for 90
// days, and begin a day earlier because clocks differ.
const MaxLifetime = 120 * 24 * time.Hour

// Options are what server and members bring to mls/follower and mls: set Now to
// the time at which the service accepted the entry.
func Options() follower.Options {
	return follower.Options{Credentials: Credentials{}, AppData: ApplyUpdate, MaxLifetime: MaxLifetime, Parallel: true}
}

// ChangeOf is the [Change] of a staged commit; before is the room that its
// epoch's context says. The caller adds Held (ErrComponent).
func ChangeOf(before *Room, st *follower.Staged) (Change, error) {
	c := Change{Before: before, After: before, Committer: uint32(st.Committer), External: st.External}
	for i := range st.Proposals {
		p := &st.Proposals[i]
		c.Proposals = append(c.Proposals, Proposal{Ref: p.Ref, Sender: p.Sender, Proposal: p.Proposal, AuthenticatedData: p.AuthenticatedData()})
		if p.Proposal.AppDataUpdate != nil || p.Proposal.GroupContextExtensions != nil {
			c.After = nil
		}
	}
	if c.After == nil {
		room, err := RoomOf(st.Extensions)
		if err != nil {
			return Change{}, err
		}
		c.After = room
	}
	for _, l := range st.Removed {
		c.Removed = append(c.Removed, uint32(l))
	}
	c.Updated, c.Added = leavesOf(st.Tree, st.Updated), leavesOf(st.Tree, st.Added)
	committed := st.Tree.Leaf(st.Committer)
	switch {
	case st.External:
		c.Joined = committed
	case st.Content().Content.Commit.Path != nil:
		c.Updated = append(c.Updated, Leaf{c.Committer, committed})
	}
	return c, nil
}

func leavesOf(t *tree.Tree, list []tree.LeafIndex) []Leaf {
	var out []Leaf
	for _, l := range list {
		out = append(out, Leaf{uint32(l), t.Leaf(l)})
	}
	return out
}

// HeldOf are the proposals that a follower's group holds.
func HeldOf(g *follower.Group) []Proposal {
	held := g.Proposals()
	out := make([]Proposal, len(held))
	for i := range held {
		p := &held[i]
		out[i] = Proposal{Ref: p.Ref, Sender: p.Sender, Proposal: p.Proposal, AuthenticatedData: p.AuthenticatedData()}
	}
	return out
}

// Leaves are the leaves of a group's tree, as [NewRoster] takes them.
func Leaves(g *follower.Group) func(func(uint32, *wire.LeafNode) bool) {
	return func(yield func(uint32, *wire.LeafNode) bool) {
		for l, node := range g.Tree().Leaves() {
			if !yield(uint32(l), node) {
				return
			}
		}
	}
}
