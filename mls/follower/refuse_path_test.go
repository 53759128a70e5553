package follower

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// TestRefusePaths: the path of a commit (§7.3–7.6, §12.4, §12.4.2).
func TestRefusePaths(t *testing.T) {
	leaf := func(f func(*wire.LeafNode)) func(*world) *wire.AuthenticatedContent { return spoiled(bad{leaf: f}) }
	path := func(f func(*wire.UpdatePath)) func(*world) *wire.AuthenticatedContent { return spoiled(bad{path: f}) }
	without := func(p func(*world) *wire.Proposal) func(*world) *wire.AuthenticatedContent {
		return func(w *world) *wire.AuthenticatedContent { return w.commit(member(0), values(p(w)), bad{noPath: true}) }
	}
	refuse(t, []refusal{
		{"an empty commit without path", rules(ErrPathRequired), spoiled(bad{noPath: true})},
		{"a Remove without path", rules(ErrPathRequired), without(always(remove(2)))},
		{"GroupContextExtensions without path", rules(ErrPathRequired), without(func(w *world) *wire.Proposal { return gce(w.g.Context().Extensions) })},
		{"an Update without path", rules(ErrPathRequired), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), []wire.ProposalOrRef{w.hold(w.propose(2, w.update(2)))}, bad{noPath: true})
		}},
		{"a SelfRemove without path", rules(ErrPathRequired), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), []wire.ProposalOrRef{w.hold(w.propose(2, selfRemove()))}, bad{noPath: true})
		}},
		{"a node missing", rules(ErrPath), path(func(p *wire.UpdatePath) { p.Nodes = p.Nodes[1:] })},
		{"a node too many", rules(ErrPath), path(func(p *wire.UpdatePath) {
			n := p.Nodes[0]
			n.EncryptionKey = bytes.Repeat([]byte{7}, 32)
			p.Nodes = append(p.Nodes, n)
		})},
		{"no nodes", rules(ErrPath), path(func(p *wire.UpdatePath) { p.Nodes = nil })},
		{"a ciphertext missing", rules(ErrPath), path(func(p *wire.UpdatePath) { p.Nodes[1].EncryptedPathSecret = p.Nodes[1].EncryptedPathSecret[1:] })},
		{"a ciphertext too many", rules(ErrPath), path(func(p *wire.UpdatePath) {
			p.Nodes[1].EncryptedPathSecret = append(p.Nodes[1].EncryptedPathSecret, p.Nodes[1].EncryptedPathSecret[0])
		})},
		{"a ciphertext that is too short", rules(ErrPath), path(func(p *wire.UpdatePath) { p.Nodes[0].EncryptedPathSecret[0].Ciphertext = []byte{1} })},
		{"a KEM output that is too long", rules(ErrPath), path(func(p *wire.UpdatePath) { p.Nodes[0].EncryptedPathSecret[0].KEMOutput = make([]byte, 33) })},
		{"ciphertexts for those who are added", rules(ErrPath), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), values(w.client("new").add()), bad{path: func(p *wire.UpdatePath) {
				last := &p.Nodes[len(p.Nodes)-1]
				last.EncryptedPathSecret = append(last.EncryptedPathSecret, wire.HPKECiphertext{KEMOutput: make([]byte, 32), Ciphertext: make([]byte, 48)})
			}})
		}},
		{"the leaf source of an update", rules(ErrPath, tree.ErrLeafSource), leaf(func(l *wire.LeafNode) { l.LeafNodeSource = wire.LeafNodeSourceUpdate })},
		{"the leaf source of a key package", rules(ErrPath, tree.ErrLeafSource), leaf(func(l *wire.LeafNode) { l.LeafNodeSource = wire.LeafNodeSourceKeyPackage })},
		{"a wrong parent hash", rules(ErrPath, tree.ErrParentHash), leaf(func(l *wire.LeafNode) { l.ParentHash[0] ^= 1 })},
		{"no parent hash", rules(ErrPath, tree.ErrParentHash), leaf(func(l *wire.LeafNode) { l.ParentHash = nil })},
		{"another name in the leaf", rules(ErrPath, tree.ErrCredential), leaf(func(l *wire.LeafNode) { l.Credential.Identity = []byte("m3") })},
		{"a leaf that lacks required capabilities", rules(ErrTree, tree.ErrCapabilities), leaf(func(l *wire.LeafNode) { l.Capabilities.Proposals = nil })},
		{"a bad leaf signature", rules(ErrPath, tree.ErrSignature), path(func(p *wire.UpdatePath) { p.LeafNode.Signature[1] ^= 1 })},
		{"a node key of low order", rules(ErrPath, suite.ErrKey), path(func(p *wire.UpdatePath) { p.Nodes[0].EncryptionKey = make([]byte, 32) })},
		{"one key at two nodes", rules(ErrPath, tree.ErrDuplicateKey), path(func(p *wire.UpdatePath) { p.Nodes[0].EncryptionKey = p.Nodes[1].EncryptionKey })},
		{"the leaf's key at a node", rules(ErrPath, tree.ErrDuplicateKey), path(func(p *wire.UpdatePath) { p.Nodes[0].EncryptionKey = p.LeafNode.EncryptionKey })},
		{"the encryption key of before", rules(ErrPath, tree.ErrDuplicateKey), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), nil, bad{leaf: func(l *wire.LeafNode) { l.EncryptionKey = w.g.Leaf(0).EncryptionKey }})
		}},
		{"the key of a node that the path replaces", rules(ErrPath, tree.ErrDuplicateKey), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), nil, bad{path: func(p *wire.UpdatePath) { p.Nodes[0].EncryptionKey = w.g.Tree().PublicKey(w.g.Tree().Root()) }})
		}},
		{"a member's signature key", rules(ErrPath, tree.ErrDuplicateKey), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), nil, bad{signer: w.signers[3]})
		}},
		{"a leaf that was signed for another group", rules(ErrPath, tree.ErrSignature), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), nil, bad{path: func(p *wire.UpdatePath) {
				tbs := wire.LeafNodeTBS{LeafNode: &p.LeafNode, GroupID: []byte("other")}
				sig, err := w.signers[0].SignWithLabel("LeafNodeTBS", wire.Marshal(&tbs))
				w.must(err)
				p.LeafNode.Signature = sig
			}})
		}},
	})
}

// TestRefuseExternalCommits: joining and resyncing (§12.2, §12.4.3.2).
func TestRefuseExternalCommits(t *testing.T) {
	join := func(b bad, list ...func(*world) *wire.Proposal) func(*world) *wire.AuthenticatedContent {
		return func(w *world) *wire.AuthenticatedContent {
			var out []*wire.Proposal
			for _, f := range list {
				out = append(out, f(w))
			}
			return w.commit(joining, values(out...), b)
		}
	}
	init := (*world).externalInit
	refuse(t, []refusal{
		{"no ExternalInit", rules(ErrProposalList), join(bad{})},
		{"two ExternalInits", rules(ErrProposalList), join(bad{}, init, init)},
		{"a truncated kem_output", rules(ErrProposal), join(bad{}, func(w *world) *wire.Proposal {
			p := w.externalInit()
			p.ExternalInit.KEMOutput = p.ExternalInit.KEMOutput[1:]
			return p
		})},
		{"no path", rules(ErrPathRequired), join(bad{noPath: true}, init)},
		{"two Removes", rules(ErrProposalList), join(bad{}, init, always(remove(1)), always(remove(2)))},
		{"an Add", rules(ErrProposalList), join(bad{}, init, func(w *world) *wire.Proposal { return w.client("new").add() })},
		{"an Update", rules(ErrProposal), join(bad{}, init, func(w *world) *wire.Proposal { return w.update(1) })},
		{"GroupContextExtensions", rules(ErrProposalList), join(bad{}, init, func(w *world) *wire.Proposal { return gce(w.g.Context().Extensions) })},
		{"a ReInit", rules(ErrProposalList), join(bad{}, init, (*world).reinit)},
		{"a SelfRemove by value", rules(ErrProposal), join(bad{}, init, always(selfRemove()))},
		{"a Remove by reference", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			return w.commit(joining, append(values(w.externalInit()), w.hold(w.propose(1, remove(2)))), bad{})
		}},
		{"an Add by reference", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			return w.commit(joining, append(values(w.externalInit()), w.hold(w.propose(1, w.client("new").add()))), bad{})
		}},
		{"a Remove of somebody else", rules(ErrPath, tree.ErrCredential), join(bad{leaf: func(l *wire.LeafNode) { l.Credential.Identity = []byte("m3") }}, init, always(remove(2)))},
		{"the signature key of a member who stays", rules(ErrPath, tree.ErrDuplicateKey), func(w *world) *wire.AuthenticatedContent {
			return w.commit(joining, values(w.externalInit()), bad{signer: w.signers[2]})
		}},
		{"a name that the application refuses", rules(ErrPath, tree.ErrCredential), join(bad{leaf: func(l *wire.LeafNode) { l.Credential.Identity = []byte("mallory") }}, init)},
		{"a message signed by another key", rules(ErrSignature), func(w *world) *wire.AuthenticatedContent {
			ac := w.commit(joining, values(w.externalInit()), bad{})
			w.resign(w.signer(), ac)
			return ac
		}},
		{"the encryption key of the former leaf", rules(ErrPath, tree.ErrDuplicateKey), func(w *world) *wire.AuthenticatedContent {
			return w.commit(joining, values(w.externalInit(), remove(2)), bad{leaf: func(l *wire.LeafNode) { l.EncryptionKey = w.g.Leaf(2).EncryptionKey }})
		}},
		{"a leaf that lacks required capabilities", rules(ErrTree, tree.ErrCapabilities), join(bad{leaf: func(l *wire.LeafNode) { l.Capabilities.Proposals = nil }}, init)},
	})
}

// TestWhatIsNotRefused: members that go or come do not count in checks of types,
// old members are not refused for their lifetime, and times may be skipped.
func TestWhatIsNotRefused(t *testing.T) {
	t.Run("a removed member need not support a type", func(t *testing.T) {
		w := grown(t, 4)
		c := w.client("old")
		c.kp.LeafNode.Capabilities.Proposals = []wire.ProposalType{wire.ProposalTypeAppDataUpdate, wire.ProposalTypeSelfRemove}
		w.seal(c)
		l := w.enter(0, c).Added[0]
		ephemeral := &wire.Proposal{ProposalType: wire.ProposalTypeAppEphemeral, AppEphemeral: &wire.AppEphemeral{}}
		w.apply(w.commit(member(0), values(ephemeral, remove(l)), bad{}))
		w.seal(c)
		w.apply(w.commit(member(0), values(ephemeral, c.add()), bad{}))
	})
	t.Run("a member whose lifetime ended", func(t *testing.T) {
		w := grown(t, 5)
		w.options.Now = w.now.Add(1000 * 24 * time.Hour)
		w.apply(w.commit(member(1), nil, bad{}))
		u, err := tree.ParseBytes(w.cs, w.g.Tree().Marshal())
		w.must(err)
		_, err = Join(w.cs, w.groupInfo(w.g, 4), u, w.options)
		w.must(err)
	})
	t.Run("a key package of any time, without a clock", func(t *testing.T) {
		w := grown(t, 2)
		w.options.Now = time.Time{}
		c := w.client("new")
		c.kp.LeafNode.Lifetime = wire.Lifetime{NotAfter: 1}
		w.seal(c)
		w.apply(w.commit(member(0), values(c.add()), bad{}))
	})
	t.Run("a client that is removed and added at once", func(t *testing.T) {
		w := grown(t, 4)
		c := w.client("m2")
		c.signer, c.kp.LeafNode.SignatureKey = w.signers[2], w.signers[2].Public()
		w.seal(c)
		s := w.apply(w.commit(member(0), values(c.add(), remove(2)), bad{}))
		if !slices.Equal(s.Added, []tree.LeafIndex{2}) {
			t.Errorf("added at %v", s.Added)
		}
	})
	t.Run("a succession's branch PSK in epoch 0", func(t *testing.T) {
		w := newWorld(t)
		p := w.psk()
		p.PreSharedKey.PSK.PSKType, p.PreSharedKey.PSK.Usage = wire.PSKTypeResumption, wire.ResumptionPSKUsageBranch
		if _, err := w.g.Draft(member(0), values(p), w.options); !errors.Is(err, ErrProposal) {
			t.Errorf("without Succession: %v", err)
		}
		w.options.Succession = true
		_, err := w.g.Draft(member(0), values(p), w.options)
		w.must(err)
	})
	t.Run("a new signature key in the committer's leaf", func(t *testing.T) {
		w := grown(t, 3)
		key := w.signer()
		s := w.apply(w.commit(member(1), nil, bad{signer: key}))
		w.must(s.CheckGroupInfo(func() *wire.GroupInfo { w.signers[1] = key; return w.groupInfo(w.g, 1) }()))
	})
}
