package tree

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// CredentialValidator is the application's Authentication Service (Section
// 5.3.1): it decides whether a credential may stand beside a signature key.
// Methods are called one after the other within one call of this package, and
// must be safe for concurrent use between calls. Their errors are wrapped
// together with [ErrCredential]; they must not carry secrets.
type CredentialValidator interface {
	// ValidateCredential is called for every leaf that enters a group: key
	// package, update, path, external commit. previous is the leaf that it
	// replaces, and then the new credential must be a fit successor; nil when
	// the member is new. now is zero when time plays no role.
	ValidateCredential(leaf, previous *wire.LeafNode, now time.Time) error
	// ValidateExternalSender is called for every entry of an external_senders
	// extension that enters a group.
	ValidateExternalSender(sender *wire.ExternalSender, now time.Time) error
}

// MembersValidator is what a [CredentialValidator] may implement as well to
// judge all members of a tree at once, for example with batched signatures.
type MembersValidator interface {
	ValidateMembers(leaves []*wire.LeafNode, now time.Time) error
}

// LeafOptions says where a leaf stands and what is asked of it. Zero values ask
// for the most: only Now decides by being zero, and then no lifetime is checked.
type LeafOptions struct {
	// Source is the source the leaf must have; 0 accepts any.
	Source wire.LeafNodeSource
	// GroupID and Index are covered by the signature of leaves of the sources
	// update and commit.
	GroupID []byte
	Index   LeafIndex
	// Now is when the leaf of a key package must be valid. Zero skips that.
	Now time.Time
	// MaxLifetime bounds not_after - not_before; zero sets no bound. It counts
	// only together with Now.
	MaxLifetime time.Duration
	// Credentials judges the credential; nil leaves that to the caller.
	Credentials CredentialValidator
	// Previous is the leaf that this one replaces, or nil.
	Previous *wire.LeafNode
	// SignatureVerified says that the caller has verified the signature.
	SignatureVerified bool
}

// ValidateLeaf checks everything about one leaf that can be seen without its
// tree (Section 7.3): the form of its keys, its source, lifetime and
// extensions, that it supports the version, the suite and all that it uses
// itself, the signature, and the credential. What remains is
// [Tree.CheckSupport] and [Tree.CheckUnique].
func ValidateLeaf(cs *suite.Suite, leaf *wire.LeafNode, o LeafOptions) error {
	if err := checkLeaf(cs, leaf, &o); err != nil {
		return err
	}
	if !o.SignatureVerified {
		if err := checkLeafSignature(cs, leaf, o.GroupID, o.Index); err != nil {
			return err
		}
	}
	return checkCredential(leaf, &o)
}

// checkLeafSignature verifies a leaf's signature. What verifies a signature is a
// key of the suite; why one does not is looked at only then.
func checkLeafSignature(cs *suite.Suite, leaf *wire.LeafNode, groupID []byte, l LeafIndex) error {
	if cs.VerifyWithLabel(leaf.SignatureKey, "LeafNodeTBS", leafTBS(leaf, groupID, l), leaf.Signature) {
		return nil
	}
	if err := cs.ValidateSignaturePublicKey(leaf.SignatureKey); err != nil {
		return fmt.Errorf("%w: signature_key: %w", ErrPublicKey, err)
	}
	return fmt.Errorf("%w: of a leaf node", ErrSignature)
}

// AddLeafSignature puts the signature of a leaf at l into a batch. When the batch
// verifies, [LeafOptions.SignatureVerified] may be set for that leaf and place.
func AddLeafSignature(b *suite.SignatureBatch, leaf *wire.LeafNode, groupID []byte, l LeafIndex) {
	b.Add(leaf.SignatureKey, "LeafNodeTBS", leafTBS(leaf, groupID, l), leaf.Signature)
}

// checkLeaf is ValidateLeaf without the signature and the credential.
func checkLeaf(cs *suite.Suite, leaf *wire.LeafNode, o *LeafOptions) error {
	if o.Source != 0 && leaf.LeafNodeSource != o.Source {
		return fmt.Errorf("%w: it is %d, not %d", ErrLeafSource, leaf.LeafNodeSource, o.Source)
	}
	if err := cs.ValidateHPKEPublicKey(leaf.EncryptionKey); err != nil {
		return fmt.Errorf("%w: encryption_key: %w", ErrPublicKey, err)
	}
	if p := o.Previous; p != nil && bytes.Equal(p.EncryptionKey, leaf.EncryptionKey) {
		return fmt.Errorf("%w: the encryption_key of the leaf it replaces", ErrDuplicateKey)
	}
	c := &leaf.Capabilities
	if !slices.Contains(c.Versions, wire.ProtocolVersionMLS10) {
		return fmt.Errorf("%w: mls10 is not listed", ErrCapabilities)
	}
	if !slices.Contains(c.CipherSuites, cs.ID()) {
		return fmt.Errorf("%w: the cipher suite %s is not listed", ErrCapabilities, cs)
	}
	if !slices.Contains(c.Credentials, leaf.Credential.CredentialType) {
		return fmt.Errorf("%w: its own credential type %d is not listed", ErrCapabilities, leaf.Credential.CredentialType)
	}
	if err := CheckExtensions(leaf.Extensions, c); err != nil {
		return err
	}
	if leaf.LeafNodeSource == wire.LeafNodeSourceKeyPackage && !o.Now.IsZero() {
		return checkLifetime(leaf.Lifetime, o.Now, o.MaxLifetime)
	}
	return nil
}

// CheckExtensions checks the extensions of a leaf or key package: none twice,
// every one that is not a default listed in the capabilities, and a dictionary
// well-formed (Sections 10, 13.4; extensions draft 4.6). Unknown ones are
// otherwise ignored.
func CheckExtensions(x wire.Extensions, c *wire.Capabilities) error {
	if t, twice := x.Duplicate(); twice {
		return fmt.Errorf("%w: type %#04x occurs twice", ErrExtensions, uint16(t))
	}
	lists := func(t wire.ExtensionType) bool { return slices.Contains(c.Extensions, t) }
	if len(x) > 8 { // or sixty thousand types are each looked for in a list of millions
		listed := sorted(c.Extensions)
		lists = func(t wire.ExtensionType) bool { return contains(listed, t) }
	}
	for i := range x {
		if t := x[i].ExtensionType; !IsDefaultExtension(t) && !lists(t) {
			return fmt.Errorf("%w: its own extension type %#04x is not listed", ErrCapabilities, uint16(t))
		}
	}
	var d wire.AppDataDictionary
	if _, err := x.Decode(wire.ExtensionTypeAppDataDictionary, &d); err != nil {
		return fmt.Errorf("%w: app_data_dictionary: %w", ErrExtensions, err)
	}
	return nil
}

func checkLifetime(l wire.Lifetime, now time.Time, longest time.Duration) error {
	at := now.Unix()
	switch {
	case at < 0:
		return fmt.Errorf("%w: it is before 1970", ErrLifetime)
	case uint64(at) < l.NotBefore:
		return fmt.Errorf("%w: it begins at %d and it is %d", ErrLifetime, l.NotBefore, at)
	case uint64(at) > l.NotAfter:
		return fmt.Errorf("%w: it ended at %d and it is %d", ErrLifetime, l.NotAfter, at)
	case longest > 0 && l.NotAfter-l.NotBefore > uint64(longest/time.Second):
		return fmt.Errorf("%w: %d seconds are more than %d", ErrLifetime, l.NotAfter-l.NotBefore, uint64(longest/time.Second))
	}
	return nil
}

func checkCredential(leaf *wire.LeafNode, o *LeafOptions) error {
	if o.Credentials == nil {
		return nil
	}
	if err := o.Credentials.ValidateCredential(leaf, o.Previous, o.Now); err != nil {
		return fmt.Errorf("%w: %w", ErrCredential, err)
	}
	return nil
}

// leafTBS encodes what the signature of a leaf covers (Section 7.2).
func leafTBS(leaf *wire.LeafNode, groupID []byte, l LeafIndex) []byte {
	tbs := wire.LeafNodeTBS{LeafNode: leaf, GroupID: groupID, LeafIndex: uint32(l)}
	return tbs.AppendTo(make([]byte, 0, 512))
}

// CheckSupport checks that all members support what the group and each other
// use: the types of the GroupContext's extensions (Section 13.4), its
// required_capabilities (Section 11.1; nil for none), and every credential type
// in the tree (Section 7.3). It costs the same for any number of members.
func (t *Tree) CheckSupport(groupContext wire.Extensions, required *wire.RequiredCapabilities) error {
	s := t.root.sum
	if s == nil {
		return nil
	}
	extension := func(x wire.ExtensionType) error {
		if t.SupportsExtension(x) {
			return nil
		}
		return t.blame(func(c *wire.Capabilities) bool { return slices.Contains(c.Extensions, x) },
			fmt.Errorf("%w: extension type %#04x is not supported", ErrCapabilities, uint16(x)))
	}
	credential := func(k wire.CredentialType) error {
		if t.SupportsCredential(k) {
			return nil
		}
		return t.blame(func(c *wire.Capabilities) bool { return slices.Contains(c.Credentials, k) },
			fmt.Errorf("%w: credential type %d is not supported", ErrCapabilities, k))
	}
	for i := range groupContext {
		if err := extension(groupContext[i].ExtensionType); err != nil {
			return err
		}
	}
	for _, k := range s.inUse {
		if err := credential(k); err != nil {
			return err
		}
	}
	if required == nil {
		return nil
	}
	for _, x := range required.ExtensionTypes {
		if err := extension(x); err != nil {
			return err
		}
	}
	for _, k := range required.CredentialTypes {
		if err := credential(k); err != nil {
			return err
		}
	}
	for _, p := range required.ProposalTypes {
		if !t.SupportsProposal(p) {
			return t.blame(func(c *wire.Capabilities) bool { return slices.Contains(c.Proposals, p) },
				fmt.Errorf("%w: %s is not supported", ErrCapabilities, p))
		}
	}
	return nil
}

// blame names the first leaf whose capabilities lack what err says.
func (t *Tree) blame(has func(*wire.Capabilities) bool, err error) error {
	for l, leaf := range t.Leaves() {
		if !has(&leaf.Capabilities) {
			return atLeaf(l, err)
		}
	}
	return err
}
