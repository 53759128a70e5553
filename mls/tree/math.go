package tree

import "math/bits"

// MaxLeaves is the widest tree that the package accepts, in leaves. It bounds
// what a malicious tree can make a reader compute.
const MaxLeaves = 1 << 24

// LeafIndex counts the leaves of a tree from the left, from 0, blank ones too.
type LeafIndex uint32

// NodeIndex counts the nodes of a tree in order from left to right: leaf i is
// node 2i, parents are odd (Appendix C).
type NodeIndex uint32

// Node returns the node index of the leaf, which must be in a tree: an index from
// outside can be as large as 2^32-1 and is compared with the width first.
func (l LeafIndex) Node() NodeIndex { return NodeIndex(2 * l) }

// IsLeaf reports whether n is a leaf.
func (n NodeIndex) IsLeaf() bool { return n&1 == 0 }

// Leaf returns the leaf index of a leaf node; for a parent it has no meaning.
func (n NodeIndex) Leaf() LeafIndex { return LeafIndex(n / 2) }

// Level is the height of n above the leaves: 0 for a leaf.
func (n NodeIndex) Level() int { return bits.TrailingZeros32(^uint32(n)) }

// Left returns the left child of a parent.
func (n NodeIndex) Left() NodeIndex { return n ^ 1<<(n.Level()-1) }

// Right returns the right child of a parent.
func (n NodeIndex) Right() NodeIndex { return n ^ 3<<(n.Level()-1) }

// Parent returns the parent of n, in a tree wide enough to have one.
func (n NodeIndex) Parent() NodeIndex {
	k := n.Level()
	return (n | 1<<k) &^ (1 << (k + 1))
}

// Sibling returns the other child of n's parent.
func (n NodeIndex) Sibling() NodeIndex {
	return n ^ 1<<(n.Level()+1)
}

// Contains reports whether leaf l is n itself or below it.
func (n NodeIndex) Contains(l LeafIndex) bool {
	k := n.Level()
	return uint32(n)>>(k+1) == uint32(l)>>k
}

// Copath returns the child of n, a parent above leaf l, that is not above l: the
// one on the copath of l (Section 4.1.2).
func (n NodeIndex) Copath(l LeafIndex) NodeIndex {
	if left := n.Left(); !left.Contains(l) {
		return left
	}
	return n.Right()
}

// span returns the first leaf below n and how many there are.
func (n NodeIndex) span() (first LeafIndex, count uint32) {
	k := n.Level()
	return LeafIndex(uint32(n) >> (k + 1) << k), 1 << k
}

// Root returns the root of a tree of width leaves; width is a power of two.
func Root(width uint32) NodeIndex { return NodeIndex(width - 1) }

// CommonAncestor returns the lowest node that has both leaves below it; for one
// leaf twice, that leaf.
func CommonAncestor(a, b LeafIndex) NodeIndex {
	k := bits.Len32(uint32(a ^ b))
	return NodeIndex(uint32(a)>>k<<(k+1) + 1<<k - 1)
}
