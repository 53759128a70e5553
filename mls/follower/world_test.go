package follower

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// world plays all members of one group by their signature keys alone: public
// state needs no more, so path secrets and confirmation tags are just bytes of
// the right size. It can therefore also forge whatever a member could.
type world struct {
	t       testing.TB
	cs      *suite.Suite
	g       *Group
	signers map[tree.LeafIndex]*suite.SignatureKey
	outside *suite.SignatureKey // the external sender
	options Options
	counter uint64
	now     time.Time
}

const (
	testComponent = wire.ComponentID(0x8001)
	testExtension = wire.ExtensionType(0xf001)
)

// refusing is a credential validator that refuses the names in it and successors
// of another name.
type refusing map[string]bool

func (r refusing) ValidateCredential(leaf, previous *wire.LeafNode, _ time.Time) error {
	if r[string(leaf.Credential.Identity)] {
		return fmt.Errorf("%s is not welcome", leaf.Credential.Identity)
	}
	if previous != nil && !bytes.Equal(leaf.Credential.Identity, previous.Credential.Identity) {
		return fmt.Errorf("%s is not %s", leaf.Credential.Identity, previous.Credential.Identity)
	}
	return nil
}

func (r refusing) ValidateExternalSender(s *wire.ExternalSender, _ time.Time) error {
	if r[string(s.Credential.Identity)] {
		return fmt.Errorf("%s is not welcome", s.Credential.Identity)
	}
	return nil
}

func newWorld(t testing.TB) *world { return newWorldOf(t, suite.X25519AES128GCMSHA256Ed25519) }

func newWorldOf(t testing.TB, id wire.CipherSuite) *world {
	t.Helper()
	cs, err := suite.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, cs: cs, signers: map[tree.LeafIndex]*suite.SignatureKey{}, now: time.Unix(1_800_000_000, 0)}
	w.outside = w.signer()
	w.options = Options{
		Now: w.now, MaxLifetime: 100 * 24 * time.Hour, Credentials: refusing{"mallory": true},
		AppData: func(c wire.ComponentID, old []byte, updates [][]byte) ([]byte, error) {
			if c != testComponent {
				return nil, fmt.Errorf("component %#x is not known", c)
			}
			return slices.Concat(append([][]byte{old}, updates...)...), nil
		},
	}
	signer := w.signer()
	leaf := w.leaf("creator", wire.LeafNodeSourceKeyPackage, signer)
	w.signLeaf(leaf, 0, signer)
	w.g, err = Create(cs, []byte("group"), w.extensions(), leaf, w.tag(), w.options)
	w.must(err)
	w.signers[0] = signer
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// extensions are those of a room: everything required, one external sender.
func (w *world) extensions() wire.Extensions {
	senders := wire.ExternalSenders{{SignatureKey: w.outside.Public(), Credential: wire.BasicCredential([]byte("home"))}}
	d := wire.AppDataDictionary{ComponentData: []wire.ComponentData{{ComponentID: testComponent, Data: []byte("a")}}}
	return wire.Extensions{
		wire.NewExtension(wire.ExtensionTypeRequiredCapabilities, &wire.RequiredCapabilities{
			ExtensionTypes:  []wire.ExtensionType{wire.ExtensionTypeAppDataDictionary},
			ProposalTypes:   []wire.ProposalType{wire.ProposalTypeAppDataUpdate, wire.ProposalTypeSelfRemove},
			CredentialTypes: []wire.CredentialType{wire.CredentialTypeBasic},
		}),
		wire.NewExtension(wire.ExtensionTypeExternalSenders, &senders),
		wire.NewExtension(wire.ExtensionTypeAppDataDictionary, &d),
	}
}

// bytes are n fresh pseudo-random bytes.
func (w *world) bytes(n int) []byte {
	var out []byte
	for len(out) < n {
		w.counter++
		sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("world"), w.counter))
		out = append(out, sum[:]...)
	}
	return out[:n]
}

func (w *world) tag() wire.MAC            { return w.bytes(w.cs.HashSize()) }
func (w *world) hpke() wire.HPKEPublicKey { return w.bytes(32) }

func (w *world) signer() *suite.SignatureKey {
	k, err := w.cs.GenerateSignatureKey(bytes.NewReader(w.bytes(256)))
	w.must(err)
	return k
}

func (w *world) leaf(name string, source wire.LeafNodeSource, signer *suite.SignatureKey) *wire.LeafNode {
	l := &wire.LeafNode{
		EncryptionKey: w.hpke(),
		SignatureKey:  signer.Public(),
		Credential:    wire.BasicCredential([]byte(name)),
		Capabilities: wire.Capabilities{
			Versions:     []wire.ProtocolVersion{wire.ProtocolVersionMLS10, 0x0a0a},
			CipherSuites: []wire.CipherSuite{w.cs.ID(), 0x1a1a},
			Extensions:   []wire.ExtensionType{wire.ExtensionTypeAppDataDictionary, testExtension, 0x2a2a},
			Proposals:    []wire.ProposalType{wire.ProposalTypeAppDataUpdate, wire.ProposalTypeAppEphemeral, wire.ProposalTypeSelfRemove, 0x3a3a},
			Credentials:  []wire.CredentialType{wire.CredentialTypeBasic, 0x4a4a},
		},
		LeafNodeSource: source,
		Extensions:     wire.Extensions{{ExtensionType: 0x2a2a, ExtensionData: []byte("grease")}},
	}
	if source == wire.LeafNodeSourceKeyPackage {
		at := uint64(w.now.Unix())
		l.Lifetime = wire.Lifetime{NotBefore: at - 3600, NotAfter: at + 86400*90}
	}
	return l
}

func (w *world) signLeaf(leaf *wire.LeafNode, l tree.LeafIndex, signer *suite.SignatureKey) {
	tbs := wire.LeafNodeTBS{LeafNode: leaf, GroupID: []byte("group"), LeafIndex: uint32(l)}
	sig, err := signer.SignWithLabel("LeafNodeTBS", wire.Marshal(&tbs))
	w.must(err)
	leaf.Signature = sig
}

// client is somebody who can be added.
type client struct {
	signer *suite.SignatureKey
	kp     *wire.KeyPackage
}

func (w *world) client(name string) *client {
	c := &client{signer: w.signer()}
	c.kp = &wire.KeyPackage{
		Version: wire.ProtocolVersionMLS10, CipherSuite: w.cs.ID(), InitKey: w.hpke(),
		LeafNode: *w.leaf(name, wire.LeafNodeSourceKeyPackage, c.signer),
	}
	w.seal(c)
	return c
}

// seal signs the client's leaf and key package again.
func (w *world) seal(c *client) {
	w.signLeaf(&c.kp.LeafNode, 0, c.signer)
	sig, err := c.signer.SignWithLabel("KeyPackageTBS", wire.Marshal((*wire.KeyPackageTBS)(c.kp)))
	w.must(err)
	c.kp.Signature = sig
}

func (c *client) add() *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeAdd, Add: &wire.Add{KeyPackage: *c.kp}}
}

func remove(l tree.LeafIndex) *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeRemove, Remove: &wire.Remove{Removed: uint32(l)}}
}

func selfRemove() *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeSelfRemove, SelfRemove: &wire.SelfRemove{}}
}

func gce(x wire.Extensions) *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeGroupContextExtensions, GroupContextExtensions: &wire.GroupContextExtensions{Extensions: x}}
}

func appUpdate(c wire.ComponentID, data string) *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeAppDataUpdate, AppDataUpdate: &wire.AppDataUpdate{
		ComponentID: c, Op: wire.AppDataUpdateOperationUpdate, Update: []byte(data)}}
}

func appRemove(c wire.ComponentID) *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeAppDataUpdate, AppDataUpdate: &wire.AppDataUpdate{
		ComponentID: c, Op: wire.AppDataUpdateOperationRemove}}
}

func (w *world) psk() *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypePSK, PreSharedKey: &wire.PreSharedKey{PSK: wire.PreSharedKeyID{
		PSKType: wire.PSKTypeExternal, PSKID: w.bytes(8), PSKNonce: w.bytes(w.cs.HashSize())}}}
}

func (w *world) externalInit() *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeExternalInit, ExternalInit: &wire.ExternalInit{KEMOutput: w.bytes(w.cs.KEMOutputSize())}}
}

func (w *world) reinit() *wire.Proposal {
	return &wire.Proposal{ProposalType: wire.ProposalTypeReInit, ReInit: &wire.ReInit{
		GroupID: w.bytes(16), Version: wire.ProtocolVersionMLS10, CipherSuite: w.cs.ID()}}
}

// update is an Update of l's leaf, signed.
func (w *world) update(l tree.LeafIndex) *wire.Proposal {
	leaf := w.leaf(string(w.g.Leaf(l).Credential.Identity), wire.LeafNodeSourceUpdate, w.signers[l])
	w.signLeaf(leaf, l, w.signers[l])
	return &wire.Proposal{ProposalType: wire.ProposalTypeUpdate, Update: &wire.Update{LeafNode: *leaf}}
}

func member(l tree.LeafIndex) wire.Sender {
	return wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: uint32(l)}
}

// sign makes a message of a sender with a key.
func (w *world) sign(key *suite.SignatureKey, c wire.FramedContent) *wire.AuthenticatedContent {
	ac := &wire.AuthenticatedContent{WireFormat: wire.WireFormatPublicMessage, Content: c}
	w.resign(key, ac)
	if c.ContentType == wire.ContentTypeCommit {
		ac.Auth.ConfirmationTag = w.tag()
	}
	return ac
}

func (w *world) resign(key *suite.SignatureKey, ac *wire.AuthenticatedContent) {
	sig, err := key.SignWithLabel("FramedContentTBS", ac.TBS(w.g.EncodedContext()))
	w.must(err)
	ac.Auth.Signature = sig
}

func (w *world) frame(s wire.Sender) wire.FramedContent {
	return wire.FramedContent{GroupID: []byte("group"), Epoch: w.g.Epoch(), Sender: s}
}

// propose makes a proposal message of a member.
func (w *world) propose(l tree.LeafIndex, p *wire.Proposal) *wire.AuthenticatedContent {
	return w.proposeAs(member(l), w.signers[l], p)
}

func (w *world) proposeAs(s wire.Sender, key *suite.SignatureKey, p *wire.Proposal) *wire.AuthenticatedContent {
	c := w.frame(s)
	c.ContentType, c.Proposal = wire.ContentTypeProposal, p
	return w.sign(key, c)
}

// hold lets the group hold a proposal and returns the reference.
func (w *world) hold(ac *wire.AuthenticatedContent) wire.ProposalOrRef {
	w.t.Helper()
	g, err := w.g.HoldProposal(ac, w.options)
	w.must(err)
	w.g = g
	return wire.ProposalOrRef{Type: wire.ProposalOrRefTypeReference, Reference: w.cs.ProposalRef(ac)}
}

func values(list ...*wire.Proposal) []wire.ProposalOrRef {
	var out []wire.ProposalOrRef
	for _, p := range list {
		out = append(out, wire.ProposalOrRef{Type: wire.ProposalOrRefTypeProposal, Proposal: p})
	}
	return out
}

// bad is how a test spoils a commit: each function, when set, changes what was
// made before it is signed or sent.
type bad struct {
	leaf   func(*wire.LeafNode)      // before the leaf is signed
	path   func(*wire.UpdatePath)    // before the commit is signed
	commit func(*wire.Commit)        // before the commit is signed
	frame  func(*wire.FramedContent) // before the commit is signed
	signer *suite.SignatureKey       // signs leaf and message in place of the committer's
	noPath bool
}

// commit makes a commit of a member, with a path unless b says otherwise. The
// list need not be valid: then the path is made for the tree as it is.
func (w *world) commit(s wire.Sender, list []wire.ProposalOrRef, b bad) *wire.AuthenticatedContent {
	w.t.Helper()
	d, err := w.g.Draft(s, list, w.options)
	if err != nil {
		// A forger does not care: it makes some path.
		d = &Draft{group: w.g, Tree: w.g.Tree(), Committer: tree.LeafIndex(s.LeafIndex), External: s.SenderType != wire.SenderTypeMember}
		if d.External {
			d.Committer, _ = w.g.Tree().Edit().Vacancy()
		}
	}
	l := d.Committer
	name, key := "joiner", b.signer
	if !d.External {
		if leaf := w.g.Leaf(l); leaf != nil {
			name = string(leaf.Credential.Identity)
		}
		if key == nil {
			key = w.signers[l]
		}
	} else if d.Former != nil {
		name = string(d.Former.Credential.Identity)
	}
	if key == nil {
		key = w.signer()
	}
	commit := &wire.Commit{Proposals: list}
	if !b.noPath {
		commit.Path = w.path(d, name, key, b)
	}
	if b.commit != nil {
		b.commit(commit)
	}
	c := w.frame(s)
	c.ContentType, c.Commit = wire.ContentTypeCommit, commit
	if b.frame != nil {
		b.frame(&c)
	}
	messageKey := key
	if !d.External && b.signer != nil {
		messageKey = w.signers[l]
	}
	ac := w.sign(messageKey, c)
	return ac
}

// path makes a path on the draft's tree.
func (w *world) path(d *Draft, name string, key *suite.SignatureKey, b bad) *wire.UpdatePath {
	w.t.Helper()
	nodes, err := d.Tree.FilteredDirectPath(d.Committer)
	if err != nil {
		w.t.Fatalf("path of %d in a tree of %d: %v", d.Committer, d.Tree.Width(), err)
	}
	path := &wire.UpdatePath{Nodes: make([]wire.UpdatePathNode, len(nodes))}
	keys := make([]wire.HPKEPublicKey, len(nodes))
	for i, n := range nodes {
		keys[i] = w.hpke()
		path.Nodes[i].EncryptionKey = keys[i]
		copath := n.Left()
		if copath.Contains(d.Committer) {
			copath = n.Right()
		}
		for range d.Tree.Resolution(copath, func(l tree.LeafIndex) bool { return slices.Contains(d.Added, l) }) {
			path.Nodes[i].EncryptedPathSecret = append(path.Nodes[i].EncryptedPathSecret, wire.HPKECiphertext{
				KEMOutput: w.bytes(w.cs.KEMOutputSize()), Ciphertext: w.bytes(w.cs.HashSize() + w.cs.AEAD().Overhead())})
		}
	}
	leaf := w.leaf(name, wire.LeafNodeSourceCommit, key)
	edit := d.Tree.Edit()
	leaf.ParentHash, err = edit.SetPath(d.Committer, keys)
	w.must(err)
	if b.leaf != nil {
		b.leaf(leaf)
	}
	w.signLeaf(leaf, d.Committer, key)
	path.LeafNode = *leaf
	if b.path != nil {
		b.path(path)
	}
	return path
}

// apply stages a commit, applies it and checks that the stored change gives the
// same state.
func (w *world) apply(ac *wire.AuthenticatedContent) *Staged {
	w.t.Helper()
	s, err := w.g.StageCommit(ac, w.options)
	w.must(err)
	next := s.Apply()
	loaded, err := Load(w.g.Marshal(), s.Delta())
	w.must(err)
	if !bytes.Equal(loaded.Marshal(), next.Marshal()) || !bytes.Equal(loaded.EncodedContext(), next.EncodedContext()) {
		w.t.Fatal("the stored change leads to another state")
	}
	w.g = next
	return s
}

// enter adds clients by one commit of a member, with a path.
func (w *world) enter(committer tree.LeafIndex, clients ...*client) *Staged {
	w.t.Helper()
	var list []*wire.Proposal
	for _, c := range clients {
		list = append(list, c.add())
	}
	s := w.apply(w.commit(member(committer), values(list...), bad{}))
	for i, l := range s.Added {
		w.signers[l] = clients[i].signer
	}
	return s
}

// grown is a world of n members, m0 (the creator) to m<n-1>, of whom each third
// has committed after all had joined.
func grown(t testing.TB, n int) *world {
	w := newWorld(t)
	var clients []*client
	for i := 1; i < n; i++ {
		clients = append(clients, w.client(fmt.Sprintf("m%d", i)))
	}
	if len(clients) > 0 {
		w.enter(0, clients...)
	}
	for l := tree.LeafIndex(0); int(l) < n; l += 3 {
		w.apply(w.commit(member(l), nil, bad{}))
	}
	return w
}

// groupInfo is a GroupInfo of a group's epoch, signed by a member.
func (w *world) groupInfo(g *Group, l tree.LeafIndex) *wire.GroupInfo {
	info := &wire.GroupInfo{GroupContext: *g.Context(), ConfirmationTag: g.ConfirmationTag(), Signer: uint32(l)}
	w.signInfo(info, w.signers[l])
	return info
}

func (w *world) signInfo(info *wire.GroupInfo, key *suite.SignatureKey) {
	sig, err := key.SignWithLabel("GroupInfoTBS", wire.Marshal((*wire.GroupInfoTBS)(info)))
	w.must(err)
	info.Signature = sig
}
