package mls

import (
	"fmt"
	"io"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// membershipTag computes the membership_tag of a member's PublicMessage (RFC
// 9420 Section 6.2). groupContext is encoded.
func membershipTag(cs *suite.Suite, key Secret, ac *wire.AuthenticatedContent, groupContext []byte) wire.MAC {
	return cs.MAC(key, ac.TBM(groupContext))
}

// protectPublic makes the PublicMessage of a content (RFC 9420 Section 6.2).
func protectPublic(cs *suite.Suite, membershipKey Secret, ac *wire.AuthenticatedContent, groupContext []byte) *wire.PublicMessage {
	m := &wire.PublicMessage{Content: ac.Content, Auth: ac.Auth}
	if ac.Content.Sender.SenderType == wire.SenderTypeMember {
		m.MembershipTag = membershipTag(cs, membershipKey, ac, groupContext)
	}
	return m
}

// unprotectPublic checks the membership tag of a PublicMessage and gives its
// content, whose signature is still to be verified.
func unprotectPublic(cs *suite.Suite, membershipKey Secret, m *wire.PublicMessage, groupContext []byte) (*wire.AuthenticatedContent, error) {
	if m.Content.ContentType == wire.ContentTypeApplication {
		return nil, fmt.Errorf("%w: application data as PublicMessage", ErrWireFormat)
	}
	ac := follower.Authenticated(m)
	if m.Content.Sender.SenderType == wire.SenderTypeMember {
		if !cs.VerifyMAC(membershipKey, ac.TBM(groupContext), m.MembershipTag) {
			return nil, ErrMembershipTag
		}
	}
	return ac, nil
}

// senderDataKeys derives the key and nonce of the encrypted sender data from a
// sample of the ciphertext (RFC 9420 Section 6.3.2).
func senderDataKeys(cs *suite.Suite, senderDataSecret Secret, ciphertext []byte) (key, nonce Secret) {
	sample := ciphertext[:min(len(ciphertext), cs.HashSize())]
	return cs.ExpandWithLabel(senderDataSecret, "key", sample, cs.KeySize()),
		cs.ExpandWithLabel(senderDataSecret, "nonce", sample, cs.NonceSize())
}

// guarded gives the nonce with the reuse guard applied to its first four bytes
// (RFC 9420 Section 6.3.1).
func guarded(nonce Secret, guard [4]byte) []byte {
	n := append([]byte(nil), nonce...)
	for i := range guard {
		n[i] ^= guard[i]
	}
	return n
}

// protectPrivate makes the PrivateMessage of a member's content with one message
// key, and padding zero bytes after it (RFC 9420 Section 6.3).
func protectPrivate(cs *suite.Suite, random io.Reader, ac *wire.AuthenticatedContent, senderDataSecret Secret, key messageKey, padding int) (*wire.PrivateMessage, error) {
	c := &ac.Content
	sender := wire.SenderData{LeafIndex: c.Sender.LeafIndex, Generation: key.generation}
	if _, err := io.ReadFull(random, sender.ReuseGuard[:]); err != nil {
		return nil, fmt.Errorf("mls: reading the reuse guard: %w", err)
	}
	m := &wire.PrivateMessage{
		GroupID:           c.GroupID,
		Epoch:             c.Epoch,
		ContentType:       c.ContentType,
		AuthenticatedData: c.AuthenticatedData,
	}
	plaintext := wire.PrivateMessageContent{
		ContentType:     c.ContentType,
		ApplicationData: c.ApplicationData,
		Proposal:        c.Proposal,
		Commit:          c.Commit,
		Auth:            ac.Auth,
		Padding:         padding,
	}
	buffer := make([]byte, 0, len(c.ApplicationData)+len(ac.Auth.Signature)+padding+64)
	encoded := Secret(plaintext.AppendTo(buffer))
	defer encoded.Wipe()
	var err error
	m.Ciphertext, err = cs.Seal(key.key, guarded(key.nonce, sender.ReuseGuard), contentAAD(m), encoded)
	if err != nil {
		return nil, fmt.Errorf("mls: encrypting a message: %w", err)
	}
	sdKey, sdNonce := senderDataKeys(cs, senderDataSecret, m.Ciphertext)
	defer wipeAll([]Secret{sdKey, sdNonce})
	m.EncryptedSenderData, err = cs.Seal(sdKey, sdNonce, senderDataAAD(m), wire.Marshal(&sender))
	if err != nil {
		return nil, fmt.Errorf("mls: encrypting sender data: %w", err)
	}
	return m, nil
}

func contentAAD(m *wire.PrivateMessage) []byte {
	return wire.Marshal(&wire.PrivateContentAAD{
		GroupID: m.GroupID, Epoch: m.Epoch, ContentType: m.ContentType, AuthenticatedData: m.AuthenticatedData,
	})
}

func senderDataAAD(m *wire.PrivateMessage) []byte {
	return wire.Marshal(&wire.SenderDataAAD{GroupID: m.GroupID, Epoch: m.Epoch, ContentType: m.ContentType})
}

// openSenderData decrypts who sent a PrivateMessage (RFC 9420 Section 6.3.2).
// That the leaf is a member is checked by the caller, who has the tree.
func openSenderData(cs *suite.Suite, senderDataSecret Secret, m *wire.PrivateMessage) (wire.SenderData, error) {
	var sender wire.SenderData
	key, nonce := senderDataKeys(cs, senderDataSecret, m.Ciphertext)
	defer wipeAll([]Secret{key, nonce})
	plaintext, err := cs.Open(key, nonce, senderDataAAD(m), m.EncryptedSenderData)
	if err != nil {
		return sender, fmt.Errorf("%w: sender data", ErrDecrypt)
	}
	if err := wire.Unmarshal(plaintext, &sender); err != nil {
		return sender, fmt.Errorf("%w: sender data: %w", ErrMalformed, err)
	}
	return sender, nil
}

// openPrivate decrypts the content of a PrivateMessage with the key of its
// generation. The signature is still to be verified.
func openPrivate(cs *suite.Suite, m *wire.PrivateMessage, sender wire.SenderData, key messageKey) (*wire.AuthenticatedContent, error) {
	plaintext, err := cs.Open(key.key, guarded(key.nonce, sender.ReuseGuard), contentAAD(m), m.Ciphertext)
	if err != nil {
		return nil, fmt.Errorf("%w: content", ErrDecrypt)
	}
	content := wire.PrivateMessageContent{ContentType: m.ContentType}
	if err := wire.Unmarshal(plaintext, &content); err != nil {
		return nil, fmt.Errorf("%w: content: %w", ErrMalformed, err)
	}
	return &wire.AuthenticatedContent{
		WireFormat: wire.WireFormatPrivateMessage,
		Content: wire.FramedContent{
			GroupID:           m.GroupID,
			Epoch:             m.Epoch,
			Sender:            wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: sender.LeafIndex},
			AuthenticatedData: m.AuthenticatedData,
			ContentType:       m.ContentType,
			ApplicationData:   content.ApplicationData,
			Proposal:          content.Proposal,
			Commit:            content.Commit,
		},
		Auth: content.Auth,
	}, nil
}
