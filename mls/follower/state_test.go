package follower

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// TestStoredState loads a base with many changes, and refuses whatever is not
// exactly what was written, where it was written.
func TestStoredState(t *testing.T) {
	w := grown(t, 9)
	base := w.g.Marshal()
	first := w.g
	var deltas [][]byte
	commit := func(ac *wire.AuthenticatedContent) {
		s, err := w.g.StageCommit(ac, w.options)
		w.must(err)
		deltas = append(deltas, s.Delta())
		w.g = s.Apply()
	}
	commit(w.commit(member(1), values(remove(8)), bad{})) // 16 leaves become 8
	commit(w.commit(member(2), values(w.client("a").add(), w.client("b").add()), bad{}))
	commit(w.commit(member(3), values(appUpdate(testComponent, "x")), bad{noPath: true}))
	commit(w.commit(member(4), nil, bad{}))
	loaded, err := Load(base, deltas...)
	w.must(err)
	if !bytes.Equal(loaded.Marshal(), w.g.Marshal()) || !bytes.Equal(loaded.InterimTranscriptHash(), w.g.InterimTranscriptHash()) {
		t.Fatal("another state")
	}

	refused := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = Load(base, deltas[1:]...)
	refused("a change missing", err)
	_, err = Load(base, deltas[0], deltas[0])
	refused("a change twice", err)
	_, err = Load(nil)
	refused("nothing", err)
	for i := range base {
		damaged := bytes.Clone(base)
		damaged[i] ^= 4
		_, err := Unmarshal(damaged)
		refused(fmt.Sprintf("base: byte %d", i), err)
	}
	for i := range deltas[1] {
		damaged := bytes.Clone(deltas[1])
		damaged[i] ^= 4
		_, err := Load(base, deltas[0], damaged)
		refused(fmt.Sprintf("change: byte %d", i), err)
		_, err = Load(base, deltas[0], deltas[1][:i])
		refused(fmt.Sprintf("change: cut at %d", i), err)
	}

	// Two commits that lead to the same tree: a change on one does not follow on
	// the other.
	fork := func() *Staged {
		s, err := first.StageCommit(commitIn(w, first), w.options)
		w.must(err)
		return s
	}
	a, b := fork().Apply(), fork().Apply()
	s, err := a.StageCommit(commitIn(w, a), w.options)
	w.must(err)
	_, err = a.ApplyDelta(s.Delta())
	w.must(err)
	_, err = b.ApplyDelta(s.Delta())
	refused("a change of a fork", err)

	// Damage that has a right checksum is found by what the state means.
	resealed := func(b []byte, spoil func([]byte)) []byte {
		b = bytes.Clone(b[:len(b)-sha256.Size])
		spoil(b)
		return seal(b, 0)
	}
	_, err = Unmarshal(resealed(base, func(b []byte) { b[0] = 9 }))
	refused("a version of the future", err)
	_, err = Unmarshal(resealed(base, func(b []byte) { b[1] = 2 }))
	refused("an unknown flag", err)
	_, err = Unmarshal(resealed(base, func(b []byte) { b[len(b)-9] ^= 1 }))
	refused("another tree", err)
	_, err = Unmarshal(resealed(base, func(b []byte) { b[5] ^= 0x80 }))
	refused("an unknown suite", err)
	_, err = first.ApplyDelta(resealed(deltas[0], func(b []byte) { b[0] = 9 }))
	refused("a change of the future", err)
	_, err = first.ApplyDelta(resealed(deltas[0], func(b []byte) { b[2+17+7] += 5 }))
	refused("a change that skips epochs", err)
	_, err = first.ApplyDelta(resealed(deltas[0], func(b []byte) { b[1] = 200 }))
	refused("a change with an unknown flag", err)
	_, err = first.ApplyDelta(resealed(deltas[0], func(b []byte) { b[len(b)-3] ^= 1 }))
	refused("a change to another tree", err)
}

// commitIn is a commit of member 1 in a group that is not the world's current one.
func commitIn(w *world, g *Group) *wire.AuthenticatedContent {
	here := w.g
	defer func() { w.g = here }()
	w.g = g
	return w.commit(member(1), values(w.psk()), bad{noPath: true})
}

// TestDeltaBomb: a stored change cannot make a tree wider than its leaves allow.
func TestDeltaBomb(t *testing.T) {
	w := grown(t, 3)
	for _, top := range []uint8{4, 24, 25, 63, 255} {
		b := wire.AppendUint8(nil, top)
		b = wire.AppendVarint(b, 0)
		if _, err := w.g.Tree().ApplyDelta(wire.NewReader(b)); !errors.Is(err, tree.ErrDelta) {
			t.Errorf("2^%d leaves: %v", top, err)
		}
	}
}

// TestDeltaIsOfThePath: what a commit adds to the store follows the path, not the
// tree.
func TestDeltaIsOfThePath(t *testing.T) {
	small, large := grown(t, 8), grown(t, 256)
	size := func(w *world) int {
		s, err := w.g.StageCommit(w.commit(member(1), nil, bad{}), w.options)
		w.must(err)
		return len(s.Delta())
	}
	a, b := size(small), size(large)
	// Five more levels: five more keys and parent hashes of 32 bytes.
	if b > a+5*100 {
		t.Errorf("a change of %d bytes among 8 members, of %d among 256", a, b)
	}
	s, err := large.g.StageCommit(large.commit(member(0), values(large.client("new").add()), bad{noPath: true}), large.options)
	large.must(err)
	if n := len(s.Delta()); n > 1200 {
		t.Errorf("an Add is a change of %d bytes", n)
	}
}

// TestRestore: held proposals come back from what was stored of them, once each.
func TestRestore(t *testing.T) {
	w := grown(t, 4)
	ac := w.propose(2, w.update(2))
	ref := w.hold(ac)
	again, err := w.g.HoldProposal(ac, w.options)
	w.must(err)
	if len(again.Proposals()) != 1 || !again.HasProposals() || again.Proposal(ref.Reference) == nil {
		t.Fatalf("%d proposals", len(again.Proposals()))
	}
	loaded, err := Unmarshal(w.g.Marshal())
	w.must(err)
	if loaded.HasProposals() {
		t.Fatal("a base has proposals")
	}
	stored := new(wire.AuthenticatedContent)
	w.must(wire.Unmarshal(wire.Marshal(ac), stored))
	loaded = loaded.Restore(stored).Restore(stored)
	if len(loaded.Proposals()) != 1 {
		t.Fatalf("%d proposals", len(loaded.Proposals()))
	}
	commit := w.commit(member(0), []wire.ProposalOrRef{ref}, bad{})
	a, err := loaded.StageCommit(commit, w.options)
	w.must(err)
	if !bytes.Equal(a.Apply().Marshal(), w.apply(commit).Apply().Marshal()) {
		t.Error("another state")
	}
}

// TestAllocationBudget: staging a commit allocates by the path, not the tree.
func TestAllocationBudget(t *testing.T) {
	for _, c := range []struct{ members, stage int }{{10, 220}, {300, 280}} {
		w := grown(t, c.members)
		ac := w.commit(member(1), nil, bad{})
		got := testing.AllocsPerRun(20, func() {
			if _, err := w.g.StageCommit(ac, w.options); err != nil {
				t.Fatal(err)
			}
		})
		if int(got) > c.stage {
			t.Errorf("%d members: %v allocations to stage a commit, more than %d", c.members, got, c.stage)
		}
	}
}
