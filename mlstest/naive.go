package mlstest

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// NaiveTree is a ratchet tree as an array of nodes in the order of RFC 9420
// Appendix C. It keeps no cache and shares nothing: every operation follows the
// words of Sections 4, 7 and 12.1 and costs what it costs.
type NaiveTree struct {
	cs    *suite.Suite
	nodes []*wire.Node // 2*width - 1, blank ones nil
}

// NewNaiveTree copies a tree in the form of the ratchet_tree extension.
func NewNaiveTree(cs *suite.Suite, encoded []byte) (*NaiveTree, error) {
	var nodes wire.RatchetTree
	if err := wire.Unmarshal(encoded, &nodes); err != nil {
		return nil, err
	}
	t := &NaiveTree{cs: cs, nodes: nodes}
	width := 1
	for 2*width-1 < len(nodes) {
		width *= 2
	}
	for len(t.nodes) < 2*width-1 {
		t.nodes = append(t.nodes, nil)
	}
	return t, nil
}

func (t *NaiveTree) width() int { return (len(t.nodes) + 1) / 2 }
func (t *NaiveTree) root() int  { return t.width() - 1 }

func naiveLevel(x int) int {
	k := 0
	for x>>k&1 == 1 {
		k++
	}
	return k
}

func naiveLeft(x int) int  { return x ^ 1<<(naiveLevel(x)-1) }
func naiveRight(x int) int { return x ^ 3<<(naiveLevel(x)-1) }

// ancestors lists the nodes above a leaf, from the leaf up to the root.
func (t *NaiveTree) ancestors(leaf int) []int {
	var down []int
	for x := t.root(); x != 2*leaf; {
		down = append(down, x)
		if 2*leaf < x {
			x = naiveLeft(x)
		} else {
			x = naiveRight(x)
		}
	}
	slices.Reverse(down)
	return down
}

// below reports whether a leaf stands in the subtree of a node.
func below(node, leaf int) bool {
	k := naiveLevel(node)
	return 2*leaf >= node-(1<<k-1) && 2*leaf <= node+(1<<k-1)
}

func copath(node, leaf int) int {
	if below(naiveLeft(node), leaf) {
		return naiveRight(node)
	}
	return naiveLeft(node)
}

// Resolution of Section 4.1.1.
func (t *NaiveTree) Resolution(x int) []int {
	if n := t.nodes[x]; n != nil {
		out := []int{x}
		if n.ParentNode != nil {
			for _, l := range n.ParentNode.UnmergedLeaves {
				out = append(out, int(2*l))
			}
		}
		return out
	}
	if x%2 == 0 {
		return nil
	}
	return append(t.Resolution(naiveLeft(x)), t.Resolution(naiveRight(x))...)
}

// FilteredDirectPath of Section 4.1.2, from the leaf up.
func (t *NaiveTree) FilteredDirectPath(leaf int) []int {
	var out []int
	for _, x := range t.ancestors(leaf) {
		if len(t.Resolution(copath(x, leaf))) > 0 {
			out = append(out, x)
		}
	}
	return out
}

// hash is the tree hash of Section 7.8 of a subtree, without the leaves in
// without: blank, and not in any unmerged_leaves.
func (t *NaiveTree) hash(x int, without []uint32) []byte {
	n := t.nodes[x]
	if x%2 == 0 {
		in := wire.LeafNodeHashInput{LeafIndex: uint32(x / 2)}
		if n != nil && !slices.Contains(without, uint32(x/2)) {
			in.LeafNode = n.LeafNode
		}
		return t.cs.Hash(wire.Marshal(&in))
	}
	in := wire.ParentNodeHashInput{LeftHash: t.hash(naiveLeft(x), without), RightHash: t.hash(naiveRight(x), without)}
	if n != nil {
		p := *n.ParentNode
		p.UnmergedLeaves = nil
		for _, l := range n.ParentNode.UnmergedLeaves {
			if !slices.Contains(without, l) {
				p.UnmergedLeaves = append(p.UnmergedLeaves, l)
			}
		}
		in.ParentNode = &p
	}
	return t.cs.Hash(wire.Marshal(&in))
}

// Hash is the tree hash of the whole tree.
func (t *NaiveTree) Hash() []byte { return t.hash(t.root(), nil) }

// Add is Section 12.1.1; it gives the leaf.
func (t *NaiveTree) Add(leaf *wire.LeafNode) int {
	at := t.leftmostBlank()
	for _, x := range t.ancestors(at) {
		if p := t.nodes[x]; p != nil {
			c := *p.ParentNode
			c.UnmergedLeaves = append(slices.Clone(c.UnmergedLeaves), uint32(at))
			slices.Sort(c.UnmergedLeaves)
			t.nodes[x] = &wire.Node{NodeType: wire.NodeTypeParent, ParentNode: &c}
		}
	}
	t.setLeaf(at, leaf)
	return at
}

// leftmostBlank finds the leftmost blank leaf, extending the tree when there is
// none (Section 7.7).
func (t *NaiveTree) leftmostBlank() int {
	for l := range t.width() {
		if t.nodes[2*l] == nil {
			return l
		}
	}
	l := t.width()
	t.nodes = append(t.nodes, make([]*wire.Node, len(t.nodes)+1)...)
	return l
}

func (t *NaiveTree) setLeaf(at int, leaf *wire.LeafNode) {
	t.nodes[2*at] = &wire.Node{NodeType: wire.NodeTypeLeaf, LeafNode: leaf}
}

// Update is Section 12.1.2.
func (t *NaiveTree) Update(at int, leaf *wire.LeafNode) {
	t.blankPath(at)
	t.setLeaf(at, leaf)
}

// Remove is Section 12.1.3, without the truncation.
func (t *NaiveTree) Remove(at int) {
	t.blankPath(at)
	t.nodes[2*at] = nil
}

func (t *NaiveTree) blankPath(leaf int) {
	for _, x := range t.ancestors(leaf) {
		t.nodes[x] = nil
	}
}

// Truncate is the last step of Section 12.1.3.
func (t *NaiveTree) Truncate() {
	for t.width() > 1 {
		for l := t.width() / 2; l < t.width(); l++ {
			if t.nodes[2*l] != nil {
				return
			}
		}
		t.nodes = t.nodes[:t.width()-1]
	}
}

// Path is Section 7.5: the committer's new leaf and the keys of its filtered
// direct path, with parent hashes.
func (t *NaiveTree) Path(leaf int, path *wire.UpdatePath) error {
	nodes := t.FilteredDirectPath(leaf)
	if len(nodes) != len(path.Nodes) {
		return fmt.Errorf("mlstest: %d nodes in the path, %d in the filtered direct path", len(path.Nodes), len(nodes))
	}
	t.blankPath(leaf)
	var above []byte
	for i := len(nodes) - 1; i >= 0; i-- {
		p := &wire.ParentNode{EncryptionKey: path.Nodes[i].EncryptionKey, ParentHash: above}
		t.nodes[nodes[i]] = &wire.Node{NodeType: wire.NodeTypeParent, ParentNode: p}
		above = t.parentHash(nodes[i], copath(nodes[i], leaf))
	}
	t.setLeaf(leaf, &path.LeafNode)
	if !bytes.Equal(above, path.LeafNode.ParentHash) {
		return fmt.Errorf("mlstest: the leaf has another parent hash")
	}
	return nil
}

// parentHash is Section 7.9 of a node with the given copath child: the original
// tree hash of the sibling leaves out the node's unmerged leaves.
func (t *NaiveTree) parentHash(node, sibling int) []byte {
	p := t.nodes[node].ParentNode
	return t.cs.Hash(wire.Marshal(&wire.ParentHashInput{
		EncryptionKey: p.EncryptionKey, ParentHash: p.ParentHash,
		OriginalSiblingTreeHash: t.hash(sibling, p.UnmergedLeaves),
	}))
}

// Valid checks Section 7.9.2 for every parent: some descendant in the
// resolution of one child covers it by its parent hash.
func (t *NaiveTree) Valid() error {
	for x := 1; x < len(t.nodes); x += 2 {
		n := t.nodes[x]
		if n == nil {
			continue
		}
		covered := 0
		for _, pair := range [][2]int{{naiveLeft(x), naiveRight(x)}, {naiveRight(x), naiveLeft(x)}} {
			want := t.parentHash(x, pair[1])
			for _, d := range t.Resolution(pair[0]) {
				var have []byte
				if l := t.nodes[d].LeafNode; l != nil {
					have = l.ParentHash
				} else {
					have = t.nodes[d].ParentNode.ParentHash
				}
				if bytes.Equal(have, want) {
					covered++
				}
			}
		}
		if covered != 1 {
			return fmt.Errorf("mlstest: %d chains of parent hashes lead to node %d", covered, x)
		}
	}
	return nil
}

// Marshal gives the tree in the form of the ratchet_tree extension.
func (t *NaiveTree) Marshal() []byte {
	nodes := wire.RatchetTree(t.nodes)
	for len(nodes) > 0 && nodes[len(nodes)-1] == nil {
		nodes = nodes[:len(nodes)-1]
	}
	return wire.Marshal(&nodes)
}

// Commit applies a commit to the tree (Section 12.3) and gives the committer's
// leaf. proposals are those that it covers, with their senders.
func (t *NaiveTree) Commit(sender wire.Sender, proposals []SentProposal, path *wire.UpdatePath) (int, error) {
	for _, p := range proposals {
		if u := p.Proposal.Update; u != nil {
			t.Update(int(p.Sender.LeafIndex), &u.LeafNode)
		}
	}
	for _, p := range proposals {
		switch {
		case p.Proposal.Remove != nil:
			t.Remove(int(p.Proposal.Remove.Removed))
		case p.Proposal.SelfRemove != nil:
			t.Remove(int(p.Sender.LeafIndex))
		}
	}
	t.Truncate()
	for _, p := range proposals {
		if a := p.Proposal.Add; a != nil {
			t.Add(&a.KeyPackage.LeafNode)
		}
	}
	committer := int(sender.LeafIndex)
	if sender.SenderType == wire.SenderTypeNewMemberCommit {
		committer = t.leftmostBlank()
	}
	if path == nil {
		return committer, nil
	}
	return committer, t.Path(committer, path)
}

// SentProposal is a proposal with who sent it.
type SentProposal struct {
	Sender   wire.Sender
	Proposal *wire.Proposal
}
