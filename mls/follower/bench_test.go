package follower

import (
	"fmt"
	"testing"

	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// populated is a world of n members each of whom has committed once.
func populated(t testing.TB, n int) *world {
	w := newWorld(t)
	var clients []*client
	for i := 1; i < n; i++ {
		clients = append(clients, w.client(fmt.Sprintf("m%d", i)))
	}
	w.enter(0, clients...)
	for l := tree.LeafIndex(0); int(l) < n; l++ {
		s, err := w.g.StageCommit(w.commit(member(l), nil, bad{}), w.options)
		w.must(err)
		w.g = s.Apply()
	}
	return w
}

var sizes = []int{10, 100, 1000}

// BenchmarkStage stages a commit with a path in a populated tree: two signatures
// and one path, whatever the size.
func BenchmarkStage(b *testing.B) {
	for _, n := range sizes {
		w := populated(b, n)
		ac := w.commit(member(tree.LeafIndex(n/2)), nil, bad{})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.g.StageCommit(ac, w.options); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkApply applies a staged commit and makes the change to be stored.
func BenchmarkApply(b *testing.B) {
	for _, n := range sizes {
		w := populated(b, n)
		s, err := w.g.StageCommit(w.commit(member(tree.LeafIndex(n/2)), nil, bad{}), w.options)
		w.must(err)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				size = len(s.Delta())
			}
			b.ReportMetric(float64(size), "B/delta")
		})
	}
}

// BenchmarkBulkAdd stages one commit that adds n-1 members to a group of one.
func BenchmarkBulkAdd(b *testing.B) {
	for _, n := range sizes {
		w := newWorld(b)
		w.options.Parallel = true
		var list []*wire.Proposal
		for i := 1; i < n; i++ {
			list = append(list, w.client(fmt.Sprintf("m%d", i)).add())
		}
		ac := w.commit(member(0), values(list...), bad{})
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.g.StageCommit(ac, w.options); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkJoin verifies a GroupInfo with the populated tree that belongs to it.
func BenchmarkJoin(b *testing.B) {
	for _, n := range sizes {
		w := populated(b, n)
		info, nodes := w.groupInfo(w.g, 1), w.g.Tree().Marshal()
		w.options.Parallel = true
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				u, err := tree.ParseBytes(w.cs, nodes)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Join(w.cs, info, u, w.options); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLoad loads a stored base.
func BenchmarkLoad(b *testing.B) {
	for _, n := range sizes {
		base := populated(b, n).g.Marshal()
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(base)))
			for b.Loop() {
				if _, err := Unmarshal(base); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
