package mls

import (
	"fmt"
	"io"
	"time"

	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// KeyPackageParams says what a new KeyPackage offers.
type KeyPackageParams struct {
	// CipherSuite is the suite of the groups it can be added to.
	CipherSuite wire.CipherSuite
	// Random gives the key pairs and the GREASE values.
	Random io.Reader
	// Signer is the client's signature key, of the suite's scheme.
	Signer *suite.SignatureKey
	// Credential names the client.
	Credential wire.Credential
	// Capabilities of the leaf. The zero value means [DefaultCapabilities] with
	// GREASE values.
	Capabilities wire.Capabilities
	// NotBefore and NotAfter bound its lifetime (RFC 9420 Section 7.2), to the
	// second. Allow for clocks that differ.
	NotBefore, NotAfter time.Time
	// LeafExtensions go into the leaf, Extensions into the KeyPackage.
	LeafExtensions, Extensions wire.Extensions
	// LastResort marks a KeyPackage that may be used more than once
	// (draft-ietf-mls-extensions Section 6.4). Its private keys must then be kept
	// after a join; see [KeyPackageBundle.LastResort].
	LastResort bool
}

// KeyPackageBundle is a KeyPackage with its private keys. Publish the package,
// keep the bundle until a Welcome used it.
type KeyPackageBundle struct {
	KeyPackage        wire.KeyPackage
	InitPrivate       Secret // of KeyPackage.InitKey
	EncryptionPrivate Secret // of KeyPackage.LeafNode.EncryptionKey
}

// DefaultCapabilities says what this package supports beyond the defaults of
// RFC 9420, for basic credentials: the dictionary with AppDataUpdate and
// AppEphemeral, and SelfRemove.
func DefaultCapabilities(suites ...wire.CipherSuite) wire.Capabilities {
	return wire.Capabilities{
		Versions:     []wire.ProtocolVersion{wire.ProtocolVersionMLS10},
		CipherSuites: suites,
		Extensions:   []wire.ExtensionType{wire.ExtensionTypeAppDataDictionary},
		Proposals: []wire.ProposalType{
			wire.ProposalTypeAppDataUpdate, wire.ProposalTypeAppEphemeral, wire.ProposalTypeSelfRemove,
		},
		Credentials: []wire.CredentialType{wire.CredentialTypeBasic},
	}
}

// grease gives one of the 15 GREASE values (RFC 9420 Section 13.5).
func grease(pick byte) uint16 { return uint16(pick%15)*0x1010 + 0x0a0a }

// greased adds one GREASE value to each list of the capabilities that may hold
// unknown values (RFC 9420 Section 13.5).
func greased(random io.Reader, c wire.Capabilities) (wire.Capabilities, error) {
	var pick [4]byte
	if _, err := io.ReadFull(random, pick[:]); err != nil {
		return c, fmt.Errorf("mls: reading randomness: %w", err)
	}
	c.CipherSuites = append(c.CipherSuites[:len(c.CipherSuites):len(c.CipherSuites)], wire.CipherSuite(grease(pick[0])))
	c.Extensions = append(c.Extensions[:len(c.Extensions):len(c.Extensions)], wire.ExtensionType(grease(pick[1])))
	c.Proposals = append(c.Proposals[:len(c.Proposals):len(c.Proposals)], wire.ProposalType(grease(pick[2])))
	c.Credentials = append(c.Credentials[:len(c.Credentials):len(c.Credentials)], wire.CredentialType(grease(pick[3])))
	return c, nil
}

// capabilitiesOr gives the capabilities, or the default ones with GREASE.
func capabilitiesOr(random io.Reader, c wire.Capabilities, suite wire.CipherSuite, credential wire.CredentialType) (wire.Capabilities, error) {
	if c.Versions != nil || c.CipherSuites != nil || c.Extensions != nil || c.Proposals != nil || c.Credentials != nil {
		return c, nil
	}
	c = DefaultCapabilities(suite)
	if credential != wire.CredentialTypeBasic {
		c.Credentials = append(c.Credentials, credential)
	}
	return greased(random, c)
}

// lastResortExtension marks a KeyPackage in its dictionary, keeping what the
// dictionary holds.
func lastResortExtension(extensions wire.Extensions) (wire.Extensions, error) {
	var d wire.AppDataDictionary
	if _, err := extensions.Decode(wire.ExtensionTypeAppDataDictionary, &d); err != nil {
		return nil, fmt.Errorf("%w: dictionary of the key package: %w", ErrParams, err)
	}
	d = d.With(wire.ComponentLastResortKeyPackage, nil)
	return extensions.With(wire.NewExtension(wire.ExtensionTypeAppDataDictionary, &d)), nil
}

// NewKeyPackage makes a KeyPackage with fresh keys (RFC 9420 Section 10).
func NewKeyPackage(p KeyPackageParams) (*KeyPackageBundle, error) {
	cs, err := suite.Lookup(p.CipherSuite)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParams, err)
	}
	if p.LastResort {
		if p.Extensions, err = lastResortExtension(p.Extensions); err != nil {
			return nil, err
		}
	}
	leaf, encryption, err := newLeaf(cs, &p)
	if err != nil {
		return nil, err
	}
	init, err := newKeyPair(cs, p.Random)
	if err != nil {
		return nil, err
	}
	b := &KeyPackageBundle{
		KeyPackage: wire.KeyPackage{
			Version:     wire.ProtocolVersionMLS10,
			CipherSuite: p.CipherSuite,
			InitKey:     init.Public(),
			LeafNode:    *leaf,
			Extensions:  p.Extensions,
		},
		InitPrivate:       init.Bytes(),
		EncryptionPrivate: encryption.Bytes(),
	}
	kp := &b.KeyPackage
	kp.Signature, err = p.Signer.SignWithLabel("KeyPackageTBS", wire.Marshal((*wire.KeyPackageTBS)(kp)))
	if err != nil {
		return nil, fmt.Errorf("mls: signing a key package: %w", err)
	}
	return b, nil
}

// newLeaf makes the signed leaf of a KeyPackage or of a group's creator, whose
// leaf is of the same source (RFC 9420 Section 11), with a fresh encryption key.
func newLeaf(cs *suite.Suite, p *KeyPackageParams) (*wire.LeafNode, *hpke.PrivateKey, error) {
	if err := checkSigner(cs, p.Signer); err != nil {
		return nil, nil, err
	}
	if p.NotAfter.Before(p.NotBefore) || p.NotBefore.Unix() < 0 {
		return nil, nil, fmt.Errorf("%w: the lifetime ends before it begins", ErrParams)
	}
	capabilities, err := capabilitiesOr(p.Random, p.Capabilities, cs.ID(), p.Credential.CredentialType)
	if err != nil {
		return nil, nil, err
	}
	encryption, err := newKeyPair(cs, p.Random)
	if err != nil {
		return nil, nil, err
	}
	leaf := &wire.LeafNode{
		EncryptionKey:  encryption.Public(),
		Credential:     p.Credential,
		Capabilities:   capabilities,
		LeafNodeSource: wire.LeafNodeSourceKeyPackage,
		Lifetime:       wire.Lifetime{NotBefore: uint64(p.NotBefore.Unix()), NotAfter: uint64(p.NotAfter.Unix())},
		Extensions:     p.LeafExtensions,
	}
	if err := signLeaf(p.Signer, leaf, nil, 0); err != nil {
		return nil, nil, err
	}
	return leaf, encryption, nil
}

// checkSigner refuses a signer that is missing or whose key is none of the suite's
// signature scheme.
func checkSigner(cs *suite.Suite, signer *suite.SignatureKey) error {
	if signer == nil {
		return fmt.Errorf("%w: no signer", ErrParams)
	}
	if err := cs.ValidateSignaturePublicKey(signer.Public()); err != nil {
		return fmt.Errorf("%w: the signer: %w", ErrParams, err)
	}
	return nil
}

// signLeaf signs a leaf. The group id and index count for leaves that are not
// of a KeyPackage (RFC 9420 Section 7.2).
func signLeaf(signer *suite.SignatureKey, leaf *wire.LeafNode, groupID []byte, index uint32) error {
	leaf.SignatureKey = signer.Public()
	tbs := wire.LeafNodeTBS{LeafNode: leaf, GroupID: groupID, LeafIndex: index}
	signature, err := signer.SignWithLabel("LeafNodeTBS", wire.Marshal(&tbs))
	if err != nil {
		return fmt.Errorf("mls: signing a leaf: %w", err)
	}
	leaf.Signature = signature
	return nil
}

// Ref is the reference by which a Welcome names the package (RFC 9420 Section
// 5.2), KDF.Nh bytes.
func (b *KeyPackageBundle) Ref() (wire.KeyPackageRef, error) {
	return KeyPackageRef(&b.KeyPackage)
}

// KeyPackageRef computes the reference of a KeyPackage (RFC 9420 Section 5.2).
func KeyPackageRef(kp *wire.KeyPackage) (wire.KeyPackageRef, error) {
	cs, err := suite.Lookup(kp.CipherSuite)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParams, err)
	}
	return cs.KeyPackageRef(kp), nil
}

// LastResort says that the package may be used again: keep its private keys
// after a join.
func (b *KeyPackageBundle) LastResort() bool { return wire.IsLastResort(b.KeyPackage.Extensions) }

// Message is the package as an MLSMessage, the form in which it is published.
func (b *KeyPackageBundle) Message() []byte {
	return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatKeyPackage, KeyPackage: &b.KeyPackage})
}

// Wipe wipes both private keys.
func (b *KeyPackageBundle) Wipe() {
	b.InitPrivate.Wipe()
	b.EncryptionPrivate.Wipe()
}

// keyBundle is the record key under which a bundle's checksum is made.
const keyBundle = "bundle"

// MarshalBinary writes the bundle with its private keys, versioned and with a
// checksum.
func (b *KeyPackageBundle) MarshalBinary() ([]byte, error) {
	body := b.KeyPackage.AppendTo(nil)
	body = wire.AppendOpaque(body, b.InitPrivate)
	body = wire.AppendOpaque(body, b.EncryptionPrivate)
	return sealRecord(keyBundle, body), nil
}

// UnmarshalBinary reads what MarshalBinary wrote. Errors wrap ErrState.
func (b *KeyPackageBundle) UnmarshalBinary(data []byte) error {
	body, err := newChecksums().openRecord(Record{Key: keyBundle, Value: data})
	if err != nil {
		return err
	}
	if err := wire.Unmarshal(body, (*storedBundle)(b)); err != nil {
		return fmt.Errorf("%w: key package bundle: %w", ErrState, err)
	}
	return nil
}

type storedBundle KeyPackageBundle

func (b *storedBundle) DecodeFrom(r *wire.Reader) {
	b.KeyPackage.DecodeFrom(r)
	b.InitPrivate = r.Opaque()
	b.EncryptionPrivate = r.Opaque()
}
