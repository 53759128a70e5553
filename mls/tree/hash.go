package tree

import (
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// hash returns the tree hash of n (Section 7.8) and computes it, with the
// summary, for every node below that lacks it. Only nodes that e made lack it.
func (e *Editor) hash(n *node, at NodeIndex) []byte {
	if n.hash != nil {
		return n.hash
	}
	if n.left == nil {
		input := wire.LeafNodeHashInput{LeafIndex: uint32(at.Leaf()), LeafNode: n.leaf}
		e.buf = input.AppendTo(e.buf[:0])
		n.sum = summarise(n.leaf)
	} else {
		input := wire.ParentNodeHashInput{
			ParentNode: n.parent,
			LeftHash:   e.hash(n.left, at.Left()),
			RightHash:  e.hash(n.right, at.Right()),
		}
		e.buf = input.AppendTo(e.buf[:0])
		n.sum = combine(n.left.sum, n.right.sum)
	}
	n.hash = e.cs.Hash(e.buf)
	n.marks = marks(n)
	return n.hash
}

// parentHash is the parent hash of p with a copath child whose original tree
// hash is given (Section 7.9).
func parentHash(cs *suite.Suite, p *wire.ParentNode, originalSiblingTreeHash []byte) []byte {
	input := wire.ParentHashInput{
		EncryptionKey:           p.EncryptionKey,
		ParentHash:              p.ParentHash,
		OriginalSiblingTreeHash: originalSiblingTreeHash,
	}
	return cs.Hash(wire.Marshal(&input))
}
