package follower

import (
	"bytes"

	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// Authenticated gives the content of a PublicMessage in the form in which this
// package takes handshakes. The membership tag is left behind: only members can
// check it, and they do so before.
func Authenticated(m *wire.PublicMessage) *wire.AuthenticatedContent {
	return &wire.AuthenticatedContent{WireFormat: wire.WireFormatPublicMessage, Content: m.Content, Auth: m.Auth}
}

// checkFrame checks that a handshake is of this group and epoch, has the content
// expected, and came in a way that its sender may use (§6, §12.1.8).
func (g *Group) checkFrame(ac *wire.AuthenticatedContent, want wire.ContentType) error {
	c := &ac.Content
	if !bytes.Equal(c.GroupID, g.context.GroupID) {
		return invalid(ErrOtherGroup, "its id has %d bytes", len(c.GroupID))
	}
	if c.Epoch != g.context.Epoch {
		return invalid(ErrEpoch, "of epoch %d; the group is in %d", c.Epoch, g.context.Epoch)
	}
	if g.closed {
		return invalid(ErrClosed, "in epoch %d", g.context.Epoch)
	}
	if c.ContentType != want {
		return invalid(ErrContent, "content type %d, not %d", c.ContentType, want)
	}
	switch ac.WireFormat {
	case wire.WireFormatPublicMessage:
	case wire.WireFormatPrivateMessage:
		if c.Sender.SenderType != wire.SenderTypeMember {
			return invalid(ErrContent, "a sender of type %d cannot make a PrivateMessage", c.Sender.SenderType)
		}
	default:
		return invalid(ErrContent, "wire format %d", ac.WireFormat)
	}
	return g.CheckAuthenticatedData(c.AuthenticatedData)
}

// senderKey returns the key with which a handshake must be signed (§6.1), after
// checking that its sender may send such content.
func (g *Group) senderKey(c *wire.FramedContent) (wire.SignaturePublicKey, error) {
	isCommit := c.ContentType == wire.ContentTypeCommit
	switch c.Sender.SenderType {
	case wire.SenderTypeMember:
		if leaf := g.tree.Leaf(tree.LeafIndex(c.Sender.LeafIndex)); leaf != nil {
			return leaf.SignatureKey, nil
		}
		return nil, invalid(ErrSender, "leaf %d is not a member", c.Sender.LeafIndex)
	case wire.SenderTypeExternal:
		if isCommit {
			return nil, invalid(ErrSender, "an external sender cannot commit")
		}
		if !externalMayPropose(c.Proposal.ProposalType) {
			return nil, invalid(ErrSender, "an external sender cannot propose %s", c.Proposal.ProposalType)
		}
		if uint64(c.Sender.SenderIndex) >= uint64(len(g.terms.senders)) {
			return nil, invalid(ErrSender, "external sender %d of %d", c.Sender.SenderIndex, len(g.terms.senders))
		}
		return g.terms.senders[c.Sender.SenderIndex].SignatureKey, nil
	case wire.SenderTypeNewMemberProposal:
		if isCommit || c.Proposal.ProposalType != wire.ProposalTypeAdd {
			return nil, invalid(ErrSender, "a new member can propose only its own Add")
		}
		return c.Proposal.Add.KeyPackage.LeafNode.SignatureKey, nil
	case wire.SenderTypeNewMemberCommit:
		if !isCommit {
			return nil, invalid(ErrSender, "who joins by a commit proposes nothing")
		}
		if c.Commit.Path == nil {
			return nil, invalid(ErrPathRequired, "an external commit")
		}
		return c.Commit.Path.LeafNode.SignatureKey, nil
	}
	return nil, invalid(ErrSender, "sender type %d", c.Sender.SenderType)
}

// externalMayPropose is the column "External" of the registry of proposal types
// (§17.4, extensions draft §7.2).
func externalMayPropose(t wire.ProposalType) bool {
	switch t {
	case wire.ProposalTypeAdd, wire.ProposalTypeRemove, wire.ProposalTypePSK, wire.ProposalTypeReInit,
		wire.ProposalTypeGroupContextExtensions, wire.ProposalTypeAppDataUpdate, wire.ProposalTypeAppEphemeral:
		return true
	}
	return false
}

// checkSignature verifies the signature of a handshake.
func (g *Group) checkSignature(ac *wire.AuthenticatedContent, key wire.SignaturePublicKey) error {
	if !g.cs.VerifyWithLabel(key, "FramedContentTBS", ac.TBS(g.encoded), ac.Auth.Signature) {
		return invalid(ErrSignature, "of the message")
	}
	return nil
}
