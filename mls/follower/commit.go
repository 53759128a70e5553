package follower

import (
	"slices"

	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// StageCommit verifies a commit of the current epoch with every rule that public
// state can decide (§12.2, §12.3, §12.4.2, §12.4.3.2; extensions draft), and
// gives what it leads to. The proposals that it refers to must be held. The group
// is not changed.
func (g *Group) StageCommit(ac *wire.AuthenticatedContent, o Options) (*Staged, error) {
	if err := g.checkFrame(ac, wire.ContentTypeCommit); err != nil {
		return nil, err
	}
	key, err := g.senderKey(&ac.Content)
	if err != nil {
		return nil, err
	}
	if len(ac.Auth.ConfirmationTag) != g.cs.HashSize() {
		return nil, invalid(ErrContent, "the confirmation tag has %d bytes, not %d", len(ac.Auth.ConfirmationTag), g.cs.HashSize())
	}
	leafVerified := g.verifyWithLeaf(ac, key)
	if !leafVerified {
		if err := g.checkSignature(ac, key); err != nil {
			return nil, err
		}
	}
	d, err := g.Draft(ac.Content.Sender, ac.Content.Commit.Proposals, o)
	if err != nil {
		return nil, err
	}
	after := d.Tree
	if path := ac.Content.Commit.Path; path != nil {
		if after, err = d.mergePath(path, leafVerified, &o); err != nil {
			return nil, err
		}
	} else if d.PathRequired {
		return nil, invalid(ErrPathRequired, "%d proposals", len(d.Proposals))
	}
	return d.Finish(ac, after)
}

// verifyWithLeaf reports whether a member's commit and the leaf in its path are
// both signed as they must be: in one batch, which costs little more than one of
// the two, and together they are half of what receiving a commit costs. What does
// not verify is looked at one by one afterwards, to say what is wrong.
func (g *Group) verifyWithLeaf(ac *wire.AuthenticatedContent, key wire.SignaturePublicKey) bool {
	path := ac.Content.Commit.Path
	if path == nil {
		return false
	}
	// mutants: equivalent: the leaf of who comes in from outside verifies at no index but its own, and then by itself
	if ac.Content.Sender.SenderType != wire.SenderTypeMember {
		return false
	}
	batch := g.cs.NewSignatureBatch()
	batch.Add(key, "FramedContentTBS", ac.TBS(g.encoded), ac.Auth.Signature)
	tree.AddLeafSignature(batch, &path.LeafNode, g.context.GroupID, tree.LeafIndex(ac.Content.Sender.LeafIndex))
	return batch.Verify()
}

// Finish gives what a commit leads to whose path, if it has one, was merged into
// after. It is for the committer, who made both; it checks the resulting tree
// against the new GroupContext and nothing that the committer has just made. ac
// is signed; its confirmation tag is not looked at.
func (d *Draft) Finish(ac *wire.AuthenticatedContent, after *tree.Tree) (*Staged, error) {
	if err := d.CheckSupport(after); err != nil {
		return nil, err
	}
	context := d.provisional(after.Hash())
	context.ConfirmedTranscriptHash = confirmedTranscriptHash(d.group.cs, d.group.interim, ac)
	return &Staged{Draft: d, Tree: after, content: ac, context: context, encoded: wire.Marshal(&context)}, nil
}

// CheckSupport checks that all members of a tree after the proposals, with the
// committer's path or still without, support what the new GroupContext and each
// other use (§7.3, §11.1, §13.4). The error wraps [ErrTree].
func (d *Draft) CheckSupport(after *tree.Tree) error {
	if err := after.CheckSupport(d.Extensions, d.terms.required); err != nil {
		return invalid(ErrTree, "after the commit: %w", err)
	}
	return nil
}

// Staged is a valid commit that is not applied yet.
type Staged struct {
	*Draft
	// Tree is the tree after the commit, path included.
	Tree    *tree.Tree
	content *wire.AuthenticatedContent
	context wire.GroupContext
	encoded []byte
}

// Before returns the group that the commit was staged on.
func (s *Staged) Before() *Group { return s.group }

// Content returns the commit.
func (s *Staged) Content() *wire.AuthenticatedContent { return s.content }

// Context returns the GroupContext of the new epoch.
func (s *Staged) Context() *wire.GroupContext { return &s.context }

// EncodedContext returns its encoding.
func (s *Staged) EncodedContext() []byte { return s.encoded }

// ConfirmedTranscriptHash returns the new epoch's, over which the confirmation
// tag is computed.
func (s *Staged) ConfirmedTranscriptHash() []byte { return s.context.ConfirmedTranscriptHash }

// Removes reports whether the member at l is out after the commit.
func (s *Staged) Removes(l tree.LeafIndex) bool {
	return slices.Contains(s.Removed, l)
}

// Next gives the group of the new epoch. tag is the commit's confirmation tag:
// the one that came with it, or that the committer computed.
func (s *Staged) Next(tag wire.MAC) *Group {
	next := newGroup(s.group.cs, s.context, s.encoded, s.terms, s.Tree, tag)
	next.closed = s.ReInit != nil
	return next
}

// Apply is [Staged.Next] with the confirmation tag of the commit as it came.
func (s *Staged) Apply() *Group { return s.Next(s.content.Auth.ConfirmationTag) }

// CheckGroupInfo checks that a GroupInfo is one of the epoch that the commit
// starts (see [Group.CheckGroupInfo]), and that the committer signed it or
// another member of the new tree. The error wraps [ErrGroupInfo] or
// [ErrSignature].
func (s *Staged) CheckGroupInfo(info *wire.GroupInfo) error { return s.Apply().CheckGroupInfo(info) }

// CheckWelcome checks that the Welcomes that come with the commit are together
// for those whom it adds and for nobody else, once each (§12.4.3.1). What they
// contain only the joiners can see.
func (s *Staged) CheckWelcome(welcomes ...*wire.Welcome) error {
	open := make(map[string]bool, len(s.packages))
	for _, k := range s.packages {
		open[string(s.group.cs.KeyPackageRef(k))] = true
	}
	for _, w := range welcomes {
		if w.CipherSuite != s.group.cs.ID() {
			return invalid(ErrWelcome, "its cipher suite is %#04x, not %#04x", uint16(w.CipherSuite), uint16(s.group.cs.ID()))
		}
		for i := range w.Secrets {
			if !open[string(w.Secrets[i].NewMember)] {
				return invalid(ErrWelcome, "entry %d is for nobody whom the commit adds, or a second one", i)
			}
			delete(open, string(w.Secrets[i].NewMember))
		}
	}
	if len(open) > 0 {
		return invalid(ErrWelcome, "%d of %d new members have no entry", len(open), len(s.packages))
	}
	return nil
}
