package follower

import (
	"bytes"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// Group is the public state of one epoch of a group. It is immutable and safe
// for concurrent use. What its methods return belongs to it: do not change it.
type Group struct {
	cs      *suite.Suite
	context wire.GroupContext
	encoded []byte // context
	terms   terms  // what the context's extensions say
	tree    *tree.Tree
	tag     wire.MAC // confirmation_tag that started the epoch
	interim []byte   // interim_transcript_hash
	closed  bool     // by a ReInit
	held    []Proposal
}

// newGroup puts an epoch together. terms are those of context's extensions.
func newGroup(cs *suite.Suite, context wire.GroupContext, encoded []byte, t terms, tr *tree.Tree, tag wire.MAC) *Group {
	return &Group{
		cs: cs, context: context, encoded: encoded, terms: t, tree: tr, tag: tag,
		interim: interimTranscriptHash(cs, context.ConfirmedTranscriptHash, tag),
	}
}

// Create gives the public state of a new group of one, in epoch 0 (§11). leaf is
// the creator's, of source key_package and signed; tag is the confirmation tag that the
// creator computed over the empty transcript.
func Create(cs *suite.Suite, groupID []byte, extensions wire.Extensions, leaf *wire.LeafNode, tag wire.MAC, o Options) (*Group, error) {
	t, err := readTerms(extensions)
	if err != nil {
		return nil, err
	}
	lo := o.leaf(wire.LeafNodeSourceKeyPackage, groupID, 0, nil)
	lo.SignatureVerified = true // the creator has just made it
	if err := tree.ValidateLeaf(cs, leaf, lo); err != nil {
		return nil, invalid(ErrTree, "the creator's leaf: %w", err)
	}
	tr := tree.New(cs, leaf)
	if err := tr.CheckSupport(extensions, t.required); err != nil {
		return nil, invalid(ErrTree, "%w", err)
	}
	if err := new(Group).checkSenders(t.senders, &o); err != nil {
		return nil, err
	}
	context := wire.GroupContext{
		CipherSuite: cs.ID(), GroupID: bytes.Clone(groupID), TreeHash: tr.Hash(), Extensions: extensions.Clone(),
	}
	return newGroup(cs, context, wire.Marshal(&context), t, tr, tag), nil
}

// Join verifies a GroupInfo and the tree that belongs to it, and gives the
// public state of their epoch (§12.4.3.1): for a server that begins to follow a
// group, and for whoever enters one. The confirmation tag is checked for its
// length only; who has the epoch's secrets checks the rest.
func Join(cs *suite.Suite, info *wire.GroupInfo, t *tree.Unverified, o Options) (*Group, error) {
	c := &info.GroupContext
	if c.CipherSuite != cs.ID() {
		return nil, invalid(ErrGroupInfo, "it is of cipher suite %#04x, not %#04x", uint16(c.CipherSuite), uint16(cs.ID()))
	}
	leaf := t.Leaf(tree.LeafIndex(info.Signer))
	if leaf == nil {
		return nil, invalid(ErrGroupInfo, "its signer, leaf %d, is not a member", info.Signer)
	}
	if err := checkGroupInfoForm(cs, info); err != nil {
		return nil, err
	}
	terms, err := readTerms(c.Extensions)
	if err != nil {
		return nil, err
	}
	batch := cs.NewSignatureBatch()
	batch.Add(leaf.SignatureKey, groupInfoLabel, wire.Marshal((*wire.GroupInfoTBS)(info)), info.Signature)
	verified, err := t.Verify(tree.VerifyOptions{
		GroupID: c.GroupID, TreeHash: c.TreeHash, Extensions: c.Extensions, RequiredCapabilities: terms.required,
		Credentials: o.Credentials, Now: o.Now, Beside: batch, Parallel: o.Parallel,
	})
	if err != nil {
		// Of a GroupInfo that its signer did not make nothing else is worth telling.
		if err := checkGroupInfoSignature(cs, info, leaf); err != nil {
			return nil, err
		}
		return nil, invalid(ErrTree, "%w", err)
	}
	if err := new(Group).checkSenders(terms.senders, &o); err != nil {
		return nil, err
	}
	return newGroup(cs, *c, wire.Marshal(c), terms, verified, info.ConfirmationTag), nil
}

// Suite returns the group's cipher suite.
func (g *Group) Suite() *suite.Suite { return g.cs }

// GroupID returns the group's id.
func (g *Group) GroupID() []byte { return g.context.GroupID }

// Epoch returns the epoch, from 0.
func (g *Group) Epoch() uint64 { return g.context.Epoch }

// Context returns the GroupContext.
func (g *Group) Context() *wire.GroupContext { return &g.context }

// EncodedContext returns the encoding of the GroupContext.
func (g *Group) EncodedContext() []byte { return g.encoded }

// Tree returns the ratchet tree.
func (g *Group) Tree() *tree.Tree { return g.tree }

// Leaf returns the leaf of the member at l, nil when there is none.
func (g *Group) Leaf(l tree.LeafIndex) *wire.LeafNode { return g.tree.Leaf(l) }

// ConfirmationTag returns the confirmation tag that started the epoch.
func (g *Group) ConfirmationTag() wire.MAC { return g.tag }

// InterimTranscriptHash returns the hash that the next commit continues (§8.2).
func (g *Group) InterimTranscriptHash() []byte { return g.interim }

// Closed reports whether a ReInit closed the group: nothing more is accepted in
// it (§12.4.2).
func (g *Group) Closed() bool { return g.closed }

// RequiredCapabilities returns what the GroupContext requires of members, nil
// for nothing.
func (g *Group) RequiredCapabilities() *wire.RequiredCapabilities { return g.terms.required }

// ExternalSenders returns who may propose from outside (§12.1.8.1).
func (g *Group) ExternalSenders() wire.ExternalSenders { return g.terms.senders }

// Dictionary returns the app_data_dictionary of the GroupContext, nil when there
// is none.
func (g *Group) Dictionary() *wire.AppDataDictionary { return g.terms.dictionary }

// CheckGroupInfo checks that a GroupInfo is one of this epoch (§12.4.3): signed
// by a member, with the same GroupContext byte for byte and the confirmation tag
// that started the epoch. Further extensions are free.
func (g *Group) CheckGroupInfo(info *wire.GroupInfo) error {
	leaf := g.tree.Leaf(tree.LeafIndex(info.Signer))
	if leaf == nil {
		return invalid(ErrGroupInfo, "its signer, leaf %d, is not a member", info.Signer)
	}
	if !bytes.Equal(wire.Marshal(&info.GroupContext), g.encoded) {
		return invalid(ErrGroupInfo, "its group context is another one")
	}
	if !suite.Equal(info.ConfirmationTag, g.tag) {
		return invalid(ErrGroupInfo, "its confirmation tag is another one")
	}
	if err := checkGroupInfoForm(g.cs, info); err != nil {
		return err
	}
	return checkGroupInfoSignature(g.cs, info, leaf)
}

// checkGroupInfoForm checks what a GroupInfo says by itself, but not its signature.
func checkGroupInfoForm(cs *suite.Suite, info *wire.GroupInfo) error {
	if t, twice := info.Extensions.Duplicate(); twice {
		return invalid(ErrGroupInfo, "extension type %#04x occurs twice", uint16(t))
	}
	var pub wire.ExternalPub
	found, err := info.Extensions.Decode(wire.ExtensionTypeExternalPub, &pub)
	if err != nil {
		return invalid(ErrGroupInfo, "external_pub: %w", err)
	}
	if found {
		if err := cs.ValidateHPKEPublicKey(pub.ExternalPub); err != nil {
			return invalid(ErrGroupInfo, "external_pub: %w", err)
		}
	}
	if len(info.ConfirmationTag) != cs.HashSize() {
		return invalid(ErrGroupInfo, "its confirmation tag has %d bytes, not %d", len(info.ConfirmationTag), cs.HashSize())
	}
	return nil
}

// groupInfoLabel is the label of a GroupInfo's signature (§12.4.3).
const groupInfoLabel = "GroupInfoTBS"

func checkGroupInfoSignature(cs *suite.Suite, info *wire.GroupInfo, signer *wire.LeafNode) error {
	if !cs.VerifyWithLabel(signer.SignatureKey, groupInfoLabel, wire.Marshal((*wire.GroupInfoTBS)(info)), info.Signature) {
		return invalid(ErrSignature, "of the group info by leaf %d", info.Signer)
	}
	return nil
}
