package tree

import (
	"fmt"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// Unverified is a tree from outside whose form is right and about which nothing
// else is known. [Unverified.Verify] makes a [Tree] of it.
type Unverified struct{ t *Tree }

// Parse builds a tree from the nodes of a ratchet_tree extension and hashes it.
// It checks the form alone (Section 12.4.3.3): leaves and parents in their
// places, the last node not blank, at most [MaxLeaves] leaves. A blank node takes
// as much memory as a filled one: nodes from outside come by [ParseBytes]. The
// nodes are kept. The error wraps [ErrMalformed].
func Parse(cs *suite.Suite, nodes wire.RatchetTree) (*Unverified, error) {
	if len(nodes) == 0 || nodes[len(nodes)-1] == nil {
		return nil, fmt.Errorf("mls/tree: %w: it ends in a blank node", ErrMalformed)
	}
	// mutants: equivalent: a test of it would need 2^25 nodes
	if len(nodes) > 2*MaxLeaves-1 {
		return nil, fmt.Errorf("mls/tree: %w: it has %d nodes", ErrMalformed, len(nodes))
	}
	for i, n := range nodes {
		if n != nil {
			if err := checkNodeType(NodeIndex(i), n); err != nil {
				return nil, err
			}
		}
	}
	top := levelFor(uint32(len(nodes)/2 + 1))
	e := &Editor{cs: cs, top: top}
	e.root = e.build(nodes, Root(1<<top))
	return &Unverified{e.Freeze()}, nil
}

func checkNodeType(at NodeIndex, n *wire.Node) error {
	want := wire.NodeTypeParent
	if at.IsLeaf() {
		want = wire.NodeTypeLeaf
	}
	if n.NodeType != want {
		return fmt.Errorf("mls/tree: %w: node %d has type %d", ErrMalformed, at, n.NodeType)
	}
	return nil
}

// A blank node is one byte on the wire and some 150 in memory, so a wide tree
// must have members: one leaf in leavesPerMember when it is wider than maxSparse.
// Trees grow only when every leaf is filled (Section 7.7), so the trees that are
// refused are of groups that once had more than half of maxSparse members and
// lost most of them.
const (
	maxSparse       = 1 << 16
	leavesPerMember = 4
)

// ParseBytes is [Parse] of the encoding of a ratchet_tree extension. Time and
// memory are at most a constant times the size of data: a tree of more than
// 65,536 leaves of which not one in four is filled is refused, and so are
// encryption keys of another size than the suite's. The error is a
// [*wire.DecodeError] or wraps [ErrMalformed] or [ErrPublicKey].
func ParseBytes(cs *suite.Suite, data []byte) (*Unverified, error) {
	e := encodedTree{cs: cs}
	if err := wire.Unmarshal(data, &e); e.err != nil {
		return nil, e.err
	} else if err != nil {
		return nil, fmt.Errorf("mls/tree: %w", err)
	}
	width := 1 << levelFor(uint32(e.count/2+1))
	if width > maxSparse && width > leavesPerMember*e.members {
		return nil, fmt.Errorf("mls/tree: %w: of %d leaves %d are filled", ErrMalformed, width, e.members)
	}
	nodes := make(wire.RatchetTree, e.count)
	for i, at := range e.at {
		nodes[at] = &e.filled[i]
	}
	return Parse(cs, nodes)
}

// encodedTree is a ratchet_tree extension as it is read: blank nodes are counted
// and take no place.
type encodedTree struct {
	cs      *suite.Suite
	count   int // nodes, blank ones included
	members int // filled leaves
	at      []NodeIndex
	filled  []wire.Node
	err     error // why the nodes are refused, other than for their encoding
}

// DecodeFrom implements [wire.Decoder].
func (e *encodedTree) DecodeFrom(r *wire.Reader) {
	in := r.Begin("ratchet_tree")
	outer := r.EnterVector()
	for ; r.More() && e.err == nil; e.count++ {
		// mutants: equivalent: a test of it would need 2^25 nodes
		if e.count > 2*MaxLeaves {
			e.err = fmt.Errorf("mls/tree: %w: it has more than %d nodes", ErrMalformed, 2*MaxLeaves)
		}
		if !r.Present() {
			continue
		}
		var n wire.Node
		if n.DecodeFrom(r); r.Err() == nil {
			e.add(NodeIndex(e.count), &n)
		}
	}
	if e.err != nil {
		r.Fail(wire.ErrValue)
	}
	r.LeaveVector(outer)
	r.End(in)
}

func (e *encodedTree) add(at NodeIndex, n *wire.Node) {
	if e.err = checkNodeType(at, n); e.err != nil {
		return
	}
	var key wire.HPKEPublicKey
	if at.IsLeaf() {
		key = n.LeafNode.EncryptionKey
		e.members++
	} else {
		key = n.ParentNode.EncryptionKey
	}
	if len(key) != e.cs.HPKEPublicKeySize() {
		e.err = atNode(at, fmt.Errorf("%w: encryption_key of %d bytes", ErrPublicKey, len(key)))
		return
	}
	e.at = append(e.at, at)
	e.filled = append(e.filled, *n)
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
