package mls

import (
	"fmt"
	"io"
	"time"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// AddProposal asks for a client to be added.
func AddProposal(kp *wire.KeyPackage) wire.Proposal {
	return wire.Proposal{ProposalType: wire.ProposalTypeAdd, Add: &wire.Add{KeyPackage: *kp}}
}

// RemoveProposal asks for the member at a leaf to be removed.
func RemoveProposal(leaf uint32) wire.Proposal {
	return wire.Proposal{ProposalType: wire.ProposalTypeRemove, Remove: &wire.Remove{Removed: leaf}}
}

// SelfRemoveProposal asks for the sender to be removed. It is only ever sent on
// its own (see [Group.Propose]), as PublicMessage, and committed by reference.
func SelfRemoveProposal() wire.Proposal {
	return wire.Proposal{ProposalType: wire.ProposalTypeSelfRemove, SelfRemove: &wire.SelfRemove{}}
}

// GroupContextExtensionsProposal replaces the extensions of the GroupContext.
func GroupContextExtensionsProposal(extensions wire.Extensions) wire.Proposal {
	return wire.Proposal{
		ProposalType:           wire.ProposalTypeGroupContextExtensions,
		GroupContextExtensions: &wire.GroupContextExtensions{Extensions: extensions},
	}
}

// AppDataUpdateProposal changes a component's entry in the dictionary of the
// GroupContext; what update means is decided by the application's rules.
func AppDataUpdateProposal(component wire.ComponentID, update []byte) wire.Proposal {
	return wire.Proposal{ProposalType: wire.ProposalTypeAppDataUpdate, AppDataUpdate: &wire.AppDataUpdate{
		ComponentID: component, Op: wire.AppDataUpdateOperationUpdate, Update: update,
	}}
}

// AppDataRemoveProposal deletes a component's entry from the dictionary.
func AppDataRemoveProposal(component wire.ComponentID) wire.Proposal {
	return wire.Proposal{ProposalType: wire.ProposalTypeAppDataUpdate, AppDataUpdate: &wire.AppDataUpdate{
		ComponentID: component, Op: wire.AppDataUpdateOperationRemove,
	}}
}

// AppEphemeralProposal attaches a component's data to a commit.
func AppEphemeralProposal(component wire.ComponentID, data []byte) wire.Proposal {
	return wire.Proposal{
		ProposalType: wire.ProposalTypeAppEphemeral,
		AppEphemeral: &wire.AppEphemeral{ComponentID: component, Data: data},
	}
}

// ReInitProposal closes the group in favour of a new one (RFC 9420 Section
// 11.2). It is committed alone.
func ReInitProposal(groupID []byte, suite wire.CipherSuite, extensions wire.Extensions) wire.Proposal {
	return wire.Proposal{ProposalType: wire.ProposalTypeReInit, ReInit: &wire.ReInit{
		GroupID: groupID, Version: wire.ProtocolVersionMLS10, CipherSuite: suite, Extensions: extensions,
	}}
}

// ExternalPSKProposal mixes an external pre-shared key into the key schedule.
func (g *Group) ExternalPSKProposal(random io.Reader, id []byte) (wire.Proposal, error) {
	return g.pskProposal(random, wire.PreSharedKeyID{PSKType: wire.PSKTypeExternal, PSKID: id})
}

// ResumptionPSKProposal mixes the resumption_psk of an epoch of a group, best
// one of this group's past, into the key schedule.
func (g *Group) ResumptionPSKProposal(random io.Reader, groupID []byte, epoch uint64) (wire.Proposal, error) {
	return g.pskProposal(random, wire.PreSharedKeyID{
		PSKType: wire.PSKTypeResumption, Usage: wire.ResumptionPSKUsageApplication, PSKGroupID: groupID, PSKEpoch: epoch,
	})
}

// ApplicationPSKProposal mixes a component's pre-shared key into the key
// schedule (draft-ietf-mls-extensions Section 4.5).
func (g *Group) ApplicationPSKProposal(random io.Reader, component wire.ComponentID, id []byte) (wire.Proposal, error) {
	return g.pskProposal(random, wire.PreSharedKeyID{PSKType: wire.PSKTypeApplication, ComponentID: component, PSKID: id})
}

func (g *Group) pskProposal(random io.Reader, id wire.PreSharedKeyID) (wire.Proposal, error) {
	nonce, err := randomSecret(g.cs, random)
	if err != nil {
		return wire.Proposal{}, err
	}
	id.PSKNonce = nonce
	return pskProposal(id), nil
}

func pskProposal(id wire.PreSharedKeyID) wire.Proposal {
	return wire.Proposal{ProposalType: wire.ProposalTypePSK, PreSharedKey: &wire.PreSharedKey{PSK: id}}
}

// ProposeParams is a proposal to be sent on its own.
type ProposeParams struct {
	// Random is read for PrivateMessages and updates.
	Random io.Reader
	// Now is the time at which the proposal is validated.
	Now time.Time
	// Proposal is what is proposed. For an update of one's own leaf use
	// [Group.ProposeUpdate].
	Proposal wire.Proposal
	// Private sends it as PrivateMessage, which the delivery service cannot
	// read. PadTo is then as in SealParams.
	Private bool
	PadTo   int
	// AuthenticatedData is bound to the message.
	AuthenticatedData []byte
}

// Proposed is a proposal that is ready to be sent.
type Proposed struct {
	Step
	// Message is the MLSMessage.
	Message []byte
	// Ref is what commits refer to it by.
	Ref wire.ProposalRef
}

// Propose makes a proposal message of this member (RFC 9420 Section 12.1). The
// group after it holds the proposal like one received, so that a commit by
// anybody can refer to it.
func (g *Group) Propose(p ProposeParams) (*Proposed, error) {
	if p.Proposal.ProposalType == wire.ProposalTypeUpdate {
		return nil, fmt.Errorf("%w: use ProposeUpdate for an update", ErrParams)
	}
	if p.Proposal.ProposalType == wire.ProposalTypeSelfRemove {
		for _, held := range g.public.Proposals() {
			if held.Proposal.ProposalType == wire.ProposalTypeSelfRemove && tree.LeafIndex(held.Sender.LeafIndex) == g.leaf {
				return nil, fmt.Errorf("%w: a SelfRemove of this client is held already", ErrParams)
			}
		}
	}
	return g.propose(p)
}

func (g *Group) propose(p ProposeParams) (*Proposed, error) {
	if err := g.canSend(); err != nil {
		return nil, err
	}
	if p.Private && p.Proposal.ProposalType == wire.ProposalTypeSelfRemove {
		return nil, fmt.Errorf("%w: a SelfRemove travels as PublicMessage", ErrParams)
	}
	ac, err := g.sign(wireFormat(p.Private), wire.FramedContent{
		GroupID:           g.GroupID(),
		Epoch:             g.Epoch(),
		Sender:            wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: uint32(g.leaf)},
		AuthenticatedData: p.AuthenticatedData,
		ContentType:       wire.ContentTypeProposal,
		Proposal:          &p.Proposal,
	})
	if err != nil {
		return nil, err
	}
	out := &Proposed{Ref: g.cs.ProposalRef(ac)}
	if p.Private {
		if out.Message, out.Step, _, err = g.sealPrivate(p.Random, ac, p.PadTo); err != nil {
			return nil, err
		}
	} else {
		next := *g
		out.Next = &next
		out.Message = g.publicMessage(ac)
	}
	if err := g.hold(&out.Step, ac, p.Now); err != nil {
		return nil, err
	}
	return out, nil
}

// publicMessage encodes a signed content as PublicMessage.
func (g *Group) publicMessage(ac *wire.AuthenticatedContent) []byte {
	return wire.Marshal(&wire.MLSMessage{
		WireFormat:    wire.WireFormatPublicMessage,
		PublicMessage: protectPublic(g.cs, g.keys.membership, ac, g.public.EncodedContext()),
	})
}

// ProposeUpdate proposes a new leaf for this member with a fresh encryption key
// (RFC 9420 Section 12.1.2). p.Proposal is ignored. The new private key waits in
// the group until somebody commits the proposal.
func (g *Group) ProposeUpdate(p ProposeParams, change LeafChange) (*Proposed, error) {
	if err := g.canSend(); err != nil {
		return nil, err
	}
	if err := change.check(g.cs); err != nil {
		return nil, err
	}
	key, err := newKeyPair(g.cs, p.Random)
	if err != nil {
		return nil, err
	}
	leaf, signer := change.apply(g.public.Leaf(g.leaf), g.signer)
	leaf.LeafNodeSource = wire.LeafNodeSourceUpdate
	leaf.Lifetime, leaf.ParentHash = wire.Lifetime{}, nil
	leaf.EncryptionKey = key.Public()
	if err := signLeaf(signer, &leaf, g.GroupID(), uint32(g.leaf)); err != nil {
		return nil, err
	}
	p.Proposal = wire.Proposal{ProposalType: wire.ProposalTypeUpdate, Update: &wire.Update{LeafNode: leaf}}
	out, err := g.propose(p)
	if err != nil {
		return nil, err
	}
	out.Next.updates = withEntry(g.updates, string(out.Ref), key)
	out.Delta.put(updateKey(out.Ref), key.Bytes())
	return out, nil
}

// withEntry gives a copy of a map with one more entry.
func withEntry[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	c := make(map[K]V, len(m)+1)
	for key, value := range m {
		c[key] = value
	}
	c[k] = v
	return c
}

// LeafChange says what a member changes in its leaf beside the encryption key,
// which is always new. Zero fields stay as they are.
type LeafChange struct {
	// Signer replaces the signature key. Add it to Config.Signers first.
	Signer       *suite.SignatureKey
	Credential   *wire.Credential
	Capabilities *wire.Capabilities
	Extensions   *wire.Extensions
}

func (c LeafChange) check(cs *suite.Suite) error {
	if c.Signer == nil {
		return nil
	}
	return checkSigner(cs, c.Signer)
}

// apply gives the changed leaf, unsigned, and who signs it.
func (c LeafChange) apply(leaf *wire.LeafNode, signer *suite.SignatureKey) (wire.LeafNode, *suite.SignatureKey) {
	next := *leaf.Clone()
	if c.Signer != nil {
		signer = c.Signer
		next.SignatureKey = signer.Public()
	}
	if c.Credential != nil {
		next.Credential = *c.Credential
	}
	if c.Capabilities != nil {
		next.Capabilities = *c.Capabilities
	}
	if c.Extensions != nil {
		next.Extensions = *c.Extensions
	}
	return next, signer
}
