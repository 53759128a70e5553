package tree

import (
	"iter"
	"math/bits"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// Tree is a ratchet tree of one epoch: a perfect binary tree of blank and filled
// nodes (Section 4.1). It is immutable and safe for concurrent use. What its
// methods return belongs to the tree: do not change it.
type Tree struct {
	cs   *suite.Suite
	root *node
	top  int // level of the root: the tree is 2^top leaves wide
}

// node is one node with everything below it. A node that a Tree can reach is
// never written to; owner says which Editor, if any, may still do so.
type node struct {
	left, right *node            // nil for leaves
	leaf        *wire.LeafNode   // content of a leaf, nil when blank
	parent      *wire.ParentNode // content of a parent, nil when blank
	owner       *Editor
	hash        []byte    // tree hash (Section 7.8); nil until computed
	sum         *summary  // nil until computed; nil afterwards too when no leaf is below
	marks       [2]uint64 // see marks; computed with hash
	members     uint32    // filled leaves at or below
	filled      bool      // a filled node is at or below: the resolution is not empty
	ownParent   bool      // parent.UnmergedLeaves was copied by owner
}

func (n *node) blank() bool { return n.leaf == nil && n.parent == nil }

// key returns the encryption key of the node, nil when blank.
func (n *node) key() wire.HPKEPublicKey {
	switch {
	case n.leaf != nil:
		return n.leaf.EncryptionKey
	case n.parent != nil:
		return n.parent.EncryptionKey
	}
	return nil
}

// New returns the tree of a group that only its creator is in (Section 11). The
// leaf is taken as it is; it is the creator's own.
func New(cs *suite.Suite, creator *wire.LeafNode) *Tree {
	e := &Editor{cs: cs, root: &node{}}
	e.root.owner = e
	_ = e.SetLeaf(0, creator.Clone()) // a tree of one has leaf 0
	return e.Freeze()
}

// Suite returns the cipher suite whose hash the tree uses.
func (t *Tree) Suite() *suite.Suite { return t.cs }

// Width returns how many leaves the tree has, blank ones included: a power of
// two.
func (t *Tree) Width() uint32 { return 1 << t.top }

// Members returns how many leaves are not blank.
func (t *Tree) Members() int { return int(t.root.members) }

// Root returns the index of the root.
func (t *Tree) Root() NodeIndex { return Root(t.Width()) }

// Hash returns the tree hash of the whole tree (Section 7.8).
func (t *Tree) Hash() []byte { return t.root.hash }

// HashAt returns the tree hash of the subtree at n, nil when n is not in the
// tree.
func (t *Tree) HashAt(n NodeIndex) []byte {
	if at := find(t.root, t.top, n); at != nil {
		return at.hash
	}
	return nil
}

// Leaf returns the leaf at l, nil when it is blank or not in the tree.
func (t *Tree) Leaf(l LeafIndex) *wire.LeafNode { return leafAt(t.root, t.top, l) }

// leafAt returns the leaf at l below a root of the given level, or nil.
func leafAt(root *node, top int, l LeafIndex) *wire.LeafNode {
	if uint64(l) >= 1<<top { // before l.Node(), which wraps for indices from 2^31
		return nil
	}
	return find(root, top, l.Node()).leaf
}

// Parent returns the content of the parent node n, nil when it is blank, a leaf
// or not in the tree.
func (t *Tree) Parent(n NodeIndex) *wire.ParentNode {
	if at := find(t.root, t.top, n); at != nil {
		return at.parent
	}
	return nil
}

// PublicKey returns the encryption key of node n, nil when it is blank or not in
// the tree.
func (t *Tree) PublicKey(n NodeIndex) wire.HPKEPublicKey {
	if at := find(t.root, t.top, n); at != nil {
		return at.key()
	}
	return nil
}

// Leaves goes through the members from left to right.
func (t *Tree) Leaves() iter.Seq2[LeafIndex, *wire.LeafNode] {
	return func(yield func(LeafIndex, *wire.LeafNode) bool) {
		leaves(t.root, t.Root(), yield)
	}
}

func leaves(n *node, at NodeIndex, yield func(LeafIndex, *wire.LeafNode) bool) bool {
	switch {
	case n.members == 0:
		return true
	case n.left == nil:
		return yield(at.Leaf(), n.leaf)
	}
	return leaves(n.left, at.Left(), yield) && leaves(n.right, at.Right(), yield)
}

// FindLeaf returns the member with a signature key.
func (t *Tree) FindLeaf(key wire.SignaturePublicKey) (LeafIndex, bool) {
	for l, leaf := range t.Leaves() {
		if string(leaf.SignatureKey) == string(key) {
			return l, true
		}
	}
	return 0, false
}

// Resolution returns the filled nodes that together cover every member below n
// (Section 4.1.1), without the leaves for which skip, unless nil, is true.
func (t *Tree) Resolution(n NodeIndex, skip func(LeafIndex) bool) []NodeIndex {
	at := find(t.root, t.top, n)
	if at == nil {
		return nil
	}
	return resolution(nil, at, n, skip)
}

// Except returns, for [Tree.Resolution], what skips the given leaves: those that
// a commit adds get their path secret by Welcome (Section 7.5).
func Except(leaves []LeafIndex) (skip func(LeafIndex) bool) {
	if len(leaves) == 0 {
		return nil
	}
	set := make(map[LeafIndex]struct{}, len(leaves))
	for _, l := range leaves {
		set[l] = struct{}{}
	}
	return func(l LeafIndex) bool { _, is := set[l]; return is }
}

func resolution(list []NodeIndex, n *node, at NodeIndex, skip func(LeafIndex) bool) []NodeIndex {
	switch {
	case !n.filled:
	case n.leaf != nil:
		if skip == nil || !skip(at.Leaf()) {
			list = append(list, at)
		}
	case n.parent != nil:
		list = append(list, at)
		for _, l := range n.parent.UnmergedLeaves {
			if skip == nil || !skip(LeafIndex(l)) {
				list = append(list, LeafIndex(l).Node())
			}
		}
	default:
		list = resolution(list, n.left, at.Left(), skip)
		list = resolution(list, n.right, at.Right(), skip)
	}
	return list
}

// FilteredDirectPath returns the ancestors of l to which a committer at l gives
// new keys: those whose child on the copath has a resolution that is not empty
// (Section 4.1.2). l may be blank.
func (t *Tree) FilteredDirectPath(l LeafIndex) ([]NodeIndex, error) {
	steps, err := descend(t.root, t.top, l)
	if err != nil {
		return nil, err
	}
	return filtered(steps), nil
}

// step is one ancestor on the way down to a leaf.
type step struct {
	index   NodeIndex
	node    *node
	copath  *node // its child that is not on the way
	towards NodeIndex
}

// copathIndex returns the index of the step's copath node.
func (s step) copathIndex() NodeIndex { return s.towards.Sibling() }

// descend returns the ancestors of l from the root down.
func descend(root *node, top int, l LeafIndex) ([]step, error) {
	if uint64(l) >= 1<<top {
		return nil, atLeaf(l, ErrNoLeaf)
	}
	steps := make([]step, 0, top)
	n, at := root, Root(1<<top)
	for level := top - 1; level >= 0; level-- {
		s := step{index: at, node: n}
		if uint32(l)>>level&1 == 0 {
			n, s.copath, at = n.left, n.right, at.Left()
		} else {
			n, s.copath, at = n.right, n.left, at.Right()
		}
		s.towards = at
		steps = append(steps, s)
	}
	return steps, nil
}

// filtered returns the filtered direct path, from the leaf up, of the leaf that
// steps lead down to.
func filtered(steps []step) []NodeIndex {
	path := make([]NodeIndex, 0, len(steps))
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].copath.filled {
			path = append(path, steps[i].index)
		}
	}
	return path
}

// find returns the node at an index below a root of the given level, or nil.
func find(root *node, top int, index NodeIndex) *node {
	level := index.Level()
	if level > top || uint64(index) >= 2<<top-1 {
		return nil
	}
	path := uint32(index) >> (level + 1)
	n := root
	for bit := top - level - 1; bit >= 0; bit-- {
		if path>>bit&1 == 0 {
			n = n.left
		} else {
			n = n.right
		}
	}
	return n
}

// levelFor returns the smallest level whose tree has at least width leaves.
func levelFor(width uint32) int {
	if width <= 1 {
		return 0
	}
	return bits.Len32(width - 1)
}
