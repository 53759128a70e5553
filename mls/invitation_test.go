package mls_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// A Welcome says by itself who made it and for which group; who is somebody else is
// found out, and joining is still possible after looking.
func TestPeek(t *testing.T) {
	w := trio(t, 3)
	by, newcomer := w.Members[0], w.Client()
	bundle := newcomer.KeyPackage(w.Now)
	shown := wire.Extension{ExtensionType: 0xf5f5, ExtensionData: []byte("who invites")}
	commit := commitOf(t, w, by, mls.CommitParams{
		Proposals: []wire.Proposal{mls.AddProposal(&bundle.KeyPackage)}, GroupInfoExtensions: wire.Extensions{shown},
	})
	applied, err := commit.Apply(by.Group, w.Now)
	if err != nil {
		t.Fatal(err)
	}
	p := mls.JoinParams{Welcome: commit.Welcome, Bundles: newcomer.Bundles, Now: w.Now}
	i, err := newcomer.Config.Peek(p)
	if err != nil {
		t.Fatal(err)
	}
	if data, found := i.Extensions.Find(0xf5f5); !found || !bytes.Equal(data, shown.ExtensionData) {
		t.Errorf("the extension is %q", data)
	}
	if i.Signer != by.Group.OwnLeaf() || !bytes.Equal(wire.Marshal(&i.Context), wire.Marshal(applied.Next.Context())) {
		t.Errorf("leaf %d signed for %+v", i.Signer, i.Context)
	}
	if err := i.SignedBy(by.Group.Members()[0].Node.SignatureKey); err != nil {
		t.Error(err)
	}
	if err := i.SignedBy(by.Group.Members()[1].Node.SignatureKey); !errors.Is(err, mls.ErrGroupInfo) {
		t.Errorf("another member's key: %v", err)
	}
	p.Tree = applied.Next.RatchetTree()
	if _, err := newcomer.Config.Join(p); err != nil {
		t.Errorf("joining after looking: %v", err)
	}
	for name, c := range map[string]struct {
		change func(*mls.JoinParams)
		want   error
	}{
		"cut":              {func(p *mls.JoinParams) { p.Welcome = p.Welcome[:len(p.Welcome)-1] }, mls.ErrMalformed},
		"no Welcome":       {func(p *mls.JoinParams) { p.Welcome = commit.Message }, mls.ErrWireFormat},
		"nobody's package": {func(p *mls.JoinParams) { p.Bundles = nil }, mls.ErrNotForUs},
		"a bit flipped": {func(p *mls.JoinParams) {
			p.Welcome = bytes.Clone(p.Welcome)
			p.Welcome[len(p.Welcome)-1] ^= 1 // of the encrypted GroupInfo, which seals the secrets too
		}, mls.ErrDecrypt},
	} {
		q := p
		c.change(&q)
		if _, err := newcomer.Config.Peek(q); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}
