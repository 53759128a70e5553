package tree

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls/wire"
)

// sample is a history of twelve members who have committed, and three more who
// joined after and are unmerged above their leaves.
func sample(t *testing.T) *history {
	h := newHistory(t, 77)
	for range 11 {
		h.step(1, 0, 0, true)
	}
	for range 12 {
		h.step(0, 0, 0, true)
	}
	h.step(3, 0, 0, false)
	return h
}

// nodes is a deep copy of the tree's nodes, for a test to spoil.
func (h *history) nodes() wire.RatchetTree {
	var nodes wire.RatchetTree
	h.must(wire.Unmarshal(h.tree.Marshal(), &nodes))
	return nodes
}

// parentWith returns a filled parent of a tree for which is true.
func parentWith(nodes wire.RatchetTree, is func(at NodeIndex, p *wire.ParentNode) bool) (NodeIndex, *wire.ParentNode) {
	for i, n := range nodes {
		if n != nil && n.ParentNode != nil && is(NodeIndex(i), n.ParentNode) {
			return NodeIndex(i), n.ParentNode
		}
	}
	panic("the sample has no such parent")
}

func unmerged(_ NodeIndex, p *wire.ParentNode) bool { return len(p.UnmergedLeaves) > 0 }
func anyParent(NodeIndex, *wire.ParentNode) bool    { return true }

// TestRefuseTrees: what a joiner must not accept (RFC 9420 §12.4.3.1, §7.1,
// §7.3, §7.9.2). Each tree is refused by its rule, at a node.
func TestRefuseTrees(t *testing.T) {
	resign := func(h *history, l LeafIndex, leaf *wire.LeafNode) { h.sign(leaf, l, h.signers[l]) }
	for _, c := range []struct {
		name  string
		want  error
		spoil func(h *history, nodes wire.RatchetTree)
	}{
		{"an unmerged leaf twice", ErrUnmergedLeaves, func(_ *history, n wire.RatchetTree) {
			_, p := parentWith(n, unmerged)
			p.UnmergedLeaves = append(p.UnmergedLeaves, p.UnmergedLeaves[len(p.UnmergedLeaves)-1])
		}},
		{"unmerged leaves out of order", ErrUnmergedLeaves, func(_ *history, n wire.RatchetTree) {
			_, p := parentWith(n, func(_ NodeIndex, p *wire.ParentNode) bool { return len(p.UnmergedLeaves) > 1 })
			slices.Reverse(p.UnmergedLeaves)
		}},
		{"an unmerged leaf outside the subtree", ErrUnmergedLeaves, func(_ *history, n wire.RatchetTree) {
			_, p := parentWith(n, func(at NodeIndex, _ *wire.ParentNode) bool { return at == 1 })
			p.UnmergedLeaves = []uint32{2}
		}},
		{"an unmerged leaf beyond the tree", ErrUnmergedLeaves, func(_ *history, n wire.RatchetTree) {
			_, p := parentWith(n, anyParent)
			p.UnmergedLeaves = append(p.UnmergedLeaves, 1<<31)
		}},
		{"an unmerged leaf that is blank", ErrUnmergedLeaves, func(_ *history, n wire.RatchetTree) {
			_, p := parentWith(n, unmerged)
			n[2*p.UnmergedLeaves[0]] = nil
		}},
		{"an unmerged leaf that is not listed in between", ErrUnmergedLeaves, func(_ *history, n wire.RatchetTree) {
			_, p := parentWith(n, func(at NodeIndex, _ *wire.ParentNode) bool { return at == 7 })
			p.UnmergedLeaves = []uint32{0}
		}},
		{"an unmerged leaf left out", ErrParentHash, func(_ *history, n wire.RatchetTree) {
			// At the root, so that no list above is broken.
			_, p := parentWith(n, func(at NodeIndex, p *wire.ParentNode) bool { return at.Level() == 4 && len(p.UnmergedLeaves) > 0 })
			p.UnmergedLeaves = p.UnmergedLeaves[:len(p.UnmergedLeaves)-1]
		}},
		{"no parent hash in a parent", ErrParentHash, func(_ *history, n wire.RatchetTree) {
			_, p := parentWith(n, func(_ NodeIndex, p *wire.ParentNode) bool { return len(p.ParentHash) > 0 })
			p.ParentHash = nil
		}},
		{"a parent nobody set", ErrParentHash, func(h *history, n wire.RatchetTree) {
			i := slices.IndexFunc(n[:8], func(x *wire.Node) bool { return x == nil })
			if i < 0 {
				i = 3
			}
			n[i|1] = &wire.Node{NodeType: wire.NodeTypeParent, ParentNode: &wire.ParentNode{EncryptionKey: h.key()}}
		}},
		{"another key in a parent", ErrParentHash, func(h *history, n wire.RatchetTree) {
			_, p := parentWith(n, anyParent)
			p.EncryptionKey = h.key()
		}},
		{"another leaf under a sibling", ErrParentHash, func(h *history, n wire.RatchetTree) {
			leaf := n[2].LeafNode
			leaf.Extensions = wire.Extensions{{ExtensionType: 0x2a2a}}
			resign(h, 1, leaf)
		}},
		{"a member removed without its path blanked", ErrParentHash, func(_ *history, n wire.RatchetTree) { n[2] = nil }},
		{"one encryption key at two leaves", ErrDuplicateKey, func(h *history, n wire.RatchetTree) {
			n[2].LeafNode.EncryptionKey = n[0].LeafNode.EncryptionKey
			resign(h, 1, n[2].LeafNode)
		}},
		{"one encryption key at a leaf and a parent", ErrDuplicateKey, func(h *history, n wire.RatchetTree) {
			_, p := parentWith(n, anyParent)
			n[2].LeafNode.EncryptionKey = p.EncryptionKey
			resign(h, 1, n[2].LeafNode)
		}},
		{"one encryption key at two parents", ErrDuplicateKey, func(_ *history, n wire.RatchetTree) {
			at, p := parentWith(n, anyParent)
			_, q := parentWith(n, func(x NodeIndex, _ *wire.ParentNode) bool { return x != at })
			q.EncryptionKey = p.EncryptionKey
		}},
		{"one signature key at two leaves", ErrDuplicateKey, func(h *history, n wire.RatchetTree) {
			n[2].LeafNode.SignatureKey = n[0].LeafNode.SignatureKey
			h.sign(n[2].LeafNode, 1, h.signers[0])
		}},
		{"a parent with a low-order key", ErrPublicKey, func(_ *history, n wire.RatchetTree) {
			_, p := parentWith(n, anyParent)
			p.EncryptionKey = make([]byte, 32)
		}},
		{"a bad leaf signature", ErrSignature, func(h *history, n wire.RatchetTree) {
			spoilLast(h, n, func(l *wire.LeafNode) { l.Signature[0] ^= 1 }, false)
		}},
		{"a leaf with a low-order key", ErrPublicKey, func(h *history, n wire.RatchetTree) {
			spoilLast(h, n, func(l *wire.LeafNode) { l.EncryptionKey = make([]byte, 32) }, true)
		}},
		{"a leaf with a signature key of small order", ErrPublicKey, func(h *history, n wire.RatchetTree) {
			spoilLast(h, n, func(l *wire.LeafNode) { l.SignatureKey = append([]byte{1}, make([]byte, 31)...) }, true)
		}},
		{"a leaf without mls10", ErrCapabilities, func(h *history, n wire.RatchetTree) {
			spoilLast(h, n, func(l *wire.LeafNode) { l.Capabilities.Versions = nil }, true)
		}},
		{"a leaf without the suite", ErrCapabilities, func(h *history, n wire.RatchetTree) {
			spoilLast(h, n, func(l *wire.LeafNode) { l.Capabilities.CipherSuites = nil }, true)
		}},
		{"a leaf with an extension it does not list", ErrCapabilities, func(h *history, n wire.RatchetTree) {
			spoilLast(h, n, func(l *wire.LeafNode) { l.Extensions = wire.Extensions{{ExtensionType: 0xf999}} }, true)
		}},
		{"a leaf that does not support the others' credentials", ErrCapabilities, func(h *history, n wire.RatchetTree) {
			spoilLast(h, n, func(l *wire.LeafNode) {
				l.Credential = wire.Credential{CredentialType: 0x1a1a}
				l.Capabilities.Credentials = []wire.CredentialType{0x1a1a}
			}, true)
		}},
		{"a leaf with an extension twice", ErrExtensions, func(h *history, n wire.RatchetTree) {
			spoilLast(h, n, func(l *wire.LeafNode) {
				l.Extensions = wire.Extensions{{ExtensionType: 0x2a2a}, {ExtensionType: 0x2a2a}}
			}, true)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := sample(t)
			nodes := h.nodes()
			c.spoil(h, nodes)
			u, err := Parse(h.tree.Suite(), nodes)
			h.must(err)
			for _, parallel := range []bool{false, true} {
				_, err = u.Verify(VerifyOptions{GroupID: h.groupID, Parallel: parallel})
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if node := new(NodeError); err != nil && !errors.As(err, &node) {
					t.Errorf("%v does not say where", err)
				}
			}
		})
	}
}

// spoilLast changes the newest member's leaf, which no parent hash covers: it is
// unmerged everywhere.
func spoilLast(h *history, nodes wire.RatchetTree, spoil func(*wire.LeafNode), sign bool) {
	newest := LeafIndex(0)
	for l := range h.tree.Leaves() {
		newest = max(newest, l)
	}
	leaf := nodes[newest.Node()].LeafNode
	spoil(leaf)
	if sign {
		h.sign(leaf, newest, h.signers[newest])
	}
}

func TestVerifyOptions(t *testing.T) {
	h := sample(t)
	verify := func(o VerifyOptions) error {
		o.GroupID = h.groupID
		u, err := ParseBytes(h.tree.Suite(), h.tree.Marshal())
		h.must(err)
		_, err = u.Verify(o)
		return err
	}
	h.must(verify(VerifyOptions{TreeHash: h.tree.Hash()}))
	for _, c := range []struct {
		name string
		want error
		o    VerifyOptions
	}{
		{"another tree hash", ErrTreeHash, VerifyOptions{TreeHash: make([]byte, 32)}},
		{"a lifetime that ended", ErrLifetime, VerifyOptions{LifetimeAt: time.Unix(1, 0)}},
		{"an extension that nobody supports", ErrCapabilities, VerifyOptions{Extensions: wire.Extensions{{ExtensionType: 0xf001}}}},
		{"a required proposal that nobody supports", ErrCapabilities, VerifyOptions{RequiredCapabilities: &wire.RequiredCapabilities{ProposalTypes: []wire.ProposalType{9}}}},
		{"a required extension that nobody supports", ErrCapabilities, VerifyOptions{RequiredCapabilities: &wire.RequiredCapabilities{ExtensionTypes: []wire.ExtensionType{9}}}},
		{"a required credential that nobody supports", ErrCapabilities, VerifyOptions{RequiredCapabilities: &wire.RequiredCapabilities{CredentialTypes: []wire.CredentialType{9}}}},
		{"a credential that is refused", ErrCredential, VerifyOptions{Credentials: judge{}}},
		{"members that are refused together", ErrCredential, VerifyOptions{Credentials: judges{}}},
	} {
		if err := verify(c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// Default types are supported by everybody, listed or not.
	h.must(verify(VerifyOptions{
		Extensions: wire.Extensions{{ExtensionType: wire.ExtensionTypeExternalSenders}, {ExtensionType: 0x2a2a}},
		RequiredCapabilities: &wire.RequiredCapabilities{
			ExtensionTypes:  []wire.ExtensionType{wire.ExtensionTypeApplicationID},
			ProposalTypes:   []wire.ProposalType{wire.ProposalTypeGroupContextExtensions},
			CredentialTypes: []wire.CredentialType{wire.CredentialTypeBasic},
		},
	}))
	// Signatures beside those of the leaves count as much as theirs.
	beside := func(content string, parallel bool) error {
		signer := h.signers[0]
		signature, err := signer.SignWithLabel("label", []byte("content"))
		h.must(err)
		batch := h.tree.Suite().NewSignatureBatch()
		batch.Add(signer.Public(), "label", []byte(content), signature)
		return verify(VerifyOptions{Beside: batch, Parallel: parallel})
	}
	for _, parallel := range []bool{false, true} {
		h.must(beside("content", parallel))
		if err := beside("other content", parallel); !errors.Is(err, ErrBeside) {
			t.Errorf("a wrong signature beside the leaves', parallel %v: %v", parallel, err)
		}
	}
	// Leaves of another group or place carry signatures that do not fit.
	u, err := ParseBytes(h.tree.Suite(), h.tree.Marshal())
	h.must(err)
	if _, err := u.Verify(VerifyOptions{GroupID: []byte("other")}); !errors.Is(err, ErrSignature) {
		t.Errorf("of another group: %v", err)
	}
}

type judge struct{}

func (judge) ValidateCredential(*wire.LeafNode, *wire.LeafNode, time.Time) error {
	return errors.New("no")
}
func (judge) ValidateExternalSender(*wire.ExternalSender, time.Time) error { return errors.New("no") }

type judges struct{ judge }

func (judges) ValidateMembers(leaves []*wire.LeafNode, _ time.Time) error {
	if len(leaves) < 8 {
		return nil
	}
	return errors.New("not these")
}

// TestRefuseForms: serialised trees whose form is wrong (§12.4.3.3).
func TestRefuseForms(t *testing.T) {
	h := sample(t)
	cs := h.tree.Suite()
	for _, c := range []struct {
		name  string
		spoil func(wire.RatchetTree) wire.RatchetTree
	}{
		{"nothing", func(wire.RatchetTree) wire.RatchetTree { return nil }},
		{"a blank end", func(n wire.RatchetTree) wire.RatchetTree { return append(n, nil) }},
		{"blank nodes alone", func(wire.RatchetTree) wire.RatchetTree { return make(wire.RatchetTree, 3) }},
		{"a leaf for a parent", func(n wire.RatchetTree) wire.RatchetTree { n[1] = n[0]; return n }},
		{"a parent for a leaf", func(n wire.RatchetTree) wire.RatchetTree {
			n[0] = &wire.Node{NodeType: wire.NodeTypeParent, ParentNode: &wire.ParentNode{}}
			return n
		}},
	} {
		if _, err := Parse(cs, c.spoil(h.nodes())); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := ParseBytes(cs, h.tree.Marshal()[1:]); err == nil {
		t.Error("a tree without its first byte was read")
	}
}

// TestEditRefuses: edits that do not fit change nothing.
func TestEditRefuses(t *testing.T) {
	h := sample(t)
	leaf := h.leaf(wire.LeafNodeSourceUpdate, newSigner(t, h.tree.Suite(), h.rng))
	blank := LeafIndex(h.tree.Width() - 1)
	e := h.tree.Edit()
	for _, l := range []LeafIndex{blank, LeafIndex(h.tree.Width()), 1 << 30, 1 << 31, 1<<32 - 1} {
		if err := e.Update(l, leaf); !errors.Is(err, ErrNoLeaf) {
			t.Errorf("Update of %d: %v", l, err)
		}
		if err := e.Remove(l); !errors.Is(err, ErrNoLeaf) {
			t.Errorf("Remove of %d: %v", l, err)
		}
		if h.tree.Leaf(l) != nil {
			t.Errorf("leaf %d is filled", l)
		}
	}
	if _, err := e.FilteredDirectPath(1 << 31); !errors.Is(err, ErrNoLeaf) {
		t.Errorf("a path of nobody: %v", err)
	}
	if err := e.SetLeaf(1<<31, leaf); !errors.Is(err, ErrNoLeaf) {
		t.Errorf("SetLeaf: %v", err)
	}
	if _, err := e.SetPath(1<<31, nil); !errors.Is(err, ErrNoLeaf) {
		t.Errorf("SetPath of nobody: %v", err)
	}
	if _, err := e.SetPath(0, []wire.HPKEPublicKey{h.key()}); !errors.Is(err, ErrPath) {
		t.Errorf("SetPath with one key: %v", err)
	}
	if h.tree.Parent(1<<31) != nil || h.tree.PublicKey(1<<32-1) != nil || h.tree.HashAt(1<<31) != nil || h.tree.Resolution(1<<31, nil) != nil {
		t.Error("a node beyond the tree is there")
	}
}

// TestKeysOfOneMark: keys that share a mark are told apart.
func TestKeysOfOneMark(t *testing.T) {
	h := sample(t)
	key := slices.Clone(h.tree.Leaf(2).EncryptionKey)
	key[0] ^= 1
	h.must(h.tree.CheckAbsent([]wire.HPKEPublicKey{key}, h.signers[0].Public(), 0))
	for name, err := range map[string]error{
		"an encryption key": h.tree.CheckAbsent([]wire.HPKEPublicKey{h.tree.Leaf(2).EncryptionKey}, h.signers[0].Public(), 0),
		"a parent's key":    h.tree.CheckAbsent([]wire.HPKEPublicKey{h.tree.PublicKey(h.tree.Root())}, h.signers[0].Public(), 0),
		"a signature key":   h.tree.CheckAbsent(nil, h.signers[2].Public(), 0),
		"one key twice":     h.tree.CheckAbsent([]wire.HPKEPublicKey{key, key}, h.signers[0].Public(), 0),
	} {
		if !errors.Is(err, ErrDuplicateKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDeltaRefuses: stored changes that do not fit the tree.
func TestDeltaRefuses(t *testing.T) {
	h := sample(t)
	leaf := wire.Marshal(h.tree.Leaf(0))
	parent := wire.Marshal(h.tree.Parent(h.tree.Root()))
	blank := h.tree.Edit()
	h.must(blank.Remove(0))
	after := blank.Freeze()
	for name, c := range map[string]struct {
		at      NodeIndex
		kind    uint8
		content []byte
	}{
		"a node beyond the tree":       {NodeIndex(2*h.tree.Width() - 1), changeBlank, nil},
		"a node far beyond it":         {1<<32 - 1, changeBlank, nil},
		"a leaf for a parent":          {1, changeLeaf, leaf},
		"a parent for a leaf":          {2, changeParent, parent},
		"unmerged leaves of a leaf":    {2, changeUnmerged, []byte{0}},
		"unmerged leaves of a blank":   {1, changeUnmerged, []byte{0}},
		"an unknown kind":              {1, 9, nil},
		"a leaf that ends too early":   {2, changeLeaf, leaf[:9]},
		"a parent that ends too early": {1, changeParent, parent[:9]},
	} {
		b := wire.AppendUint8(nil, uint8(after.top))
		body := append(wire.AppendUint8(wire.AppendUint32(nil, uint32(c.at)), c.kind), c.content...)
		if _, err := after.ApplyDelta(wire.NewReader(wire.AppendOpaque(b, body))); !errors.Is(err, ErrDelta) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFull: a tree of the largest width does not grow.
func TestFull(t *testing.T) {
	e := &Editor{top: 24, root: &node{members: MaxLeaves}}
	if _, err := e.Vacancy(); !errors.Is(err, ErrFull) {
		t.Errorf("%v", err)
	}
}

// TestLifetimeBefore1970: a clock that is that wrong refuses instead of wrapping.
func TestLifetimeBefore1970(t *testing.T) {
	if err := checkLifetime(wire.Lifetime{NotAfter: 1<<64 - 1}, time.Unix(-1, 0), 0); !errors.Is(err, ErrLifetime) {
		t.Errorf("%v", err)
	}
}
