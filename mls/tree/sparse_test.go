package tree

import (
	"errors"
	"runtime"
	"testing"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// sparse encodes a tree of blank nodes with one leaf, the last node.
func sparse(leaves int, key []byte) []byte {
	nodes := make(wire.RatchetTree, 2*leaves-1)
	nodes[len(nodes)-1] = &wire.Node{NodeType: wire.NodeTypeLeaf, LeafNode: &wire.LeafNode{
		EncryptionKey: key, LeafNodeSource: wire.LeafNodeSourceUpdate,
	}}
	return wire.Marshal(&nodes)
}

func suite1(t *testing.T) *suite.Suite {
	t.Helper()
	cs, err := suite.Lookup(suite.X25519AES128GCMSHA256Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A byte says that a node is blank, and a node takes a hundred and more to keep:
// a wide tree without members must not be built.
func TestTrap02SparseTrees(t *testing.T) {
	key := make([]byte, 32)
	key[0] = 9
	for _, leaves := range []int{2 * maxSparse, 1 << 20} {
		data := sparse(leaves, key)
		used := allocated(func() {
			if _, err := ParseBytes(suite1(t), data); !errors.Is(err, ErrMalformed) {
				t.Errorf("%d leaves, one of them filled: %v", leaves, err)
			}
		})
		if limit := 2 * uint64(len(data)); used > limit {
			t.Errorf("%d leaves: %d bytes are allocated for %d", leaves, used, len(data))
		}
	}
	if _, err := ParseBytes(suite1(t), sparse(maxSparse, key)); err != nil {
		t.Errorf("%d leaves, one of them filled: %v", maxSparse, err)
	}
}

// A wide tree is taken when one leaf in four is a member.
func TestWideTrees(t *testing.T) {
	const leaves = 2 * maxSparse
	key := make([]byte, 32)
	key[0] = 9
	leaf := &wire.Node{NodeType: wire.NodeTypeLeaf, LeafNode: &wire.LeafNode{
		EncryptionKey: key, LeafNodeSource: wire.LeafNodeSourceUpdate,
	}}
	nodes := make(wire.RatchetTree, 2*leaves-1)
	nodes[len(nodes)-1] = leaf
	for i := range leaves/leavesPerMember - 1 {
		nodes[2*i] = leaf
	}
	u, err := ParseBytes(suite1(t), wire.Marshal(&nodes))
	if err != nil {
		t.Fatal(err)
	}
	if u.t.Members() != leaves/leavesPerMember {
		t.Errorf("it has %d members", u.t.Members())
	}
	nodes[0] = nil
	if _, err := ParseBytes(suite1(t), wire.Marshal(&nodes)); !errors.Is(err, ErrMalformed) {
		t.Errorf("with one member fewer: %v", err)
	}
}

// The smallest leaf that decodes has 13 bytes and takes some hundreds to keep;
// one whose key has the right size does not come so cheap.
func TestTrap02TinyNodes(t *testing.T) {
	leaf := &wire.Node{NodeType: wire.NodeTypeLeaf, LeafNode: &wire.LeafNode{LeafNodeSource: wire.LeafNodeSourceUpdate}}
	parent := &wire.Node{NodeType: wire.NodeTypeParent, ParentNode: &wire.ParentNode{}}
	nodes := make(wire.RatchetTree, 1<<17-1)
	for i := range nodes {
		if nodes[i] = leaf; i%2 == 1 {
			nodes[i] = parent
		}
	}
	data := wire.Marshal(&nodes)
	used := allocated(func() {
		if _, err := ParseBytes(suite1(t), data); !errors.Is(err, ErrPublicKey) {
			t.Errorf("keys of no bytes: %v", err)
		}
	})
	if limit := 2 * uint64(len(data)); used > limit {
		t.Errorf("%d bytes are allocated for %d", used, len(data))
	}
}
