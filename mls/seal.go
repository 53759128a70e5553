package mls

import (
	"fmt"
	"io"

	"github.com/askucher/compax-core/mls/wire"
)

// SealParams is an application message to be encrypted.
type SealParams struct {
	// Random gives the reuse guard, 4 bytes.
	Random io.Reader
	// Content is what only members read.
	Content []byte
	// AuthenticatedData travels in the clear and is bound to the message.
	AuthenticatedData []byte
	// PadTo is a multiple to which the plaintext is padded with zeros, in bytes;
	// 0 or 1 means no padding. It hides the content's length.
	PadTo int
	// IgnoreProposals lets the message go although proposals wait (RFC 9420
	// Section 12.4 wants them committed first). For proposals that policy
	// refuses.
	IgnoreProposals bool
}

// Sealed is an encrypted application message, ready to be sent once the Step's
// Delta is stored.
type Sealed struct {
	Step
	// Message is the MLSMessage.
	Message []byte
	// Generation is the position in the sender's ratchet that was used.
	Generation uint32
}

// maxContent bounds content and padding, in bytes, so that what is made of them is
// a vector that can be encoded (RFC 9420 Section 2.1.2).
const maxContent = wire.MaxVectorLength / 4

// Seal encrypts an application message as PrivateMessage (RFC 9420 Section 6.3),
// signed and under a key that is used once. Errors: ErrPendingProposals,
// ErrRemoved, ErrReInit, ErrForgotten, ErrGenerationLimit, ErrParams for content
// of more than 256 MiB.
func (g *Group) Seal(p SealParams) (*Sealed, error) {
	if err := g.canSend(); err != nil {
		return nil, err
	}
	if !p.IgnoreProposals && g.public.HasProposals() {
		return nil, ErrPendingProposals
	}
	if n := len(p.Content) + len(p.AuthenticatedData); n > maxContent {
		return nil, fmt.Errorf("%w: a message of %d bytes, %d are possible", ErrParams, n, maxContent)
	}
	if err := g.public.CheckAuthenticatedData(p.AuthenticatedData); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParams, err)
	}
	content := wire.FramedContent{
		GroupID:           g.GroupID(),
		Epoch:             g.Epoch(),
		Sender:            wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: uint32(g.leaf)},
		AuthenticatedData: p.AuthenticatedData,
		ContentType:       wire.ContentTypeApplication,
		ApplicationData:   p.Content,
	}
	ac, err := g.sign(wire.WireFormatPrivateMessage, content)
	if err != nil {
		return nil, err
	}
	message, step, generation, err := g.sealPrivate(p.Random, ac, p.PadTo)
	if err != nil {
		return nil, err
	}
	return &Sealed{Step: step, Message: message, Generation: generation}, nil
}

// canSend says whether the group still takes messages.
func (g *Group) canSend() error {
	switch g.status {
	case statusRemoved:
		return ErrRemoved
	case statusReInit:
		return ErrReInit
	}
	if g.keys.init.wiped() {
		return ErrForgotten
	}
	return nil
}

// sign makes the AuthenticatedContent of a content of this member. A commit's
// confirmation tag is still missing.
func (g *Group) sign(format wire.WireFormat, content wire.FramedContent) (*wire.AuthenticatedContent, error) {
	ac := &wire.AuthenticatedContent{WireFormat: format, Content: content}
	signature, err := g.signer.SignWithLabel("FramedContentTBS", ac.TBS(g.public.EncodedContext()))
	if err != nil {
		return nil, fmt.Errorf("mls: signing a message: %w", err)
	}
	ac.Auth.Signature = signature
	return ac, nil
}

// sealPrivate encrypts a signed content under the next key of its ratchet.
func (g *Group) sealPrivate(random io.Reader, ac *wire.AuthenticatedContent, padTo int) ([]byte, Step, uint32, error) {
	which := applicationRatchet
	if ac.Content.ContentType != wire.ContentTypeApplication {
		which = handshakeRatchet
	}
	messages, r, change, err := g.messages.ratchetAt(g.cs, uint32(g.leaf), which)
	if err != nil {
		return nil, Step{}, 0, err
	}
	key, after, forget, err := r.forSending(g.cs)
	if err != nil {
		return nil, Step{}, 0, err
	}
	padding := 0
	if padTo > 1 {
		size := wire.PrivateMessageContent{
			ContentType: ac.Content.ContentType, ApplicationData: ac.Content.ApplicationData,
			Proposal: ac.Content.Proposal, Commit: ac.Content.Commit, Auth: ac.Auth,
		}
		if over := len(wire.Marshal(&size)) % padTo; over != 0 {
			padding = padTo - over
		}
	}
	if padding > maxContent {
		return nil, Step{}, 0, fmt.Errorf("%w: %d bytes of padding, %d are possible", ErrParams, padding, maxContent)
	}
	private, err := protectPrivate(g.cs, random, ac, g.keys.senderData, key, padding)
	if err != nil {
		return nil, Step{}, 0, err
	}
	next := *g
	next.messages = messages.with(uint32(g.leaf), which, after)
	step := Step{Next: &next, forget: append(change.forget, forget...)}
	storeRatchet(&step.Delta, g.Epoch(), next.messages, change)
	message := wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatPrivateMessage, PrivateMessage: private})
	return message, step, key.generation, nil
}
