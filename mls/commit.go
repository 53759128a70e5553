package mls

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// CommitParams says what a commit does. The zero value of everything but Random
// and Now commits all held proposals that may be committed together, with a
// path.
type CommitParams struct {
	// Random gives the new keys.
	Random io.Reader
	// Now is the time for lifetimes and for the age of past epochs.
	Now time.Time
	// Proposals are made by the commit itself, after the held ones.
	Proposals []wire.Proposal
	// Skip names held proposals that are not to be committed.
	Skip []wire.ProposalRef
	// OmitPath leaves the path out where the proposals allow it (RFC 9420
	// Section 12.4): cheaper, but without new keys for the committer.
	OmitPath bool
	// Leaf changes the committer's leaf; it counts only with a path.
	Leaf LeafChange
	// Private sends the commit as PrivateMessage; PadTo is as in SealParams.
	Private bool
	PadTo   int
	// AuthenticatedData is bound to the commit.
	AuthenticatedData []byte
	// TreeInWelcome puts the ratchet tree into the Welcome's GroupInfo. Without
	// it joiners get the tree elsewhere.
	TreeInWelcome bool
	// GroupInfoExtensions are added to the GroupInfo of the new epoch.
	GroupInfoExtensions wire.Extensions
}

// Commit is a commit that is ready to be sent. Nothing has changed yet: process
// Message, or call Apply, once the delivery service has accepted it; drop
// everything when another commit won.
type Commit struct {
	// Message is the MLSMessage of the commit.
	Message []byte
	// Welcome is the MLSMessage for those whom the commit adds, nil when there
	// are none.
	Welcome []byte
	// GroupInfo is the MLSMessage of the new epoch's GroupInfo, with the
	// external_pub extension and without the tree.
	GroupInfo []byte
	// Staged tells what the commit changes. Its Step is empty: Apply gives it.
	Staged *StagedCommit

	own  *ownCommit
	keep Step
}

// Format writes the epoch that the commit starts, whatever the verb is.
func (c Commit) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Commit(to epoch %d, %d bytes)", c.Staged.Epoch, len(c.Message))
}

// Keep gives the step that remembers the commit in the group's own epoch, so
// that [Group.Process] recognises it when it comes back, also after a restart.
// Take it before the message leaves the device. A commit sent as PrivateMessage
// uses a key of the handshake ratchet: then Keep must be taken.
func (c *Commit) Keep() *Step { return &c.keep }

// Apply gives the staged result of the commit for a group as it is now: the
// value that made the commit, or a later one of the same epoch, for example with
// messages opened since. It is what [Group.Process] gives for Message after
// Keep. For the commit of an external join g is nil.
func (c *Commit) Apply(g *Group, now time.Time) (*StagedCommit, error) {
	if c.own.born != nil {
		staged := *c.own.staged
		staged.Step = c.own.born.born()
		return &staged, nil
	}
	if g == nil || g.Epoch()+1 != c.Staged.Epoch || string(g.GroupID()) != string(c.own.content.Content.GroupID) {
		return nil, fmt.Errorf("%w: the commit is of another epoch than the group", ErrParams)
	}
	return g.processOwn(c.own, ProcessParams{Now: now})
}

// Commit makes a commit that starts the next epoch (RFC 9420 Section 12.4.1),
// with the Welcome for whom it adds and the GroupInfo of the new epoch. Held
// proposals with which there would be no valid commit are left out. Errors wrap
// those of package follower when the commit's own proposals are not allowed.
func (g *Group) Commit(p CommitParams) (*Commit, error) {
	if err := g.canSend(); err != nil {
		return nil, err
	}
	if err := p.Leaf.check(g.cs); err != nil {
		return nil, err
	}
	values, err := ownProposals(p)
	if err != nil {
		return nil, err
	}
	refs := g.committable(p.Skip, p.Proposals)
	plan := commitPlan{
		CommitParams: p,
		sender:       wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: uint32(g.leaf)},
		list:         append(byReference(refs), values...),
		init:         g.keys.init,
		leaf:         g.public.Leaf(g.leaf),
	}
	c, err := g.commit(plan)
	if !errors.Is(err, follower.ErrInvalid) {
		return c, err
	}
	sifted := g.sift(plan, refs, values)
	if len(sifted) == len(refs) {
		return nil, err // it is not for the held ones
	}
	plan.list = append(byReference(sifted), values...)
	return g.commit(plan)
}

// commitPlan is a commit of a member or of somebody who joins by it.
type commitPlan struct {
	CommitParams
	sender wire.Sender
	list   []wire.ProposalOrRef
	init   Secret // init_secret to start from
	leaf   *wire.LeafNode
	// succession says that the commit sets up a group that follows another one;
	// psks then knows the other group's resumption_psk.
	succession bool
	psks       func(wire.PreSharedKeyID) (Secret, bool)
	// joiners are the encryptions of the Welcome, begun as soon as its receivers
	// are known and verified.
	joiners *hpke.Sealing
}

// commit makes the commit of a plan: proposals, path, signature, key schedule.
func (g *Group) commit(p commitPlan) (*Commit, error) {
	options := g.config.options(p.Now)
	options.Succession = p.succession
	draft, err := g.public.Draft(p.sender, p.list, options)
	if err != nil {
		return nil, err
	}
	if p.joiners, err = beginWelcome(g.cs, p.Random, draft.AddedKeyPackages()); err != nil {
		return nil, err
	}
	defer p.joiners.Cancel()
	path, signer, err := g.pathFor(p, draft)
	if err != nil {
		return nil, err
	}
	after, commit, commitSecret := draft.Tree, &wire.Commit{Proposals: p.list}, zeroSecret(g.cs)
	if path != nil {
		defer path.wipe()
		after, commit.Path, commitSecret = path.tree, path.update, path.secrets.commit
	}
	ac, err := g.sign(wireFormat(p.Private), wire.FramedContent{
		GroupID: g.GroupID(), Epoch: g.Epoch(), Sender: p.sender,
		AuthenticatedData: p.AuthenticatedData,
		ContentType:       wire.ContentTypeCommit,
		Commit:            commit,
	})
	if err != nil {
		return nil, err
	}
	staged, err := draft.Finish(ac, after)
	if err != nil {
		return nil, err
	}
	psks, err := g.pskInputs(draft.PSKs, p.psks)
	if err != nil {
		return nil, err
	}
	start, err := startEpoch(g.cs, p.init, commitSecret, psks, staged.EncodedContext(), staged.ConfirmedTranscriptHash())
	if err != nil {
		return nil, err
	}
	defer start.wipe()
	ac.Auth.ConfirmationTag = start.tag
	next := nextEpoch{
		public: staged.Next(start.tag), leaf: draft.Committer, signer: signer,
		keys: start.keys, reinit: draft.ReInit, now: p.Now,
	}
	if path != nil {
		next.private, next.dropped = path.keysOf(g.private, draft.Committer)
	} else {
		next.private, next.dropped = g.private.within(after)
	}
	return g.publish(p, ac, staged, path, start, next)
}

// pathFor makes the path of a commit, nil when it has none, and says who signs
// for the committer's leaf after it.
func (g *Group) pathFor(p commitPlan, draft *follower.Draft) (*newPath, *suite.SignatureKey, error) {
	if p.OmitPath && !draft.PathRequired {
		return nil, g.signer, nil
	}
	leaf, signer := p.Leaf.apply(p.leaf, g.signer)
	path, err := buildPath(g.cs, p.Random, draft.Tree, draft.Committer, draft.Added, leaf, signer, g.GroupID())
	if err != nil {
		return nil, nil, err
	}
	if err := path.encrypt(draft.ProvisionalContext(path.tree.Hash())); err != nil {
		path.wipe()
		return nil, nil, err
	}
	return path, signer, nil
}

// wireFormat is the wire format of a handshake message.
func wireFormat(private bool) wire.WireFormat {
	if private {
		return wire.WireFormatPrivateMessage
	}
	return wire.WireFormatPublicMessage
}

// publish puts a commit and the epoch that it starts into messages: the commit
// itself, the GroupInfo, and the Welcome for whom it adds. path is nil when it
// has none.
func (g *Group) publish(p commitPlan, ac *wire.AuthenticatedContent, staged *follower.Staged, path *newPath, start *epochStart, next nextEpoch) (*Commit, error) {
	grease, err := greaseExtension(p.Random)
	if err != nil {
		return nil, err
	}
	extensions := append(p.GroupInfoExtensions[:len(p.GroupInfoExtensions):len(p.GroupInfoExtensions)], grease)
	info, err := groupInfo(g.cs, next.signer, next.public, next.leaf, start.keys.external, extensions)
	if err != nil {
		return nil, err
	}
	c := &Commit{GroupInfo: wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatGroupInfo, GroupInfo: info})}
	if len(staged.Added) > 0 {
		if c.Welcome, err = g.welcome(p, staged, path, start, info, next.signer); err != nil {
			return nil, err
		}
	}
	c.own = &ownCommit{content: ac, staged: newStagedCommit(g, staged, ac)}
	c.own.staged.Own = true
	c.Staged = c.own.staged
	if path != nil {
		c.own.path = path.own
	}
	if g.outside {
		c.own.born = newGroup(g.config, g.cs, next.public, next.leaf, next.signer, next.keys, next.private)
		c.Message = g.publicMessage(ac)
		return c, nil
	}
	c.own.next = &next
	if err := g.protectCommit(c, ac, p.CommitParams); err != nil {
		return nil, err
	}
	return c, nil
}

// welcome makes the Welcome for the clients that a commit adds.
func (g *Group) welcome(p commitPlan, staged *follower.Staged, path *newPath, start *epochStart, info *wire.GroupInfo, signer *suite.SignatureKey) ([]byte, error) {
	if p.TreeInWelcome {
		with := *info
		nodes := staged.Tree.RatchetTree()
		with.Extensions = append(with.Extensions[:len(with.Extensions):len(with.Extensions)],
			wire.NewExtension(wire.ExtensionTypeRatchetTree, &nodes))
		if err := signGroupInfo(signer, &with); err != nil {
			return nil, err
		}
		info = &with
	}
	var joiners []joiner
	packages := staged.AddedKeyPackages()
	for i, leaf := range staged.Added {
		joiners = append(joiners, joiner{leaf: leaf, keyPackage: packages[i]})
	}
	w, err := newWelcome(g.cs, p.joiners, joiners, staged.Committer, path, start.joiner, start.member, staged.PSKs, info)
	if err != nil {
		return nil, err
	}
	return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatWelcome, Welcome: w}), nil
}

// protectCommit encodes the commit and makes the step that remembers it.
func (g *Group) protectCommit(c *Commit, ac *wire.AuthenticatedContent, p CommitParams) error {
	next := *g
	c.keep = Step{Next: &next}
	if p.Private {
		message, step, _, err := g.sealPrivate(p.Random, ac, p.PadTo)
		if err != nil {
			return err
		}
		c.Message, c.keep = message, step
	} else {
		c.Message = g.publicMessage(ac)
	}
	hash := sha256.Sum256(c.Message)
	c.keep.Next.own = withEntry(g.own, hash, c.own)
	c.keep.Delta.put(ownKey(hash), c.own.append(nil))
	return nil
}
