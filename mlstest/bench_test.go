package mlstest_test

import (
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

const benchSuite = suite.X25519AES128GCMSHA256Ed25519

var sizes = []int{10, 100, 1000}

var measure = sync.OnceValue(func() mlstest.Floors {
	cs, err := suite.Lookup(benchSuite)
	if err != nil {
		panic(err)
	}
	return mlstest.NewMeter(cs).Measure(101)
})

// against reports how many times its floor an operation costs.
func against(b *testing.B, floor time.Duration) {
	b.Helper()
	b.ReportMetric(float64(floor.Nanoseconds()), "floor-ns/op")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(floor.Nanoseconds()), "x-floor")
}

// members makes key packages of n clients.
func packages(b testing.TB, n int) ([]*mlstest.Client, []wire.Proposal) {
	var clients []*mlstest.Client
	var adds []wire.Proposal
	for i := range n {
		c := mlstest.NewClient(b, rand.Reader, benchSuite, fmt.Sprintf("client %d", i))
		clients = append(clients, c)
		adds = append(adds, mls.AddProposal(&c.KeyPackage(mlstest.Start).KeyPackage))
	}
	return clients, adds
}

// populated is a group in which everybody has committed: each newcomer added the
// next one. It gives the first member, the last one, and the commit by which
// the last one joined with its Welcome.
type populated struct {
	first, second, last *mlstest.Client
	joiner              *mlstest.Client
	welcome             []byte
	tree                []byte
}

var (
	populatedMu sync.Mutex
	populations = map[int]*populated{}
)

func populate(b testing.TB, n int) *populated {
	b.Helper()
	populatedMu.Lock()
	defer populatedMu.Unlock()
	if p := populations[n]; p != nil {
		return p
	}
	p := &populated{first: mlstest.NewClient(b, rand.Reader, benchSuite, "first")}
	p.first.Create(mlstest.Start, []byte("bench"), nil)
	p.last = p.first
	for i := 1; i < n; i++ {
		next := mlstest.NewClient(b, rand.Reader, benchSuite, fmt.Sprintf("client %d", i))
		commit, err := p.last.Group.Commit(mls.CommitParams{
			Random: rand.Reader, Now: mlstest.Start,
			Proposals: []wire.Proposal{mls.AddProposal(&next.KeyPackage(mlstest.Start).KeyPackage)},
		})
		if err != nil {
			b.Fatal(err)
		}
		staged, err := commit.Apply(p.last.Group, mlstest.Start)
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range []*mlstest.Client{p.first, p.second} {
			if c == nil || c == p.last {
				continue
			}
			if _, err := c.Process(mlstest.Start, commit.Message); err != nil {
				b.Fatal(err)
			}
		}
		p.last.Take(staged.Step)
		p.joiner, p.welcome, p.tree = next, commit.Welcome, p.last.Group.RatchetTree()
		next.Join(mlstest.Start, p.welcome, p.tree)
		p.last = next
		if p.second == nil {
			p.second = next
		}
	}
	populations[n] = p
	return p
}

// BenchmarkCreateBulk creates a group and adds everybody in one commit, with the
// tree in the Welcome.
func BenchmarkCreateBulk(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			creator := mlstest.NewClient(b, rand.Reader, benchSuite, "creator")
			for b.Loop() {
				b.StopTimer()
				_, adds := packages(b, n-1)
				b.StartTimer()
				creator.Create(mlstest.Start, nil, nil)
				c, err := creator.Group.Commit(mls.CommitParams{
					Random: rand.Reader, Now: mlstest.Start, Proposals: adds, TreeInWelcome: true,
				})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := c.Apply(creator.Group, mlstest.Start); err != nil {
					b.Fatal(err)
				}
			}
			against(b, measure().Bulk(n))
		})
	}
}

// BenchmarkCommitPopulated commits with a path in a populated tree.
func BenchmarkCommitPopulated(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := populate(b, n)
			for b.Loop() {
				c, err := p.first.Group.Commit(mls.CommitParams{Random: rand.Reader, Now: mlstest.Start})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := c.Apply(p.first.Group, mlstest.Start); err != nil {
					b.Fatal(err)
				}
			}
			against(b, measure().Commit(n))
		})
	}
}

// BenchmarkProcessPopulated processes such a commit: of the neighbour, with whom
// the whole path is shared, and of somebody at the other end of the tree.
func BenchmarkProcessPopulated(b *testing.B) {
	for _, n := range sizes {
		p := populate(b, n)
		for name, c := range map[string]struct {
			from  *mlstest.Client
			floor time.Duration
		}{"near": {p.second, measure().Process(n)}, "far": {p.last, measure().Far()}} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				commit, err := c.from.Group.Commit(mls.CommitParams{Random: rand.Reader, Now: mlstest.Start})
				if err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := p.first.Group.Process(commit.Message, mls.ProcessParams{Now: mlstest.Start}); err != nil {
						b.Fatal(err)
					}
				}
				against(b, c.floor)
			})
		}
	}
}

// BenchmarkJoin joins a populated group by Welcome, the tree beside it.
func BenchmarkJoin(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := populate(b, n)
			for b.Loop() {
				if _, err := p.joiner.Config.Join(mls.JoinParams{
					Welcome: p.welcome, Bundles: p.joiner.Bundles, Tree: p.tree, Now: mlstest.Start,
				}); err != nil {
					b.Fatal(err)
				}
			}
			against(b, measure().Join(n))
		})
	}
}

// BenchmarkSeal encrypts 1 KiB in a group of 1,000, BenchmarkOpen decrypts it.
func BenchmarkSeal(b *testing.B) {
	p := populate(b, 1000)
	content := make([]byte, 1024)
	b.SetBytes(1024)
	g := p.first.Group
	for b.Loop() {
		sealed, err := g.Seal(mls.SealParams{Random: rand.Reader, Content: content})
		if err != nil {
			b.Fatal(err)
		}
		g = sealed.Next
	}
	against(b, measure().Message(measure().Sign))
}

func BenchmarkOpen(b *testing.B) {
	p := populate(b, 1000)
	content := make([]byte, 1024)
	b.SetBytes(1024)
	from, to := p.first.Group, p.last.Group
	for b.Loop() {
		b.StopTimer()
		sealed, err := from.Seal(mls.SealParams{Random: rand.Reader, Content: content})
		if err != nil {
			b.Fatal(err)
		}
		from = sealed.Next
		b.StartTimer()
		r, err := to.Process(sealed.Message, mls.ProcessParams{Now: mlstest.Start})
		if err != nil {
			b.Fatal(err)
		}
		to = r.(*mls.Application).Next
	}
	against(b, measure().Message(measure().Verify))
}

// BenchmarkLoad reads a group as its store holds it after many commits of all
// kinds of ages: the base of the public state, what changed since, past epochs.
// BenchmarkSave writes all of one.
func BenchmarkLoad(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := populate(b, n)
			for range 100 {
				commit, err := p.last.Group.Commit(mls.CommitParams{Random: rand.Reader, Now: mlstest.Start})
				if err != nil {
					b.Fatal(err)
				}
				staged, err := commit.Apply(p.last.Group, mlstest.Start)
				if err != nil {
					b.Fatal(err)
				}
				for _, c := range []*mlstest.Client{p.first, p.second} {
					if _, err := c.Process(mlstest.Start, commit.Message); err != nil {
						b.Fatal(err)
					}
				}
				p.last.Take(staged.Step)
			}
			records := p.first.Records()
			size := 0
			for _, r := range records {
				size += len(r.Value)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.first.Config.Load(records); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(records)), "records")
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

func BenchmarkSave(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := populate(b, n)
			size := 0
			for b.Loop() {
				size = len(mls.MarshalRecords(p.first.Group.Records()))
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
