package tree

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// history runs one random history on a Tree and on the naive model.
type history struct {
	t       testing.TB
	rng     *rand.Rand
	tree    *Tree
	model   *naive
	signers map[LeafIndex]*suite.SignatureKey
	counter uint64
	groupID []byte

	first  *Tree  // before the first step
	deltas []byte // of all steps
}

type randReader struct{ *rand.Rand }

func (r randReader) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return len(b), nil
}

var _ io.Reader = randReader{}

// key is a fresh X25519 public key; nobody needs its private half.
func (h *history) key() wire.HPKEPublicKey {
	h.counter++
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("history"), h.counter))
	return sum[:]
}

func newSigner(t testing.TB, cs *suite.Suite, r *rand.Rand) *suite.SignatureKey {
	t.Helper()
	k, err := cs.GenerateSignatureKey(randReader{r})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (h *history) leaf(source wire.LeafNodeSource, signer *suite.SignatureKey) *wire.LeafNode {
	return &wire.LeafNode{
		EncryptionKey: h.key(),
		SignatureKey:  signer.Public(),
		Credential:    wire.BasicCredential(fmt.Appendf(nil, "member %d", h.counter)),
		Capabilities: wire.Capabilities{
			Versions:     []wire.ProtocolVersion{wire.ProtocolVersionMLS10},
			CipherSuites: []wire.CipherSuite{h.tree.Suite().ID()},
			Credentials:  []wire.CredentialType{wire.CredentialTypeBasic, 0x1a1a},
			Extensions:   []wire.ExtensionType{0x2a2a},
		},
		LeafNodeSource: source,
	}
}

func (h *history) sign(leaf *wire.LeafNode, l LeafIndex, signer *suite.SignatureKey) {
	sig, err := signer.SignWithLabel("LeafNodeTBS", leafTBS(leaf, h.groupID, l))
	if err != nil {
		h.t.Fatal(err)
	}
	leaf.Signature = sig
}

func newHistory(t testing.TB, seed uint64) *history {
	cs := lookup(t, suite.X25519AES128GCMSHA256Ed25519)
	h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 9420)), signers: map[LeafIndex]*suite.SignatureKey{}, groupID: []byte("history")}
	h.tree = &Tree{cs: cs}
	signer := newSigner(t, cs, h.rng)
	leaf := h.leaf(wire.LeafNodeSourceKeyPackage, signer)
	h.sign(leaf, 0, signer)
	h.tree = New(cs, leaf)
	h.signers[0] = signer
	h.model = &naive{cs: cs, nodes: []*wire.Node{{NodeType: wire.NodeTypeLeaf, LeafNode: leaf}}}
	return h
}

// members lists the filled leaves.
func (h *history) members() (list []LeafIndex) {
	for l := range h.tree.Leaves() {
		list = append(list, l)
	}
	return list
}

// step applies a random commit: adds, removes and updates, then mostly a path by
// a random member who stays.
func (h *history) step(adds, removes, updates int, path bool) {
	members := h.members()
	h.rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	committer, rest := members[0], members[1:]
	removes = min(removes, len(rest))
	updates = min(updates, len(rest)-removes)
	e := h.tree.Edit()
	for _, l := range rest[removes : removes+updates] {
		leaf := h.leaf(wire.LeafNodeSourceUpdate, h.signers[l])
		h.sign(leaf, l, h.signers[l])
		h.must(e.Update(l, leaf))
		h.model.update(int(l), leaf)
	}
	for _, l := range rest[:removes] {
		h.must(e.Remove(l))
		h.model.remove(int(l))
		delete(h.signers, l)
	}
	e.Truncate()
	for range adds {
		signer := newSigner(h.t, h.tree.Suite(), h.rng)
		leaf := h.leaf(wire.LeafNodeSourceKeyPackage, signer)
		h.sign(leaf, 0, signer)
		l, err := e.Add(leaf)
		h.must(err)
		if want := h.model.add(leaf); int(l) != want {
			h.t.Fatalf("Add filled leaf %d, the model %d", l, want)
		}
		h.signers[l] = signer
	}
	if path {
		nodes, err := e.FilteredDirectPath(committer)
		h.must(err)
		keys := make([]wire.HPKEPublicKey, len(nodes))
		for i := range keys {
			keys[i] = h.key()
		}
		leaf := h.leaf(wire.LeafNodeSourceCommit, h.signers[committer])
		leaf.ParentHash, err = e.SetPath(committer, keys)
		h.must(err)
		if want := h.model.setPath(int(committer), keys); !bytes.Equal(leaf.ParentHash, want) {
			h.t.Fatalf("committer %d: parent hash %x, the model %x", committer, leaf.ParentHash, want)
		}
		h.sign(leaf, committer, h.signers[committer])
		h.must(e.SetLeaf(committer, leaf))
		h.model.nodes[2*committer] = &wire.Node{NodeType: wire.NodeTypeLeaf, LeafNode: leaf}
	}
	before := h.tree
	encoded := before.Marshal()
	h.tree = e.Freeze()
	if !bytes.Equal(before.Marshal(), encoded) {
		h.t.Fatal("editing changed the tree before")
	}
	h.compare()
	h.compareDelta(before)
}

func (h *history) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) compare() {
	h.t.Helper()
	m := h.model
	if int(h.tree.Width()) != m.width() {
		h.t.Fatalf("width %d, the model %d", h.tree.Width(), m.width())
	}
	if !bytes.Equal(h.tree.Hash(), m.treeHash(m.root())) {
		h.t.Fatal("the tree hash is not the model's")
	}
	if !bytes.Equal(h.tree.Marshal(), m.marshal()) {
		h.t.Fatal("the encoding is not the model's")
	}
	for x := range m.nodes {
		var want []NodeIndex
		for _, n := range m.resolution(x) {
			want = append(want, NodeIndex(n))
		}
		if got := h.tree.Resolution(NodeIndex(x), nil); !slices.Equal(got, want) {
			h.t.Fatalf("resolution of %d: %v, the model %v", x, got, want)
		}
	}
	for l := range m.width() {
		got, err := h.tree.FilteredDirectPath(LeafIndex(l))
		h.must(err)
		want := m.filteredDirectPath(l)
		if !slices.EqualFunc(got, want, func(a NodeIndex, b int) bool { return int(a) == b }) {
			h.t.Fatalf("filtered direct path of %d: %v, the model %v", l, got, want)
		}
	}
	if !m.parentHashValid() {
		h.t.Fatal("the model's parent hashes are not valid")
	}
	u, err := ParseBytes(h.tree.Suite(), m.marshal())
	h.must(err)
	if _, err := u.Verify(VerifyOptions{GroupID: h.groupID, TreeHash: h.tree.Hash()}); err != nil {
		h.t.Fatalf("the tree does not verify: %v", err)
	}
}

func (h *history) compareDelta(before *Tree) {
	h.t.Helper()
	r := wire.NewReader(h.tree.AppendDelta(nil, before))
	after, err := before.ApplyDelta(r)
	h.must(err)
	h.must(r.Finish())
	if !bytes.Equal(after.Hash(), h.tree.Hash()) || !bytes.Equal(after.Marshal(), h.tree.Marshal()) {
		h.t.Fatal("the stored change leads to another tree")
	}
	// All changes so far at once lead there too.
	if h.first == nil {
		h.first = before
	}
	h.deltas = h.tree.AppendDelta(h.deltas, before)
	first := h.first.Marshal()
	e, r := h.first.Edit(), wire.NewReader(h.deltas)
	for r.More() {
		h.must(e.ApplyDelta(r))
	}
	if after := e.Freeze(); !bytes.Equal(after.Hash(), h.tree.Hash()) || !bytes.Equal(after.Marshal(), h.tree.Marshal()) {
		h.t.Fatal("the stored changes lead to another tree")
	}
	if !bytes.Equal(h.first.Marshal(), first) {
		h.t.Fatal("replaying changed the tree before")
	}
}

// TestHistories compares random histories with the naive model: committers
// rotate, and the tree grows and shrinks across every power of two up to 64.
func TestHistories(t *testing.T) {
	seeds, steps := uint64(6), 60
	if testing.Short() {
		seeds, steps = 2, 40
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			h := newHistory(t, seed)
			for i := range steps {
				grow := i < steps/2
				adds, removes := h.rng.IntN(4), h.rng.IntN(2)
				if !grow {
					adds, removes = h.rng.IntN(2), h.rng.IntN(4)
				}
				h.step(adds, removes, h.rng.IntN(3), h.rng.IntN(5) > 0)
			}
		})
	}
}

// TestRotatingCommittersAcrossPowersOfTwo lets each newcomer add the next, from 1
// to 70 members, and then removes them one by one from the right.
func TestRotatingCommittersAcrossPowersOfTwo(t *testing.T) {
	h := newHistory(t, 1000)
	for range 69 {
		h.step(1, 0, 0, true)
	}
	if h.tree.Members() != 70 || h.tree.Width() != 128 {
		t.Fatalf("%d members in %d leaves", h.tree.Members(), h.tree.Width())
	}
	for h.tree.Members() > 1 {
		h.step(0, 1, 0, true)
	}
	if h.tree.Width() > 128 {
		t.Fatalf("one member in %d leaves", h.tree.Width())
	}
}
