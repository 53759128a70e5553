package tree

import (
	"slices"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// Editor changes a copy of a tree. It copies a node when it first changes it and
// shares the rest with the tree it began with, which never changes. An Editor is
// for one goroutine; after [Editor.Freeze] it must not be used.
//
// It applies changes and checks only what it needs in order to apply them;
// whether they are allowed is for the caller.
type Editor struct {
	cs   *suite.Suite
	root *node
	top  int
	buf  []byte // scratch for hash inputs
}

// Edit starts a change of t.
func (t *Tree) Edit() *Editor { return &Editor{cs: t.cs, root: t.root, top: t.top} }

// Freeze computes what the changed nodes miss, their hashes and summaries, and
// returns the tree.
func (e *Editor) Freeze() *Tree {
	e.hash(e.root, Root(1<<e.top))
	t := &Tree{cs: e.cs, root: e.root, top: e.top}
	// Nodes keep pointing at e as their owner; it must not change them any more.
	e.root, e.buf = nil, nil
	return t
}

// Width returns how many leaves the tree has now.
func (e *Editor) Width() uint32 { return 1 << e.top }

// Leaf returns the leaf at l, nil when it is blank or not in the tree.
func (e *Editor) Leaf(l LeafIndex) *wire.LeafNode { return leafAt(e.root, e.top, l) }

// own returns *n as a node that e may write to, and forgets what was computed
// for it.
func (e *Editor) own(n **node) *node {
	if (*n).owner != e {
		c := **n
		c.owner, c.ownParent = e, false
		*n = &c
	}
	(*n).hash, (*n).sum = nil, nil
	return *n
}

// way makes every node from the root to leaf l writable and returns them, the
// leaf last.
func (e *Editor) way(l LeafIndex) ([]*node, error) {
	if uint64(l) >= 1<<e.top {
		return nil, atLeaf(l, ErrNoLeaf)
	}
	nodes := make([]*node, 0, e.top+1)
	at := &e.root
	for level := e.top; ; level-- {
		n := e.own(at)
		nodes = append(nodes, n)
		if level == 0 {
			return nodes, nil
		}
		if uint32(l)>>(level-1)&1 == 0 {
			at = &n.left
		} else {
			at = &n.right
		}
	}
}

// settle brings the counts of the nodes of a way up to date.
func settle(way []*node) {
	leaf := way[len(way)-1]
	leaf.filled, leaf.members = leaf.leaf != nil, 0
	if leaf.filled {
		leaf.members = 1
	}
	for i := len(way) - 2; i >= 0; i-- {
		n := way[i]
		n.members = n.left.members + n.right.members
		n.filled = n.parent != nil || n.left.filled || n.right.filled
	}
}

// Add puts a new member at the leftmost blank leaf, makes the tree wider when
// there is none, and lists the leaf as unmerged in every filled node above it
// (Section 12.1.1). The leaf is kept as it is: it must not be changed after.
func (e *Editor) Add(leaf *wire.LeafNode) (LeafIndex, error) {
	l, err := e.Vacancy()
	if err != nil {
		return 0, err
	}
	way, err := e.way(l)
	if err != nil {
		return 0, err
	}
	for _, n := range way[:len(way)-1] {
		if n.parent == nil {
			continue
		}
		list := n.parent.UnmergedLeaves
		if !n.ownParent {
			list = append(make([]uint32, 0, len(list)+4), list...)
		}
		if i, found := slices.BinarySearch(list, uint32(l)); !found {
			list = slices.Insert(list, i, uint32(l))
		}
		if n.ownParent {
			n.parent.UnmergedLeaves = list
			continue
		}
		n.parent = &wire.ParentNode{
			EncryptionKey:  n.parent.EncryptionKey,
			ParentHash:     n.parent.ParentHash,
			UnmergedLeaves: list,
		}
		n.ownParent = true
	}
	way[len(way)-1].leaf = leaf
	settle(way)
	return l, nil
}

// Vacancy returns the leftmost blank leaf, after widening the tree when it has
// none (Section 7.7).
func (e *Editor) Vacancy() (LeafIndex, error) {
	if e.root.members == 1<<e.top {
		if err := e.extend(); err != nil {
			return 0, err
		}
	}
	n, at := e.root, Root(1<<e.top)
	for level := e.top; level > 0; level-- {
		if n.left.members < 1<<(level-1) {
			n, at = n.left, at.Left()
		} else {
			n, at = n.right, at.Right()
		}
	}
	return at.Leaf(), nil
}

// extend doubles the width: a new blank root over the tree and a blank one.
func (e *Editor) extend() error {
	if 2<<e.top > MaxLeaves {
		return ErrFull
	}
	e.root = &node{
		owner:   e,
		left:    e.root,
		right:   e.blank(e.top),
		members: e.root.members,
		filled:  e.root.filled,
	}
	e.top++
	return nil
}

// blank returns a blank subtree of 2^level leaves.
func (e *Editor) blank(level int) *node {
	n := &node{owner: e}
	if level > 0 {
		n.left, n.right = e.blank(level-1), e.blank(level-1)
	}
	return n
}

// Update replaces the leaf of a member and blanks the nodes above it (Section
// 12.1.2). The leaf is kept as it is.
func (e *Editor) Update(l LeafIndex, leaf *wire.LeafNode) error {
	if e.Leaf(l) == nil {
		return atLeaf(l, ErrNoLeaf)
	}
	return e.replace(l, leaf)
}

// Remove blanks the leaf of a member and the nodes above it (Section 12.1.3).
// The tree keeps its width until [Editor.Truncate].
func (e *Editor) Remove(l LeafIndex) error {
	if e.Leaf(l) == nil {
		return atLeaf(l, ErrNoLeaf)
	}
	return e.replace(l, nil)
}

func (e *Editor) replace(l LeafIndex, leaf *wire.LeafNode) error {
	way, err := e.way(l)
	if err != nil {
		return err
	}
	for _, n := range way[:len(way)-1] {
		n.parent = nil
	}
	way[len(way)-1].leaf = leaf
	settle(way)
	return nil
}

// Truncate halves the tree as long as its right half has no member (Section
// 12.1.3). A tree without members becomes one blank leaf.
func (e *Editor) Truncate() {
	for e.top > 0 && e.root.right.members == 0 {
		e.root = e.root.left
		e.top--
	}
}

// FilteredDirectPath is [Tree.FilteredDirectPath] of the tree as it is now.
func (e *Editor) FilteredDirectPath(l LeafIndex) ([]NodeIndex, error) {
	steps, err := descend(e.root, e.top, l)
	if err != nil {
		return nil, err
	}
	return filtered(steps), nil
}

// SetPath blanks the direct path of l, gives the nodes of its filtered direct
// path the given keys, from the leaf up, sets their parent hashes and returns
// the parent hash that belongs into the leaf (Sections 7.5, 7.9). It touches
// nothing beside the path.
func (e *Editor) SetPath(l LeafIndex, keys []wire.HPKEPublicKey) (leafParentHash []byte, err error) {
	way, err := e.way(l)
	if err != nil {
		return nil, err
	}
	steps, err := descend(e.root, e.top, l)
	if err != nil {
		return nil, err
	}
	if len(filtered(steps)) != len(keys) {
		return nil, atLeaf(l, ErrPath)
	}
	above := []byte{} // parent hash of the last filled node, from the root down
	next := len(keys) - 1
	for i, s := range steps {
		n := way[i]
		n.parent = nil
		if !s.copath.filled {
			continue
		}
		n.parent = &wire.ParentNode{EncryptionKey: slices.Clone(keys[next]), ParentHash: above}
		n.ownParent = true
		above = parentHash(e.cs, n.parent, e.hash(s.copath, s.copathIndex()))
		next--
	}
	settle(way)
	return above, nil
}

// SetLeaf puts a committer's new leaf at l, which may have been blank, and
// leaves the nodes above alone. The leaf is kept as it is.
func (e *Editor) SetLeaf(l LeafIndex, leaf *wire.LeafNode) error {
	way, err := e.way(l)
	if err != nil {
		return err
	}
	way[len(way)-1].leaf = leaf
	settle(way)
	return nil
}
