package mls

import (
	"fmt"
	"io"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// externalInitLabel is the exporter context of an external commit's init secret
// (RFC 9420 Section 8.3).
const externalInitLabel = "MLS 1.0 external init secret"

// ExternalJoinParams is what a client needs to enter a group by itself.
type ExternalJoinParams struct {
	// Random gives the new keys.
	Random io.Reader
	// Now is the time for lifetimes and credentials.
	Now time.Time
	// GroupInfo is the MLSMessage of the current epoch's GroupInfo, with the
	// external_pub extension.
	GroupInfo []byte
	// Tree is the encoded ratchet tree, when the GroupInfo does not carry it.
	Tree []byte
	// Signer, Credential, Capabilities and LeafExtensions make the new leaf;
	// zero Capabilities mean DefaultCapabilities with GREASE.
	Signer         *suite.SignatureKey
	Credential     wire.Credential
	Capabilities   wire.Capabilities
	LeafExtensions wire.Extensions
	// Resync removes this client's own former leaf, the one with the index.
	Resync *uint32
	// SelfRemoves are the pending SelfRemove proposals of the epoch, as
	// MLSMessages; they are validated and committed by reference.
	SelfRemoves [][]byte
	// PSKs are ids of external pre-shared keys to mix in.
	PSKs [][]byte
	// Proposals are further proposals that an external commit may carry
	// (AppDataUpdate, AppEphemeral).
	Proposals []wire.Proposal
	// AuthenticatedData is bound to the commit.
	AuthenticatedData []byte
	// GroupInfoExtensions are added to the GroupInfo of the new epoch.
	GroupInfoExtensions wire.Extensions
}

// ExternalJoin makes an external commit (RFC 9420 Section 12.4.3.2). The result
// is used like that of [Group.Commit]: send Message, and when it was accepted
// call Apply without a group. There is nothing to Keep it in: a commit that was
// not applied is made again.
func (c *Config) ExternalJoin(p ExternalJoinParams) (*Commit, error) {
	var m wire.MLSMessage
	if err := wire.Unmarshal(p.GroupInfo, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if m.WireFormat != wire.WireFormatGroupInfo {
		return nil, fmt.Errorf("%w: not a group info", ErrWireFormat)
	}
	info := m.GroupInfo
	cs, err := suite.Lookup(info.GroupContext.CipherSuite)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGroupInfo, err)
	}
	if err := checkSigner(cs, p.Signer); err != nil {
		return nil, err
	}
	var pub wire.ExternalPub
	found, err := info.Extensions.Decode(wire.ExtensionTypeExternalPub, &pub)
	if err != nil || !found {
		return nil, fmt.Errorf("%w: it has no external_pub", ErrGroupInfo)
	}
	public, err := c.enterPublic(cs, info, p.Tree, p.Now)
	if err != nil {
		return nil, err
	}
	kemOutput, init, err := hpke.ExportSender(cs, p.Random, pub.ExternalPub, externalInitLabel, cs.HashSize())
	if err != nil {
		return nil, fmt.Errorf("%w: external_pub: %w", ErrGroupInfo, err)
	}
	defer clear(init)
	capabilities, err := capabilitiesOr(p.Random, p.Capabilities, cs.ID(), p.Credential.CredentialType)
	if err != nil {
		return nil, err
	}
	// The joiner stands outside: a group of public state without secrets or leaf.
	outside := &Group{config: c, cs: cs, public: public, signer: p.Signer, outside: true}
	list := []wire.ProposalOrRef{byValue(wire.Proposal{
		ProposalType: wire.ProposalTypeExternalInit, ExternalInit: &wire.ExternalInit{KEMOutput: kemOutput},
	})}
	if p.Resync != nil {
		list = append(list, byValue(RemoveProposal(*p.Resync)))
	}
	for i, message := range p.SelfRemoves {
		ref, err := outside.holdSelfRemove(message, p.Now)
		if err != nil {
			return nil, fmt.Errorf("self remove %d: %w", i, err)
		}
		list = append(list, wire.ProposalOrRef{Type: wire.ProposalOrRefTypeReference, Reference: ref})
	}
	for _, id := range p.PSKs {
		proposal, err := outside.ExternalPSKProposal(p.Random, id)
		if err != nil {
			return nil, err
		}
		list = append(list, byValue(proposal))
	}
	for _, proposal := range p.Proposals {
		list = append(list, byValue(proposal))
	}
	commit, err := outside.commit(commitPlan{
		CommitParams: CommitParams{
			Random: p.Random, Now: p.Now, AuthenticatedData: p.AuthenticatedData, GroupInfoExtensions: p.GroupInfoExtensions,
		},
		sender: wire.Sender{SenderType: wire.SenderTypeNewMemberCommit},
		list:   list,
		init:   init,
		leaf: &wire.LeafNode{
			SignatureKey: p.Signer.Public(), Credential: p.Credential,
			Capabilities: capabilities, Extensions: p.LeafExtensions,
		},
	})
	if err != nil {
		return nil, err
	}
	return commit, nil
}

func byValue(p wire.Proposal) wire.ProposalOrRef {
	return wire.ProposalOrRef{Type: wire.ProposalOrRefTypeProposal, Proposal: &p}
}

// holdSelfRemove validates a SelfRemove for an external commit: everything but
// the membership tag, which only members can check (draft-ietf-mls-extensions
// Section 6.3).
func (g *Group) holdSelfRemove(message []byte, now time.Time) (wire.ProposalRef, error) {
	var m wire.MLSMessage
	if err := wire.Unmarshal(message, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if m.WireFormat != wire.WireFormatPublicMessage || m.PublicMessage.Content.ContentType != wire.ContentTypeProposal ||
		m.PublicMessage.Content.Proposal.ProposalType != wire.ProposalTypeSelfRemove {
		return nil, fmt.Errorf("%w: not a SelfRemove", ErrWireFormat)
	}
	ac := follower.Authenticated(m.PublicMessage)
	public, err := g.public.HoldProposal(ac, g.config.options(now))
	if err != nil {
		return nil, err
	}
	g.public = public
	return g.cs.ProposalRef(ac), nil
}

// ExternalAdd makes an Add proposal by which a client asks to be added to a
// group it is not in (RFC 9420 Section 12.1.8, new_member_proposal).
func ExternalAdd(groupID []byte, epoch uint64, bundle *KeyPackageBundle, signer *suite.SignatureKey) ([]byte, error) {
	return externalProposal(groupID, epoch, wire.Sender{SenderType: wire.SenderTypeNewMemberProposal}, AddProposal(&bundle.KeyPackage), nil, signer)
}

// ExternalProposal makes a proposal of the sender at an index of the group's
// external_senders extension.
func ExternalProposal(groupID []byte, epoch uint64, senderIndex uint32, proposal wire.Proposal, authenticatedData []byte, signer *suite.SignatureKey) ([]byte, error) {
	return externalProposal(groupID, epoch, wire.Sender{SenderType: wire.SenderTypeExternal, SenderIndex: senderIndex}, proposal, authenticatedData, signer)
}

func externalProposal(groupID []byte, epoch uint64, sender wire.Sender, proposal wire.Proposal, authenticatedData []byte, signer *suite.SignatureKey) ([]byte, error) {
	ac := wire.AuthenticatedContent{WireFormat: wire.WireFormatPublicMessage, Content: wire.FramedContent{
		GroupID: groupID, Epoch: epoch, Sender: sender, AuthenticatedData: authenticatedData,
		ContentType: wire.ContentTypeProposal, Proposal: &proposal,
	}}
	signature, err := signer.SignWithLabel("FramedContentTBS", ac.TBS(nil))
	if err != nil {
		return nil, fmt.Errorf("mls: signing an external proposal: %w", err)
	}
	return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatPublicMessage, PublicMessage: &wire.PublicMessage{
		Content: ac.Content, Auth: wire.FramedContentAuthData{Signature: signature},
	}}), nil
}

// externalInit recovers the init secret of an external commit.
func (g *Group) externalInit(init *wire.ExternalInit) (Secret, error) {
	key, err := externalKey(g.cs, g.keys.external)
	if err != nil {
		return nil, err
	}
	defer key.Wipe()
	secret, err := key.ExportReceiver(init.KEMOutput, externalInitLabel, g.cs.HashSize())
	if err != nil {
		return nil, fmt.Errorf("%w: external init: %w", ErrDecrypt, err)
	}
	return secret, nil
}
