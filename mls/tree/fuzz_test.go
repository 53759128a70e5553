package tree

import (
	"bytes"
	"testing"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// FuzzTree reads any bytes as a ratchet tree. What is accepted encodes to the
// same bytes again; verifying and walking it never panics; a tree that verifies
// agrees with the naive model.
func FuzzTree(f *testing.F) {
	cs, err := suite.Lookup(suite.X25519AES128GCMSHA256Ed25519)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add(wire.AppendOpaque(nil, []byte{0, 0, 0}))
	for _, n := range []int{1, 2, 5} {
		f.Add(seedTree(f, n))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		u, err := ParseBytes(cs, data)
		if err != nil {
			return
		}
		tr := u.Trust()
		if !bytes.Equal(tr.Marshal(), data) {
			t.Fatal("encoding gives other bytes")
		}
		_, verdict := u.Verify(VerifyOptions{GroupID: []byte("history")})
		if tr.Width() > 64 {
			return
		}
		model := &naive{cs: cs, nodes: make([]*wire.Node, 2*tr.Width()-1)}
		copy(model.nodes, tr.RatchetTree())
		if !bytes.Equal(model.treeHash(model.root()), tr.Hash()) {
			t.Fatal("the tree hash is not the model's")
		}
		if verdict == nil && !model.parentHashValid() {
			t.Fatal("it verifies, and the model's parent hashes are not valid")
		}
	})
}

// seedTree is a valid tree of n members who each added the next.
func seedTree(f *testing.F, n int) []byte {
	h := newHistory(f, uint64(n))
	for range n - 1 {
		h.step(1, 0, 0, true)
	}
	return h.tree.Marshal()
}

// FuzzDelta applies any bytes as a stored change: an error or a tree, no panic,
// and memory by the size of the change.
func FuzzDelta(f *testing.F) {
	h := newHistory(f, 5)
	for range 4 {
		before := h.tree
		h.step(1, 0, 0, true)
		f.Add(h.tree.AppendDelta(nil, before))
	}
	base := h.tree
	for range 3 {
		h.step(0, 1, 1, true)
		f.Add(h.tree.AppendDelta(nil, base))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := wire.NewReader(data)
		after, err := base.ApplyDelta(r)
		if err != nil || r.Finish() != nil {
			return
		}
		if int(after.Width()) > 4*(int(base.Width())+len(data)) {
			t.Fatalf("%d bytes make a tree of %d leaves", len(data), after.Width())
		}
	})
}
