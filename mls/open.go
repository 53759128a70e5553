package mls

import (
	"errors"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// Received is what [Group.Process] makes of a message: *[Application],
// *[ProposalReceived] or *[StagedCommit].
type Received interface{ received() }

// Application is a decrypted application message.
type Application struct {
	Step
	// Sender is the sender's leaf as it was in the message's epoch.
	Sender Member
	// Epoch is the epoch the message was sent in: the group's or a past one.
	Epoch uint64
	// Generation is the position in the sender's ratchet.
	Generation uint32
	// Own says that it was sent from this client's own leaf, at a generation that
	// this state has not used: another copy of the state is in use. The key is used
	// up here as well; what that copy sends next is not. Replace the leaf before
	// anything is sent.
	Own bool
	// Content is what the sender wrote, AuthenticatedData what it bound to it.
	Content           []byte
	AuthenticatedData []byte
}

func (*Application) received() {}

// Member is a leaf of the tree: one client in the group.
type Member struct {
	Leaf uint32
	Node *wire.LeafNode // verified; not to be changed
}

// epochView is what opening a PrivateMessage needs of one epoch.
type epochView struct {
	public     *follower.Group
	leaf       tree.LeafIndex
	senderData Secret
	messages   *secretTree
}

// openPrivateMessage decrypts a PrivateMessage of an epoch without verifying
// its signature. It gives the secret tree after it.
func (g *Group) openPrivateMessage(v epochView, m *wire.PrivateMessage) (*wire.AuthenticatedContent, uint32, *secretTree, secretTreeChange, error) {
	sender, err := openSenderData(g.cs, v.senderData, m)
	if err != nil {
		return nil, 0, nil, secretTreeChange{}, err
	}
	if v.public.Leaf(tree.LeafIndex(sender.LeafIndex)) == nil {
		return nil, 0, nil, secretTreeChange{}, fmt.Errorf("%w: leaf %d is blank", ErrUnknownSender, sender.LeafIndex)
	}
	which := applicationRatchet
	if m.ContentType != wire.ContentTypeApplication {
		which = handshakeRatchet
	}
	messages, r, change, err := v.messages.ratchetAt(g.cs, sender.LeafIndex, which)
	if err != nil {
		return nil, 0, nil, change, err
	}
	key, after, forget, err := r.forReceiving(g.cs, sender.Generation, g.config.Limits)
	if tree.LeafIndex(sender.LeafIndex) == v.leaf && errors.Is(err, ErrKeyConsumed) {
		return nil, 0, nil, change, &OwnMessageError{Generation: sender.Generation}
	}
	if err != nil {
		return nil, 0, nil, change, err
	}
	ac, err := openPrivate(g.cs, m, sender, key)
	if err != nil {
		return nil, 0, nil, change, err
	}
	change.forget = append(change.forget, forget...)
	return ac, sender.Generation, messages.with(sender.LeafIndex, which, after), change, nil
}

// openApplication opens an application message of the current epoch or of a
// past one that is still kept.
func (g *Group) openApplication(m *wire.PrivateMessage) (*Application, error) {
	view, index, err := g.viewOf(m.Epoch)
	if err != nil {
		return nil, err
	}
	ac, generation, messages, change, err := g.openPrivateMessage(view, m)
	if err != nil {
		return nil, err
	}
	sender := view.public.Leaf(tree.LeafIndex(ac.Content.Sender.LeafIndex))
	if !g.cs.VerifyWithLabel(sender.SignatureKey, "FramedContentTBS", ac.TBS(view.public.EncodedContext()), ac.Auth.Signature) {
		return nil, fmt.Errorf("%w: application message of leaf %d", ErrSignature, ac.Content.Sender.LeafIndex)
	}
	if err := view.public.CheckAuthenticatedData(ac.Content.AuthenticatedData); err != nil {
		return nil, err
	}
	next := *g
	if index < 0 {
		next.messages = messages
	} else {
		past := *g.past[index]
		past.messages = messages
		next.past = slices.Clone(g.past)
		next.past[index] = &past
	}
	a := &Application{
		Step:              Step{Next: &next, forget: change.forget},
		Sender:            Member{Leaf: ac.Content.Sender.LeafIndex, Node: sender},
		Epoch:             m.Epoch,
		Generation:        generation,
		Own:               tree.LeafIndex(ac.Content.Sender.LeafIndex) == view.leaf,
		Content:           ac.Content.ApplicationData,
		AuthenticatedData: ac.Content.AuthenticatedData,
	}
	storeRatchet(&a.Delta, m.Epoch, messages, change)
	return a, nil
}

// viewOf finds an epoch: the current one has index -1.
func (g *Group) viewOf(epoch uint64) (epochView, int, error) {
	if epoch == g.Epoch() && g.status != statusRemoved {
		return epochView{public: g.public, leaf: g.leaf, senderData: g.keys.senderData, messages: g.messages}, -1, nil
	}
	for i, p := range g.past {
		if p.epoch() == epoch {
			return epochView{public: p.public, leaf: p.leaf, senderData: p.senderData, messages: p.messages}, i, nil
		}
	}
	return epochView{}, 0, &EpochError{Message: epoch, Group: g.Epoch()}
}
