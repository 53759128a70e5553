package mls

import (
	"fmt"
	"math/bits"

	"github.com/askucher/compax-core/mls/suite"
)

// ratchetType names one of the two ratchets of a leaf (RFC 9420 Section 9).
type ratchetType uint8

const (
	handshakeRatchet ratchetType = iota
	applicationRatchet
)

func (t ratchetType) label() string {
	if t == handshakeRatchet {
		return "handshake"
	}
	return "application"
}

// secretTree is the Secret Tree of one epoch (RFC 9420 Section 9), an immutable
// value that is derived lazily: a node's secret stands until one of its
// children is needed, then its two children replace it. Using a key gives a new
// tree that shares everything but one path with the old one.
//
// Nodes are numbered as in RFC 9420 Appendix C.
type secretTree struct {
	width uint32 // number of leaves, a power of two
	root  *secretNode
}

// secretNode holds a secret, or what was derived from it: its children, or at a
// leaf its ratchets. A node that holds nothing was never reachable.
type secretNode struct {
	secret      Secret
	left, right *secretNode
	ratchets    [2]*ratchet
}

// newSecretTree starts the tree at the encryption_secret, which it takes over.
func newSecretTree(encryptionSecret Secret, width uint32) *secretTree {
	return &secretTree{width: width, root: &secretNode{secret: encryptionSecret}}
}

// rootIndex is the node index of the root of a tree of the width.
func (t *secretTree) rootIndex() uint32 { return t.width - 1 }

// secretTreeChange says what differs between a tree and the one before it.
type secretTreeChange struct {
	// consumed are the nodes whose secret is gone.
	consumed []uint32
	// derived are the nodes whose secret is new.
	derived []uint32
	// leaf is the leaf whose ratchets changed; started says that both are new.
	leaf    uint32
	which   ratchetType
	started bool
	// forget are the secrets that the new tree no longer holds.
	forget []wiper
}

// ratchetAt finds the ratchet of a leaf, deriving it when needed. It gives the
// tree in which it stands and the change that led there.
func (t *secretTree) ratchetAt(cs *suite.Suite, leaf uint32, which ratchetType) (*secretTree, *ratchet, secretTreeChange, error) {
	change := secretTreeChange{leaf: leaf, which: which}
	if leaf >= t.width {
		return nil, nil, change, fmt.Errorf("%w: leaf %d of a tree of %d leaves", ErrUnknownSender, leaf, t.width)
	}
	if t.root.forgotten(t.rootIndex(), leaf) {
		return nil, nil, change, ErrForgotten
	}
	next := &secretTree{width: t.width}
	root, at := t.root.open(cs, t.rootIndex(), leaf, &change)
	next.root = root
	return next, at.ratchets[which], change, nil
}

// with gives the tree in which one ratchet is replaced.
func (t *secretTree) with(leaf uint32, which ratchetType, r *ratchet) *secretTree {
	return &secretTree{width: t.width, root: t.root.with(t.rootIndex(), leaf, which, r)}
}

// level is the height of a node above the leaves (RFC 9420 Appendix C).
func level(node uint32) int { return bits.TrailingZeros32(^node) }

// childIndex gives the index of a parent's child.
func childIndex(node uint32, right bool) uint32 {
	k := level(node)
	if right {
		return node ^ (3 << (k - 1))
	}
	return node ^ (1 << (k - 1))
}

// open copies the path from n to the leaf, deriving what is not derived.
func (n *secretNode) open(cs *suite.Suite, index, leaf uint32, change *secretTreeChange) (node, at *secretNode) {
	c := *n
	node = &c
	if level(index) == 0 {
		if c.secret != nil {
			for _, which := range []ratchetType{handshakeRatchet, applicationRatchet} {
				c.ratchets[which] = &ratchet{secret: cs.ExpandWithLabel(c.secret, which.label(), nil, cs.HashSize())}
			}
			change.consume(index, c.secret)
			change.started = true
			c.secret = nil
		}
		return node, node
	}
	if c.secret != nil {
		c.left = &secretNode{secret: cs.ExpandWithLabel(c.secret, "tree", []byte("left"), cs.HashSize())}
		c.right = &secretNode{secret: cs.ExpandWithLabel(c.secret, "tree", []byte("right"), cs.HashSize())}
		change.consume(index, c.secret)
		change.derived = append(change.derived, childIndex(index, false), childIndex(index, true))
		c.secret = nil
	}
	if goesRight(index, leaf) {
		c.right, at = c.right.open(cs, childIndex(index, true), leaf, change)
	} else {
		c.left, at = c.left.open(cs, childIndex(index, false), leaf, change)
	}
	return node, at
}

// forgotten reports whether the secret from which a leaf's are derived was wiped.
func (n *secretNode) forgotten(index, leaf uint32) bool {
	for n != nil && n.secret == nil && level(index) > 0 {
		if goesRight(index, leaf) {
			n, index = n.right, childIndex(index, true)
		} else {
			n, index = n.left, childIndex(index, false)
		}
	}
	return n != nil && n.secret.wiped()
}

// consume notes that the secret of a node is gone: a node that was derived in
// the same change was never stored.
func (c *secretTreeChange) consume(index uint32, secret Secret) {
	c.forget = append(c.forget, secret)
	for i, d := range c.derived {
		if d == index {
			c.derived = append(c.derived[:i], c.derived[i+1:]...)
			return
		}
	}
	c.consumed = append(c.consumed, index)
}

// goesRight says in which half of a node's subtree a leaf stands.
func goesRight(index, leaf uint32) bool { return 2*leaf > index }

func (n *secretNode) with(index, leaf uint32, which ratchetType, r *ratchet) *secretNode {
	c := *n
	switch {
	case level(index) == 0:
		c.ratchets[which] = r
	case goesRight(index, leaf):
		c.right = c.right.with(childIndex(index, true), leaf, which, r)
	default:
		c.left = c.left.with(childIndex(index, false), leaf, which, r)
	}
	return &c
}

// walk visits every node that holds a secret or ratchets.
func (t *secretTree) walk(visit func(index uint32, n *secretNode)) {
	t.root.walk(t.rootIndex(), visit)
}

func (n *secretNode) walk(index uint32, visit func(uint32, *secretNode)) {
	if n == nil {
		return
	}
	if n.secret != nil || n.ratchets[0] != nil {
		visit(index, n)
		return
	}
	if level(index) == 0 {
		return
	}
	n.left.walk(childIndex(index, false), visit)
	n.right.walk(childIndex(index, true), visit)
}

// nodeAt finds the node with an index, or nil when it is not derived.
func (t *secretTree) nodeAt(index uint32) *secretNode {
	n, at := t.root, t.rootIndex()
	for n != nil && at != index {
		if level(at) == 0 {
			return nil
		}
		if index > at {
			n, at = n.right, childIndex(at, true)
		} else {
			n, at = n.left, childIndex(at, false)
		}
	}
	return n
}

// insert places a stored node while a tree is loaded. It reports whether the
// place was free.
func (t *secretTree) insert(index uint32, stored *secretNode) bool {
	if t.root == nil {
		t.root = &secretNode{}
	}
	n, at := t.root, t.rootIndex()
	for at != index {
		if n.secret != nil || level(at) == 0 { // no leaf has this index
			return false
		}
		next := &n.left
		if index > at {
			next = &n.right
		}
		if *next == nil {
			*next = &secretNode{}
		}
		n, at = *next, childIndex(at, index > at)
	}
	if n.secret != nil || n.left != nil || n.right != nil || n.ratchets[0] != nil {
		return false
	}
	*n = *stored
	return true
}

// complete says whether every leaf can still be reached from a stored secret.
func (t *secretTree) complete() bool { return t.root.complete(t.rootIndex()) }

func (n *secretNode) complete(index uint32) bool {
	switch {
	case n == nil:
		return false
	case n.secret != nil:
		return true
	case level(index) == 0:
		return n.ratchets[0] != nil && n.ratchets[1] != nil
	}
	return n.left.complete(childIndex(index, false)) && n.right.complete(childIndex(index, true))
}

// Wipe wipes what the node itself holds.
func (n *secretNode) Wipe() {
	n.secret.Wipe()
	for _, r := range n.ratchets {
		if r != nil {
			r.wipe()
		}
	}
}
