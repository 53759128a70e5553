package mls_test

import (
	"errors"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// held makes everybody hold a proposal that a member signed, whatever it says.
func held(t *testing.T, w *mlstest.World, by *mlstest.Client, p wire.Proposal) {
	t.Helper()
	frame := content(by.Group, wire.ContentTypeProposal)
	frame.Proposal = &p
	message := by.Group.ForgePublic(frame, nil, nil)
	for _, c := range w.Members {
		if _, err := c.Process(w.Now, message); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
	}
}

// changedLeaf is an Update by a member, which changes its leaf as it likes.
func changedLeaf(by *mlstest.Client, change func(*wire.LeafNode)) wire.Proposal {
	leaf := by.Group.Member(by.Group.OwnLeaf()).Node.Clone()
	leaf.LeafNodeSource, leaf.Lifetime, leaf.ParentHash = wire.LeafNodeSourceUpdate, wire.Lifetime{}, nil
	leaf.EncryptionKey[3] ^= 1
	change(leaf)
	by.Group.SignLeaf(leaf, by.Group.OwnLeaf())
	return wire.Proposal{ProposalType: wire.ProposalTypeUpdate, Update: &wire.Update{LeafNode: *leaf}}
}

// resign signs a changed key package as its client.
func resign(t *testing.T, c *mlstest.Client, k *wire.KeyPackage) {
	t.Helper()
	var err error
	if k.LeafNode.Signature, err = c.Signer.SignWithLabel("LeafNodeTBS", wire.Marshal(&wire.LeafNodeTBS{LeafNode: &k.LeafNode})); err != nil {
		t.Fatal(err)
	}
	if k.Signature, err = c.Signer.SignWithLabel("KeyPackageTBS", wire.Marshal((*wire.KeyPackageTBS)(k))); err != nil {
		t.Fatal(err)
	}
}

// A proposal that is valid by itself and that no commit can cover keeps nobody from
// committing: it is left out, and what honest members proposed is not.
func TestAttackPoisonProposals(t *testing.T) {
	// adding is an Add of a client that is changed before it is signed.
	adding := func(w *mlstest.World, change func(*mlstest.Client, *mls.KeyPackageBundle)) wire.Proposal {
		c := w.Client()
		b := c.KeyPackage(w.Now)
		change(c, b)
		resign(t, c, &b.KeyPackage)
		return mls.AddProposal(&b.KeyPackage)
	}
	for _, c := range []struct {
		name   string
		poison func(w *mlstest.World, by *mlstest.Client) []wire.Proposal
	}{
		{"an Update to another member's key", func(w *mlstest.World, by *mlstest.Client) []wire.Proposal {
			return []wire.Proposal{changedLeaf(by, func(l *wire.LeafNode) { l.EncryptionKey = w.Members[0].Group.Member(0).Node.EncryptionKey })}
		}},
		{"an Update that drops what is required", func(_ *mlstest.World, by *mlstest.Client) []wire.Proposal {
			return []wire.Proposal{changedLeaf(by, func(l *wire.LeafNode) { l.Capabilities.Proposals = nil })}
		}},
		{"an Add of a member", func(w *mlstest.World, _ *mlstest.Client) []wire.Proposal {
			b := w.Members[0].KeyPackage(w.Now)
			return []wire.Proposal{mls.AddProposal(&b.KeyPackage)}
		}},
		{"an Add that lacks what is required", func(w *mlstest.World, _ *mlstest.Client) []wire.Proposal {
			return []wire.Proposal{adding(w, func(_ *mlstest.Client, b *mls.KeyPackageBundle) { b.KeyPackage.LeafNode.Capabilities.Proposals = nil })}
		}},
		{"two Adds with one init key", func(w *mlstest.World, _ *mlstest.Client) []wire.Proposal {
			var init wire.HPKEPublicKey
			return []wire.Proposal{
				adding(w, func(_ *mlstest.Client, b *mls.KeyPackageBundle) { init = b.KeyPackage.InitKey }),
				adding(w, func(_ *mlstest.Client, b *mls.KeyPackageBundle) { b.KeyPackage.InitKey = init }),
			}
		}},
		{"extensions that nobody supports", func(w *mlstest.World, by *mlstest.Client) []wire.Proposal {
			x := append(by.Group.Context().Extensions.Clone(), wire.Extension{ExtensionType: 0xf123})
			return []wire.Proposal{mls.GroupContextExtensionsProposal(x)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := trio(t, 5)
			hostile, honest, leaver, by := w.Members[1], w.Members[2], w.Members[3], w.Members[4]
			for _, p := range c.poison(w, hostile) {
				held(t, w, hostile, p)
			}
			update, err := honest.Group.ProposeUpdate(mls.ProposeParams{Random: w.Random(), Now: w.Now}, mls.LeafChange{})
			if err != nil {
				t.Fatal(err)
			}
			w.Propose(honest, update)
			remove := mls.RemoveProposal(leaver.Group.OwnLeaf())
			held(t, w, honest, remove)

			commit, err := by.Group.Commit(mls.CommitParams{Random: w.Random(), Now: w.Now})
			if err != nil {
				t.Fatalf("nobody can commit any more: %v", err)
			}
			staged := commit.Staged
			if len(staged.Removed) != 1 || staged.Removed[0].Leaf != leaver.Group.OwnLeaf() {
				t.Errorf("it removes %v", staged.Removed)
			}
			if len(staged.Updated) != 1 || staged.Updated[0].Leaf != honest.Group.OwnLeaf() {
				t.Errorf("it updates %v", staged.Updated)
			}
			for _, m := range w.Members {
				if m == by {
					continue
				}
				if _, err := m.Process(w.Now, commit.Message); err != nil {
					t.Errorf("%s: %v", m.Name, err)
				}
			}
		})
	}
}

// Whoever sends more of them than a committer tries for loses them all, and the
// commit still removes whom it must.
func TestAttackManyPoisonProposals(t *testing.T) {
	w := trio(t, 4)
	hostile, leaver, by := w.Members[1], w.Members[2], w.Members[3]
	for range 100 {
		held(t, w, hostile, mls.AddProposal(&w.Members[0].KeyPackage(w.Now).KeyPackage))
		c := w.Client()
		b := c.KeyPackage(w.Now)
		b.KeyPackage.LeafNode.Capabilities.Proposals = nil
		resign(t, c, &b.KeyPackage)
		held(t, w, hostile, mls.AddProposal(&b.KeyPackage))
	}
	held(t, w, w.Members[0], mls.RemoveProposal(leaver.Group.OwnLeaf()))
	commit := commitOf(t, w, by, mls.CommitParams{})
	if s := commit.Staged; len(s.Added) > 0 || len(s.Removed) != 1 {
		t.Errorf("it adds %d and removes %d", len(s.Added), len(s.Removed))
	}
	if _, err := w.Members[0].Process(w.Now, commit.Message); err != nil {
		t.Error(err)
	}
}

// What the caller itself asks for is not left out in silence.
func TestOwnPoisonIsTold(t *testing.T) {
	w := trio(t, 4)
	by := w.Members[3]
	held(t, w, w.Members[0], mls.RemoveProposal(w.Members[1].Group.OwnLeaf()))
	again := mls.AddProposal(&w.Members[2].KeyPackage(w.Now).KeyPackage)
	_, err := by.Group.Commit(mls.CommitParams{Random: w.Random(), Now: w.Now, Proposals: []wire.Proposal{again}})
	if !errors.Is(err, tree.ErrDuplicateKey) {
		t.Errorf("adding a member again: %v", err)
	}
}
