package mls

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

func TestVectorsMessageProtection(t *testing.T) {
	type vector struct {
		CipherSuite             wire.CipherSuite `json:"cipher_suite"`
		GroupID                 testdata.Hex     `json:"group_id"`
		Epoch                   uint64
		TreeHash                testdata.Hex `json:"tree_hash"`
		ConfirmedTranscriptHash testdata.Hex `json:"confirmed_transcript_hash"`
		SignaturePriv           testdata.Hex `json:"signature_priv"`
		SignaturePub            testdata.Hex `json:"signature_pub"`
		EncryptionSecret        testdata.Hex `json:"encryption_secret"`
		SenderDataSecret        testdata.Hex `json:"sender_data_secret"`
		MembershipKey           testdata.Hex `json:"membership_key"`
		Proposal                testdata.Hex
		ProposalPriv            testdata.Hex `json:"proposal_priv"`
		ProposalPub             testdata.Hex `json:"proposal_pub"`
		Commit                  testdata.Hex
		CommitPriv              testdata.Hex `json:"commit_priv"`
		CommitPub               testdata.Hex `json:"commit_pub"`
		Application             testdata.Hex
		ApplicationPriv         testdata.Hex `json:"application_priv"`
	}
	eachVector(t, "message-protection.json", func(v vector) wire.CipherSuite { return v.CipherSuite }, func(t *testing.T, cs *suite.Suite, v vector) {
		context := wire.Marshal(&wire.GroupContext{
			CipherSuite: v.CipherSuite, GroupID: v.GroupID, Epoch: v.Epoch,
			TreeHash: v.TreeHash, ConfirmedTranscriptHash: v.ConfirmedTranscriptHash,
		})
		signer, err := vectorSigner(cs, v.SignaturePriv)
		if err != nil {
			t.Fatal(err)
		}
		wantBytes(t, "signature_pub", signer.Public(), v.SignaturePub)
		verify := func(ac *wire.AuthenticatedContent) {
			t.Helper()
			if !cs.VerifyWithLabel(v.SignaturePub, "FramedContentTBS", ac.TBS(context), ac.Auth.Signature) {
				t.Error("the signature does not verify")
			}
		}
		payload := func(ac *wire.AuthenticatedContent) []byte {
			switch ac.Content.ContentType {
			case wire.ContentTypeApplication:
				return ac.Content.ApplicationData
			case wire.ContentTypeProposal:
				return wire.Marshal(ac.Content.Proposal)
			}
			return wire.Marshal(ac.Content.Commit)
		}
		open := func(message []byte) (*wire.AuthenticatedContent, error) {
			var m wire.MLSMessage
			if err := wire.Unmarshal(message, &m); err != nil {
				return nil, err
			}
			if m.WireFormat == wire.WireFormatPublicMessage {
				return unprotectPublic(cs, Secret(v.MembershipKey), m.PublicMessage, context)
			}
			sender, err := openSenderData(cs, Secret(v.SenderDataSecret), m.PrivateMessage)
			if err != nil {
				return nil, err
			}
			which := handshakeRatchet
			if m.PrivateMessage.ContentType == wire.ContentTypeApplication {
				which = applicationRatchet
			}
			_, r, _, err := newSecretTree(Secret(bytes.Clone(v.EncryptionSecret)), 2).ratchetAt(cs, sender.LeafIndex, which)
			if err != nil {
				return nil, err
			}
			key, _, _, err := r.forReceiving(cs, sender.Generation, Limits{})
			if err != nil {
				return nil, err
			}
			return openPrivate(cs, m.PrivateMessage, sender, key)
		}
		contents := map[string]struct {
			raw                []byte
			received           []testdata.Hex
			contentType        wire.ContentType
			allowedAsPlaintext bool
		}{
			"proposal":    {v.Proposal, []testdata.Hex{v.ProposalPriv, v.ProposalPub}, wire.ContentTypeProposal, true},
			"commit":      {v.Commit, []testdata.Hex{v.CommitPriv, v.CommitPub}, wire.ContentTypeCommit, true},
			"application": {v.Application, []testdata.Hex{v.ApplicationPriv}, wire.ContentTypeApplication, false},
		}
		for name, c := range contents {
			for _, message := range c.received {
				ac, err := open(message)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				verify(ac)
				wantBytes(t, name, payload(ac), c.raw)
				bad := bytes.Clone(message)
				bad[len(bad)-1] ^= 1
				if _, err := open(bad); err == nil {
					t.Errorf("%s: opens with a flipped bit", name)
				}
			}
			content := wire.FramedContent{
				GroupID: v.GroupID, Epoch: v.Epoch, ContentType: c.contentType, AuthenticatedData: []byte("aad"),
				Sender: wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: 1},
			}
			switch c.contentType {
			case wire.ContentTypeApplication:
				content.ApplicationData = c.raw
			case wire.ContentTypeProposal:
				content.Proposal = new(wire.Proposal)
				err = wire.Unmarshal(c.raw, content.Proposal)
			case wire.ContentTypeCommit:
				content.Commit = new(wire.Commit)
				err = wire.Unmarshal(c.raw, content.Commit)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, format := range []wire.WireFormat{wire.WireFormatPublicMessage, wire.WireFormatPrivateMessage} {
				ac := &wire.AuthenticatedContent{WireFormat: format, Content: content}
				if ac.Auth.Signature, err = signer.SignWithLabel("FramedContentTBS", ac.TBS(context)); err != nil {
					t.Fatal(err)
				}
				if c.contentType == wire.ContentTypeCommit {
					ac.Auth.ConfirmationTag = cs.MAC(v.EncryptionSecret, nil)
				}
				m := &wire.MLSMessage{WireFormat: format}
				if format == wire.WireFormatPublicMessage {
					m.PublicMessage = protectPublic(cs, Secret(v.MembershipKey), ac, context)
				} else {
					_, r, _, err := newSecretTree(Secret(bytes.Clone(v.EncryptionSecret)), 2).ratchetAt(cs, 1, map[bool]ratchetType{true: applicationRatchet, false: handshakeRatchet}[c.contentType == wire.ContentTypeApplication])
					if err != nil {
						t.Fatal(err)
					}
					key, _, _, err := r.forSending(cs)
					if err != nil {
						t.Fatal(err)
					}
					if m.PrivateMessage, err = protectPrivate(cs, rand.Reader, ac, Secret(v.SenderDataSecret), key, 33); err != nil {
						t.Fatal(err)
					}
				}
				got, err := open(wire.Marshal(m))
				if format == wire.WireFormatPublicMessage && !c.allowedAsPlaintext {
					if !errors.Is(err, ErrWireFormat) {
						t.Errorf("application data as PublicMessage: %v", err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: own message: %v", name, err)
				}
				verify(got)
				wantBytes(t, name, payload(got), c.raw)
			}
		}
	})
}
