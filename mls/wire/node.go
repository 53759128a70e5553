package wire

import (
	"bytes"
	"slices"
)

// ParentNode is an inner node of the ratchet tree (§7.1). UnmergedLeaves holds
// leaf indices; that they ascend is checked by the tree.
type ParentNode struct {
	EncryptionKey  HPKEPublicKey
	ParentHash     []byte
	UnmergedLeaves []uint32
}

// AppendTo implements [Encoder].
func (p *ParentNode) AppendTo(b []byte) []byte {
	b = AppendOpaque(b, p.EncryptionKey)
	b = AppendOpaque(b, p.ParentHash)
	return AppendUint32Vector(b, p.UnmergedLeaves)
}

// DecodeFrom implements [Decoder].
func (p *ParentNode) DecodeFrom(r *Reader) {
	in := r.Begin("ParentNode")
	p.EncryptionKey = r.Opaque()
	p.ParentHash = r.Opaque()
	p.UnmergedLeaves = ReadUint32Vector[uint32](r)
	r.End(in)
}

// Clone returns a copy that shares no memory with p.
func (p *ParentNode) Clone() *ParentNode {
	return &ParentNode{
		EncryptionKey:  bytes.Clone(p.EncryptionKey),
		ParentHash:     bytes.Clone(p.ParentHash),
		UnmergedLeaves: slices.Clone(p.UnmergedLeaves),
	}
}

// Node is a node of a serialised ratchet tree (§12.4.3.3).
type Node struct {
	NodeType   NodeType
	LeafNode   *LeafNode
	ParentNode *ParentNode
}

// AppendTo implements [Encoder].
func (n *Node) AppendTo(b []byte) []byte {
	b = AppendUint8(b, uint8(n.NodeType))
	switch n.NodeType {
	case NodeTypeLeaf:
		return n.LeafNode.AppendTo(b)
	case NodeTypeParent:
		return n.ParentNode.AppendTo(b)
	}
	return b
}

// DecodeFrom implements [Decoder].
func (n *Node) DecodeFrom(r *Reader) {
	in := r.Begin("Node")
	n.NodeType = NodeType(r.Uint8())
	switch n.NodeType {
	case NodeTypeLeaf:
		n.LeafNode = new(LeafNode)
		n.LeafNode.DecodeFrom(r)
	case NodeTypeParent:
		n.ParentNode = new(ParentNode)
		n.ParentNode.DecodeFrom(r)
	default:
		r.Fail(ErrValue)
	}
	r.End(in)
}

// RatchetTree is the content of the ratchet_tree extension of a GroupInfo:
// optional<Node> ratchet_tree<V> (§12.4.3.3). Blank nodes are nil. That the
// last node is not blank and that leaves stand at even positions is checked by
// the tree.
type RatchetTree []*Node

// AppendTo implements [Encoder].
func (t *RatchetTree) AppendTo(b []byte) []byte {
	b, mark := OpenVector(b)
	for _, n := range *t {
		b = AppendOptional(b, n)
	}
	return CloseVector(b, mark)
}

// DecodeFrom implements [Decoder].
func (t *RatchetTree) DecodeFrom(r *Reader) {
	in := r.Begin("ratchet_tree")
	var nodes []*Node
	outer := r.EnterVector()
	for r.More() {
		nodes = append(nodes, ReadOptional[Node](r))
	}
	r.LeaveVector(outer)
	*t = nodes
	r.End(in)
}

// LeafNodeHashInput is hashed for the tree hash of a leaf (§7.8). A blank leaf
// is nil.
type LeafNodeHashInput struct {
	LeafIndex uint32
	LeafNode  *LeafNode
}

// ParentNodeHashInput is hashed for the tree hash of a parent (§7.8). A blank
// parent is nil.
type ParentNodeHashInput struct {
	ParentNode *ParentNode
	LeftHash   []byte
	RightHash  []byte
}

// AppendTo appends the TreeHashInput of a leaf: its node type, then itself.
func (h *LeafNodeHashInput) AppendTo(b []byte) []byte {
	b = AppendUint8(b, uint8(NodeTypeLeaf))
	b = AppendUint32(b, h.LeafIndex)
	return AppendOptional(b, h.LeafNode)
}

// AppendTo appends the TreeHashInput of a parent: its node type, then itself.
func (h *ParentNodeHashInput) AppendTo(b []byte) []byte {
	b = AppendUint8(b, uint8(NodeTypeParent))
	b = AppendOptional(b, h.ParentNode)
	b = AppendOpaque(b, h.LeftHash)
	return AppendOpaque(b, h.RightHash)
}

// ParentHashInput is hashed for a parent hash (§7.9).
type ParentHashInput struct {
	EncryptionKey           HPKEPublicKey
	ParentHash              []byte
	OriginalSiblingTreeHash []byte
}

// AppendTo implements [Encoder].
func (h *ParentHashInput) AppendTo(b []byte) []byte {
	b = AppendOpaque(b, h.EncryptionKey)
	b = AppendOpaque(b, h.ParentHash)
	return AppendOpaque(b, h.OriginalSiblingTreeHash)
}
