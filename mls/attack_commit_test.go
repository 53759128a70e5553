package mls_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// pathOf copies the commit of a message, to be changed.
func pathOf(t *testing.T, message []byte) *wire.Commit {
	t.Helper()
	return public(t, message).Content.Commit
}

// Row 15: a path with too few or too many nodes or ciphertexts.
func TestAttackPathShape(t *testing.T) {
	w := trio(t, 5)
	by, victim := w.Members[4], w.Members[0]
	genuine := commitOf(t, w, by, mls.CommitParams{}).Message
	changes := map[string]func(*wire.UpdatePath){
		"a node less":       func(p *wire.UpdatePath) { p.Nodes = p.Nodes[:len(p.Nodes)-1] },
		"no node":           func(p *wire.UpdatePath) { p.Nodes = nil },
		"a node more":       func(p *wire.UpdatePath) { p.Nodes = append(p.Nodes, p.Nodes[0]) },
		"a ciphertext less": func(p *wire.UpdatePath) { n := &p.Nodes[0]; n.EncryptedPathSecret = n.EncryptedPathSecret[1:] },
		"a ciphertext more": func(p *wire.UpdatePath) {
			n := &p.Nodes[0]
			n.EncryptedPathSecret = append(n.EncryptedPathSecret, n.EncryptedPathSecret[0])
		},
		"another key":        func(p *wire.UpdatePath) { p.Nodes[0].EncryptionKey[3] ^= 1 },
		"a key of the tree":  func(p *wire.UpdatePath) { p.Nodes[0].EncryptionKey = victim.Group.Member(0).Node.EncryptionKey },
		"the same key twice": func(p *wire.UpdatePath) { p.Nodes[0].EncryptionKey = p.LeafNode.EncryptionKey },
		"a low-order key":    func(p *wire.UpdatePath) { p.Nodes[0].EncryptionKey = make([]byte, 32) },
		"a short ciphertext": func(p *wire.UpdatePath) { c := &p.Nodes[0].EncryptedPathSecret[0]; c.Ciphertext = c.Ciphertext[1:] },
		"another parent hash": func(p *wire.UpdatePath) {
			p.LeafNode.ParentHash[0] ^= 1
			by.Group.SignLeaf(&p.LeafNode, by.Group.OwnLeaf())
		},
		"an unsigned leaf": func(p *wire.UpdatePath) { p.LeafNode.Signature[0] ^= 1 },
		"the old leaf key": func(p *wire.UpdatePath) {
			p.LeafNode.EncryptionKey = by.Group.Member(by.Group.OwnLeaf()).Node.EncryptionKey
			by.Group.SignLeaf(&p.LeafNode, by.Group.OwnLeaf())
		},
		"a leaf of an update": func(p *wire.UpdatePath) {
			p.LeafNode.LeafNodeSource = wire.LeafNodeSourceUpdate
			by.Group.SignLeaf(&p.LeafNode, by.Group.OwnLeaf())
		},
		"a leaf without the suite": func(p *wire.UpdatePath) {
			p.LeafNode.Capabilities.CipherSuites = nil
			by.Group.SignLeaf(&p.LeafNode, by.Group.OwnLeaf())
		},
		"a leaf without the required": func(p *wire.UpdatePath) {
			p.LeafNode.Capabilities.Proposals = nil
			by.Group.SignLeaf(&p.LeafNode, by.Group.OwnLeaf())
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			c := pathOf(t, genuine)
			change(c.Path)
			refused(t, w, victim, forgedCommit(by, c), follower.ErrInvalid)
		})
	}
	goesOn(t, w)
}

// Row 15: new members get no ciphertext, and a path secret that does not give
// the announced public key is noticed.
func TestAttackPathSecrets(t *testing.T) {
	w := trio(t, 2)
	by, victim := w.Members[1], w.Members[0]
	newcomer := w.Client()
	adding := commitOf(t, w, by, mls.CommitParams{
		Proposals: []wire.Proposal{mls.AddProposal(&newcomer.KeyPackage(w.Now).KeyPackage)},
	})
	c := pathOf(t, adding.Message)
	top := &c.Path.Nodes[len(c.Path.Nodes)-1]
	if len(top.EncryptedPathSecret) != 0 {
		t.Fatalf("%d ciphertexts for a subtree that holds only a new member", len(top.EncryptedPathSecret))
	}
	top.EncryptedPathSecret = append(top.EncryptedPathSecret, c.Path.Nodes[0].EncryptedPathSecret[0])
	refused(t, w, victim, forgedCommit(by, c), follower.ErrPath)

	commit := commitOf(t, w, by, mls.CommitParams{})
	applied, err := commit.Apply(by.Group, w.Now)
	if err != nil {
		t.Fatal(err)
	}
	context := by.Group.PathContext(applied.Next)
	key := victim.Group.Member(victim.Group.OwnLeaf()).Node.EncryptionKey
	wrong := by.Group.Reforge(commit, func(c *wire.Commit) {
		c.Path.Nodes[0].EncryptedPathSecret[0] = by.Group.EncryptPath(w.Random(), key, context, make([]byte, 32))
	})
	refused(t, w, victim, wrong, mls.ErrPath)
	right := by.Group.Reforge(commit, func(*wire.Commit) {})
	if _, err := victim.Group.Process(right, mls.ProcessParams{Now: w.Now}); err != nil {
		t.Fatalf("the same commit without the change: %v", err)
	}
	goesOn(t, w)
}

// Row 17: proposals that may not be committed by this member or together.
func TestAttackProposalLists(t *testing.T) {
	w := trio(t, 5)
	by, victim, other := w.Members[0], w.Members[1], w.Members[2]
	propose := func(c *mlstest.Client, f func() (*mls.Proposed, error)) wire.ProposalOrRef {
		t.Helper()
		p, err := f()
		if err != nil {
			t.Fatal(err)
		}
		w.Propose(c, p)
		return wire.ProposalOrRef{Type: wire.ProposalOrRefTypeReference, Reference: p.Ref}
	}
	update := func(c *mlstest.Client) wire.ProposalOrRef {
		return propose(c, func() (*mls.Proposed, error) {
			return c.Group.ProposeUpdate(mls.ProposeParams{Random: w.Random(), Now: w.Now}, mls.LeafChange{})
		})
	}
	mine, theirs := update(by), update(other)
	selfRemove := propose(other, func() (*mls.Proposed, error) {
		return other.Group.Propose(mls.ProposeParams{Now: w.Now, Proposal: mls.SelfRemoveProposal()})
	})
	kp := &w.Client().KeyPackage(w.Now).KeyPackage
	psk, err := by.Group.ExternalPSKProposal(w.Random(), []byte("id"))
	if err != nil {
		t.Fatal(err)
	}
	remove := mls.RemoveProposal(other.Group.OwnLeaf())
	gce := mls.GroupContextExtensionsProposal(by.Group.Context().Extensions)
	reinit := mls.ReInitProposal([]byte("next"), testSuite, nil)
	lists := map[string][]wire.ProposalOrRef{
		"update of the committer":             {mine},
		"update by value":                     byValue(*by.Group.Proposals()[0].Proposal),
		"removal of the committer":            byValue(mls.RemoveProposal(by.Group.OwnLeaf())),
		"two removals of one leaf":            byValue(remove, remove),
		"update and removal of one leaf":      append(byValue(remove), theirs),
		"update and self removal of one leaf": {theirs, selfRemove},
		"removal and self removal":            append(byValue(remove), selfRemove),
		"one reference twice":                 {theirs, theirs},
		"self removal by value":               byValue(mls.SelfRemoveProposal()),
		"the same add twice":                  byValue(mls.AddProposal(kp), mls.AddProposal(kp)),
		"add of a member":                     byValue(mls.AddProposal(&other.KeyPackage(w.Now).KeyPackage)),
		"the same psk twice":                  byValue(psk, psk),
		"two sets of extensions":              byValue(gce, gce),
		"reinit with company":                 byValue(reinit, psk),
		"external init of a member": byValue(wire.Proposal{
			ProposalType: wire.ProposalTypeExternalInit, ExternalInit: &wire.ExternalInit{KEMOutput: make([]byte, 32)},
		}),
		"removal of a blank leaf": byValue(mls.RemoveProposal(77)),
		"an unknown reference":    {{Type: wire.ProposalOrRefTypeReference, Reference: make([]byte, 32)}},
		"an unsupported type":     byValue(wire.Proposal{ProposalType: 0xf00d, Unknown: []byte("?")}),
		"two fates of a component": byValue(
			mls.AppDataUpdateProposal(0x8001, []byte("x")), mls.AppDataRemoveProposal(0x8001)),
		"removal of no component": byValue(mls.AppDataRemoveProposal(0x8002)),
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			refused(t, w, victim, forgedCommit(by, &wire.Commit{Proposals: list}), follower.ErrInvalid)
		})
	}
	goesOn(t, w)
}

// Row 19: commits that need a path and have none.
func TestAttackMissingPath(t *testing.T) {
	w := trio(t, 4)
	by, victim := w.Members[0], w.Members[1]
	for name, list := range map[string][]wire.ProposalOrRef{
		"empty":      nil,
		"removal":    byValue(mls.RemoveProposal(w.Members[2].Group.OwnLeaf())),
		"extensions": byValue(mls.GroupContextExtensionsProposal(by.Group.Context().Extensions)),
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, w, victim, forgedCommit(by, &wire.Commit{Proposals: list}), follower.ErrPathRequired)
		})
	}
	goesOn(t, w)
}

// Row 22: a change of the extensions that some member does not support, and Adds
// against the new context.
func TestAttackGroupContextExtensions(t *testing.T) {
	w := trio(t, 3)
	by, victim := w.Members[0], w.Members[1]
	need := func(r wire.RequiredCapabilities) wire.Proposal {
		x := by.Group.Context().Extensions.Clone()
		x[0] = wire.NewExtension(wire.ExtensionTypeRequiredCapabilities, &r)
		return mls.GroupContextExtensionsProposal(x)
	}
	genuine := commitOf(t, w, by, mls.CommitParams{Proposals: []wire.Proposal{need(wire.RequiredCapabilities{
		ProposalTypes: []wire.ProposalType{wire.ProposalTypeAppDataUpdate},
	})}})
	path := pathOf(t, genuine.Message).Path
	for name, p := range map[string]wire.Proposal{
		"an extension nobody has":  need(wire.RequiredCapabilities{ExtensionTypes: []wire.ExtensionType{0xf111}}),
		"a proposal nobody has":    need(wire.RequiredCapabilities{ProposalTypes: []wire.ProposalType{0xf111}}),
		"a credential nobody has":  need(wire.RequiredCapabilities{CredentialTypes: []wire.CredentialType{0xf111}}),
		"an unsupported extension": mls.GroupContextExtensionsProposal(append(by.Group.Context().Extensions.Clone(), wire.Extension{ExtensionType: 0xf111})),
		"one extension twice":      mls.GroupContextExtensionsProposal(append(by.Group.Context().Extensions.Clone(), by.Group.Context().Extensions[0])),
		"another dictionary": mls.GroupContextExtensionsProposal(append(by.Group.Context().Extensions.Clone()[:1],
			wire.NewExtension(wire.ExtensionTypeAppDataDictionary, &wire.AppDataDictionary{ComponentData: []wire.ComponentData{{ComponentID: 1}}}))),
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, w, victim, forgedCommit(by, &wire.Commit{Proposals: byValue(p), Path: path}), follower.ErrInvalid)
			before := mlstest.State(by.Group)
			if _, err := by.Group.Commit(mls.CommitParams{Random: w.Random(), Now: w.Now, Proposals: []wire.Proposal{p}}); !errors.Is(err, follower.ErrInvalid) {
				t.Fatalf("the committer: %v", err)
			}
			if !bytes.Equal(before, mlstest.State(by.Group)) {
				t.Fatal("the refusal changed the committer")
			}
		})
	}
	poor := w.Client()
	bundle, err := mls.NewKeyPackage(mls.KeyPackageParams{
		CipherSuite: testSuite, Random: w.Random(), Signer: poor.Signer, Credential: poor.Credential(),
		Capabilities: wire.Capabilities{
			Versions: []wire.ProtocolVersion{wire.ProtocolVersionMLS10}, CipherSuites: []wire.CipherSuite{testSuite},
			Credentials: []wire.CredentialType{wire.CredentialTypeBasic},
		},
		NotBefore: w.Now.AddDate(0, 0, -1), NotAfter: w.Now.AddDate(0, 1, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	adding, err := by.Group.Commit(mls.CommitParams{Random: w.Random(), Now: w.Now, Proposals: []wire.Proposal{mls.AddProposal(&bundle.KeyPackage)}})
	if !errors.Is(err, follower.ErrTree) || !errors.Is(err, tree.ErrCapabilities) {
		t.Fatalf("adding a client without the required capabilities: %v, %v", adding, err)
	}
	goesOn(t, w)
}

// Row 23: pre-shared keys with a wrong nonce or usage, unknown ones and ones of
// unknown epochs.
func TestAttackPreSharedKeys(t *testing.T) {
	w := trio(t, 3)
	by, victim := w.Members[0], w.Members[1]
	id := func(change func(*wire.PreSharedKeyID)) []wire.ProposalOrRef {
		p := wire.PreSharedKeyID{PSKType: wire.PSKTypeExternal, PSKID: []byte("id"), PSKNonce: make([]byte, 32)}
		change(&p)
		return byValue(wire.Proposal{ProposalType: wire.ProposalTypePSK, PreSharedKey: &wire.PreSharedKey{PSK: p}})
	}
	for name, list := range map[string][]wire.ProposalOrRef{
		"a short nonce": id(func(p *wire.PreSharedKeyID) { p.PSKNonce = p.PSKNonce[:31] }),
		"a long nonce":  id(func(p *wire.PreSharedKeyID) { p.PSKNonce = make([]byte, 33) }),
		"no nonce":      id(func(p *wire.PreSharedKeyID) { p.PSKNonce = nil }),
		"reinit": id(func(p *wire.PreSharedKeyID) {
			p.PSKType, p.Usage, p.PSKGroupID = wire.PSKTypeResumption, wire.ResumptionPSKUsageReInit, by.Group.GroupID()
		}),
		"branch": id(func(p *wire.PreSharedKeyID) {
			p.PSKType, p.Usage, p.PSKGroupID = wire.PSKTypeResumption, wire.ResumptionPSKUsageBranch, by.Group.GroupID()
		}),
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, w, victim, forgedCommit(by, &wire.Commit{Proposals: list}), follower.ErrProposal)
		})
	}
	by.PSKs["only the committer has it"] = mls.Secret("secret")
	psk, err := by.Group.ExternalPSKProposal(w.Random(), []byte("only the committer has it"))
	if err != nil {
		t.Fatal(err)
	}
	commit := commitOf(t, w, by, mls.CommitParams{Proposals: []wire.Proposal{psk}})
	refused(t, w, victim, commit.Message, mls.ErrMissingPSK)
	victim.PSKs["only the committer has it"] = mls.Secret("another secret")
	refused(t, w, victim, commit.Message, mls.ErrConfirmationTag)
	victim.PSKs["only the committer has it"] = mls.Secret("secret")
	if _, err := victim.Group.Process(commit.Message, mls.ProcessParams{Now: w.Now}); err != nil {
		t.Fatalf("with the key at hand: %v", err)
	}
	unknown, err := by.Group.ResumptionPSKProposal(w.Random(), by.Group.GroupID(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := by.Group.Commit(mls.CommitParams{Random: w.Random(), Now: w.Now, Proposals: []wire.Proposal{unknown}}); !errors.Is(err, mls.ErrMissingPSK) {
		t.Fatalf("a resumption PSK of an unknown epoch: %v", err)
	}
	goesOn(t, w)
}

// Row 24: a committer sends garbage to one member. The victim notices and comes
// back by external commit; the others have gone on and the group lives.
func TestAttackInsiderGarbagePath(t *testing.T) {
	w := trio(t, 4)
	by, victim := w.Members[3], w.Members[2]
	commit := commitOf(t, w, by, mls.CommitParams{})
	message := by.Group.Reforge(commit, func(c *wire.Commit) {
		for i := range c.Path.Nodes[0].EncryptedPathSecret {
			clear(c.Path.Nodes[0].EncryptedPathSecret[i].Ciphertext)
		}
	})
	refused(t, w, victim, message, mls.ErrPath)
	others := []*mlstest.Client{w.Members[0], w.Members[1]}
	for _, c := range others {
		if _, err := c.Process(w.Now, message); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
	}
	info, err := others[0].Group.GroupInfo(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	own := victim.Group.OwnLeaf()
	back, err := victim.Config.ExternalJoin(mls.ExternalJoinParams{
		Random: w.Random(), Now: w.Now, GroupInfo: info, Signer: victim.Signer, Credential: victim.Credential(), Resync: &own,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range others {
		r, err := c.Process(w.Now, back.Message)
		if err != nil {
			t.Fatalf("%s: the victim's return: %v", c.Name, err)
		}
		if staged := r.(*mls.StagedCommit); !staged.Resync || len(staged.Removed) != 1 || staged.Removed[0].Leaf != own {
			t.Fatalf("%s: the return is not a resync", c.Name)
		}
	}
	applied, err := back.Apply(nil, w.Now)
	if err != nil {
		t.Fatal(err)
	}
	victim.Take(applied.Step)
	sealed := victim.Seal("back again")
	for _, c := range others {
		if _, err := c.Process(w.Now, sealed); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
	}
}

// Row 25: a member re-tags another's commit, two commits of one epoch, and
// messages of other groups.
func TestAttackInsiderRetagsAndReplays(t *testing.T) {
	w := trio(t, 4)
	by, insider, victim := w.Members[0], w.Members[1], w.Members[2]
	commit := commitOf(t, w, by, mls.CommitParams{})
	m := public(t, commit.Message)
	m.Auth.ConfirmationTag = bytes.Repeat([]byte{7}, 32)
	insider.Group.ForgeTag(m)
	refused(t, w, victim, encode(m), mls.ErrConfirmationTag)
	second := commitOf(t, w, insider, mls.CommitParams{})
	if _, err := victim.Process(w.Now, commit.Message); err != nil {
		t.Fatalf("the genuine commit after the forged one: %v", err)
	}
	refused(t, w, victim, second.Message, mls.ErrPastEpoch)
	refused(t, w, victim, commit.Message, mls.ErrPastEpoch)

	foreign := mlstest.NewWorld(t, testSuite, 99, mlstest.Capable())
	foreign.Add(foreign.Members[0], 2)
	elsewhere := commitOf(t, foreign, foreign.Members[0], mls.CommitParams{})
	refused(t, w, victim, elsewhere.Message, mls.ErrOtherGroup)
	refused(t, w, victim, foreign.Members[0].Seal("elsewhere"), mls.ErrOtherGroup)
	// A group of the same id and epoch has other keys.
	twin := mlstest.NewWorld(t, testSuite, 7, nil)
	for twin.Members[0].Group.Epoch() < victim.Group.Epoch() {
		twin.Commit(twin.Members[0], mls.CommitParams{})
	}
	if !bytes.Equal(twin.Members[0].Group.GroupID(), victim.Group.GroupID()) {
		t.Fatal("the twin has another id")
	}
	refused(t, w, victim, commitOf(t, twin, twin.Members[0], mls.CommitParams{}).Message, mls.ErrMembershipTag)
	refused(t, w, victim, twin.Members[0].Seal("twin"), mls.ErrDecrypt)
}

// Row 25: whoever enters by a GroupInfo that is no longer current is refused by
// everybody.
func TestAttackOldGroupInfo(t *testing.T) {
	w := trio(t, 3)
	info, err := w.Members[0].Group.GroupInfo(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Commit(w.Members[1], mls.CommitParams{})
	late := w.Client()
	commit, err := late.Config.ExternalJoin(mls.ExternalJoinParams{
		Random: w.Random(), Now: w.Now, GroupInfo: info, Signer: late.Signer, Credential: late.Credential(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range w.Members {
		refused(t, w, c, commit.Message, mls.ErrPastEpoch)
	}
}
