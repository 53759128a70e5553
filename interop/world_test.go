package interop

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// wanted says whether a peer takes part: COMPAX_INTEROP lists those that do,
// separated by commas.
func wanted(kind string) bool {
	return slices.Contains(strings.Split(os.Getenv("COMPAX_INTEROP"), ","), kind)
}

// world is one group with members of several peers, over an ordered log: what
// one sends, all others get in the same order.
type world struct {
	t       testing.TB
	suite   uint16
	seed    uint64
	choose  *rand.Rand
	engine  *engine
	members []*person
	made    int
	steps   []string // what happened, for failures
}

// person is one client of the world.
type person struct {
	client
	name string
	peer peer
}

func (p *person) can(feature string) bool { return slices.Contains(p.peer.info().Can, feature) }

// newWorld seeds a world of a suite. The seed covers the choices made here and
// the keys of our clients; peers draw their own.
func newWorld(t testing.TB, suite uint16) *world {
	seed := rand.Uint64()
	if text := os.Getenv("COMPAX_INTEROP_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("COMPAX_INTEROP_SEED: %v", err)
		}
	}
	t.Logf("suite %d, seed %d (COMPAX_INTEROP_SEED)", suite, seed)
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)
	w := &world{t: t, suite: suite, seed: seed, choose: rand.New(rand.NewPCG(seed, uint64(suite)))}
	w.engine = &engine{random: rand.NewChaCha8(key), now: time.Now().Truncate(time.Second)}
	if *recordTo != "" {
		name := strings.NewReplacer("/", "-", "Test", "").Replace(t.Name())
		w.engine.recorder = newRecorder(t, filepath.Join(*recordTo, strings.ToLower(name)+".json"))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("steps:\n%s", strings.Join(w.steps, "\n"))
		}
	})
	return w
}

// step notes what is about to happen.
func (w *world) step(format string, args ...any) {
	w.steps = append(w.steps, fmt.Sprintf(format, args...))
}

// must stops the test with the step in which something went wrong.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("suite %d, seed %d: %s: %v", w.suite, w.seed, w.steps[len(w.steps)-1], err)
	}
}

// person makes a client of a peer that is in no group.
func (w *world) person(p peer) *person {
	w.t.Helper()
	if p.name() == "ours" {
		p = w.engine
	}
	w.made++
	name := fmt.Sprintf("%s-%d-%d", p.name(), w.suite, w.made)
	if c, remote := p.(*child); remote {
		name = fmt.Sprintf("%s-%d", name, c.serial())
	}
	return &person{client: p.client(w.t, w.suite, name), name: name, peer: p}
}

// found has a client create the group.
func (w *world) found(p *person) {
	w.t.Helper()
	w.step("%s creates", p.name)
	id := make([]byte, 16)
	binary.BigEndian.PutUint64(id, w.choose.Uint64())
	w.must(p.create(id))
	w.members = []*person{p}
	w.check()
}

// commit has a member commit and gives the commit to everybody; those of joiners
// enter, those of leavers are no members any more.
func (w *world) commit(by *person, r commitRequest, joiners []*person, leavers ...*person) {
	w.t.Helper()
	w.step("%s commits: adds %s, removes %s, %d PSKs", by.name, names(joiners), names(leavers), len(r.PSKs))
	for _, p := range joiners {
		kp, err := p.keyPackage()
		w.must(err)
		r.Adds = append(r.Adds, kp)
	}
	for _, p := range leavers {
		s, err := p.state()
		w.must(err)
		r.Removes = append(r.Removes, s.Leaf)
	}
	c, err := by.commit(r)
	w.must(err)
	w.deliver(by, c, joiners, leavers...)
}

// deliver gives a commit to everybody but its author.
func (w *world) deliver(by *person, c committed, joiners []*person, leavers ...*person) {
	w.t.Helper()
	told := slices.DeleteFunc(slices.Clone(w.members), func(p *person) bool {
		return p == by || slices.Contains(leavers, p) && len(joiners) > 0 && !p.can("remove_refilled")
	})
	for _, p := range told {
		h, err := p.handle(c.Commit)
		if err != nil {
			w.must(fmt.Errorf("%s: %w", p.name, err))
		}
		if h.Kind == "application" {
			w.must(fmt.Errorf("%s took a commit for an application message", p.name))
		}
	}
	for _, p := range leavers {
		s, err := p.state()
		w.must(err)
		if s.Active && slices.Contains(told, p) {
			w.must(fmt.Errorf("%s was removed and is still active", p.name))
		}
	}
	w.members = slices.DeleteFunc(w.members, func(p *person) bool { return slices.Contains(leavers, p) })
	for _, p := range joiners {
		if err := p.join(c.Welcome); err != nil {
			w.must(fmt.Errorf("%s joins: %w", p.name, err))
		}
		w.members = append(w.members, p)
	}
	w.check()
}

// propose has a member send a proposal to everybody.
func (w *world) propose(by *person, p proposal) {
	w.t.Helper()
	w.step("%s proposes %s", by.name, p.Type)
	message, err := by.propose(p)
	w.must(err)
	for _, m := range w.members {
		if m == by {
			continue
		}
		h, err := m.handle(message)
		if err != nil {
			w.must(fmt.Errorf("%s: %w", m.name, err))
		}
		if h.Kind != "proposal" {
			w.must(fmt.Errorf("%s took a proposal for %s", m.name, h.Kind))
		}
	}
}

// enter lets a client in by external commit, with the GroupInfo of a member; a
// member replaces its own old leaf by it.
func (w *world) enter(p, host *person) {
	w.t.Helper()
	resync := slices.Contains(w.members, p)
	w.step("%s enters by external commit with the GroupInfo of %s (resync: %v)", p.name, host.name, resync)
	info, err := host.groupInfo()
	w.must(err)
	commit, err := p.externalJoin(info, resync)
	w.must(err)
	if !resync {
		w.members = append(w.members, p)
	}
	w.deliver(p, committed{Commit: commit}, nil)
}

// chat has every member of speakers send five messages, of which everybody else
// gets three, in the order 3, 0, 2: one ahead of its time and two late, while two
// never come.
func (w *world) chat(speakers ...*person) {
	w.t.Helper()
	for _, from := range speakers {
		w.step("%s writes, out of order", from.name)
		var sent [5][]byte
		for i := range sent {
			m, err := from.seal(line(from, i))
			w.must(err)
			sent[i] = m
		}
		for _, to := range w.members {
			if to == from {
				continue
			}
			for _, i := range []int{3, 0, 2} {
				w.reads(to, from, sent[i], i)
			}
		}
	}
}

func line(from *person, i int) []byte {
	return fmt.Appendf(nil, "%s: line %d, Привет 👋", from.name, i)
}

func (w *world) reads(to, from *person, message []byte, i int) {
	w.t.Helper()
	h, err := to.handle(message)
	if err != nil {
		w.must(fmt.Errorf("%s reads: %w", to.name, err))
	}
	if h.Kind != "application" || !bytes.Equal(h.Data, line(from, i)) {
		w.must(fmt.Errorf("%s read %q as %s", to.name, h.Data, h.Kind))
	}
}

// secret gives an external key to everybody.
func (w *world) secret(id string) []byte {
	w.t.Helper()
	w.step("everybody gets the external key %s", id)
	for _, p := range w.members {
		w.must(p.psk([]byte(id), []byte("the secret of "+id+", 32 bytes or so")))
	}
	return []byte(id)
}

// check compares all members: epoch, epoch authenticator, exported secret and
// member list are the same, and the list holds exactly those who should be in.
func (w *world) check() {
	w.t.Helper()
	var first state
	for i, p := range w.members {
		s, err := p.state()
		w.must(err)
		if i == 0 {
			first = s
			w.must(w.roster(s))
		}
		if err := agree(first, s); err != nil {
			w.must(fmt.Errorf("%s and %s: %w", w.members[0].name, p.name, err))
		}
	}
}

func agree(a, b state) error {
	switch {
	case a.Epoch != b.Epoch:
		return fmt.Errorf("epochs %d and %d", a.Epoch, b.Epoch)
	case !bytes.Equal(a.Authenticator, b.Authenticator) || len(a.Authenticator) == 0:
		return errors.New("different epoch authenticators")
	case !bytes.Equal(a.Exported, b.Exported) || len(a.Exported) != 32:
		return errors.New("different exported secrets")
	case !a.Active || !b.Active:
		return errors.New("not active")
	}
	if !slices.EqualFunc(a.Members, b.Members, func(x, y member) bool {
		return x.Leaf == y.Leaf && bytes.Equal(x.Identity, y.Identity)
	}) {
		return fmt.Errorf("member lists differ: %v and %v", a.Members, b.Members)
	}
	return nil
}

// roster compares a member list with who should be in the group.
func (w *world) roster(s state) error {
	var have []string
	for _, m := range s.Members {
		have = append(have, string(m.Identity))
	}
	var want []string
	for _, p := range w.members {
		want = append(want, p.name)
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		return fmt.Errorf("members are %v, not %v", have, want)
	}
	return nil
}

func names(list []*person) string {
	var out []string
	for _, p := range list {
		out = append(out, p.name)
	}
	return "[" + strings.Join(out, " ") + "]"
}
