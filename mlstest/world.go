package mlstest

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// World is a group and its members over an ordered log, with a naive tree that
// follows every commit. After each commit all members must agree with each
// other and with it.
type World struct {
	Now     time.Time
	Members []*Client // in no order; who is in the group
	Gone    []*Client // who was removed
	Naive   *NaiveTree
	Roster  map[int]string // the names that should be at the leaves
	// Private sends handshakes as PrivateMessages where that is allowed.
	Private bool
	// Observe is called with every handshake that is delivered, and the group of
	// one member before it.
	Observe func(message []byte, before *mls.Group)

	t      testing.TB
	rand   *rand.Rand
	random io.Reader
	suite  wire.CipherSuite
	count  int
	held   map[string]SentProposal
}

// NewWorld begins a group with one member. The same seed gives the same history,
// in the suites whose keys all come from the given randomness.
func NewWorld(t testing.TB, id wire.CipherSuite, seed uint64, extensions wire.Extensions) *World {
	t.Helper()
	var key [32]byte
	key[0], key[1], key[2], key[3] = byte(seed), byte(seed>>8), byte(seed>>16), byte(seed>>24)
	w := &World{
		Now: Start, t: t, suite: id, random: rand.NewChaCha8(key), rand: rand.New(rand.NewPCG(seed, 9420)),
		Roster: map[int]string{}, held: map[string]SentProposal{},
	}
	first := w.Client()
	first.Create(w.Now, fmt.Appendf(nil, "world %d", seed), extensions)
	w.Members = []*Client{first}
	w.Roster[0] = first.Name
	cs, err := suite.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	if w.Naive, err = NewNaiveTree(cs, first.Group.RatchetTree()); err != nil {
		t.Fatal(err)
	}
	return w
}

// Random is the world's source of bytes.
func (w *World) Random() io.Reader { return w.random }

// Client makes a client that is in no group.
func (w *World) Client() *Client {
	w.count++
	return NewClient(w.t, w.random, w.suite, fmt.Sprintf("client %d", w.count))
}

// Pick chooses a member.
func (w *World) Pick() *Client { return w.Members[w.rand.IntN(len(w.Members))] }

// Propose sends a proposal of a member to everybody.
func (w *World) Propose(by *Client, p *mls.Proposed) {
	w.t.Helper()
	w.observe(p.Message, by.Group)
	by.Take(p.Step)
	for _, held := range by.Group.Proposals() {
		w.held[string(held.Ref)] = SentProposal{Sender: held.Sender, Proposal: held.Proposal}
	}
	for _, c := range w.Members {
		if c == by {
			continue
		}
		r, err := c.Process(w.Now, p.Message)
		if err != nil {
			w.t.Fatalf("%s: proposal of %s: %v", c.Name, by.Name, err)
		}
		received, ok := r.(*mls.ProposalReceived)
		if !ok || string(received.Ref) != string(p.Ref) {
			w.t.Fatalf("%s: the proposal of %s came out as %T", c.Name, by.Name, r)
		}
	}
}

func (w *World) observe(message []byte, before *mls.Group) {
	if w.Observe != nil {
		w.Observe(message, before)
	}
}

// Commit has a member commit, delivers the commit to everybody, lets the new
// ones join and checks that all agree.
func (w *World) Commit(by *Client, p mls.CommitParams, joiners ...*Client) *mls.StagedCommit {
	w.t.Helper()
	p.Random, p.Now = w.random, w.Now
	commit, err := by.Group.Commit(p)
	if err != nil {
		w.t.Fatalf("%s: commit: %v", by.Name, err)
	}
	w.Deliver(by, commit, joiners...)
	return commit.Staged
}

// Deliver gives a commit to everybody, its author too.
func (w *World) Deliver(by *Client, commit *mls.Commit, joiners ...*Client) {
	w.t.Helper()
	w.observe(commit.Message, by.Group)
	staged := commit.Staged
	// The author stores the commit, may restart, and takes it from the log; or it
	// applies what it has.
	by.Take(*commit.Keep())
	w.others(by, commit.Message)
	if w.rand.IntN(3) == 0 {
		applied, err := commit.Apply(by.Group, w.Now)
		if err != nil {
			w.t.Fatalf("%s: applying the own commit: %v", by.Name, err)
		}
		by.Take(applied.Step)
		w.settle(by, staged, commit, joiners)
		return
	}
	if w.rand.IntN(2) == 0 {
		by.Restart()
	}
	r, err := by.Process(w.Now, commit.Message)
	if err != nil {
		w.t.Fatalf("%s: own commit: %v", by.Name, err)
	}
	if own, ok := r.(*mls.StagedCommit); !ok || !own.Own {
		w.t.Fatalf("%s: the own commit was not recognised", by.Name)
	}
	w.settle(by, staged, commit, joiners)
}

// others gives a commit to everybody but its author.
func (w *World) others(by *Client, message []byte) {
	w.t.Helper()
	for _, c := range slices.Clone(w.Members) {
		if c == by {
			continue
		}
		r, err := c.Process(w.Now, message)
		if err != nil {
			w.t.Fatalf("%s (leaf %d): commit of %s: %v", c.Name, c.Group.OwnLeaf(), by.Name, err)
		}
		if r.(*mls.StagedCommit).SelfRemoved {
			w.Members = slices.DeleteFunc(w.Members, func(m *Client) bool { return m == c })
			w.Gone = append(w.Gone, c)
			if _, err := c.Group.Seal(mls.SealParams{Random: w.random}); !errors.Is(err, mls.ErrRemoved) {
				w.t.Fatalf("%s: sends after it was removed: %v", c.Name, err)
			}
			c.Restart()
		}
	}
}

// settle brings the model up to date, lets joiners in and compares everybody.
func (w *World) settle(by *Client, staged *mls.StagedCommit, commit *mls.Commit, joiners []*Client) {
	w.t.Helper()
	w.Now = w.Now.Add(time.Minute)
	for _, m := range staged.Removed {
		delete(w.Roster, int(m.Leaf))
	}
	for _, m := range staged.Added {
		w.Roster[int(m.Leaf)] = string(m.Node.Credential.Identity)
	}
	w.Roster[int(staged.Committer.Leaf)] = by.Name
	w.follow(commit.Message, staged)
	tree := by.Group.RatchetTree()
	for _, j := range joiners {
		j.Join(w.Now, commit.Welcome, tree)
		w.Members = append(w.Members, j)
	}
	w.held = map[string]SentProposal{}
	w.Check()
}

// follow applies a commit to the naive tree. A commit that came as
// PrivateMessage is taken from the tree that it led to, path apart.
func (w *World) follow(message []byte, staged *mls.StagedCommit) {
	w.t.Helper()
	var m wire.MLSMessage
	if err := wire.Unmarshal(message, &m); err != nil {
		w.t.Fatal(err)
	}
	if m.WireFormat == wire.WireFormatPrivateMessage {
		naive, err := NewNaiveTree(w.Naive.cs, w.Members[0].Group.RatchetTree())
		if err != nil {
			w.t.Fatal(err)
		}
		w.Naive = naive
		return
	}
	content := &m.PublicMessage.Content
	var proposals []SentProposal
	for _, p := range content.Commit.Proposals {
		if p.Type == wire.ProposalOrRefTypeReference {
			proposals = append(proposals, w.held[string(p.Reference)])
			continue
		}
		proposals = append(proposals, SentProposal{Sender: content.Sender, Proposal: p.Proposal})
	}
	committer, err := w.Naive.Commit(content.Sender, proposals, content.Commit.Path)
	if err != nil {
		w.t.Fatal(err)
	}
	if committer != int(staged.Committer.Leaf) {
		w.t.Fatalf("the committer is at leaf %d, the naive tree has it at %d", staged.Committer.Leaf, committer)
	}
}

// Check compares all members with each other, with the naive tree and with the
// roster.
func (w *World) Check() {
	w.t.Helper()
	first := w.Members[0].Group
	if got, want := first.RatchetTree(), w.Naive.Marshal(); string(got) != string(want) {
		w.t.Fatalf("epoch %d: the tree is not the naive one", first.Epoch())
	}
	if string(first.Context().TreeHash) != string(w.Naive.Hash()) {
		w.t.Fatalf("epoch %d: the tree hash is not the naive one", first.Epoch())
	}
	if err := w.Naive.Valid(); err != nil {
		w.t.Fatalf("epoch %d: %v", first.Epoch(), err)
	}
	members := first.Members()
	if len(members) != len(w.Roster) || len(members) != len(w.Members) {
		w.t.Fatalf("epoch %d: %d leaves, %d in the roster, %d clients", first.Epoch(), len(members), len(w.Roster), len(w.Members))
	}
	for _, m := range members {
		if w.Roster[int(m.Leaf)] != string(m.Node.Credential.Identity) {
			w.t.Fatalf("epoch %d: leaf %d is %q, not %q", first.Epoch(), m.Leaf, m.Node.Credential.Identity, w.Roster[int(m.Leaf)])
		}
	}
	for _, c := range w.Members[1:] {
		if c.Group.Epoch() != first.Epoch() || !c.Group.EpochAuthenticator().Equal(first.EpochAuthenticator()) {
			w.t.Fatalf("epoch %d: %s and %s do not agree", first.Epoch(), c.Name, w.Members[0].Name)
		}
	}
}

// Add has a member add new clients in one commit.
func (w *World) Add(by *Client, n int) *mls.StagedCommit {
	w.t.Helper()
	var p mls.CommitParams
	var joiners []*Client
	for range n {
		c := w.Client()
		p.Proposals = append(p.Proposals, mls.AddProposal(&c.KeyPackage(w.Now).KeyPackage))
		joiners = append(joiners, c)
	}
	p.Private = w.Private
	return w.Commit(by, p, joiners...)
}

// ExternalJoin lets a client in by external commit; a member does it again to
// resync.
func (w *World) ExternalJoin(c *Client, resync bool, selfRemoves ...[]byte) *mls.StagedCommit {
	w.t.Helper()
	host := w.Pick()
	for resync && host == c && len(w.Members) > 1 {
		host = w.Pick()
	}
	info, err := host.Group.GroupInfo(false, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	p := mls.ExternalJoinParams{
		Random: w.random, Now: w.Now, GroupInfo: info, Tree: host.Group.RatchetTree(),
		Signer: c.Signer, Credential: c.Credential(), SelfRemoves: selfRemoves,
	}
	if resync {
		own := c.Group.OwnLeaf()
		p.Resync = &own
		w.Members = slices.DeleteFunc(w.Members, func(m *Client) bool { return m == c })
	}
	commit, err := c.Config.ExternalJoin(p)
	if err != nil {
		w.t.Fatalf("%s: external commit: %v", c.Name, err)
	}
	w.observe(commit.Message, host.Group)
	w.others(c, commit.Message)
	applied, err := commit.Apply(nil, w.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	c.enter(applied.Step)
	w.Members = append(w.Members, c)
	w.settle(c, commit.Staged, commit, nil)
	return commit.Staged
}

// Chat has some members write, delivers the messages to everybody in a random
// order and checks what comes out.
func (w *World) Chat(n int) {
	w.t.Helper()
	type sent struct {
		by      *Client
		text    string
		message []byte
	}
	var all []sent
	for i := range n {
		by := w.Pick()
		text := fmt.Sprintf("%s says %d in epoch %d", by.Name, i, by.Group.Epoch())
		all = append(all, sent{by, text, by.Seal(text)})
	}
	for _, c := range w.Members {
		w.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, s := range all {
			r, err := c.Process(w.Now, s.message)
			if s.by == c {
				if !errors.Is(err, mls.ErrOwnMessage) {
					w.t.Fatalf("%s: own message: %v", c.Name, err)
				}
				continue
			}
			if err != nil {
				w.t.Fatalf("%s: message of %s: %v", c.Name, s.by.Name, err)
			}
			a := r.(*mls.Application)
			if string(a.Content) != s.text || string(a.Sender.Node.Credential.Identity) != s.by.Name {
				w.t.Fatalf("%s: read %q of %q, not %q", c.Name, a.Content, a.Sender.Node.Credential.Identity, s.text)
			}
			if _, err := c.Process(w.Now, s.message); !errors.Is(err, mls.ErrKeyConsumed) {
				w.t.Fatalf("%s: a message is read twice: %v", c.Name, err)
			}
		}
	}
}
