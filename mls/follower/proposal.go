package follower

import (
	"bytes"

	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// Proposal is a proposal of the current epoch with its sender. One that is held
// was verified by itself; what it does together with others is decided by the
// commit that covers it.
type Proposal struct {
	// Ref is what commits refer to it by; nil for one by value.
	Ref wire.ProposalRef
	// Sender made it; for one by value that is the committer.
	Sender   wire.Sender
	Proposal *wire.Proposal
	// Content is the message it came in; nil for one by value.
	Content *wire.AuthenticatedContent

	verified bool // by VerifyProposal, so that signatures in it are known
}

// AuthenticatedData returns what the sender bound to a proposal message.
func (p *Proposal) AuthenticatedData() []byte {
	if p.Content == nil {
		return nil
	}
	return p.Content.Content.AuthenticatedData
}

// VerifyProposal checks a proposal message of the current epoch (§12.1): frame,
// sender, signature, for a new member's own Add also the key package's, and
// everything that can be said about it alone.
func (g *Group) VerifyProposal(ac *wire.AuthenticatedContent, o Options) (*Proposal, error) {
	if err := g.checkFrame(ac, wire.ContentTypeProposal); err != nil {
		return nil, err
	}
	key, err := g.senderKey(&ac.Content)
	if err != nil {
		return nil, err
	}
	if err := g.checkSignature(ac, key); err != nil {
		return nil, err
	}
	p := g.proposalOf(ac)
	if p.Proposal.ProposalType == wire.ProposalTypeSelfRemove && ac.WireFormat != wire.WireFormatPublicMessage {
		return nil, invalid(ErrContent, "a SelfRemove travels as PublicMessage")
	}
	if p.Proposal.ProposalType == wire.ProposalTypeExternalInit {
		return nil, invalid(ErrSender, "ExternalInit is for external commits")
	}
	if !g.tree.SupportsProposal(p.Proposal.ProposalType) {
		return nil, invalid(ErrUnsupported, "%s by some member", p.Proposal.ProposalType)
	}
	if err := g.checkProposal(p, &o); err != nil {
		return nil, err
	}
	if a := p.Proposal.Add; a != nil {
		if err := checkKeyPackages(g.cs, []*wire.KeyPackage{&a.KeyPackage}, &o); err != nil {
			return nil, err
		}
	}
	p.verified = true
	return p, nil
}

func (g *Group) proposalOf(ac *wire.AuthenticatedContent) *Proposal {
	return &Proposal{
		Ref: g.cs.ProposalRef(ac), Sender: ac.Content.Sender, Proposal: ac.Content.Proposal, Content: ac,
	}
}

// checkProposal checks one proposal by itself (§12.1). Key packages are left to
// the caller, who may have many of them.
func (g *Group) checkProposal(p *Proposal, o *Options) error {
	switch x := p.Proposal; x.ProposalType {
	case wire.ProposalTypeAdd:
		return nil
	case wire.ProposalTypeExternalInit:
		if err := g.cs.ValidateKEMOutput(x.ExternalInit.KEMOutput); err != nil {
			return invalid(ErrProposal, "ExternalInit: kem_output of %d bytes: %w", len(x.ExternalInit.KEMOutput), err)
		}
		return nil
	case wire.ProposalTypeUpdate:
		return g.checkUpdate(p, o)
	case wire.ProposalTypeRemove:
		if g.tree.Leaf(tree.LeafIndex(x.Remove.Removed)) == nil {
			return invalid(ErrProposal, "Remove: leaf %d is not a member", x.Remove.Removed)
		}
		return nil
	case wire.ProposalTypePSK:
		return g.checkPSK(&x.PreSharedKey.PSK, o)
	case wire.ProposalTypeReInit:
		if x.ReInit.Version < wire.ProtocolVersionMLS10 {
			return invalid(ErrProposal, "ReInit: version %d is older than the group's", x.ReInit.Version)
		}
		if t, twice := x.ReInit.Extensions.Duplicate(); twice {
			return invalid(ErrProposal, "ReInit: extension type %#04x occurs twice", uint16(t))
		}
		return nil
	case wire.ProposalTypeGroupContextExtensions:
		_, err := g.checkReplacement(x.GroupContextExtensions.Extensions, o)
		return err
	case wire.ProposalTypeSelfRemove:
		if p.Sender.SenderType != wire.SenderTypeMember {
			return invalid(ErrProposal, "SelfRemove of somebody who is not a member")
		}
		return nil
	case wire.ProposalTypeAppDataUpdate, wire.ProposalTypeAppEphemeral:
		return nil
	}
	return invalid(ErrUnsupported, "%s is not known here", p.Proposal.ProposalType)
}

// checkUpdate checks an Update's leaf in place of its sender's (§12.1.2, §7.3).
func (g *Group) checkUpdate(p *Proposal, o *Options) error {
	// mutants: equivalent: of other senders only external commits get here, and have no Update
	if p.Sender.SenderType != wire.SenderTypeMember {
		return invalid(ErrProposal, "Update by somebody who is not a member")
	}
	l := tree.LeafIndex(p.Sender.LeafIndex)
	lo := o.leaf(wire.LeafNodeSourceUpdate, g.context.GroupID, l, g.tree.Leaf(l))
	lo.SignatureVerified = p.verified
	if err := tree.ValidateLeaf(g.cs, &p.Proposal.Update.LeafNode, lo); err != nil {
		return invalid(ErrProposal, "Update of leaf %d: %w", l, err)
	}
	return nil
}

// checkPSK checks a PreSharedKey proposal (§12.1.4).
func (g *Group) checkPSK(id *wire.PreSharedKeyID, o *Options) error {
	if len(id.PSKNonce) != g.cs.HashSize() {
		return invalid(ErrProposal, "PreSharedKey: psk_nonce has %d bytes, not %d", len(id.PSKNonce), g.cs.HashSize())
	}
	if id.PSKType == wire.PSKTypeResumption && id.Usage != wire.ResumptionPSKUsageApplication &&
		!(o.Succession && g.context.Epoch == 0) {
		return invalid(ErrProposal, "PreSharedKey: usage %d is for groups that follow another one", id.Usage)
	}
	return nil
}

// Proposals returns the proposals that are held, in the order in which they
// came.
func (g *Group) Proposals() []Proposal { return g.held }

// HasProposals reports whether a proposal is held, so that a commit has to come
// before application data (§12.4).
func (g *Group) HasProposals() bool { return len(g.held) > 0 }

// Proposal returns the held proposal with a reference, or nil.
func (g *Group) Proposal(ref wire.ProposalRef) *Proposal {
	for i := range g.held {
		if bytes.Equal(g.held[i].Ref, ref) {
			return &g.held[i]
		}
	}
	return nil
}

// HoldProposal verifies a proposal message and gives the group that holds it. A
// proposal that is held already changes nothing.
func (g *Group) HoldProposal(ac *wire.AuthenticatedContent, o Options) (*Group, error) {
	p, err := g.VerifyProposal(ac, o)
	if err != nil {
		return nil, err
	}
	return g.with(p), nil
}

// Restore gives the group that holds a proposal which [Group.HoldProposal]
// accepted in this epoch before it was stored; it is not verified again.
func (g *Group) Restore(ac *wire.AuthenticatedContent) *Group {
	p := g.proposalOf(ac)
	p.verified = true
	return g.with(p)
}

func (g *Group) with(p *Proposal) *Group {
	if g.Proposal(p.Ref) != nil {
		return g
	}
	next := *g
	next.held = append(g.held[:len(g.held):len(g.held)], *p)
	return &next
}
