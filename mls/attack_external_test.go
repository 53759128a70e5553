package mls_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// Row 20: external commits with anything but exactly what they may contain.
func TestAttackExternalCommit(t *testing.T) {
	w := trio(t, 4)
	host, victim, joiner := w.Members[0], w.Members[1], w.Client()
	proposed, err := host.Group.Propose(mls.ProposeParams{Now: w.Now, Proposal: mls.RemoveProposal(w.Members[2].Group.OwnLeaf())})
	if err != nil {
		t.Fatal(err)
	}
	w.Propose(host, proposed)
	info, err := host.Group.GroupInfo(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	params := mls.ExternalJoinParams{
		Random: w.Random(), Now: w.Now, GroupInfo: info, Signer: joiner.Signer, Credential: joiner.Credential(),
	}
	genuine, err := joiner.Config.ExternalJoin(params)
	if err != nil {
		t.Fatal(err)
	}
	// sign makes what the joiner could have sent instead.
	sign := func(m *wire.PublicMessage) []byte {
		tbs := wire.FramedContentTBS{WireFormat: wire.WireFormatPublicMessage, Content: &m.Content, Context: host.Group.Public().EncodedContext()}
		if m.Auth.Signature, err = joiner.Signer.SignWithLabel("FramedContentTBS", wire.Marshal(&tbs)); err != nil {
			t.Fatal(err)
		}
		return encode(m)
	}
	init := *public(t, genuine.Message).Content.Commit.Proposals[0].Proposal
	remove := func(l int) wire.Proposal { return mls.RemoveProposal(w.Members[l].Group.OwnLeaf()) }
	kp := &w.Client().KeyPackage(w.Now).KeyPackage
	for name, list := range map[string][]wire.ProposalOrRef{
		"no external init":          {},
		"two external inits":        byValue(init, init),
		"a removal by reference":    append(byValue(init), wire.ProposalOrRef{Type: wire.ProposalOrRefTypeReference, Reference: proposed.Ref}),
		"two removals":              byValue(init, remove(1), remove(2)),
		"an add":                    byValue(init, mls.AddProposal(kp)),
		"extensions":                byValue(init, mls.GroupContextExtensionsProposal(nil)),
		"a reinit":                  byValue(init, mls.ReInitProposal([]byte("x"), testSuite, nil)),
		"a self removal by value":   byValue(init, mls.SelfRemoveProposal()),
		"a removal of a blank leaf": byValue(init, mls.RemoveProposal(50)),
		"an update": byValue(init, wire.Proposal{ProposalType: wire.ProposalTypeUpdate, Update: &wire.Update{
			LeafNode: public(t, genuine.Message).Content.Commit.Path.LeafNode,
		}}),
	} {
		t.Run(name, func(t *testing.T) {
			m := public(t, genuine.Message)
			m.Content.Commit.Proposals = list
			refused(t, w, victim, sign(m), follower.ErrInvalid)
		})
	}
	t.Run("no path", func(t *testing.T) {
		m := public(t, genuine.Message)
		m.Content.Commit.Path = nil
		refused(t, w, victim, sign(m), follower.ErrInvalid)
	})
	t.Run("signed by somebody else", func(t *testing.T) {
		m := public(t, genuine.Message)
		m.Auth.Signature = bytes.Clone(m.Auth.Signature)
		m.Auth.Signature[10] ^= 1
		refused(t, w, victim, encode(m), follower.ErrSignature)
	})
	t.Run("as a member", func(t *testing.T) {
		m := public(t, genuine.Message)
		m.Content.Sender = wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: 0}
		refused(t, w, victim, sign(m), mls.ErrMembershipTag)
	})
	t.Run("as an application message", func(t *testing.T) {
		m := public(t, genuine.Message)
		m.Content.ContentType, m.Content.ApplicationData = wire.ContentTypeApplication, []byte("hello")
		refused(t, w, victim, sign(m), mls.ErrWireFormat)
	})
	t.Run("the init key of somebody else", func(t *testing.T) {
		m := public(t, genuine.Message)
		kem := bytes.Clone(init.ExternalInit.KEMOutput)
		kem[0] ^= 1
		m.Content.Commit.Proposals = byValue(wire.Proposal{
			ProposalType: wire.ProposalTypeExternalInit, ExternalInit: &wire.ExternalInit{KEMOutput: kem},
		})
		refused(t, w, victim, sign(m), mls.ErrConfirmationTag)
	})
	t.Run("a member's signature key without its removal", func(t *testing.T) {
		p := params
		p.Signer, p.Credential = w.Members[2].Signer, w.Members[2].Credential()
		commit, err := w.Members[2].Config.ExternalJoin(p)
		if err == nil {
			refused(t, w, victim, commit.Message, follower.ErrPath)
		} else if !errors.Is(err, tree.ErrDuplicateKey) {
			t.Fatal(err)
		}
	})
	if _, err := victim.Group.Process(genuine.Message, mls.ProcessParams{Now: w.Now}); err != nil {
		t.Fatalf("the genuine external commit: %v", err)
	}
}

// A SelfRemove goes into an external commit by reference; its sender leaves, and
// cannot be removed by somebody else's forged one.
func TestExternalCommitWithSelfRemoves(t *testing.T) {
	w := trio(t, 5)
	leaving := w.Members[1]
	proposed, err := leaving.Group.Propose(mls.ProposeParams{Now: w.Now, Proposal: mls.SelfRemoveProposal()})
	if err != nil {
		t.Fatal(err)
	}
	w.Propose(leaving, proposed)
	if _, err := leaving.Group.Propose(mls.ProposeParams{Now: w.Now, Proposal: mls.SelfRemoveProposal()}); !errors.Is(err, mls.ErrParams) {
		t.Fatalf("a second SelfRemove in one epoch: %v", err)
	}
	if _, err := leaving.Group.Propose(mls.ProposeParams{Now: w.Now, Private: true, Random: w.Random(), Proposal: mls.SelfRemoveProposal()}); !errors.Is(err, mls.ErrParams) {
		t.Fatalf("a SelfRemove as PrivateMessage: %v", err)
	}
	joiner := w.Client()
	forged := public(t, proposed.Message)
	forged.Content.Sender.LeafIndex = w.Members[2].Group.OwnLeaf()
	info, err := w.Members[0].Group.GroupInfo(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := joiner.Config.ExternalJoin(mls.ExternalJoinParams{
		Random: w.Random(), Now: w.Now, GroupInfo: info, Signer: joiner.Signer, Credential: joiner.Credential(),
		SelfRemoves: [][]byte{encode(forged)},
	}); !errors.Is(err, follower.ErrSignature) {
		t.Fatalf("a forged SelfRemove: %v", err)
	}
	staged := w.ExternalJoin(joiner, false, proposed.Message)
	if len(staged.Removed) != 1 || string(staged.Removed[0].Node.Credential.Identity) != leaving.Name || staged.Resync {
		t.Fatalf("the SelfRemove was not committed: %d removed", len(staged.Removed))
	}
	if leaving.Group.Active() {
		t.Fatal("the leaving member is still active")
	}
	goesOn(t, w)
}

// Row 21: external senders: only those of the extension, only what they may
// propose, and only with the key that stands there now.
func TestAttackExternalSenders(t *testing.T) {
	cs, err := suite.Lookup(testSuite)
	if err != nil {
		t.Fatal(err)
	}
	w := mlstest.NewWorld(t, testSuite, 11, nil)
	key, err := cs.GenerateSignatureKey(w.Random())
	if err != nil {
		t.Fatal(err)
	}
	senders := wire.ExternalSenders{{SignatureKey: key.Public(), Credential: wire.BasicCredential([]byte("home"))}}
	extensions := append(mlstest.Capable(), wire.NewExtension(wire.ExtensionTypeExternalSenders, &senders))
	w = mlstest.NewWorld(t, testSuite, 11, extensions)
	w.Add(w.Members[0], 4)
	victim := w.Members[1]
	target := w.Members[3].Group.OwnLeaf()
	propose := func(index uint32, p wire.Proposal, signer *suite.SignatureKey) []byte {
		t.Helper()
		message, err := mls.ExternalProposal(victim.Group.GroupID(), victim.Group.Epoch(), index, p, []byte("evidence"), signer)
		if err != nil {
			t.Fatal(err)
		}
		return message
	}
	other, err := cs.GenerateSignatureKey(w.Random())
	if err != nil {
		t.Fatal(err)
	}
	refused(t, w, victim, propose(1, mls.RemoveProposal(target), key), follower.ErrSender)
	refused(t, w, victim, propose(1<<32-1, mls.RemoveProposal(target), key), follower.ErrSender)
	refused(t, w, victim, propose(0, mls.RemoveProposal(target), other), follower.ErrSignature)
	refused(t, w, victim, propose(0, mls.RemoveProposal(99), key), follower.ErrProposal)
	refused(t, w, victim, propose(0, mls.SelfRemoveProposal(), key), follower.ErrInvalid)
	refused(t, w, victim, propose(0, wire.Proposal{ProposalType: wire.ProposalTypeUpdate, Update: &wire.Update{LeafNode: *victim.Group.Member(0).Node}}, key), follower.ErrInvalid)
	refused(t, w, victim, propose(0, wire.Proposal{ProposalType: wire.ProposalTypeExternalInit, ExternalInit: &wire.ExternalInit{KEMOutput: make([]byte, 32)}}, key), follower.ErrInvalid)
	// A committer cannot pass off somebody else's proposal type either: what an
	// honest external sender proposed is committed by reference.
	message := propose(0, mls.RemoveProposal(target), key)
	for _, c := range w.Members {
		r, err := c.Process(w.Now, message)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if p := r.(*mls.ProposalReceived); p.Sender.SenderType != wire.SenderTypeExternal || string(p.AuthenticatedData) != "evidence" {
			t.Fatalf("%s: the proposal lost its sender or its evidence", c.Name)
		}
	}
	commit := commitOf(t, w, w.Members[0], mls.CommitParams{})
	r, err := victim.Group.Process(commit.Message, mls.ProcessParams{Now: w.Now})
	if err != nil {
		t.Fatal(err)
	}
	if staged := r.(*mls.StagedCommit); len(staged.Removed) != 1 || staged.Removed[0].Leaf != target {
		t.Fatal("the external sender's removal was not committed")
	}
	// After a rotation the old key is nobody's.
	rotated := wire.ExternalSenders{{SignatureKey: other.Public(), Credential: wire.BasicCredential([]byte("home"))}}
	w2 := mlstest.NewWorld(t, testSuite, 12, extensions)
	w2.Add(w2.Members[0], 2)
	next := append(mlstest.Capable(), wire.NewExtension(wire.ExtensionTypeExternalSenders, &rotated))
	w2.Commit(w2.Members[0], mls.CommitParams{Proposals: []wire.Proposal{mls.GroupContextExtensionsProposal(next)}})
	victim = w2.Members[1]
	refused(t, w2, victim, propose(0, mls.RemoveProposal(0), key), follower.ErrSignature)
	if _, err := victim.Group.Process(propose(0, mls.RemoveProposal(0), other), mls.ProcessParams{Now: w2.Now}); err != nil {
		t.Fatalf("the new key: %v", err)
	}
}

// A client asks to be added (new_member_proposal); nobody can ask for another.
func TestExternalAdd(t *testing.T) {
	w := trio(t, 3)
	newcomer, other := w.Client(), w.Client()
	bundle := newcomer.KeyPackage(w.Now)
	forged, err := mls.ExternalAdd(w.Members[0].Group.GroupID(), w.Members[0].Group.Epoch(), bundle, other.Signer)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, w, w.Members[1], forged, follower.ErrSignature)
	message, err := mls.ExternalAdd(w.Members[0].Group.GroupID(), w.Members[0].Group.Epoch(), bundle, newcomer.Signer)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range w.Members {
		if _, err := c.Process(w.Now, message); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
	}
	commit := commitOf(t, w, w.Members[0], mls.CommitParams{TreeInWelcome: true})
	for _, c := range w.Members[1:] {
		if _, err := c.Process(w.Now, commit.Message); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
	}
	newcomer.Join(w.Now, commit.Welcome, nil)
	if !newcomer.Group.EpochAuthenticator().Equal(w.Members[1].Group.EpochAuthenticator()) {
		t.Fatal("the newcomer is in another epoch")
	}
}

// Row 26: a GroupInfo whose signer is forged, a Welcome beside another tree, a
// tag that is not the epoch's.
func TestAttackWelcome(t *testing.T) {
	w := trio(t, 4)
	by, newcomer := w.Members[0], w.Client()
	bundle := newcomer.KeyPackage(w.Now)
	before := by.Group.RatchetTree()
	commit := commitOf(t, w, by, mls.CommitParams{Proposals: []wire.Proposal{mls.AddProposal(&bundle.KeyPackage)}})
	applied, err := commit.Apply(by.Group, w.Now)
	if err != nil {
		t.Fatal(err)
	}
	join := func(welcome, ratchet []byte) error {
		_, err := newcomer.Config.Join(mls.JoinParams{Welcome: welcome, Tree: ratchet, Bundles: newcomer.Bundles, Now: w.Now})
		return err
	}
	after := applied.Next.RatchetTree()
	if err := join(commit.Welcome, nil); !errors.Is(err, mls.ErrTree) {
		t.Fatalf("no tree: %v", err)
	}
	if err := join(commit.Welcome, before); !errors.Is(err, tree.ErrTreeHash) {
		t.Fatalf("the tree of another epoch: %v", err)
	}
	for i := 0; i < len(after); i += 7 {
		if join(commit.Welcome, flip(after, i)) == nil {
			t.Fatalf("a tree with byte %d changed is taken", i)
		}
	}
	for i := range commit.Welcome {
		if join(flip(commit.Welcome, i), after) == nil {
			t.Fatalf("a Welcome with byte %d changed is taken", i)
		}
	}
	stranger := w.Client()
	stranger.KeyPackage(w.Now)
	if _, err := stranger.Config.Join(mls.JoinParams{Welcome: commit.Welcome, Tree: after, Bundles: stranger.Bundles, Now: w.Now}); !errors.Is(err, mls.ErrNotForUs) {
		t.Fatalf("a Welcome for somebody else: %v", err)
	}
	if err := join(commit.Welcome, after); err != nil {
		t.Fatalf("the genuine Welcome: %v", err)
	}
	// The same for a GroupInfo that is read for an external commit.
	outside := func(change func(*wire.GroupInfo), sign bool) error {
		var m wire.MLSMessage
		if err := wire.Unmarshal(commit.GroupInfo, &m); err != nil {
			t.Fatal(err)
		}
		change(m.GroupInfo)
		if sign {
			by.Group.SignGroupInfo(m.GroupInfo)
		}
		_, err := stranger.Config.ExternalJoin(mls.ExternalJoinParams{
			Random: w.Random(), Now: w.Now, GroupInfo: wire.Marshal(&m), Tree: after, Signer: stranger.Signer, Credential: stranger.Credential(),
		})
		return err
	}
	for name, c := range map[string]struct {
		change func(*wire.GroupInfo)
		sign   bool
	}{
		"another signer":         {func(i *wire.GroupInfo) { i.Signer = w.Members[1].Group.OwnLeaf() }, true},
		"no such signer":         {func(i *wire.GroupInfo) { i.Signer = 1 << 30 }, true},
		"another epoch":          {func(i *wire.GroupInfo) { i.GroupContext.Epoch++ }, false},
		"another tree":           {func(i *wire.GroupInfo) { i.GroupContext.TreeHash[0] ^= 1 }, true},
		"no external_pub":        {func(i *wire.GroupInfo) { i.Extensions = i.Extensions[1:] }, true},
		"a low-order pub":        {func(i *wire.GroupInfo) { i.Extensions[0].ExtensionData = append([]byte{32}, make([]byte, 32)...) }, true},
		"one extension twice":    {func(i *wire.GroupInfo) { i.Extensions = append(i.Extensions, i.Extensions[0]) }, true},
		"a short tag":            {func(i *wire.GroupInfo) { i.ConfirmationTag = i.ConfirmationTag[1:] }, true},
		"an extension we lack":   {func(i *wire.GroupInfo) { i.GroupContext.Extensions[0].ExtensionType = 0xf222 }, true},
		"a pub of nobody's seed": {func(i *wire.GroupInfo) { i.Signature[0] ^= 1 }, false},
	} {
		if err := outside(c.change, c.sign); !errors.Is(err, mls.ErrGroupInfo) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := outside(func(*wire.GroupInfo) {}, true); err != nil {
		t.Fatalf("the genuine GroupInfo: %v", err)
	}
}

func flip(b []byte, i int) []byte {
	c := bytes.Clone(b)
	c[i] ^= 0x20
	return c
}

// Row 26: unknown values where they may stand are ignored, and we send some.
func TestGREASE(t *testing.T) {
	w := trio(t, 2)
	c := w.Client()
	capabilities := mls.DefaultCapabilities(testSuite)
	capabilities.Versions = append(capabilities.Versions, 0x0a0a)
	capabilities.CipherSuites = append(capabilities.CipherSuites, 0x1a1a)
	capabilities.Extensions = append(capabilities.Extensions, 0x2a2a, 0x7a7a)
	capabilities.Proposals = append(capabilities.Proposals, 0x3a3a)
	capabilities.Credentials = append(capabilities.Credentials, 0x4a4a)
	grease := wire.Extension{ExtensionType: 0x2a2a, ExtensionData: []byte("anything")}
	bundle, err := mls.NewKeyPackage(mls.KeyPackageParams{
		CipherSuite: testSuite, Random: w.Random(), Signer: c.Signer, Credential: c.Credential(), Capabilities: capabilities,
		NotBefore: w.Now, NotAfter: w.Now.AddDate(1, 0, 0),
		LeafExtensions: wire.Extensions{grease}, Extensions: wire.Extensions{{ExtensionType: 0x7a7a}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Bundles = append(c.Bundles, bundle)
	w.Commit(w.Members[0], mls.CommitParams{
		Proposals:           []wire.Proposal{mls.AddProposal(&bundle.KeyPackage)},
		GroupInfoExtensions: wire.Extensions{{ExtensionType: 0x5a5a, ExtensionData: []byte("unknown")}},
	}, c)
	goesOn(t, w)
	// Ours: every key package and every GroupInfo carries some.
	ours := w.Client().KeyPackage(w.Now).KeyPackage.LeafNode.Capabilities
	if !greased(ours.CipherSuites) || !greased(ours.Extensions) || !greased(ours.Proposals) || !greased(ours.Credentials) {
		t.Fatal("a key package of ours holds no GREASE")
	}
}

func greased[T ~uint16](list []T) bool {
	for _, v := range list {
		if wire.IsGREASE(v) {
			return true
		}
	}
	return false
}
