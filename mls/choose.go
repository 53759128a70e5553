package mls

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// ownProposals are the proposals that a commit makes itself, by value.
func ownProposals(p CommitParams) ([]wire.ProposalOrRef, error) {
	var list []wire.ProposalOrRef
	for _, proposal := range p.Proposals {
		switch proposal.ProposalType {
		case wire.ProposalTypeUpdate, wire.ProposalTypeSelfRemove, wire.ProposalTypeExternalInit:
			return nil, fmt.Errorf("%w: %s is not committed by value", ErrParams, proposal.ProposalType)
		}
		list = append(list, byValue(proposal))
	}
	return list, nil
}

// byReference are held proposals as a commit covers them.
func byReference(refs []wire.ProposalRef) []wire.ProposalOrRef {
	list := make([]wire.ProposalOrRef, len(refs))
	for i, ref := range refs {
		list[i] = wire.ProposalOrRef{Type: wire.ProposalOrRefTypeReference, Reference: ref}
	}
	return list
}

// committable chooses among the held proposals as RFC 9420 Section 12.2 advises:
// a SelfRemove over a Remove over the newest Update of a leaf, each key package
// once, each pre-shared key once and only if this client has it, one
// GroupContextExtensions, the AppDataUpdates of a component that go together and
// that the application takes, a ReInit only alone. Our own updates and removals
// of ourselves are for others to commit. What the commit brings by value comes
// first.
func (g *Group) committable(skip []wire.ProposalRef, values []wire.Proposal) []wire.ProposalRef {
	held := g.public.Proposals()
	c := choice{
		group: g, seen: map[string]bool{}, data: g.newDataChoice(),
		best: map[tree.LeafIndex]int{}, taken: map[tree.LeafIndex]bool{g.leaf: true},
	}
	for i := range values {
		switch p := &values[i]; p.ProposalType {
		case wire.ProposalTypeReInit:
			return nil
		case wire.ProposalTypeRemove:
			c.taken[tree.LeafIndex(p.Remove.Removed)] = true
		default:
			c.take(p)
		}
	}
	var chosen []int
	reinit := -1
	for i := range held {
		p := &held[i]
		switch {
		case slices.ContainsFunc(skip, func(r wire.ProposalRef) bool { return bytes.Equal(r, p.Ref) }):
		case p.Proposal.ProposalType == wire.ProposalTypeReInit:
			if reinit < 0 {
				reinit = i
			}
		case rank(p) > 0:
			c.contend(held, i)
		case c.take(p.Proposal):
			chosen = append(chosen, i)
		}
	}
	for _, i := range c.best {
		chosen = append(chosen, i)
	}
	if len(chosen) == 0 && reinit >= 0 && len(values) == 0 {
		chosen = append(chosen, reinit)
	}
	slices.Sort(chosen) // in the order in which they came
	refs := make([]wire.ProposalRef, len(chosen))
	for i, at := range chosen {
		refs[i] = held[at].Ref
	}
	return refs
}

// rank orders the proposals that change one leaf, of which a commit has at most
// one; it is 0 for all others.
func rank(p *follower.Proposal) int {
	switch p.Proposal.ProposalType {
	case wire.ProposalTypeSelfRemove:
		return rankSelfRemove
	case wire.ProposalTypeRemove:
		return rankRemove
	case wire.ProposalTypeUpdate:
		return rankUpdate
	}
	return 0
}

const (
	rankUpdate = iota + 1
	rankRemove
	rankSelfRemove
)

// choice is what of a commit's proposals is chosen so far.
type choice struct {
	group *Group
	taken map[tree.LeafIndex]bool // leaves that no held proposal may change
	best  map[tree.LeafIndex]int  // by leaf, the held proposal that changes it
	seen  map[string]bool         // the onceKeys
	data  *dataChoice
}

// contend lets the held proposal i have its leaf if it outranks the one that has
// it, or is a newer one of the same rank.
func (c *choice) contend(held []follower.Proposal, i int) {
	p := &held[i]
	l := tree.LeafIndex(p.Sender.LeafIndex)
	if p.Proposal.ProposalType == wire.ProposalTypeRemove {
		l = tree.LeafIndex(p.Proposal.Remove.Removed)
	}
	if c.taken[l] {
		return
	}
	if j, found := c.best[l]; !found || rank(p) >= rank(&held[j]) {
		c.best[l] = i
	}
}

// take says whether a proposal that changes no member's leaf goes together with
// those taken before, and takes it if so.
func (c *choice) take(p *wire.Proposal) bool {
	switch p.ProposalType {
	case wire.ProposalTypeAppDataUpdate:
		return c.data.take(p.AppDataUpdate)
	case wire.ProposalTypePSK:
		secret, err := c.group.psk(p.PreSharedKey.PSK)
		if errors.Is(err, ErrMissingPSK) {
			return false
		}
		secret.Wipe()
	}
	key := onceKey(p)
	if key != "" && c.seen[key] {
		return false
	}
	c.seen[key] = true
	return true
}

// onceKey is what two proposals share that exclude each other, "" for none.
func onceKey(p *wire.Proposal) string {
	switch p.ProposalType {
	case wire.ProposalTypeAdd:
		return "add" + string(p.Add.KeyPackage.LeafNode.SignatureKey)
	case wire.ProposalTypePSK:
		return "psk" + string(wire.Marshal(&p.PreSharedKey.PSK))
	case wire.ProposalTypeGroupContextExtensions:
		return "extensions"
	}
	return ""
}

// dataChoice chooses AppDataUpdates that go together (draft-ietf-mls-extensions
// Section 4.7): of one component either one removal of what is there, or updates
// that the application takes one after the other.
type dataChoice struct {
	config     *Config
	dictionary *wire.AppDataDictionary
	updates    map[wire.ComponentID][][]byte
	removed    map[wire.ComponentID]bool
}

func (g *Group) newDataChoice() *dataChoice {
	c := &dataChoice{
		config: g.config, dictionary: g.public.Dictionary(),
		updates: map[wire.ComponentID][][]byte{}, removed: map[wire.ComponentID]bool{},
	}
	if c.dictionary == nil {
		c.dictionary = &wire.AppDataDictionary{}
	}
	return c
}

// take says whether an AppDataUpdate goes together with those taken before, and
// takes it if so.
func (c *dataChoice) take(u *wire.AppDataUpdate) bool {
	id, earlier := u.ComponentID, c.updates[u.ComponentID]
	old, found := c.dictionary.Get(id)
	switch {
	case c.config.AppData == nil || c.removed[id]:
		return false
	case u.Op == wire.AppDataUpdateOperationRemove:
		if !found || len(earlier) > 0 {
			return false
		}
		c.removed[id] = true
		return true
	}
	updates := append(earlier[:len(earlier):len(earlier)], u.Update)
	if _, err := c.config.AppData(id, old, updates); err != nil {
		return false
	}
	c.updates[id] = updates
	return true
}
