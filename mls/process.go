package mls

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// ProposalReceived is a proposal that was verified and is held for a commit.
type ProposalReceived struct {
	Step
	Ref               wire.ProposalRef
	Sender            wire.Sender
	Proposal          *wire.Proposal
	AuthenticatedData []byte
}

func (*ProposalReceived) received() {}

// StagedCommit is a commit that was verified in full, confirmation tag
// included, and waits to be applied: store the Step's Delta and go on with its
// Next. Dropping it leaves the group as it was.
type StagedCommit struct {
	Step
	// Epoch is the epoch that the commit starts.
	Epoch uint64
	// Committer is the committer's leaf after the commit.
	Committer Member
	// Own says that this client made the commit.
	Own bool
	// External says that the committer joined by this commit; Resync that it
	// removed its own former leaf by it (RFC 9420 Section 12.4.3.2).
	External, Resync bool
	// Added, Updated and Removed tell the roster's change. Updated are leaves
	// after the commit, the committer's not among them; Removed are leaves as
	// they were before it.
	Added, Updated, Removed []Member
	// Proposals are the committed proposals in order.
	Proposals []follower.Proposal
	// Extensions are the GroupContext's of the epoch that it starts, also when this
	// client does not enter it.
	Extensions wire.Extensions
	// ReInit is set when the commit closes the group: see [Group.SuccessorOf].
	ReInit *wire.ReInit
	// SelfRemoved says that this client is out: Next opens late messages of past
	// epochs and nothing else.
	SelfRemoved bool
	// AuthenticatedData is what the committer bound to the commit.
	AuthenticatedData []byte
}

func (*StagedCommit) received() {}

// ProcessParams is what processing a message needs beside it.
type ProcessParams struct {
	// Now is the time for lifetimes and for the age of past epochs. Members and
	// servers come to the same verdict when all take the time at which the
	// delivery service accepted the message.
	Now time.Time
}

// Process takes a message of the group: a PublicMessage or a PrivateMessage. It
// verifies everything that RFC 9420 asks of a receiver and changes nothing; see
// [Received] for what it gives. A commit that this client made and kept (see
// [Commit.Keep]) is recognised and gives its staged result.
//
// Errors say what to do; see the variables of this package and of package
// follower.
func (g *Group) Process(message []byte, p ProcessParams) (Received, error) {
	got, err := g.process(message, p)
	if err != nil {
		return nil, err // never a typed nil of what it would have been
	}
	return got, nil
}

func (g *Group) process(message []byte, p ProcessParams) (Received, error) {
	var m wire.MLSMessage
	if err := wire.Unmarshal(message, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	switch m.WireFormat {
	case wire.WireFormatPublicMessage:
		return g.processPublic(m.PublicMessage, sha256.Sum256(message), p)
	case wire.WireFormatPrivateMessage:
		return g.processPrivate(m.PrivateMessage, sha256.Sum256(message), p)
	}
	return nil, fmt.Errorf("%w: wire format %d is no message of a group", ErrWireFormat, m.WireFormat)
}

// accepts checks that a handshake message belongs to the current epoch.
func (g *Group) accepts(groupID []byte, epoch uint64) error {
	switch {
	case string(groupID) != string(g.GroupID()):
		return ErrOtherGroup
	case g.status == statusRemoved:
		return ErrRemoved
	case epoch != g.Epoch():
		return &EpochError{Message: epoch, Group: g.Epoch()}
	case g.status == statusReInit:
		return ErrReInit
	}
	return nil
}

func (g *Group) processPublic(m *wire.PublicMessage, hash [32]byte, p ProcessParams) (Received, error) {
	if err := g.accepts(m.Content.GroupID, m.Content.Epoch); err != nil {
		return nil, err
	}
	ac, err := unprotectPublic(g.cs, g.keys.membership, m, g.public.EncodedContext())
	if err != nil {
		return nil, err
	}
	next := *g
	return g.processHandshake(ac, hash, Step{Next: &next}, p)
}

func (g *Group) processPrivate(m *wire.PrivateMessage, hash [32]byte, p ProcessParams) (Received, error) {
	if string(m.GroupID) != string(g.GroupID()) {
		return nil, ErrOtherGroup
	}
	if m.ContentType == wire.ContentTypeApplication {
		a, err := g.openApplication(m)
		if err != nil {
			return nil, err
		}
		return a, nil
	}
	if err := g.accepts(m.GroupID, m.Epoch); err != nil {
		return nil, err
	}
	if own, ok := g.own[hash]; ok {
		return g.processOwn(own, p)
	}
	view, _, err := g.viewOf(m.Epoch)
	if err != nil {
		return nil, err
	}
	ac, _, messages, change, err := g.openPrivateMessage(view, m)
	if err != nil {
		return nil, err
	}
	next := *g
	next.messages = messages
	step := Step{Next: &next}
	step.forgets(change.forget...)
	storeRatchet(&step.Delta, g.Epoch(), messages, change)
	return g.processHandshake(ac, hash, step, p)
}

// processHandshake takes an unprotected proposal or commit of the current
// epoch. step is what unprotecting it changed.
func (g *Group) processHandshake(ac *wire.AuthenticatedContent, hash [32]byte, step Step, p ProcessParams) (Received, error) {
	if ac.Content.ContentType == wire.ContentTypeProposal {
		if err := g.hold(&step, ac, p.Now); err != nil {
			return nil, err
		}
		return &ProposalReceived{
			Step: step, Ref: g.cs.ProposalRef(ac), Sender: ac.Content.Sender,
			Proposal: ac.Content.Proposal, AuthenticatedData: ac.Content.AuthenticatedData,
		}, nil
	}
	if own, ok := g.own[hash]; ok {
		return g.processOwn(own, p)
	}
	return step.Next.processCommit(ac, nil, step, p)
}

// hold verifies a proposal and adds it to those that a commit may refer to.
func (g *Group) hold(step *Step, ac *wire.AuthenticatedContent, now time.Time) error {
	public, err := g.public.HoldProposal(ac, g.config.options(now))
	if err != nil {
		return err
	}
	step.Next.public = public
	if held := len(public.Proposals()); held > len(g.public.Proposals()) {
		step.Delta.put(proposalKey(held-1), wire.Marshal(ac))
	}
	return nil
}

// processCommit verifies a commit and gives the next epoch. own holds the
// secrets of a commit that this client made.
func (g *Group) processCommit(ac *wire.AuthenticatedContent, own *ownCommit, step Step, p ProcessParams) (*StagedCommit, error) {
	if own == nil && ac.Content.Sender.SenderType == wire.SenderTypeMember && tree.LeafIndex(ac.Content.Sender.LeafIndex) == g.leaf {
		if !g.cs.VerifyWithLabel(g.public.Leaf(g.leaf).SignatureKey, "FramedContentTBS", ac.TBS(g.public.EncodedContext()), ac.Auth.Signature) {
			return nil, fmt.Errorf("%w: commit of this client's leaf", ErrSignature)
		}
		return nil, fmt.Errorf("%w: a commit of this client that was not kept", ErrOwnMessage)
	}
	staged, err := g.public.StageCommit(ac, g.config.options(p.Now))
	if err != nil {
		return nil, err
	}
	out := newStagedCommit(g, staged, ac)
	if staged.Removes(g.leaf) {
		out.SelfRemoved = true
		out.Step = g.leave(step, p.Now)
		return out, nil
	}
	init := g.keys.init
	if staged.ExternalInit != nil {
		if init, err = g.externalInit(staged.ExternalInit); err != nil {
			return nil, err
		}
		defer init.Wipe()
	}
	held, signer, err := g.withUpdate(staged)
	if err != nil {
		return nil, err
	}
	next := nextEpoch{leaf: g.leaf, signer: signer, reinit: staged.ReInit, now: p.Now}
	next.private, next.dropped = held.within(staged.Tree)
	commitSecret := zeroSecret(g.cs)
	if path := ac.Content.Commit.Path; path != nil {
		nodes, secrets, err := g.pathOf(staged, path, own, next.private)
		if err != nil {
			return nil, err
		}
		defer secrets.wipe()
		for i, node := range nodes {
			next.private[node] = secrets.keys[i]
		}
		commitSecret = secrets.commit
		if own != nil {
			next.private[g.leaf.Node()] = own.path.leaf
			if next.signer, err = g.config.signer(path.LeafNode.SignatureKey); err != nil {
				return nil, err
			}
		}
	}
	psks, err := g.pskInputs(staged.PSKs, nil)
	if err != nil {
		return nil, err
	}
	start, err := startEpoch(g.cs, init, commitSecret, psks, staged.EncodedContext(), staged.ConfirmedTranscriptHash())
	if err != nil {
		return nil, err
	}
	defer start.wipe()
	if !Secret(start.tag).Equal(ac.Auth.ConfirmationTag) {
		return nil, ErrConfirmationTag
	}
	next.public, next.keys = staged.Next(start.tag), start.keys
	entered := g.enter(next)
	step.forgets(entered.forget...)
	out.Step = Step{Next: entered.Next, Delta: step.Delta.Then(entered.Delta), forget: step.forget}
	return out, nil
}
