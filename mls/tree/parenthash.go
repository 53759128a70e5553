package tree

import (
	"bytes"
	"slices"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// checkParentHashes checks that exactly one chain of parent hashes covers every
// filled parent (Section 7.9.2). It looks top down for the one node under each
// parent that was set together with it; because it does so for every parent,
// each such node leads on to a leaf.
func (t *Tree) checkParentHashes() (err error) {
	o := originals{suite: t.cs, known: map[*node][]original{}}
	walk(t.root, t.Root(), func(n *node, at NodeIndex) bool {
		if err != nil || n.parent == nil {
			return err == nil && n.filled
		}
		links := 0
		for _, side := range [2]struct {
			child, sibling     *node
			atChild, atSibling NodeIndex
		}{
			{n.left, n.right, at.Left(), at.Right()},
			{n.right, n.left, at.Right(), at.Left()},
		} {
			found := settledWith(n.parent.UnmergedLeaves, side.child, side.atChild)
			if found == nil {
				continue
			}
			unmerged := within(n.parent.UnmergedLeaves, side.atSibling)
			want := parentHash(t.cs, n.parent, o.hash(side.sibling, side.atSibling, unmerged))
			if bytes.Equal(found, want) {
				links++
			}
		}
		if links != 1 {
			err = atNode(at, ErrParentHash)
		}
		return err == nil
	})
	return err
}

// settledWith returns the parent hash of the only node that can have been set
// together with a parent whose unmerged leaves and child are given: the child's
// resolution must be that node and exactly those of the unmerged leaves that are
// below the child (Section 7.9.2). It is nil when there is no such node, or one
// that carries no parent hash.
func settledWith(unmerged []uint32, child *node, at NodeIndex) []byte {
	below := within(unmerged, at)
	var hash []byte
	count, dropped := 0, 0
	var visit func(n *node, at NodeIndex) bool // false: more than one node is left
	candidate := func(l uint32, h []byte) bool {
		if _, is := slices.BinarySearch(below, l); is {
			dropped++
			return true
		}
		hash = h
		count++
		return count < 2
	}
	visit = func(n *node, at NodeIndex) bool {
		switch {
		case !n.filled:
			return true
		case n.leaf != nil:
			var h []byte
			if n.leaf.LeafNodeSource == wire.LeafNodeSourceCommit {
				h = n.leaf.ParentHash
			}
			return candidate(uint32(at.Leaf()), h)
		case n.parent != nil:
			hash = n.parent.ParentHash
			// mutants: equivalent: the count is looked at again; this ends the search
			if count++; count > 1 {
				return false
			}
			for _, l := range n.parent.UnmergedLeaves {
				if !candidate(l, nil) {
					return false
				}
			}
			return true
		}
		return visit(n.left, at.Left()) && visit(n.right, at.Right())
	}
	if !visit(child, at) || count != 1 || dropped != len(below) {
		return nil
	}
	return hash
}

// within returns the part of a sorted list of leaves that is below at.
func within(list []uint32, at NodeIndex) []uint32 {
	first, count := at.span()
	from, _ := slices.BinarySearch(list, uint32(first))
	to, _ := slices.BinarySearch(list, uint32(first)+count)
	return list[from:to]
}

// originals computes original sibling tree hashes (Section 7.9) and remembers
// them: the hash of a subtree is reused as long as the same leaves below it are
// to be left out.
type originals struct {
	suite *suite.Suite
	known map[*node][]original
	buf   []byte
}

type original struct {
	unmerged []uint32
	hash     []byte
}

// hash returns the tree hash that the subtree n would have without the leaves
// in unmerged, which is sorted and holds only leaves below n.
func (o *originals) hash(n *node, at NodeIndex, unmerged []uint32) []byte {
	if len(unmerged) == 0 {
		return n.hash
	}
	for _, k := range o.known[n] {
		if slices.Equal(k.unmerged, unmerged) {
			return k.hash
		}
	}
	var h []byte
	if n.left == nil {
		input := wire.LeafNodeHashInput{LeafIndex: uint32(at.Leaf())} // blanked
		o.buf = input.AppendTo(o.buf[:0])
		h = o.suite.Hash(o.buf)
	} else {
		input := wire.ParentNodeHashInput{
			LeftHash:  o.hash(n.left, at.Left(), within(unmerged, at.Left())),
			RightHash: o.hash(n.right, at.Right(), within(unmerged, at.Right())),
		}
		if n.parent != nil {
			p := *n.parent
			p.UnmergedLeaves = slices.DeleteFunc(slices.Clone(p.UnmergedLeaves), func(l uint32) bool {
				_, out := slices.BinarySearch(unmerged, l)
				return out
			})
			input.ParentNode = &p
		}
		o.buf = input.AppendTo(o.buf[:0])
		h = o.suite.Hash(o.buf)
	}
	o.known[n] = append(o.known[n], original{unmerged, h})
	return h
}
