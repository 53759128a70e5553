package follower

import (
	"math"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// Draft is what a valid list of proposals does to a group (§12.3), before the
// committer's path. A committer makes its path on [Draft.Tree] and goes on with
// [Draft.Finish]; [Group.StageCommit] does both for a commit that was received.
type Draft struct {
	group *Group
	terms terms
	// Tree is the tree after the proposals.
	Tree *tree.Tree
	// Extensions are the GroupContext's after the proposals.
	Extensions wire.Extensions
	// Committer is the committer's leaf in Tree; for an external commit the leaf
	// that it will fill, still blank.
	Committer tree.LeafIndex
	// External says that the committer is not a member yet.
	External bool
	// Former is the leaf that an external commit removes as the joiner's own
	// earlier one (§12.4.3.2); nil for none.
	Former *wire.LeafNode
	// Added, Updated and Removed are the leaves that the proposals filled,
	// replaced and blanked, in the order of the proposals. Removed are indices in
	// the group's tree, the others in Tree.
	Added, Updated, Removed []tree.LeafIndex
	// Proposals are the proposals in the order of the commit.
	Proposals []Proposal
	// PSKs are the pre-shared keys in the order in which they are mixed in.
	PSKs []wire.PreSharedKeyID
	// ExternalInit and ReInit are set when there is such a proposal.
	ExternalInit *wire.ExternalInit
	ReInit       *wire.ReInit
	// PathRequired says that the commit must have a path (§12.4).
	PathRequired bool

	packages []*wire.KeyPackage
}

// AddedKeyPackages returns the key packages of the Adds, in the order of Added.
func (d *Draft) AddedKeyPackages() []*wire.KeyPackage { return d.packages }

// Suite returns the group's cipher suite.
func (d *Draft) Suite() *suite.Suite { return d.group.cs }

// Draft validates a list of proposals for a commit by sender (§12.2) and applies
// it (§12.3). Proposals by reference must be held. For an external commit the
// sender's type is new_member_commit.
func (g *Group) Draft(sender wire.Sender, list []wire.ProposalOrRef, o Options) (*Draft, error) {
	if g.closed {
		return nil, invalid(ErrClosed, "in epoch %d", g.context.Epoch)
	}
	if g.context.Epoch == math.MaxUint64 {
		return nil, invalid(ErrClosed, "epoch %d is the last that can be counted", g.context.Epoch)
	}
	external := sender.SenderType == wire.SenderTypeNewMemberCommit
	if !external && (sender.SenderType != wire.SenderTypeMember || g.tree.Leaf(tree.LeafIndex(sender.LeafIndex)) == nil) {
		return nil, invalid(ErrSender, "the committer is not a member")
	}
	proposals, err := g.resolve(sender, list)
	if err != nil {
		return nil, err
	}
	if err := g.checkList(sender, proposals, &o); err != nil {
		return nil, err
	}
	d := &Draft{
		group: g, terms: g.terms, Extensions: g.context.Extensions, External: external,
		Committer: tree.LeafIndex(sender.LeafIndex), Proposals: proposals, PathRequired: pathRequired(proposals),
	}
	if err := d.applyContext(&o); err != nil {
		return nil, err
	}
	if err := d.checkAdds(&o); err != nil {
		return nil, err
	}
	if err := d.applyTree(); err != nil {
		return nil, err
	}
	return d, nil
}

// applyContext applies what changes the GroupContext and the key schedule.
func (d *Draft) applyContext(o *Options) (err error) {
	for i := range d.Proposals {
		switch p := d.Proposals[i].Proposal; p.ProposalType {
		case wire.ProposalTypeGroupContextExtensions:
			d.Extensions = p.GroupContextExtensions.Extensions
		case wire.ProposalTypePSK:
			d.PSKs = append(d.PSKs, p.PreSharedKey.PSK)
		case wire.ProposalTypeExternalInit:
			d.ExternalInit = p.ExternalInit
		case wire.ProposalTypeReInit:
			d.ReInit = p.ReInit
		}
	}
	if d.Extensions, err = appData(d.Extensions, d.Proposals, o); err != nil {
		return err
	}
	d.terms, err = readTerms(d.Extensions)
	return err
}

// checkAdds checks the key packages of all Adds (§12.1.1, §10.1); those of held
// proposals were verified when they came.
func (d *Draft) checkAdds(o *Options) error {
	var fresh []*wire.KeyPackage
	for i := range d.Proposals {
		p := &d.Proposals[i]
		if p.Proposal.Add == nil {
			continue
		}
		k := &p.Proposal.Add.KeyPackage
		d.packages = append(d.packages, k)
		if !p.verified {
			fresh = append(fresh, k)
		}
	}
	if err := checkKeyPackages(d.group.cs, fresh, o); err != nil {
		return err
	}
	return checkNoClientTwice(d.packages)
}

// applyTree applies Updates, SelfRemoves and Removes, then Adds, and finds the
// leaf of an external committer (§12.3; extensions draft §6.3.1).
func (d *Draft) applyTree() error {
	edit := d.group.tree.Edit()
	var fresh tree.NewKeys
	for i := range d.Proposals {
		if u := d.Proposals[i].Proposal.Update; u != nil {
			l, leaf := tree.LeafIndex(d.Proposals[i].Sender.LeafIndex), u.LeafNode.Clone()
			if err := edit.Update(l, leaf); err != nil {
				return invalid(ErrProposal, "%w", err)
			}
			fresh.AddLeaf(leaf)
			d.Updated = append(d.Updated, l)
		}
	}
	for i := range d.Proposals {
		p := &d.Proposals[i]
		if p.Proposal.Remove == nil && p.Proposal.SelfRemove == nil {
			continue
		}
		l, _ := target(p)
		if err := edit.Remove(l); err != nil {
			return invalid(ErrProposal, "%w", err)
		}
		if d.External && p.Proposal.Remove != nil {
			d.Former = d.group.tree.Leaf(l)
		}
		d.Removed = append(d.Removed, l)
	}
	edit.Truncate()
	edit, err := d.checkTypes(edit)
	if err != nil {
		return err
	}
	for _, k := range d.packages {
		leaf := k.LeafNode.Clone()
		l, err := edit.Add(leaf)
		if err != nil {
			return invalid(ErrTree, "%w", err)
		}
		fresh.AddLeaf(leaf)
		d.Added = append(d.Added, l)
	}
	if d.External {
		if d.Committer, err = edit.Vacancy(); err != nil {
			return invalid(ErrTree, "%w", err)
		}
	}
	d.Tree = edit.Freeze()
	if err := d.Tree.CheckUnique(&fresh); err != nil {
		return invalid(ErrTree, "%w", err)
	}
	return nil
}

// checkTypes checks that those who stay support every proposal type that is not
// a default (§12.2): neither whom the commit removes nor whom it adds count.
func (d *Draft) checkTypes(edit *tree.Editor) (*tree.Editor, error) {
	var stay *tree.Tree
	for i := range d.Proposals {
		t := d.Proposals[i].Proposal.ProposalType
		if tree.IsDefaultProposal(t) {
			continue
		}
		if stay == nil {
			stay = edit.Freeze()
			edit = stay.Edit()
		}
		if !stay.SupportsProposal(t) {
			return nil, invalid(ErrUnsupported, "%s by some member who stays", t)
		}
	}
	return edit, nil
}

// provisional gives the provisional GroupContext (§12.4.1), complete but for the
// confirmed transcript hash.
func (d *Draft) provisional(treeHash []byte) wire.GroupContext {
	c := d.group.context
	c.Epoch++
	c.TreeHash = treeHash
	c.Extensions = d.Extensions
	return c
}

// ProvisionalContext returns the encoded provisional GroupContext for a tree
// hash: the context under which path secrets are encrypted (§7.6, §12.4.1).
func (d *Draft) ProvisionalContext(treeHash []byte) []byte {
	c := d.provisional(treeHash)
	return wire.Marshal(&c)
}
