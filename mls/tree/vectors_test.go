package tree

import (
	"bytes"
	"slices"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
	"github.com/askucher/compax-core/mls/suite"
	_ "github.com/askucher/compax-core/mls/suite/suite448"
	"github.com/askucher/compax-core/mls/wire"
)

func lookup(t testing.TB, id wire.CipherSuite) *suite.Suite {
	t.Helper()
	cs, err := suite.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func TestVectorsTreeMath(t *testing.T) {
	type vector struct {
		Leaves  uint32       `json:"n_leaves"`
		Nodes   uint32       `json:"n_nodes"`
		Root    NodeIndex    `json:"root"`
		Left    []*NodeIndex `json:"left"`
		Right   []*NodeIndex `json:"right"`
		Parent  []*NodeIndex `json:"parent"`
		Sibling []*NodeIndex `json:"sibling"`
	}
	for _, v := range testdata.Vectors[vector](t, "tree-math.json") {
		testdata.Ran(t, "tree-math.json", 0)
		if got := Root(v.Leaves); got != v.Root {
			t.Errorf("root of %d leaves = %d, want %d", v.Leaves, got, v.Root)
		}
		if got := 2*v.Leaves - 1; got != v.Nodes {
			t.Errorf("%d leaves: %d nodes, want %d", v.Leaves, got, v.Nodes)
		}
		for i := range NodeIndex(v.Nodes) {
			check := func(name string, want *NodeIndex, got NodeIndex) {
				if want != nil && *want != got {
					t.Errorf("%d leaves: %s(%d) = %d, want %d", v.Leaves, name, i, got, *want)
				}
			}
			if (v.Left[i] == nil) != i.IsLeaf() || (v.Parent[i] == nil) != (i == v.Root) {
				t.Errorf("%d leaves: node %d is not where the vector has it", v.Leaves, i)
			}
			if !i.IsLeaf() {
				check("left", v.Left[i], i.Left())
				check("right", v.Right[i], i.Right())
			}
			check("parent", v.Parent[i], i.Parent())
			check("sibling", v.Sibling[i], i.Sibling())
		}
	}
}

func TestVectorsTreeOperations(t *testing.T) {
	type vector struct {
		CipherSuite wire.CipherSuite `json:"cipher_suite"`
		Before      testdata.Hex     `json:"tree_before"`
		After       testdata.Hex     `json:"tree_after"`
		HashBefore  testdata.Hex     `json:"tree_hash_before"`
		HashAfter   testdata.Hex     `json:"tree_hash_after"`
		Proposal    testdata.Hex     `json:"proposal"`
		Sender      LeafIndex        `json:"proposal_sender"`
	}
	for i, v := range testdata.Vectors[vector](t, "tree-operations.json") {
		testdata.Ran(t, "tree-operations.json", uint16(v.CipherSuite))
		u, err := ParseBytes(lookup(t, v.CipherSuite), v.Before)
		if err != nil {
			t.Fatal(err)
		}
		before := u.Trust()
		if !bytes.Equal(before.Hash(), v.HashBefore) {
			t.Errorf("case %d: tree hash before", i)
		}
		var p wire.Proposal
		if err := wire.Unmarshal(v.Proposal, &p); err != nil {
			t.Fatal(err)
		}
		e := before.Edit()
		switch p.ProposalType {
		case wire.ProposalTypeAdd:
			_, err = e.Add(&p.Add.KeyPackage.LeafNode)
		case wire.ProposalTypeUpdate:
			err = e.Update(v.Sender, &p.Update.LeafNode)
		case wire.ProposalTypeRemove:
			err = e.Remove(LeafIndex(p.Remove.Removed))
			e.Truncate()
		default:
			t.Fatalf("case %d: %s", i, p.ProposalType)
		}
		if err != nil {
			t.Fatalf("case %d: %s: %v", i, p.ProposalType, err)
		}
		after := e.Freeze()
		if !bytes.Equal(after.Marshal(), v.After) || !bytes.Equal(after.Hash(), v.HashAfter) {
			t.Errorf("case %d: %s gives another tree", i, p.ProposalType)
		}
		if !bytes.Equal(before.Marshal(), v.Before) {
			t.Errorf("case %d: %s changed the tree before", i, p.ProposalType)
		}
	}
}

type validationVector struct {
	CipherSuite wire.CipherSuite `json:"cipher_suite"`
	Tree        testdata.Hex     `json:"tree"`
	GroupID     testdata.Hex     `json:"group_id"`
	Hashes      []testdata.Hex   `json:"tree_hashes"`
	Resolutions [][]NodeIndex    `json:"resolutions"`
}

func TestVectorsTreeValidation(t *testing.T) {
	for i, v := range testdata.Vectors[validationVector](t, "tree-validation.json") {
		testdata.Ran(t, "tree-validation.json", uint16(v.CipherSuite))
		cs := lookup(t, v.CipherSuite)
		u, err := ParseBytes(cs, v.Tree)
		if err != nil {
			t.Fatalf("case %d: %v", i, err)
		}
		tree, err := u.Verify(VerifyOptions{GroupID: v.GroupID, TreeHash: u.Hash(), Parallel: i%2 == 0})
		if err != nil {
			t.Errorf("case %d, suite %d: %v", i, v.CipherSuite, err)
			continue
		}
		if len(v.Resolutions) != int(2*tree.Width()-1) {
			t.Fatalf("case %d: %d resolutions", i, len(v.Resolutions))
		}
		for n := range NodeIndex(len(v.Resolutions)) {
			if got := tree.Resolution(n, nil); !slices.Equal(got, v.Resolutions[n]) {
				t.Errorf("case %d: resolution of %d = %v, want %v", i, n, got, v.Resolutions[n])
			}
			if !bytes.Equal(tree.HashAt(n), v.Hashes[n]) {
				t.Errorf("case %d: tree hash of %d", i, n)
			}
		}
		if !bytes.Equal(tree.Marshal(), v.Tree) {
			t.Errorf("case %d: encoding the tree again gives other bytes", i)
		}
		// Any byte of the tree that is flipped must be noticed.
		for _, at := range []int{len(v.Tree) / 3, len(v.Tree) / 2, len(v.Tree) - 1} {
			bad := slices.Clone(v.Tree)
			bad[at] ^= 1
			u, err := ParseBytes(cs, bad)
			if err == nil {
				_, err = u.Verify(VerifyOptions{GroupID: v.GroupID})
			}
			if err == nil {
				t.Errorf("case %d: byte %d flipped, and the tree still verifies", i, at)
			}
		}
	}
}
