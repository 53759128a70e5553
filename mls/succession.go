package mls

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/wire"
)

// SuccessorParams is a group that follows another one: the same people after a
// ReInit, or some of them in a branch.
type SuccessorParams struct {
	// Random gives keys and nonces.
	Random io.Reader
	// Now is the time for lifetimes.
	Now time.Time
	// KeyPackages are those of the other members, of the new group's suite.
	KeyPackages []*wire.KeyPackage
	// Leaf is this client's new leaf: its signer, credential and so on.
	Leaf CreatorLeaf
	// GroupID and Extensions are those of a branch. After a ReInit both come
	// from the ReInit proposal and are ignored here.
	GroupID    []byte
	Extensions wire.Extensions
	// TreeInWelcome is as in CommitParams.
	TreeInWelcome bool
}

// ReInit tells the parameters of the successor, nil when the group was not
// closed by a ReInit.
func (g *Group) ReInit() *wire.ReInit { return g.reinit }

// Successor sets up the group that a ReInit announced (RFC 9420 Section 11.2).
// config serves the new group. The Commit's Staged leads to epoch 1 of it;
// nobody needs its Message.
func (g *Group) Successor(config *Config, p SuccessorParams) (*Commit, error) {
	if g.status != statusReInit {
		return nil, fmt.Errorf("%w: no ReInit closed this group", ErrParams)
	}
	p.GroupID, p.Extensions = g.reinit.GroupID, g.reinit.Extensions
	return g.follow(config, p, g.reinit.CipherSuite, wire.ResumptionPSKUsageReInit)
}

// Branch sets up a subgroup (RFC 9420 Section 11.3). The Commit's Staged leads to
// epoch 1 of it.
func (g *Group) Branch(config *Config, p SuccessorParams) (*Commit, error) {
	if err := g.canSend(); err != nil {
		return nil, err
	}
	return g.follow(config, p, g.cs.ID(), wire.ResumptionPSKUsageBranch)
}

func (g *Group) follow(config *Config, p SuccessorParams, id wire.CipherSuite, usage wire.ResumptionPSKUsage) (*Commit, error) {
	created, err := config.Create(CreateParams{
		Random: p.Random, Now: p.Now, CipherSuite: id, GroupID: p.GroupID, Extensions: p.Extensions, Leaf: p.Leaf,
	})
	if err != nil {
		return nil, err
	}
	first := created.Next
	nonce, err := randomSecret(first.cs, p.Random)
	if err != nil {
		return nil, err
	}
	psk := pskProposal(wire.PreSharedKeyID{
		PSKType: wire.PSKTypeResumption, Usage: usage, PSKGroupID: g.GroupID(), PSKEpoch: g.Epoch(), PSKNonce: nonce,
	})
	list := []wire.ProposalOrRef{}
	for _, kp := range p.KeyPackages {
		list = append(list, byValue(AddProposal(kp)))
	}
	list = append(list, byValue(psk))
	c, err := first.commit(commitPlan{
		CommitParams: CommitParams{Random: p.Random, Now: p.Now, TreeInWelcome: p.TreeInWelcome},
		sender:       wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: uint32(first.leaf)},
		list:         list,
		init:         first.keys.init,
		leaf:         first.public.Leaf(first.leaf),
		succession:   true,
		psks: func(id wire.PreSharedKeyID) (Secret, bool) {
			// mutants: equivalent: the commit names one, which is this group's
			if !bytes.Equal(id.PSKGroupID, g.GroupID()) {
				return nil, false
			}
			return g.keys.resumption.clone(), true
		},
	})
	if err != nil {
		return nil, err
	}
	// Epoch 0 was never stored: what is stored is epoch 1 as a whole.
	n := c.own.next
	c.own.born = newGroup(config, first.cs, n.public, n.leaf, n.signer, n.keys, n.private)
	c.keep = Step{}
	if err := checkSuccession(&psk.PreSharedKey.PSK, &wire.GroupInfo{GroupContext: *n.public.Context()}, n.public, g); err != nil {
		return nil, err
	}
	return c, nil
}

// checkSuccession checks that a group follows another one as RFC 9420 Sections
// 11.2, 11.3 and 12.4.3.1 want. from is nil when it follows none.
func checkSuccession(from *wire.PreSharedKeyID, info *wire.GroupInfo, public *follower.Group, old *Group) error {
	if from == nil {
		return nil
	}
	c := &info.GroupContext
	switch {
	case old == nil || !bytes.Equal(from.PSKGroupID, old.GroupID()):
		return fmt.Errorf("%w: it follows a group that was not given", ErrGroupInfo)
	case c.Epoch != 1:
		return fmt.Errorf("%w: a group that follows another one is joined at epoch %d, not 1", ErrGroupInfo, c.Epoch)
	}
	if from.Usage == wire.ResumptionPSKUsageBranch {
		if c.CipherSuite != old.cs.ID() {
			return fmt.Errorf("%w: a branch has another cipher suite", ErrGroupInfo)
		}
		return old.covers(public, old.public)
	}
	r := old.reinit
	switch {
	case r == nil || from.PSKEpoch != old.Epoch():
		return fmt.Errorf("%w: no ReInit announced this group", ErrGroupInfo)
	case !bytes.Equal(r.GroupID, c.GroupID) || r.CipherSuite != c.CipherSuite || r.Version != wire.ProtocolVersionMLS10 ||
		!bytes.Equal(wire.Marshal(&r.Extensions), wire.Marshal(&c.Extensions)):
		return fmt.Errorf("%w: the group is not the one that the ReInit announced", ErrGroupInfo)
	}
	return old.covers(old.public, public)
}

// covers checks that every member of some has its like in all.
func (g *Group) covers(some, all *follower.Group) error {
	credentials := map[string]bool{}
	for _, leaf := range all.Tree().Leaves() {
		credentials[string(wire.Marshal(&leaf.Credential))] = true
	}
	for l, leaf := range some.Tree().Leaves() {
		found := credentials[string(wire.Marshal(&leaf.Credential))]
		if same := g.config.SameClient; same != nil {
			found = false
			for _, other := range all.Tree().Leaves() {
				found = found || same(leaf, other)
			}
		}
		if !found {
			return fmt.Errorf("%w: the member at leaf %d is in one of the groups only", ErrGroupInfo, l)
		}
	}
	return nil
}
