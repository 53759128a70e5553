package tree

import (
	"slices"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// naive is a ratchet tree written straight after RFC 9420, Appendix C and
// Sections 4, 7 and 12.1: an array, nothing cached, everything computed from the
// definitions. Random histories compare Tree with it.
type naive struct {
	cs    *suite.Suite
	nodes []*wire.Node // 2^(d+1) - 1, nil for blank
}

func (m *naive) clone() *naive {
	c := &naive{cs: m.cs, nodes: make([]*wire.Node, len(m.nodes))}
	for i, n := range m.nodes {
		if n == nil {
			continue
		}
		c.nodes[i] = &wire.Node{NodeType: n.NodeType, LeafNode: n.LeafNode}
		if n.ParentNode != nil {
			c.nodes[i].ParentNode = n.ParentNode.Clone()
		}
	}
	return c
}

func naiveLevel(x int) int {
	k := 0
	for x>>k&1 == 1 {
		k++
	}
	return k
}

func (m *naive) root() int       { return len(m.nodes) / 2 }
func (m *naive) width() int      { return len(m.nodes)/2 + 1 }
func naiveLeft(x int) int        { return x ^ 1<<(naiveLevel(x)-1) }
func naiveRight(x int) int       { return x ^ 3<<(naiveLevel(x)-1) }
func (m *naive) leaf(l int) bool { return m.nodes[2*l] != nil }

func (m *naive) parent(x int) int {
	k := naiveLevel(x)
	b := x >> (k + 1) & 1
	return (x | 1<<k) ^ b<<(k+1)
}

func (m *naive) sibling(x int) int {
	p := m.parent(x)
	if x < p {
		return naiveRight(p)
	}
	return naiveLeft(p)
}

func (m *naive) directPath(x int) (path []int) {
	for x != m.root() {
		x = m.parent(x)
		path = append(path, x)
	}
	return path
}

func (m *naive) resolution(x int) []int {
	n := m.nodes[x]
	switch {
	case n != nil && n.LeafNode != nil:
		return []int{x}
	case n != nil:
		list := []int{x}
		for _, l := range n.ParentNode.UnmergedLeaves {
			list = append(list, 2*int(l))
		}
		return list
	case x%2 == 0:
		return nil
	}
	return append(m.resolution(naiveLeft(x)), m.resolution(naiveRight(x))...)
}

func (m *naive) filteredDirectPath(l int) (path []int) {
	x := 2 * l
	for x != m.root() {
		if len(m.resolution(m.sibling(x))) > 0 {
			path = append(path, m.parent(x))
		}
		x = m.parent(x)
	}
	return path
}

func (m *naive) treeHash(x int) []byte {
	n := m.nodes[x]
	if x%2 == 0 {
		input := wire.LeafNodeHashInput{LeafIndex: uint32(x / 2)}
		if n != nil {
			input.LeafNode = n.LeafNode
		}
		return m.cs.Hash(input.AppendTo(nil))
	}
	input := wire.ParentNodeHashInput{LeftHash: m.treeHash(naiveLeft(x)), RightHash: m.treeHash(naiveRight(x))}
	if n != nil {
		input.ParentNode = n.ParentNode
	}
	return m.cs.Hash(input.AppendTo(nil))
}

// parentHash is the parent hash of p with copath child s, from the tree in which
// p's unmerged leaves are blanked and taken out of all lists.
func (m *naive) parentHash(p, s int) []byte {
	original := m.clone()
	for _, l := range m.nodes[p].ParentNode.UnmergedLeaves {
		original.nodes[2*l] = nil
		for _, n := range original.nodes {
			if n != nil && n.ParentNode != nil {
				n.ParentNode.UnmergedLeaves = slices.DeleteFunc(n.ParentNode.UnmergedLeaves, func(x uint32) bool { return x == l })
			}
		}
	}
	return m.cs.Hash(wire.Marshal(&wire.ParentHashInput{
		EncryptionKey:           m.nodes[p].ParentNode.EncryptionKey,
		ParentHash:              m.nodes[p].ParentNode.ParentHash,
		OriginalSiblingTreeHash: original.treeHash(s),
	}))
}

func (m *naive) below(x, l int) bool {
	k := naiveLevel(x)
	return 2*l >= x-(1<<k-1) && 2*l <= x+(1<<k-1)
}

// parentHashValid reports whether each filled parent is covered by exactly one
// link (Section 7.9.2), trying every descendant.
func (m *naive) parentHashValid() bool {
	for p, n := range m.nodes {
		if n == nil || n.ParentNode == nil {
			continue
		}
		links := 0
		for _, c := range []int{naiveLeft(p), naiveRight(p)} {
			want := string(m.parentHash(p, m.sibling(c)))
			res := m.resolution(c)
			for _, d := range res {
				var have []byte
				switch dn := m.nodes[d]; {
				case dn.ParentNode != nil:
					have = dn.ParentNode.ParentHash
				case dn.LeafNode.LeafNodeSource == wire.LeafNodeSourceCommit:
					have = dn.LeafNode.ParentHash
				default:
					continue
				}
				var rest, unmerged []int
				for _, x := range res {
					if x != d {
						rest = append(rest, x)
					}
				}
				for _, l := range n.ParentNode.UnmergedLeaves {
					if m.below(c, int(l)) {
						unmerged = append(unmerged, 2*int(l))
					}
				}
				slices.Sort(rest)
				if string(have) == want && slices.Equal(rest, unmerged) {
					links++
				}
			}
		}
		if links != 1 {
			return false
		}
	}
	return true
}

func (m *naive) add(leaf *wire.LeafNode) int {
	l := 0
	for l < m.width() && m.leaf(l) {
		l++
	}
	if l == m.width() {
		m.nodes = append(m.nodes, make([]*wire.Node, len(m.nodes)+1)...)
	}
	for _, x := range m.directPath(2 * l) {
		if n := m.nodes[x]; n != nil {
			n.ParentNode.UnmergedLeaves = append(n.ParentNode.UnmergedLeaves, uint32(l))
			slices.Sort(n.ParentNode.UnmergedLeaves)
		}
	}
	m.nodes[2*l] = &wire.Node{NodeType: wire.NodeTypeLeaf, LeafNode: leaf}
	return l
}

func (m *naive) update(l int, leaf *wire.LeafNode) {
	m.nodes[2*l] = &wire.Node{NodeType: wire.NodeTypeLeaf, LeafNode: leaf}
	for _, x := range m.directPath(2 * l) {
		m.nodes[x] = nil
	}
}

func (m *naive) remove(l int) {
	m.update(l, nil)
	m.nodes[2*l] = nil
	for m.width() > 1 {
		right := m.nodes[len(m.nodes)/2+1:]
		if slices.ContainsFunc(right, func(n *wire.Node) bool { return n != nil && n.LeafNode != nil }) {
			return
		}
		m.nodes = m.nodes[:len(m.nodes)/2]
	}
}

// setPath is Section 7.5; it returns the parent hash for the leaf.
func (m *naive) setPath(l int, keys []wire.HPKEPublicKey) []byte {
	path := m.filteredDirectPath(l)
	for _, x := range m.directPath(2 * l) {
		m.nodes[x] = nil
	}
	above := []byte(nil)
	for i := len(path) - 1; i >= 0; i-- {
		p := path[i]
		m.nodes[p] = &wire.Node{NodeType: wire.NodeTypeParent, ParentNode: &wire.ParentNode{EncryptionKey: keys[i], ParentHash: above}}
		copath := naiveLeft(p)
		if m.below(copath, l) {
			copath = naiveRight(p)
		}
		above = m.parentHash(p, copath)
	}
	return above
}

func (m *naive) marshal() []byte {
	last := len(m.nodes) - 1
	for m.nodes[last] == nil {
		last--
	}
	nodes := wire.RatchetTree(m.nodes[:last+1])
	return wire.Marshal(&nodes)
}
