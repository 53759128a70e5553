package follower

import (
	"math"

	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// resolve turns the proposals of a commit into proposals with senders (§12.4).
func (g *Group) resolve(sender wire.Sender, list []wire.ProposalOrRef) ([]Proposal, error) {
	held := make(map[string]*Proposal, len(g.held))
	for i := range g.held {
		held[string(g.held[i].Ref)] = &g.held[i]
	}
	out := make([]Proposal, 0, len(list))
	seen := make(map[string]bool)
	for i, e := range list {
		if e.Type == wire.ProposalOrRefTypeProposal {
			out = append(out, Proposal{Sender: sender, Proposal: e.Proposal})
			continue
		}
		if seen[string(e.Reference)] {
			return nil, invalid(ErrProposalList, "proposal %d is referred to twice", i)
		}
		seen[string(e.Reference)] = true
		p := held[string(e.Reference)]
		if p == nil {
			return nil, invalid(ErrUnknownProposal, "proposal %d of the commit", i)
		}
		out = append(out, *p)
	}
	return out, nil
}

// pathRequired reports whether a commit of these proposals needs a path (§12.4,
// extensions draft §7.2).
func pathRequired(list []Proposal) bool {
	for i := range list {
		switch list[i].Proposal.ProposalType {
		case wire.ProposalTypeUpdate, wire.ProposalTypeRemove, wire.ProposalTypeExternalInit,
			wire.ProposalTypeGroupContextExtensions, wire.ProposalTypeSelfRemove:
			return true
		}
	}
	return len(list) == 0
}

// checkList checks each proposal of a commit and that they may be committed
// together by this committer (§12.2). Key packages come later.
func (g *Group) checkList(committer wire.Sender, list []Proposal, o *Options) error {
	external := committer.SenderType == wire.SenderTypeNewMemberCommit
	if err := checkCounts(external, list); err != nil {
		return err
	}
	touched := map[tree.LeafIndex]bool{}
	psks := map[string]bool{}
	for i := range list {
		p := &list[i]
		t := p.Proposal.ProposalType
		if err := g.checkProposal(p, o); err != nil {
			return err
		}
		// mutants: equivalent: one by value is the committer's own, refused below
		if t == wire.ProposalTypeSelfRemove && p.Ref == nil {
			return invalid(ErrProposalList, "SelfRemove is committed by reference only")
		}
		if external {
			if err := checkInExternal(p); err != nil {
				return err
			}
		} else if t == wire.ProposalTypeExternalInit {
			return invalid(ErrProposalList, "ExternalInit in a member's commit")
		}
		if l, ok := target(p); ok {
			if !external && l == tree.LeafIndex(committer.LeafIndex) {
				return invalid(ErrProposalList, "%s of the committer itself", t)
			}
			if touched[l] {
				return invalid(ErrProposalList, "two proposals change leaf %d", l)
			}
			touched[l] = true
		}
		if p.Proposal.PreSharedKey != nil {
			id := string(wire.Marshal(&p.Proposal.PreSharedKey.PSK))
			if psks[id] {
				return invalid(ErrProposalList, "the same PreSharedKey twice")
			}
			psks[id] = true
		}
	}
	return nil
}

// checkCounts checks how many proposals of which type there are (§8.4, §12.2), before
// each is looked at: what one may cost is not to be paid a thousand times.
func checkCounts(external bool, list []Proposal) error {
	count := map[wire.ProposalType]int{}
	for i := range list {
		count[list[i].Proposal.ProposalType]++
	}
	if count[wire.ProposalTypeGroupContextExtensions] > 1 {
		return invalid(ErrProposalList, "more than one GroupContextExtensions")
	}
	if count[wire.ProposalTypeReInit] > 0 && len(list) > 1 {
		return invalid(ErrProposalList, "ReInit together with other proposals")
	}
	if n := count[wire.ProposalTypePSK]; n > math.MaxUint16 { // PSKLabel counts no further (§8.4)
		return invalid(ErrProposalList, "%d PreSharedKeys, %d can be counted", n, math.MaxUint16)
	}
	if external && count[wire.ProposalTypeExternalInit] != 1 {
		return invalid(ErrProposalList, "an external commit has %d ExternalInit, not one", count[wire.ProposalTypeExternalInit])
	}
	if external && count[wire.ProposalTypeRemove] > 1 {
		return invalid(ErrProposalList, "an external commit removes %d leaves, not its own former one", count[wire.ProposalTypeRemove])
	}
	return nil
}

// target returns the leaf that an Update, Remove or SelfRemove changes.
func target(p *Proposal) (tree.LeafIndex, bool) {
	switch p.Proposal.ProposalType {
	case wire.ProposalTypeUpdate, wire.ProposalTypeSelfRemove:
		return tree.LeafIndex(p.Sender.LeafIndex), true
	case wire.ProposalTypeRemove:
		return tree.LeafIndex(p.Proposal.Remove.Removed), true
	}
	return 0, false
}

// checkInExternal checks that a proposal may be in an external commit (§12.2,
// §12.4.3.2, extensions draft §§4.7, 4.8, 6.3).
func checkInExternal(p *Proposal) error {
	t := p.Proposal.ProposalType
	switch t {
	case wire.ProposalTypeSelfRemove:
		return nil // by reference, as everywhere
	case wire.ProposalTypeExternalInit, wire.ProposalTypeRemove, wire.ProposalTypePSK,
		wire.ProposalTypeAppDataUpdate, wire.ProposalTypeAppEphemeral:
		if p.Ref == nil {
			return nil
		}
		return invalid(ErrProposalList, "%s by reference in an external commit", t)
	}
	return invalid(ErrProposalList, "%s in an external commit", t)
}

// checkNoClientTwice checks that no two Adds are of one client: none share a
// signature, encryption or init key (§12.2, §10).
func checkNoClientTwice(adds []*wire.KeyPackage) error {
	seen := make(map[string]bool, 3*len(adds))
	for _, k := range adds {
		for _, key := range [][]byte{k.LeafNode.SignatureKey, k.LeafNode.EncryptionKey, k.InitKey} {
			if seen[string(key)] {
				return invalid(ErrProposalList, "two Adds share a key")
			}
			seen[string(key)] = true
		}
	}
	return nil
}
