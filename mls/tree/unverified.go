package tree

import (
	"fmt"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// Unverified is a tree from outside whose form is right and about which nothing
// else is known. [Unverified.Verify] makes a [Tree] of it.
type Unverified struct{ t *Tree }

// Parse builds a tree from the content of a ratchet_tree extension and hashes
// it. It checks the form alone (Section 12.4.3.3): leaves and parents in their
// places, the last node not blank, at most [MaxLeaves] leaves. Time and memory
// are at most a constant times the number of nodes. The nodes are kept. The
// error wraps [ErrMalformed].
func Parse(cs *suite.Suite, nodes wire.RatchetTree) (*Unverified, error) {
	if len(nodes) == 0 || nodes[len(nodes)-1] == nil {
		return nil, fmt.Errorf("mls/tree: %w: it ends in a blank node", ErrMalformed)
	}
	// mutants: equivalent: a test of it would need 2^25 nodes
	if len(nodes) > 2*MaxLeaves-1 {
		return nil, fmt.Errorf("mls/tree: %w: it has %d nodes", ErrMalformed, len(nodes))
	}
	for i, n := range nodes {
		want := wire.NodeTypeParent
		if NodeIndex(i).IsLeaf() {
			want = wire.NodeTypeLeaf
		}
		if n != nil && n.NodeType != want {
			return nil, fmt.Errorf("mls/tree: %w: node %d has type %d", ErrMalformed, i, n.NodeType)
		}
	}
	top := levelFor(uint32(len(nodes)/2 + 1))
	e := &Editor{cs: cs, top: top}
	e.root = e.build(nodes, Root(1<<top))
	return &Unverified{e.Freeze()}, nil
}

// ParseBytes is [Parse] of the encoding of a ratchet_tree extension. The error
// is a [*wire.DecodeError] or wraps [ErrMalformed].
func ParseBytes(cs *suite.Suite, data []byte) (*Unverified, error) {
	var nodes wire.RatchetTree
	if err := wire.Unmarshal(data, &nodes); err != nil {
		return nil, fmt.Errorf("mls/tree: %w", err)
	}
	return Parse(cs, nodes)
}

func (e *Editor) build(nodes wire.RatchetTree, at NodeIndex) *node {
	n := &node{owner: e}
	if int(at) < len(nodes) && nodes[at] != nil {
		n.leaf, n.parent = nodes[at].LeafNode, nodes[at].ParentNode
	}
	n.filled = !n.blank()
	if at.IsLeaf() {
		if n.filled {
			n.members = 1
		}
		return n
	}
	n.left, n.right = e.build(nodes, at.Left()), e.build(nodes, at.Right())
	n.members = n.left.members + n.right.members
	n.filled = n.filled || n.left.filled || n.right.filled
	return n
}

// Hash returns the tree hash, to be compared with a GroupContext's.
func (u *Unverified) Hash() []byte { return u.t.Hash() }

// Leaf returns the claimed leaf at l, nil when it is blank or not in the tree.
func (u *Unverified) Leaf(l LeafIndex) *wire.LeafNode { return u.t.Leaf(l) }

// Trust returns the tree without verifying it. It is for trees that the program
// verified before it stored them, and whose stored bytes it has checked.
func (u *Unverified) Trust() *Tree { return u.t }

// RatchetTree returns the tree in the form of the ratchet_tree extension,
// without the blank nodes at its end (Section 12.4.3.3). The nodes are the
// tree's own.
func (t *Tree) RatchetTree() wire.RatchetTree {
	nodes := make(wire.RatchetTree, 2*t.Width()-1)
	last := -1
	walk(t.root, t.Root(), func(n *node, at NodeIndex) bool {
		switch {
		case n.leaf != nil:
			nodes[at] = &wire.Node{NodeType: wire.NodeTypeLeaf, LeafNode: n.leaf}
		case n.parent != nil:
			nodes[at] = &wire.Node{NodeType: wire.NodeTypeParent, ParentNode: n.parent}
		default:
			return n.filled
		}
		last = max(last, int(at))
		return true
	})
	return nodes[:last+1]
}

// Marshal returns the encoding of the ratchet_tree extension's content.
func (t *Tree) Marshal() []byte {
	nodes := t.RatchetTree()
	return wire.Marshal(&nodes)
}

// walk visits n and what is below, parents first, as long as visit says so.
func walk(n *node, at NodeIndex, visit func(n *node, at NodeIndex) bool) {
	if visit(n, at) && n.left != nil {
		walk(n.left, at.Left(), visit)
		walk(n.right, at.Right(), visit)
	}
}
