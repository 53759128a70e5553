package interop

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls"
	_ "github.com/askucher/compax-core/mls/hpke/hpke448"   // suites 4 and 6
	_ "github.com/askucher/compax-core/mls/suite/suite448" // suites 4 and 6
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// engine is package mls as a peer.
type engine struct {
	random   io.Reader
	now      time.Time
	recorder *recorder // nil when nothing is written down
}

func (e *engine) name() string { return "ours" }

func (e *engine) info() info {
	return info{Peer: "Compax", Suites: []uint16{1, 2, 3, 4, 5, 6, 7}, Can: allFeatures()}
}

func (e *engine) client(t testing.TB, id uint16, name string) client {
	t.Helper()
	c := mlstest.NewClient(t, e.random, wire.CipherSuite(id), name)
	c.Config.SameClient = sameName
	return &ours{t: t, engine: e, now: e.now, record: e.recorder.client(c, e.now), Client: c}
}

// sameName takes leaves of one name for one client, across groups of different
// suites.
func sameName(a, b *wire.LeafNode) bool {
	return string(a.Credential.Identity) == string(b.Credential.Identity)
}

// ours is a client of the engine.
type ours struct {
	*mlstest.Client
	t      testing.TB
	engine *engine
	now    time.Time
	record *recording
	next   *mlstest.Client // the same client in a successor group's suite
}

func (o *ours) keyPackage() ([]byte, error) {
	b := o.KeyPackage(o.now)
	o.record.bundle(b)
	return b.Message(), nil
}

func (o *ours) create(group []byte) error {
	o.Create(o.now, group, nil)
	o.record.load()
	return nil
}

func keyPackage(message []byte) (*wire.KeyPackage, error) {
	var m wire.MLSMessage
	if err := wire.Unmarshal(message, &m); err != nil {
		return nil, err
	}
	if m.KeyPackage == nil {
		return nil, errors.New("not a KeyPackage")
	}
	return m.KeyPackage, nil
}

func keyPackages(messages [][]byte) (list []*wire.KeyPackage, err error) {
	for _, message := range messages {
		kp, err := keyPackage(message)
		if err != nil {
			return nil, err
		}
		list = append(list, kp)
	}
	return list, nil
}

func (o *ours) commit(r commitRequest) (committed, error) {
	began := time.Now()
	added, err := keyPackages(r.Adds)
	if err != nil {
		return committed{}, err
	}
	var list []wire.Proposal
	for _, kp := range added {
		list = append(list, mls.AddProposal(kp))
	}
	for _, leaf := range r.Removes {
		list = append(list, mls.RemoveProposal(leaf))
	}
	for _, id := range r.PSKs {
		p, err := o.Group.ExternalPSKProposal(o.engine.random, id)
		if err != nil {
			return committed{}, err
		}
		list = append(list, p)
	}
	return o.finish(began, mls.CommitParams{Proposals: list, Private: r.Private, TreeInWelcome: true})
}

// finish commits and applies.
func (o *ours) finish(began time.Time, p mls.CommitParams) (committed, error) {
	p.Random, p.Now = o.engine.random, o.now
	c, err := o.Group.Commit(p)
	if err != nil {
		return committed{}, err
	}
	staged, err := c.Apply(o.Group, o.now)
	if err != nil {
		return committed{}, err
	}
	o.Take(staged.Step)
	ns := time.Since(began).Nanoseconds()
	o.record.load()
	return committed{Commit: c.Message, Welcome: c.Welcome, NS: ns}, nil
}

func (o *ours) join(welcome []byte) error { return o.enter(welcome, nil, nil) }

func (o *ours) enter(welcome, tree []byte, from *mls.Group) error {
	joined, err := o.Config.Join(mls.JoinParams{Welcome: welcome, Bundles: o.Bundles, Tree: tree, From: from, Now: o.now})
	if err != nil {
		return err
	}
	o.fresh(joined.Step)
	o.record.join(welcome, tree)
	return nil
}

// fresh begins another group.
func (o *ours) fresh(s mls.Step) {
	o.Store = map[string][]byte{}
	o.Take(s)
}

func (o *ours) handle(message []byte) (handled, error) {
	began := time.Now()
	r, err := o.Process(o.now, message)
	if err != nil {
		return handled{}, err
	}
	h := handled{NS: time.Since(began).Nanoseconds()}
	switch r := r.(type) {
	case *mls.Application:
		h.Kind, h.Data = "application", r.Content
	case *mls.ProposalReceived:
		h.Kind = "proposal"
	case *mls.StagedCommit:
		h.Kind = "commit"
	}
	o.record.handle(message, h)
	return h, nil
}

func (o *ours) propose(p proposal) ([]byte, error) {
	params := mls.ProposeParams{Random: o.engine.random, Now: o.now}
	var proposed *mls.Proposed
	var err error
	switch p.Type {
	case "add":
		kp, err := keyPackage(p.KeyPackage)
		if err != nil {
			return nil, err
		}
		params.Proposal = mls.AddProposal(kp)
	case "remove":
		params.Proposal = mls.RemoveProposal(p.Leaf)
	case "psk":
		if params.Proposal, err = o.Group.ExternalPSKProposal(o.engine.random, p.PSK); err != nil {
			return nil, err
		}
	case "self_remove":
		params.Proposal = mls.SelfRemoveProposal()
	case "update":
	default:
		return nil, fmt.Errorf("unknown proposal %s", p.Type)
	}
	if p.Type == "update" {
		proposed, err = o.Group.ProposeUpdate(params, mls.LeafChange{})
	} else {
		proposed, err = o.Group.Propose(params)
	}
	if err != nil {
		return nil, err
	}
	o.Take(proposed.Step)
	o.record.load()
	return proposed.Message, nil
}

func (o *ours) seal(data []byte) ([]byte, error) {
	sealed, err := o.Group.Seal(mls.SealParams{Random: o.engine.random, Content: data, IgnoreProposals: true})
	if err != nil {
		return nil, err
	}
	o.Take(sealed.Step)
	return sealed.Message, nil
}

func (o *ours) load() error {
	o.Restart()
	return nil
}

func (o *ours) groupInfo() ([]byte, error) { return o.Group.GroupInfo(true, nil) }

func (o *ours) externalJoin(info []byte, resync bool) ([]byte, error) {
	p := mls.ExternalJoinParams{
		Random: o.engine.random, Now: o.now, GroupInfo: info, Signer: o.Signer, Credential: o.Credential(),
	}
	if resync {
		leaf := o.Group.OwnLeaf()
		p.Resync = &leaf
	}
	c, err := o.Config.ExternalJoin(p)
	if err != nil {
		return nil, err
	}
	staged, err := c.Apply(nil, o.now)
	if err != nil {
		return nil, err
	}
	o.fresh(staged.Step)
	o.record.load()
	return c.Message, nil
}

func (o *ours) psk(id, secret []byte) error {
	o.PSKs[string(id)] = secret
	o.record.psk(id, secret)
	return nil
}

func (o *ours) reinit(group []byte, id uint16) (committed, error) {
	return o.finish(time.Now(), mls.CommitParams{
		Proposals: []wire.Proposal{mls.ReInitProposal(group, wire.CipherSuite(id), nil)},
	})
}

// become makes the client the one of a successor group.
func (o *ours) become(id uint16) {
	if o.next == nil {
		o.next = o.inSuite(id)
	}
	o.Client, o.next = o.next, nil
	o.record = o.record.successor(o.Client, o.now)
	for _, b := range o.Bundles {
		o.record.bundle(b)
	}
}

// inSuite is the same client with keys of a suite.
func (o *ours) inSuite(id uint16) *mlstest.Client {
	c := mlstest.NewClient(o.t, o.engine.random, wire.CipherSuite(id), o.Name)
	c.Config.SameClient = sameName
	return c
}

func (o *ours) successorPackage(id uint16) ([]byte, error) {
	o.next = o.inSuite(id)
	return o.next.KeyPackage(o.now).Message(), nil
}

func (o *ours) reinitCreate(_ []byte, id uint16, packages [][]byte) (committed, error) {
	return o.succeed(id, packages, func(old *mls.Group, p mls.SuccessorParams) (*mls.Commit, error) {
		return old.Successor(o.Config, p)
	})
}

func (o *ours) branch(group []byte, packages [][]byte) (committed, error) {
	return o.succeed(uint16(o.Suite.ID()), packages, func(old *mls.Group, p mls.SuccessorParams) (*mls.Commit, error) {
		p.GroupID = group
		return old.Branch(o.Config, p)
	})
}

func (o *ours) succeed(id uint16, packages [][]byte, start func(*mls.Group, mls.SuccessorParams) (*mls.Commit, error)) (committed, error) {
	others, err := keyPackages(packages)
	if err != nil {
		return committed{}, err
	}
	old := o.Group
	o.become(id)
	c, err := start(old, mls.SuccessorParams{
		Random: o.engine.random, Now: o.now, KeyPackages: others, Leaf: o.Leaf(o.now), TreeInWelcome: true,
	})
	if err != nil {
		return committed{}, err
	}
	staged, err := c.Apply(nil, o.now)
	if err != nil {
		return committed{}, err
	}
	o.fresh(staged.Step)
	return committed{Commit: c.Message, Welcome: c.Welcome}, nil
}

func (o *ours) reinitJoin(welcome, tree []byte) error {
	old := o.Group
	o.become(uint16(o.next.Suite.ID()))
	return o.enter(welcome, tree, old)
}

func (o *ours) branchJoin(welcome, tree []byte) error { return o.reinitJoin(welcome, tree) }

func (o *ours) state() (state, error) {
	g := o.Group
	exported, err := g.Export("interop", []byte("context"), 32)
	if err != nil && g.Active() {
		return state{}, err
	}
	s := state{
		Epoch: g.Epoch(), Authenticator: g.EpochAuthenticator(), Exported: exported,
		Leaf: g.OwnLeaf(), Active: g.Active(),
	}
	for _, m := range g.Members() {
		s.Members = append(s.Members, member{Leaf: m.Leaf, Identity: m.Node.Credential.Identity})
	}
	o.record.expect(s)
	return s, nil
}
