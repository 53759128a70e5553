package mls

import (
	"fmt"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// newStagedCommit tells what a commit changes, without its Step.
func newStagedCommit(g *Group, s *follower.Staged, ac *wire.AuthenticatedContent) *StagedCommit {
	out := &StagedCommit{
		Epoch:             g.Epoch() + 1,
		Committer:         Member{Leaf: uint32(s.Committer), Node: s.Tree.Leaf(s.Committer)},
		External:          s.External,
		Proposals:         s.Proposals,
		Extensions:        s.Extensions,
		ReInit:            s.ReInit,
		AuthenticatedData: ac.Content.AuthenticatedData,
	}
	for _, l := range s.Added {
		out.Added = append(out.Added, Member{Leaf: uint32(l), Node: s.Tree.Leaf(l)})
	}
	for _, l := range s.Updated {
		out.Updated = append(out.Updated, Member{Leaf: uint32(l), Node: s.Tree.Leaf(l)})
	}
	for _, l := range s.Removed {
		out.Removed = append(out.Removed, Member{Leaf: uint32(l), Node: g.public.Leaf(l)})
	}
	for _, p := range s.Proposals {
		if s.External && p.Proposal.ProposalType == wire.ProposalTypeRemove {
			out.Resync = true
		}
	}
	return out
}

// ownCommit is a commit of this client's own that may come back: in memory with
// its result, from the store with the secrets to stage it again.
type ownCommit struct {
	content *wire.AuthenticatedContent
	path    ownPath // zero when the commit has no path
	// staged is the result without its Step, next what the Step enters; both are
	// nil after a restart. For an external join born is the group it leads to.
	staged *StagedCommit
	next   *nextEpoch
	born   *Group
}

func (o *ownCommit) append(b []byte) []byte {
	b = wire.AppendOpaque(b, wire.Marshal(o.content))
	var leaf []byte
	if o.path.leaf != nil {
		leaf = o.path.leaf.Bytes()
	}
	b = wire.AppendOpaque(b, leaf)
	return wire.AppendOpaque(b, o.path.first)
}

func readOwnCommit(cs *suite.Suite, body []byte) (*ownCommit, error) {
	r := wire.NewReader(body)
	content, leaf, first := r.Opaque(), r.Opaque(), Secret(r.Opaque())
	if err := r.Finish(); err != nil {
		return nil, err
	}
	o := &ownCommit{content: new(wire.AuthenticatedContent)}
	if err := wire.Unmarshal(content, o.content); err != nil {
		return nil, err
	}
	if leaf != nil {
		key, err := hpke.NewPrivateKey(cs, leaf)
		if err != nil {
			return nil, err
		}
		o.path = ownPath{leaf: key, first: first}
	}
	return o, nil
}

// lost gives the secrets of a commit that was not taken.
func (o *ownCommit) lost() []wiper {
	secrets := []wiper{o.path.first}
	if o.path.leaf != nil {
		secrets = append(secrets, o.path.leaf)
	}
	if o.next != nil {
		for _, s := range o.next.keys.all() {
			secrets = append(secrets, *s)
		}
		secrets = append(secrets, o.next.keys.encryption, o.next.keys.applicationExport)
	}
	return secrets
}

// processOwn gives the staged result of a commit of our own that came back.
func (g *Group) processOwn(own *ownCommit, p ProcessParams) (*StagedCommit, error) {
	if own.next != nil {
		if own.next.keys.init.wiped() { // by Discard
			return nil, ErrForgotten
		}
		n := *own.next
		n.now = p.Now
		staged := *own.staged
		staged.Step = g.enter(n)
		return &staged, nil
	}
	next := *g
	staged, err := g.processCommit(own.content, own, Step{Next: &next}, p)
	if err != nil {
		return nil, err
	}
	staged.Own = true
	return staged, nil
}

// pathOf gives the secrets of a commit's path for this member, and the nodes
// they belong to: decrypted, or for an own commit derived from what it chose.
func (g *Group) pathOf(s *follower.Staged, path *wire.UpdatePath, own *ownCommit, held privateKeys) ([]tree.NodeIndex, *pathSecrets, error) {
	if own == nil {
		return receivePath(g.cs, s.Tree, path, s.Committer, g.leaf, s.Added, held, s.ProvisionalContext(s.Tree.Hash()))
	}
	nodes, err := s.Tree.FilteredDirectPath(s.Committer)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrPath, err)
	}
	secrets, err := derivePath(g.cs, own.path.first, len(nodes))
	if err != nil {
		return nil, nil, err
	}
	for i, key := range secrets.keys {
		if string(key.Public()) != string(s.Tree.PublicKey(nodes[i])) {
			return nil, nil, fmt.Errorf("%w: the kept secrets are of another commit", ErrState)
		}
	}
	return nodes, secrets, nil
}

// withUpdate gives the private keys with which a commit's path is read: when
// the commit covers an Update of our own, with the key of the new leaf. It also
// gives the signer of our leaf after the commit.
func (g *Group) withUpdate(s *follower.Staged) (privateKeys, *suite.SignatureKey, error) {
	for _, p := range s.Proposals {
		if p.Proposal.ProposalType != wire.ProposalTypeUpdate || tree.LeafIndex(p.Sender.LeafIndex) != g.leaf {
			continue
		}
		key, ok := g.updates[string(p.Ref)]
		if !ok {
			return nil, nil, fmt.Errorf("%w: the private key of an own update is missing", ErrState)
		}
		signer, err := g.config.signer(p.Proposal.Update.LeafNode.SignatureKey)
		if err != nil {
			return nil, nil, err
		}
		return withEntry(g.private, g.leaf.Node(), key), signer, nil
	}
	return g.private, g.signer, nil
}

// leave gives the group after a commit that removes this client: past messages
// can still be opened, the rest is gone.
func (g *Group) leave(step Step, now time.Time) Step {
	from := step.Next
	next := &Group{config: g.config, cs: g.cs, public: g.public, leaf: g.leaf, status: statusRemoved, base: g.base}
	out := Step{Next: next, Delta: step.Delta, forget: step.forget}
	from.keepPast(&out, now)
	for _, s := range g.keys.all() {
		if len(next.past) == 0 || s != &g.keys.senderData {
			out.forgets(*s)
		}
	}
	for _, key := range g.private {
		out.forgets(key)
	}
	for _, r := range g.resumption {
		out.forgets(r.secret)
		out.Delta.drop(epochKey(prefixResumption, r.epoch))
	}
	g.dropHandshakes(&out)
	g.exporter.asSecretTree().walk(func(index uint32, n *secretNode) {
		out.forgets(n.secret)
		out.Delta.drop(exportKey(index))
	})
	out.Delta.put(keyCore, next.appendCore(nil))
	out.Delta = Delta{}.Then(out.Delta)
	return out
}

// dropHandshakes deletes what belongs to the epoch that ends: held proposals,
// keys of updates, commits of our own.
func (g *Group) dropHandshakes(step *Step) {
	for ref := range g.updates {
		step.Delta.drop(updateKey(wire.ProposalRef(ref)))
	}
	for hash, own := range g.own {
		if taken(own, step.Next) {
			step.forgets(own.path.first)
		} else {
			step.forgets(own.lost()...)
		}
		step.Delta.drop(ownKey(hash))
	}
	for i := range g.public.Proposals() {
		step.Delta.drop(proposalKey(i))
	}
}

// taken says that a commit of our own led to the group.
func taken(own *ownCommit, to *Group) bool {
	return own.next != nil && own.next.public == to.public || own.path.leaf != nil && own.path.leaf == to.private[to.leaf.Node()]
}
