package interop

import (
	"fmt"
	"slices"
	"testing"
)

// life is the whole story of one group: everything that the peers of a and b can
// do, with a creating the group, in both directions at every step.
func life(t *testing.T, suite uint16, a, b peer) {
	w := newWorld(t, suite)
	ann, bob, cat, dan := w.person(a), w.person(b), w.person(b), w.person(a)

	w.found(ann)
	w.commit(ann, commitRequest{}, []*person{bob, cat, dan})
	w.chat(ann, bob, cat, dan)
	for _, p := range []*person{bob, ann, cat, dan} {
		w.commit(p, commitRequest{}, nil)
	}

	// Both add and both remove.
	eve, fay := w.person(a), w.person(b)
	w.commit(bob, commitRequest{}, []*person{eve, fay})
	w.commit(eve, commitRequest{}, nil, cat)
	w.commit(fay, commitRequest{}, []*person{w.person(b)}, eve)
	w.chat(ann, bob)

	w.byReference(ann, bob)
	w.byReference(bob, ann)
	w.keys(ann, bob)
	w.external(ann, bob)
	w.external(bob, ann)
	w.lateMessages(ann, bob)
	w.private(ann, bob)
	w.restart()
	w.selfRemoves(a, b)
	w.commit(bob, commitRequest{}, nil)
	w.chat(w.members...)
}

// brief is the story in short, for the suites whose curves are slow in the peer.
func brief(t *testing.T, suite uint16, a, b peer) {
	w := newWorld(t, suite)
	ann, bob := w.person(a), w.person(b)
	w.found(ann)
	w.commit(ann, commitRequest{}, []*person{bob, w.person(a)})
	for _, p := range []*person{bob, ann} {
		w.commit(p, commitRequest{}, nil)
	}
	w.chat(ann, bob)
	w.byReference(ann, bob)
	w.enter(w.person(b), ann)
	w.enter(w.person(a), bob)
	w.commit(bob, commitRequest{PSKs: [][]byte{w.secret("key")}}, nil)
	w.commit(ann, commitRequest{}, nil, w.members[len(w.members)-2])
	w.restart()
}

// byReference has one propose all that it can and the other commit it.
func (w *world) byReference(from, by *person) {
	w.t.Helper()
	if from.can("propose_add") {
		joiner := w.person(by.peer)
		kp, err := joiner.keyPackage()
		w.must(err)
		w.propose(from, proposal{Type: "add", KeyPackage: kp})
		w.held(by, []*person{joiner})
	}
	if from.can("propose_update") {
		w.propose(from, proposal{Type: "update"})
		w.held(by, nil)
		w.commit(from, commitRequest{}, nil) // with the key of its update
	}
	if from.can("propose_remove") {
		leaver := w.members[len(w.members)-1]
		s, err := leaver.state()
		w.must(err)
		w.propose(from, proposal{Type: "remove", Leaf: s.Leaf})
		w.held(by, nil, leaver)
	}
	if from.can("propose_psk") {
		id := w.secret(fmt.Sprintf("referred-%d", len(w.steps)))
		w.propose(from, proposal{Type: "psk", PSK: id})
		w.held(by, nil)
	}
}

// held commits what is held, by which joiners enter and leavers go.
func (w *world) held(by *person, joiners []*person, leavers ...*person) {
	w.t.Helper()
	w.step("%s commits what is held: adds %s, removes %s", by.name, names(joiners), names(leavers))
	c, err := by.commit(commitRequest{})
	w.must(err)
	w.deliver(by, c, joiners, leavers...)
}

// keys has each mix in an external key, also with a path and with joiners.
func (w *world) keys(people ...*person) {
	w.t.Helper()
	for _, p := range people {
		id := w.secret("key-of-" + p.name)
		w.commit(p, commitRequest{PSKs: [][]byte{id}}, nil)
		id = w.secret("second-key-of-" + p.name)
		joiner := w.person(people[0].peer)
		w.must(joiner.psk(id, []byte("the secret of "+string(id)+", 32 bytes or so")))
		w.commit(p, commitRequest{PSKs: [][]byte{id}}, []*person{joiner})
	}
}

// external lets a client like from enter with the GroupInfo of host, and then
// once more in place of its old leaf.
func (w *world) external(from, host *person) {
	w.t.Helper()
	if !from.can("external_join") {
		return
	}
	guest := w.person(from.peer)
	w.enter(guest, host)
	w.commit(host, commitRequest{}, nil)
	w.commit(guest, commitRequest{}, nil)
	if guest.can("resync") {
		w.enter(guest, host)
		w.commit(host, commitRequest{}, nil)
	}
	w.chat(guest)
}

// lateMessages reads messages of the epoch before.
func (w *world) lateMessages(people ...*person) {
	w.t.Helper()
	for _, from := range people {
		w.step("%s writes, then the epoch ends", from.name)
		var sent [][]byte
		for i := range 3 {
			m, err := from.seal(line(from, i))
			w.must(err)
			sent = append(sent, m)
		}
		there := slices.Clone(w.members)
		w.commit(w.members[w.choose.IntN(len(w.members))], commitRequest{}, nil)
		w.step("everybody reads what %s wrote before", from.name)
		for _, to := range there {
			if to != from && to.can("past_epoch") {
				w.reads(to, from, sent[2], 2)
				w.reads(to, from, sent[0], 0)
			}
		}
	}
}

// private commits as PrivateMessage.
func (w *world) private(people ...*person) {
	w.t.Helper()
	for _, p := range people {
		if p.can("private_handshake") {
			w.commit(p, commitRequest{Private: true}, nil)
			w.commit(p, commitRequest{Private: true}, []*person{w.person(p.peer)})
		}
	}
}

// restart has everybody read its state back, and goes on.
func (w *world) restart() {
	w.t.Helper()
	w.step("everybody restarts")
	for _, p := range w.members {
		if p.can("load") {
			w.must(p.load())
		}
	}
	w.check()
	w.chat(w.members[0], w.members[len(w.members)-1])
	w.commit(w.members[len(w.members)-1], commitRequest{}, nil)
}

// selfRemoves has somebody of each peer leave and another commit it, where all
// members know SelfRemove.
func (w *world) selfRemoves(kinds ...peer) {
	w.t.Helper()
	if slices.ContainsFunc(w.members, func(p *person) bool { return !p.can("self_remove") }) {
		return
	}
	for _, kind := range kinds {
		for _, committer := range kinds {
			leaver, by := w.person(kind), w.person(committer)
			w.commit(w.members[0], commitRequest{}, []*person{leaver, by})
			w.propose(leaver, proposal{Type: "self_remove"})
			w.held(by, nil, leaver)
		}
	}
}

// growth is a group that its newest member makes bigger, across every power of
// two up to size, while old and new members commit in turn; then it shrinks again.
func growth(t *testing.T, suite uint16, size int, kinds ...peer) {
	w := newWorld(t, suite)
	w.found(w.person(kinds[0]))
	for len(w.members) < size {
		newest := w.members[len(w.members)-1]
		w.commit(newest, commitRequest{}, []*person{w.person(kinds[len(w.members)%len(kinds)])})
		w.commit(w.members[w.choose.IntN(len(w.members))], commitRequest{}, nil)
	}
	w.chat(w.members[0], w.members[size-1])
	for len(w.members) > 2 {
		// From the right mostly, so that the tree is cut; sometimes a gap. The
		// founder stays: halves without anybody are halfEmpty's.
		at := len(w.members) - 1
		if w.choose.IntN(4) == 0 {
			at = 1 + w.choose.IntN(len(w.members)-1)
		}
		by := w.choose.IntN(len(w.members))
		if by == at {
			by = (at + 1) % len(w.members)
		}
		w.commit(w.members[by], commitRequest{}, nil, w.members[at])
	}
	w.chat(w.members...)
}

// halfEmpty is a group of eight whose left half leaves, one by one and in any
// order, while those of the right half commit: then the root is not on the
// filtered direct path of who is left (RFC 9420 §4.1.2), and the commit secret
// comes from the node below it. It fills up again and goes on.
func halfEmpty(t *testing.T, suite uint16, a, b peer) {
	w := newWorld(t, suite)
	w.found(w.person(a))
	var joiners []*person
	for i := range 7 {
		joiners = append(joiners, w.person([]peer{b, a}[i%2]))
	}
	w.commit(w.members[0], commitRequest{}, joiners)
	right := slices.Clone(w.members[4:])
	for _, p := range w.members {
		w.commit(p, commitRequest{}, nil)
	}
	for left := slices.Clone(w.members[:4]); len(left) > 0; {
		at := w.choose.IntN(len(left))
		w.commit(right[w.choose.IntN(len(right))], commitRequest{}, nil, left[at])
		left = slices.Delete(left, at, at+1)
	}
	for _, p := range right {
		w.commit(p, commitRequest{}, nil)
	}
	w.chat(w.members...)
	for _, p := range right {
		w.commit(p, commitRequest{}, []*person{w.person(p.peer)})
		w.commit(w.members[len(w.members)-1], commitRequest{}, nil)
	}
	w.chat(w.members...)
}

// crowd is a group of size members that one adds in one commit: about as many
// guests of the given kinds, spread over the tree, the rest ours. Then members of every kind commit in turn.
func crowd(t *testing.T, suite uint16, size, guests int, founder peer, kinds ...peer) {
	w := newWorld(t, suite)
	first := w.person(founder)
	w.found(first)
	var joiners []*person
	for i := 1; i < size; i++ {
		kind := peer(w.engine)
		if i*guests/size != (i-1)*guests/size || i == 1 {
			kind = kinds[len(joiners)%len(kinds)]
		}
		joiners = append(joiners, w.person(kind))
	}
	w.commit(first, commitRequest{}, joiners)
	var speakers []*person // one of each kind
	for _, p := range w.members {
		if !slices.ContainsFunc(speakers, func(q *person) bool { return q.peer.name() == p.peer.name() }) {
			speakers = append(speakers, p)
		}
	}
	for _, p := range speakers {
		w.commit(p, commitRequest{}, nil)
	}
	w.commit(w.members[len(w.members)/2], commitRequest{}, nil)
	w.chat(speakers...)
	if size > 3 {
		last := w.members[size-1]
		speakers = slices.DeleteFunc(speakers, func(p *person) bool { return p == last })
		w.commit(speakers[len(speakers)-1], commitRequest{}, []*person{w.person(kinds[0])}, last)
	}
}

// succession closes groups by ReInit and goes on in what follows them, in the same
// suite or another one, created by who closed the group or by somebody else; then
// it goes on in branches.
func succession(t *testing.T, suite, next uint16, a, b peer) {
	w := newWorld(t, suite)
	ann, bob, cat := w.person(a), w.person(b), w.person(a)
	w.found(ann)
	w.commit(ann, commitRequest{}, []*person{bob, cat, w.person(b)})
	w.commit(bob, commitRequest{}, nil)
	w.reinit(ann, ann, suite)
	w.reinit(bob, bob, next)
	w.reinit(ann, bob, suite)
	w.reinit(bob, ann, suite)
	w.branch(ann, bob, cat)
	w.branch(bob, ann)
}

// reinit has one close the group and another one create what follows.
func (w *world) reinit(closer, creator *person, suite uint16) {
	w.t.Helper()
	w.step("%s closes the group for one of suite %d", closer.name, suite)
	group := fmt.Appendf(nil, "successor %d", len(w.steps))
	c, err := closer.reinit(group, suite)
	w.must(err)
	for _, p := range w.members {
		if p != closer {
			_, err := p.handle(c.Commit)
			w.must(err)
		}
	}
	w.follow(creator, w.members, suite, client.reinitJoin, func(packages [][]byte) (committed, error) {
		return creator.reinitCreate(group, suite, packages)
	})
}

// branch has one create a group with some of the members, which the story goes
// on with.
func (w *world) branch(creator *person, others ...*person) {
	w.t.Helper()
	w.step("%s branches with %s", creator.name, names(others))
	group := fmt.Appendf(nil, "branch %d", len(w.steps))
	w.follow(creator, append(others, creator), w.suite, client.branchJoin, func(packages [][]byte) (committed, error) {
		return creator.branch(group, packages)
	})
}

func (w *world) follow(creator *person, all []*person, suite uint16, join func(c client, welcome, tree []byte) error, create func([][]byte) (committed, error)) {
	w.t.Helper()
	others := slices.DeleteFunc(slices.Clone(all), func(p *person) bool { return p == creator })
	var packages [][]byte
	for _, p := range others {
		kp, err := p.successorPackage(suite)
		w.must(err)
		packages = append(packages, kp)
	}
	c, err := create(packages)
	w.must(err)
	for _, p := range others {
		if err := join(p.client, c.Welcome, c.Tree); err != nil {
			w.must(fmt.Errorf("%s follows: %w", p.name, err))
		}
	}
	w.members, w.suite = append([]*person{creator}, others...), suite
	w.check()
	for _, p := range slices.Clone(w.members) {
		w.commit(p, commitRequest{}, nil)
	}
	w.chat(w.members...)
}
