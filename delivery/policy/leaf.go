package policy

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// Suites are the cipher suites that rooms may use: those with Ed25519
// signatures, which the attestation's key is made for.
var Suites = []wire.CipherSuite{
	suite.X25519AES128GCMSHA256Ed25519, suite.X25519ChaCha20Poly1305SHA256Ed25519, suite.MLKEM768X25519AES256GCMSHA384Ed25519,
}

// Capabilities are what the leaf of one of our devices says that it supports.
func Capabilities() wire.Capabilities {
	return wire.Capabilities{
		Versions:     []wire.ProtocolVersion{wire.ProtocolVersionMLS10},
		CipherSuites: slices.Clone(Suites),
		Extensions:   []wire.ExtensionType{wire.ExtensionTypeAppDataDictionary},
		Proposals:    []wire.ProposalType{wire.ProposalTypeAppDataUpdate, wire.ProposalTypeSelfRemove},
		Credentials:  []wire.CredentialType{wire.CredentialTypeBasic},
	}
}

// LeafExtensions are the extensions of the leaf of one of our devices: the
// dictionary that lists the components it understands (extensions draft §5).
func LeafExtensions() wire.Extensions {
	list := wire.ComponentsList{ComponentIDs: Components()}
	d := new(wire.AppDataDictionary).With(wire.ComponentAppComponents, wire.Marshal(&list))
	return wire.Extensions{wire.NewExtension(wire.ExtensionTypeAppDataDictionary, &d)}
}

// CheckCredential parses and verifies a leaf's credential: a basic credential
// that holds an attestation, of a role 0 device, whose device key is the leaf's
// signature key (ErrCredential, ErrRole). It does not know revocations.
func CheckCredential(c *wire.Credential, signatureKey []byte) (identity.Credential, error) {
	u, err := parseCredential(c, signatureKey)
	if err != nil {
		return identity.Credential{}, err
	}
	v, err := u.Verify()
	if err != nil {
		return identity.Credential{}, fmt.Errorf("%w: %w", ErrCredential, err)
	}
	return v, nil
}

func parseCredential(c *wire.Credential, signatureKey []byte) (identity.UnverifiedCredential, error) {
	if c.CredentialType != wire.CredentialTypeBasic {
		return identity.UnverifiedCredential{}, fmt.Errorf("%w: its type is %d, not basic", ErrCredential, c.CredentialType)
	}
	u, err := identity.ParseCredential(c.Identity)
	if err != nil {
		return identity.UnverifiedCredential{}, fmt.Errorf("%w: %w", ErrCredential, err)
	}
	if string(u.Attestation.DevicePubkey[:]) != string(signatureKey) {
		return identity.UnverifiedCredential{}, fmt.Errorf("%w: it attests another key", ErrCredential)
	}
	if u.Attestation.Role != identity.RoleMember {
		return identity.UnverifiedCredential{}, ErrRole
	}
	return u, nil
}

// What a leaf may hold besides its keys and its credential. Everybody in a room keeps
// every leaf of it, so that one member's four kilobytes are four for each.
const (
	MaxLeafExtensions   = 4 << 10 // bytes of all its extensions
	MaxLeafCapabilities = 256     // entries of all its lists of capabilities
)

// CheckLeaf checks what every leaf must have, on whichever path it comes in:
// credential (as [CheckCredential]), capabilities (ErrCapabilities) and size
// (ErrLeafSize).
func CheckLeaf(leaf *wire.LeafNode) (identity.Credential, error) {
	c, err := CheckCredential(&leaf.Credential, leaf.SignatureKey)
	if err != nil {
		return identity.Credential{}, err
	}
	return c, checkContent(leaf)
}

// checkContent checks what a leaf holds besides its keys and its credential.
func checkContent(leaf *wire.LeafNode) error {
	c, size := &leaf.Capabilities, 0
	for _, x := range leaf.Extensions {
		size += len(x.ExtensionData) + extensionHeader
	}
	if size > MaxLeafExtensions {
		return fmt.Errorf("%w: its extensions take %d bytes, and may take %d", ErrLeafSize, size, MaxLeafExtensions)
	}
	if n := len(c.Versions) + len(c.CipherSuites) + len(c.Extensions) + len(c.Proposals) + len(c.Credentials); n > MaxLeafCapabilities {
		return fmt.Errorf("%w: it names %d capabilities, and may name %d", ErrLeafSize, n, MaxLeafCapabilities)
	}
	if !slices.Contains(c.Extensions, wire.ExtensionTypeAppDataDictionary) ||
		!slices.Contains(c.Proposals, wire.ProposalTypeAppDataUpdate) ||
		!slices.Contains(c.Proposals, wire.ProposalTypeSelfRemove) ||
		!slices.Contains(c.Credentials, wire.CredentialTypeBasic) {
		return fmt.Errorf("%w: a leaf must support app_data_dictionary, AppDataUpdate, SelfRemove and basic credentials", ErrCapabilities)
	}
	return nil
}

// extensionHeader is what an extension takes besides its data: its type and a length.
const extensionHeader = 4

// CheckSuccessor decides whether a leaf may replace the one that stood at the
// same index: the same identity, device id and keys (RFC 9420 §5.3.1), in a
// credential that is the same or newer (ErrCredential, ErrRole).
func CheckSuccessor(was, is *wire.Credential, signatureKey []byte) (identity.Credential, error) {
	before, err := parseCredential(was, signatureKey)
	if err != nil {
		return identity.Credential{}, err
	}
	after, err := CheckCredential(is, signatureKey)
	if err != nil {
		return identity.Credential{}, err
	}
	old, err := before.Verify()
	if err != nil {
		return identity.Credential{}, fmt.Errorf("%w: %w", ErrCredential, err)
	}
	if err := old.CheckSuccessor(after); err != nil {
		return identity.Credential{}, fmt.Errorf("%w: %w", ErrCredential, err)
	}
	return after, nil
}

// Credentials checks credentials for mls/follower and mls
// (tree.CredentialValidator and tree.MembersValidator): every path by which a
// leaf can enter asks it. The zero value is ready.
type Credentials struct{}

// ValidateCredential is [CheckCredential], and [CheckSuccessor] where the leaf
// replaces another.
func (Credentials) ValidateCredential(leaf, previous *wire.LeafNode, _ time.Time) error {
	if previous == nil {
		_, err := CheckCredential(&leaf.Credential, leaf.SignatureKey)
		return err
	}
	// mutants: equivalent: a successor of the same bytes is found fit, only slower.
	if leaf.Credential.CredentialType == previous.Credential.CredentialType && bytes.Equal(leaf.Credential.Identity, previous.Credential.Identity) {
		_, err := parseCredential(&leaf.Credential, leaf.SignatureKey)
		return err // the very bytes that were verified when they came in
	}
	_, err := CheckSuccessor(&previous.Credential, &leaf.Credential, leaf.SignatureKey)
	return err
}

// ValidateMembers checks the credentials of a whole tree in one batch.
func (Credentials) ValidateMembers(leaves []*wire.LeafNode, _ time.Time) error {
	list := make([]identity.UnverifiedCredential, len(leaves))
	for i, leaf := range leaves {
		u, err := parseCredential(&leaf.Credential, leaf.SignatureKey)
		if err != nil {
			return err
		}
		list[i] = u
	}
	if _, err := identity.VerifyCredentials(list); err != nil {
		return fmt.Errorf("%w: %w", ErrCredential, err)
	}
	return nil
}

// ValidateExternalSender accepts what [HomeSender] makes.
func (Credentials) ValidateExternalSender(sender *wire.ExternalSender, _ time.Time) error {
	if sender.Credential.CredentialType != wire.CredentialTypeBasic || !bytes.HasPrefix(sender.Credential.Identity, []byte(homeSenderPrefix)) {
		return fmt.Errorf("%w: an external sender that is no home", ErrExtensions)
	}
	if len(sender.SignatureKey) != len(identity.PublicKey{}) || identity.PublicKey(sender.SignatureKey).Check() != nil {
		return fmt.Errorf("%w: an external sender's key can verify nothing", ErrExtensions)
	}
	return nil
}
