package mls

import (
	"fmt"
	"io"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// GroupID names the group. Not to be changed.
func (g *Group) GroupID() []byte { return g.public.GroupID() }

// Epoch counts the commits that led here.
func (g *Group) Epoch() uint64 { return g.public.Epoch() }

// CipherSuite is the group's suite.
func (g *Group) CipherSuite() wire.CipherSuite { return g.cs.ID() }

// Active says that the group takes messages of this client: it was neither
// removed nor was the group closed by a ReInit.
func (g *Group) Active() bool { return g.status == statusActive }

// OwnLeaf is this client's leaf index.
func (g *Group) OwnLeaf() uint32 { return uint32(g.leaf) }

// Context is the GroupContext of the epoch (RFC 9420 Section 8.1). Not to be
// changed.
func (g *Group) Context() *wire.GroupContext { return g.public.Context() }

// Public is the public state of the group, as servers have it.
func (g *Group) Public() *follower.Group { return g.public }

// Member gives the member at a leaf; Node is nil when it is blank.
func (g *Group) Member(leaf uint32) Member {
	return Member{Leaf: leaf, Node: g.public.Leaf(tree.LeafIndex(leaf))}
}

// Members lists the members by leaf index.
func (g *Group) Members() []Member {
	members := make([]Member, 0, g.public.Tree().Members())
	for l, node := range g.public.Tree().Leaves() {
		members = append(members, Member{Leaf: uint32(l), Node: node})
	}
	return members
}

// RatchetTree is the encoded public tree, for joiners who do not get it in the
// Welcome.
func (g *Group) RatchetTree() []byte { return g.public.Tree().Marshal() }

// Proposals are the proposals held for the next commit, in the order in which
// they came.
func (g *Group) Proposals() []follower.Proposal { return g.public.Proposals() }

// EpochAuthenticator is a secret that members can compare to confirm that they
// have the same view of the epoch (RFC 9420 Section 8.7), KDF.Nh bytes.
func (g *Group) EpochAuthenticator() Secret { return g.keys.authenticator.clone() }

// Export derives a secret for the application from the epoch (RFC 9420 Section
// 8.5). length is at most 255 times KDF.Nh bytes.
func (g *Group) Export(label string, context []byte, length int) (Secret, error) {
	if g.status == statusRemoved {
		return nil, ErrRemoved
	}
	if length < 0 || length > g.cs.MaxExpand() {
		return nil, fmt.Errorf("%w: %d bytes cannot be exported, at most %d", ErrParams, length, g.cs.MaxExpand())
	}
	if g.keys.exporter.wiped() {
		return nil, ErrForgotten
	}
	return exportSecret(g.cs, g.keys.exporter, label, context, length), nil
}

// Exported is the result of the safe exporter.
type Exported struct {
	Step
	Secret Secret
}

// ExportSafe derives the epoch's secret of a component with forward secrecy: it
// can be had once (draft-ietf-mls-extensions Section 4.4). KDF.Nh bytes. The
// error wraps ErrKeyConsumed the second time.
func (g *Group) ExportSafe(component wire.ComponentID) (*Exported, error) {
	if g.status == statusRemoved {
		return nil, ErrRemoved
	}
	secret, exporter, change, err := g.exporter.export(g.cs, component)
	if err != nil {
		return nil, err
	}
	next := *g
	next.exporter = exporter
	out := &Exported{Step: Step{Next: &next, forget: change.forget}, Secret: secret}
	for _, index := range change.consumed {
		out.Delta.drop(exportKey(index))
	}
	after := exporter.asSecretTree()
	for _, index := range change.derived {
		out.Delta.put(exportKey(index), after.nodeAt(index).secret)
	}
	return out, nil
}

// Kept is how many commits of this client's own are kept (see [Commit.Keep]): made in
// this epoch, perhaps sent, and neither processed nor discarded.
func (g *Group) Kept() int { return len(g.own) }

// Discard forgets the kept commits of our own, for when another one won.
func (g *Group) Discard() *Step {
	next := *g
	next.own = nil
	step := &Step{Next: &next}
	for hash, own := range g.own {
		step.forgets(own.lost()...)
		step.Delta.drop(ownKey(hash))
	}
	return step
}

// options are the follower's, from the configuration.
func (c *Config) options(now time.Time) follower.Options {
	return follower.Options{
		Now: now, MaxLifetime: c.MaxLifetime, Credentials: c.Credentials, AppData: c.AppData,
		KeyPackages: c.KeyPackages, Parallel: true,
	}
}

// enterPublic verifies a GroupInfo and its tree: the public state that somebody
// who enters begins with.
func (c *Config) enterPublic(cs *suite.Suite, info *wire.GroupInfo, encoded []byte, now time.Time) (*follower.Group, error) {
	// mutants: equivalent: follower.Join refuses it too
	if info.GroupContext.CipherSuite != cs.ID() {
		return nil, fmt.Errorf("%w: it is of suite %#04x, not %#04x", ErrGroupInfo, uint16(info.GroupContext.CipherSuite), uint16(cs.ID()))
	}
	if data, found := info.Extensions.Find(wire.ExtensionTypeRatchetTree); found {
		encoded = data
	}
	// mutants: equivalent: only the wording differs, no bytes are no tree
	if encoded == nil {
		return nil, fmt.Errorf("%w: it is neither in the group info nor given beside it", ErrTree)
	}
	unverified, err := tree.ParseBytes(cs, encoded)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTree, err)
	}
	public, err := follower.Join(cs, info, unverified, c.options(now))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGroupInfo, err)
	}
	return public, nil
}

// Format writes the group's id, epoch and leaf, whatever the verb is: never what
// it holds.
func (g Group) Format(f fmt.State, _ rune) {
	if g.public == nil {
		_, _ = io.WriteString(f, "Group(nil)")
		return
	}
	_, _ = fmt.Fprintf(f, "Group(%x, epoch %d, leaf %d)", g.GroupID(), g.Epoch(), g.leaf)
}
