package interop

import (
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mlstest"
)

var beside = flag.String("beside", "", "measure the engine beside OpenMLS in groups of these sizes, such as 10,100,1000, and print a table")

// TestBesideOpenMLS measures the engine and OpenMLS in one run, in the same
// group, on the same cores, in turn: each operation by each of them, round after
// round. OpenMLS measures itself, so that the pipe does not count. The medians
// are printed with those of the floors, which are measured between the rounds of
// each operation.
func TestBesideOpenMLS(t *testing.T) {
	if *beside == "" {
		t.Skip("measures only with -beside: see interop/openmls/bench")
	}
	p := start(t, "OpenMLS").(*child)
	cs, err := suite.Lookup(suite.X25519AES128GCMSHA256Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	m := &measurement{t: t, peer: p, engine: &engine{random: rand.Reader, now: time.Now().Truncate(time.Second)}}
	m.meter = mlstest.NewMeter(cs)
	for _, text := range strings.Split(*beside, ",") {
		var n int
		if _, err := fmt.Sscan(text, &n); err != nil || n < 10 {
			t.Fatalf("-beside %s: sizes are numbers from 10", *beside)
		}
		m.size(n)
	}
	fmt.Fprint(os.Stdout, m.table())
}

// The contestants: the engine on all processors and on one, and OpenMLS on both
// of its providers.
const (
	all = iota
	one
	libcrux
	rustcrypto
	contestants
)

type measurement struct {
	t      *testing.T
	peer   *child
	engine *engine
	meter  *mlstest.Meter
	rows   []*row
}

// row is one operation in a group of one size.
type row struct {
	what   string
	floor  func(mlstest.Floors) time.Duration // of prices; nil for none
	floors []time.Duration                    // one before each measurement of ours
	times  [contestants][]time.Duration
}

func (m *measurement) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *measurement) row(floor func(mlstest.Floors) time.Duration, format string, args ...any) *row {
	r := &row{what: fmt.Sprintf(format, args...), floor: floor}
	m.rows = append(m.rows, r)
	return r
}

// floorTries is how often a primitive is measured before each measurement of ours.
const floorTries = 3

// ours measures an operation of the engine, on all processors and on one. It may
// be done twice, because groups are values.
func (m *measurement) ours(r *row, f func() error) {
	m.t.Helper()
	if r.floor != nil {
		r.floors = append(r.floors, r.floor(m.meter.Measure(floorTries)))
	}
	for who, procs := range map[int]int{all: runtime.NumCPU(), one: 1} {
		before := runtime.GOMAXPROCS(procs)
		began := time.Now()
		err := f()
		r.times[who] = append(r.times[who], time.Since(began))
		runtime.GOMAXPROCS(before)
		m.must(err)
	}
}

// theirs asks an OpenMLS client for a measured operation.
func (m *measurement) theirs(r *row, who int, c *remote, op string, request map[string]any, answer *struct{ Commit, Welcome, Message hexBytes }) {
	m.t.Helper()
	var timed struct {
		NS                       int64
		Commit, Welcome, Message hexBytes
	}
	m.must(c.ask(op, request, &timed))
	r.times[who] = append(r.times[who], time.Duration(timed.NS))
	if answer != nil {
		answer.Commit, answer.Welcome, answer.Message = timed.Commit, timed.Welcome, timed.Message
	}
}

func (m *measurement) remote(who int) *remote {
	provider := map[int]string{libcrux: "libcrux", rustcrypto: "rustcrypto"}[who]
	return m.peer.provided(m.t, 1, fmt.Sprintf("%s %d", provider, m.peer.serial()), provider).(*remote)
}

func (m *measurement) mine(name string) *ours { return m.engine.client(m.t, 1, name).(*ours) }

// populated is a group of many: everybody has joined and then committed. Who is
// measured sits at the right end of the tree; first is at its left end.
type populated struct {
	first, last *ours
	them        map[int][2]*remote
}

func (p *populated) everybody() []client {
	list := []client{p.first, p.last}
	for _, who := range []int{libcrux, rustcrypto} {
		list = append(list, p.them[who][0], p.them[who][1])
	}
	return list
}

// deliver gives a commit to all who follow the group, but not to its author.
func (m *measurement) deliver(p *populated, by client, commit []byte) {
	m.t.Helper()
	for _, c := range p.everybody() {
		if c != by {
			_, err := c.handle(commit)
			m.must(err)
		}
	}
}

func (m *measurement) populate(n int) *populated {
	p := &populated{first: m.mine("first"), them: map[int][2]*remote{}}
	m.must(p.first.create([]byte("bench")))
	newest := p.first
	// Everybody is added by who came before, which is that one's commit.
	add := func(by, next client, followers ...client) {
		kp, err := next.keyPackage()
		m.must(err)
		c, err := by.commit(commitRequest{Adds: [][]byte{kp}})
		m.must(err)
		for _, f := range followers {
			if f != by {
				_, err := f.handle(c.Commit)
				m.must(err)
			}
		}
		m.must(next.join(c.Welcome))
	}
	for i := range n - 6 {
		next := m.mine(fmt.Sprint("member ", i))
		add(newest, next, p.first)
		newest = next
	}
	p.last = m.mine("last")
	add(newest, p.last, p.first)
	followers, by := []client{p.first, p.last}, client(p.last)
	for _, who := range []int{libcrux, rustcrypto} {
		pair := [2]*remote{m.remote(who), m.remote(who)}
		for _, next := range pair {
			add(by, next, followers...)
			followers, by = append(followers, next), next
		}
		p.them[who] = pair
	}
	c, err := by.commit(commitRequest{})
	m.must(err)
	m.deliver(p, by, c.Commit)
	return p
}

func (m *measurement) size(n int) {
	rounds := 9
	if n < 1000 {
		rounds = 25
	}
	m.bulk(n, max(rounds, 1000/n)/2+1)
	p := m.populate(n)
	m.commits(n, rounds, p)
	m.messages(n, 10*rounds, p)
	m.loads(n, rounds, p)
	m.joins(n, rounds, p)
}

// bulk creates a group and adds everybody in one commit, the tree in the Welcome.
func (m *measurement) bulk(n, rounds int) {
	r := m.row(func(f mlstest.Floors) time.Duration { return f.Bulk(n) }, "create, adding %d in one commit", n-1)
	var packages [][]byte
	for i := range n - 1 {
		kp, err := m.mine(fmt.Sprint("added ", i)).keyPackage()
		m.must(err)
		packages = append(packages, kp)
	}
	for i := range rounds {
		creator := m.mine("creator")
		m.ours(r, func() error {
			m.must(creator.create(fmt.Append(nil, "bulk", i)))
			_, err := creator.commit(commitRequest{Adds: packages})
			return err
		})
		for _, who := range []int{libcrux, rustcrypto} {
			c := m.remote(who)
			m.theirs(r, who, c, "create", map[string]any{"group": hexBytes(fmt.Append(nil, "bulk", i))}, nil)
			created := r.times[who][len(r.times[who])-1]
			r.times[who] = r.times[who][:len(r.times[who])-1]
			m.theirs(r, who, c, "commit", map[string]any{"adds": hexList(packages), "update": true}, nil)
			r.times[who][len(r.times[who])-1] += created
			m.must(c.ask("drop", nil, nil))
		}
	}
}

// commits makes commits with a path from the right end of the tree, and processes
// commits of the left end there.
func (m *measurement) commits(n, rounds int, p *populated) {
	commit := m.row(func(f mlstest.Floors) time.Duration { return f.Commit(n) }, "commit, populated, %d", n)
	process := m.row(mlstest.Floors.Far, "process it, %d", n)
	for range rounds {
		group := p.last.Group
		var made *mls.Commit
		var staged *mls.StagedCommit
		m.ours(commit, func() (err error) {
			if made, err = group.Commit(mls.CommitParams{Random: rand.Reader, Now: m.engine.now, TreeInWelcome: true}); err == nil {
				staged, err = made.Apply(group, m.engine.now)
			}
			return err
		})
		p.last.Take(staged.Step)
		m.deliver(p, p.last, made.Message)
		for _, who := range []int{libcrux, rustcrypto} {
			var answer struct{ Commit, Welcome, Message hexBytes }
			m.theirs(commit, who, p.them[who][0], "commit", map[string]any{"update": true}, &answer)
			m.deliver(p, p.them[who][0], answer.Commit)
		}
		from, err := p.first.commit(commitRequest{})
		m.must(err)
		group = p.last.Group
		var received mls.Received
		m.ours(process, func() (err error) {
			received, err = group.Process(from.Commit, mls.ProcessParams{Now: m.engine.now})
			return err
		})
		p.last.Take(received.(*mls.StagedCommit).Step)
		for _, who := range []int{libcrux, rustcrypto} {
			for _, c := range p.them[who] {
				m.theirs(process, who, c, "handle", map[string]any{"message": hexBytes(from.Commit)}, nil)
			}
		}
	}
}

// messages encrypts and decrypts 1 KiB.
func (m *measurement) messages(n, rounds int, p *populated) {
	encrypt := m.row(func(f mlstest.Floors) time.Duration { return f.Message(f.Sign) }, "encrypt 1 KiB, %d", n)
	decrypt := m.row(func(f mlstest.Floors) time.Duration { return f.Message(f.Verify) }, "decrypt 1 KiB, %d", n)
	content := make([]byte, 1024)
	for range rounds {
		var message []byte
		group := p.first.Group
		var sealed *mls.Sealed
		m.ours(encrypt, func() (err error) {
			sealed, err = group.Seal(mls.SealParams{Random: rand.Reader, Content: content})
			return err
		})
		p.first.Take(sealed.Step)
		message = sealed.Message
		group = p.last.Group
		var received mls.Received
		m.ours(decrypt, func() (err error) {
			received, err = group.Process(message, mls.ProcessParams{Now: m.engine.now})
			return err
		})
		p.last.Take(received.(*mls.Application).Step)
		for _, who := range []int{libcrux, rustcrypto} {
			m.theirs(decrypt, who, p.them[who][1], "handle", map[string]any{"message": hexBytes(message)}, nil)
			m.theirs(encrypt, who, p.them[who][0], "seal", map[string]any{"data": hexBytes(content)}, nil)
		}
	}
}

// loads reads the stored group back.
func (m *measurement) loads(n, rounds int, p *populated) {
	r := m.row(nil, "load state, %d", n)
	records := p.last.Records()
	for range rounds {
		m.ours(r, func() error {
			_, err := p.last.Config.Load(records)
			return err
		})
		for _, who := range []int{libcrux, rustcrypto} {
			m.theirs(r, who, p.them[who][0], "load", nil, nil)
		}
	}
}

// joins enters by a Welcome with the tree in it: one of each at a time, in the places
// of three members that go first, so that the group they enter has n leaves. Who takes
// which place changes from round to round.
func (m *measurement) joins(n, rounds int, p *populated) {
	r := m.row(func(f mlstest.Floors) time.Duration { return f.Join(n) }, "join by Welcome, %d", n)
	// Before last there are first, at leaf 0, and n-6 others.
	m.remove(p, []uint32{uint32(n - 8), uint32(n - 7), uint32(n - 6)})
	for round := range rounds {
		guest := m.mine(fmt.Sprint("guest ", m.peer.serial()))
		guests := map[int]*remote{libcrux: m.remote(libcrux), rustcrypto: m.remote(rustcrypto)}
		var packages [][]byte
		list := []client{guest, guests[libcrux], guests[rustcrypto]}
		for i := range list {
			kp, err := list[(round+i)%len(list)].keyPackage()
			m.must(err)
			packages = append(packages, kp)
		}
		c, err := p.first.commit(commitRequest{Adds: packages})
		m.must(err)
		m.deliver(p, p.first, c.Commit)
		var joined *mls.Joined
		m.ours(r, func() (err error) {
			joined, err = guest.Config.Join(mls.JoinParams{Welcome: c.Welcome, Bundles: guest.Bundles, Now: m.engine.now})
			return err
		})
		if got := len(joined.Next.Members()); got != n {
			m.t.Fatalf("the group that is joined has %d leaves, not %d", got, n)
		}
		for _, who := range []int{libcrux, rustcrypto} {
			m.theirs(r, who, guests[who], "join", map[string]any{"welcome": hexBytes(c.Welcome)}, nil)
			m.must(guests[who].ask("drop", nil, nil))
		}
		var leaves []uint32
		for _, member := range joined.Next.Members() {
			if name := member.Node.Credential.Identity; string(name) == guest.Name ||
				string(name) == guests[libcrux].label || string(name) == guests[rustcrypto].label {
				leaves = append(leaves, member.Leaf)
			}
		}
		m.remove(p, leaves)
	}
}

func (m *measurement) remove(p *populated, leaves []uint32) {
	m.t.Helper()
	c, err := p.first.commit(commitRequest{Removes: leaves})
	m.must(err)
	m.deliver(p, p.first, c.Commit)
}

func (r *row) median(who int) time.Duration { return median(r.times[who]) }

func median(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}

// table prints medians in milliseconds.
func (m *measurement) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nSuite 1, medians in ms; Go %s, %d processors; %s\n\n", runtime.Version(), runtime.NumCPU(), m.peer.said.Peer)
	b.WriteString("| operation | ours | ours, 1 core | OpenMLS libcrux | OpenMLS RustCrypto | OpenMLS best / ours | floor | ours / floor |\n|---|---|---|---|---|---|---|---|\n")
	var sumOurs, sumBest time.Duration
	for _, r := range m.rows {
		ours, best := r.median(all), min(r.median(libcrux), r.median(rustcrypto))
		sumOurs, sumBest = sumOurs+ours, sumBest+best
		floor, times := "–", "–"
		if r.floor != nil {
			least := median(r.floors)
			floor, times = ms(least), fmt.Sprintf("%.1f", float64(ours)/float64(least))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %.1f | %s | %s |\n", r.what, ms(ours), ms(r.median(one)),
			ms(r.median(libcrux)), ms(r.median(rustcrypto)), float64(best)/float64(ours), floor, times)
	}
	fmt.Fprintf(&b, "| sum | %s | | | | %.1f | | |\n", ms(sumOurs), float64(sumBest)/float64(sumOurs))
	f := m.meter.Median()
	fmt.Fprintf(&b, "\nPrimitives in µs: seal %s, open %s, derive %s, sign %s, verify %s, hash 256 B %s, KDF %s, AEAD 1 KiB %s\n",
		us(f.Seal), us(f.Open), us(f.Derive), us(f.Sign), us(f.Verify), us(f.Hash), us(f.KDF), us(f.AEAD))
	return b.String()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.3g", float64(d.Nanoseconds())/1e6) }
func us(d time.Duration) string { return fmt.Sprintf("%.3g", float64(d.Nanoseconds())/1e3) }
