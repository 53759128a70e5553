package mls_test

import (
	"errors"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// newKeys gives a client a signature key of another suite, and a key package.
func newKeys(t *testing.T, w *mlstest.World, c *mlstest.Client, id wire.CipherSuite) (*mls.KeyPackageBundle, *suite.SignatureKey) {
	t.Helper()
	cs, err := suite.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := cs.GenerateSignatureKey(w.Random())
	if err != nil {
		t.Fatal(err)
	}
	c.Config.Signers = append(c.Config.Signers, signer)
	bundle, err := mls.NewKeyPackage(mls.KeyPackageParams{
		CipherSuite: id, Random: w.Random(), Signer: signer, Credential: c.Credential(),
		NotBefore: w.Now, NotAfter: w.Now.AddDate(1, 0, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	return bundle, signer
}

func leafOf(w *mlstest.World, c *mlstest.Client, signer *suite.SignatureKey) mls.CreatorLeaf {
	leaf := c.Leaf(w.Now)
	leaf.Signer = signer
	return leaf
}

// A group moves to another suite by ReInit: all members, linked by the
// resumption PSK, and nobody can use the old group or join the new one without it.
func TestReInit(t *testing.T) {
	w := trio(t, 4)
	const next = suite.P256AES128GCMSHA256P256
	by := w.Members[0]
	extensions := mlstest.Capable()
	staged := w.Commit(by, mls.CommitParams{Proposals: []wire.Proposal{mls.ReInitProposal([]byte("the next group"), next, extensions)}})
	if staged.ReInit == nil {
		t.Fatal("the commit tells no ReInit")
	}
	for _, c := range w.Members {
		c.Restart()
		if _, err := c.Group.Seal(mls.SealParams{Random: w.Random()}); !errors.Is(err, mls.ErrReInit) {
			t.Fatalf("%s: sends in a closed group: %v", c.Name, err)
		}
		if _, err := c.Group.Commit(mls.CommitParams{Random: w.Random(), Now: w.Now}); !errors.Is(err, mls.ErrReInit) {
			t.Fatalf("%s: commits in a closed group: %v", c.Name, err)
		}
	}
	founder := w.Members[2]
	_, signer := newKeys(t, w, founder, next)
	bundles := map[*mlstest.Client]*mls.KeyPackageBundle{}
	params := mls.SuccessorParams{Random: w.Random(), Now: w.Now, Leaf: leafOf(w, founder, signer), TreeInWelcome: true}
	for _, c := range w.Members {
		if c != founder {
			bundles[c], _ = newKeys(t, w, c, next)
			params.KeyPackages = append(params.KeyPackages, &bundles[c].KeyPackage)
		}
	}
	missing := params
	missing.KeyPackages = missing.KeyPackages[1:]
	if _, err := founder.Group.Successor(founder.Config, missing); !errors.Is(err, mls.ErrGroupInfo) {
		t.Fatalf("a successor without a member: %v", err)
	}
	commit, err := founder.Group.Successor(founder.Config, params)
	if err != nil {
		t.Fatal(err)
	}
	applied, err := commit.Apply(nil, w.Now)
	if err != nil {
		t.Fatal(err)
	}
	successor := applied.Next
	if successor.CipherSuite() != next || string(successor.GroupID()) != "the next group" || successor.Epoch() != 1 {
		t.Fatalf("the successor is %v of suite %d", successor, successor.CipherSuite())
	}
	stranger := mlstest.NewWorld(t, testSuite, 3, nil).Members[0]
	for c, bundle := range bundles {
		p := mls.JoinParams{Welcome: commit.Welcome, Bundles: []*mls.KeyPackageBundle{bundle}, Now: w.Now}
		if _, err := c.Config.Join(p); !errors.Is(err, mls.ErrMissingPSK) {
			t.Fatalf("%s: joins without the old group: %v", c.Name, err)
		}
		p.From = stranger.Group
		if _, err := c.Config.Join(p); !errors.Is(err, mls.ErrMissingPSK) {
			t.Fatalf("%s: joins from another group: %v", c.Name, err)
		}
		p.From = c.Group
		joined, err := c.Config.Join(p)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if !joined.Next.EpochAuthenticator().Equal(successor.EpochAuthenticator()) {
			t.Fatalf("%s: the successor has another epoch_authenticator", c.Name)
		}
	}
}

// A successor that is not the one announced is refused by those who join.
func TestReInitOfAnotherGroup(t *testing.T) {
	w := trio(t, 3)
	founder, other := w.Members[0], w.Members[1]
	// A branch, named as such, is not the successor of a closed group, and the
	// other way round.
	bundle, _ := newKeys(t, w, other, testSuite)
	branch, err := founder.Group.Branch(founder.Config, mls.SuccessorParams{
		Random: w.Random(), Now: w.Now, Leaf: founder.Leaf(w.Now), KeyPackages: []*wire.KeyPackage{&bundle.KeyPackage},
		TreeInWelcome: true, GroupID: []byte("branch"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := founder.Group.Successor(founder.Config, mls.SuccessorParams{Random: w.Random(), Now: w.Now}); !errors.Is(err, mls.ErrParams) {
		t.Fatalf("a successor without a ReInit: %v", err)
	}
	joined, err := other.Config.Join(mls.JoinParams{
		Welcome: branch.Welcome, Bundles: []*mls.KeyPackageBundle{bundle}, From: other.Group, Now: w.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := branch.Apply(nil, w.Now)
	if err != nil {
		t.Fatal(err)
	}
	if !joined.Next.EpochAuthenticator().Equal(applied.Next.EpochAuthenticator()) || string(joined.Next.GroupID()) != "branch" {
		t.Fatal("the branch is not the same for both")
	}
	// Somebody who is not in the old group is not in a branch.
	outsider := w.Client()
	foreign := outsider.KeyPackage(w.Now)
	if _, err := founder.Group.Branch(founder.Config, mls.SuccessorParams{
		Random: w.Random(), Now: w.Now, Leaf: founder.Leaf(w.Now), KeyPackages: []*wire.KeyPackage{&foreign.KeyPackage}, GroupID: []byte("b2"),
	}); !errors.Is(err, mls.ErrGroupInfo) {
		t.Fatalf("a branch with an outsider: %v", err)
	}
}
