package follower

import (
	"bytes"
	"errors"
	"testing"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// refusal is one thing that a peer may try.
type refusal struct {
	name string
	want []error
	make func(w *world) *wire.AuthenticatedContent
}

// state is all of a group that could change, held proposals too.
func state(g *Group) []byte {
	b := g.Marshal()
	for _, p := range g.Proposals() {
		b = append(b, wire.Marshal(p.Content)...)
	}
	return b
}

// refuse runs each refusal on a fresh group of six: the message must be refused
// by the rule, and the group must be what it was, byte for byte.
func refuse(t *testing.T, list []refusal) {
	t.Helper()
	for _, r := range list {
		t.Run(r.name, func(t *testing.T) {
			w := grown(t, 6)
			ac := r.make(w)
			before := state(w.g)
			var err error
			if ac.Content.ContentType == wire.ContentTypeProposal {
				_, err = w.g.HoldProposal(ac, w.options)
			} else {
				_, err = w.g.StageCommit(ac, w.options)
			}
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, want := range append(r.want, ErrInvalid) {
				if !errors.Is(err, want) {
					t.Errorf("refused as %q, not as %q", err, want)
				}
			}
			if !bytes.Equal(state(w.g), before) {
				t.Error("the refusal changed the group")
			}
		})
	}
}

func rules(list ...error) []error { return list }

var joining = wire.Sender{SenderType: wire.SenderTypeNewMemberCommit}

// committed is a commit by member 0 of proposals by value.
func committed(list ...func(*world) *wire.Proposal) func(*world) *wire.AuthenticatedContent {
	return func(w *world) *wire.AuthenticatedContent {
		var out []*wire.Proposal
		for _, f := range list {
			out = append(out, f(w))
		}
		return w.commit(member(0), values(out...), bad{})
	}
}

func always(p *wire.Proposal) func(*world) *wire.Proposal {
	return func(*world) *wire.Proposal { return p }
}

// spoiled is a commit of member 0 without proposals that b changes.
func spoiled(b bad) func(*world) *wire.AuthenticatedContent {
	return func(w *world) *wire.AuthenticatedContent { return w.commit(member(0), nil, b) }
}

// adding is an Add, committed by member 0, of a client whose key package was
// changed and signed again.
func adding(change func(*world, *wire.KeyPackage)) func(*world) *wire.AuthenticatedContent {
	return func(w *world) *wire.AuthenticatedContent {
		c := w.client("new")
		change(w, c.kp)
		w.seal(c)
		return w.commit(member(0), values(c.add()), bad{})
	}
}

// TestRefuseFrames: group, epoch, sender, wire format, signature (RFC 9420 §6).
func TestRefuseFrames(t *testing.T) {
	frame := func(f func(*wire.FramedContent)) func(*world) *wire.AuthenticatedContent {
		return spoiled(bad{frame: f})
	}
	refuse(t, []refusal{
		{"another group", rules(ErrOtherGroup), frame(func(c *wire.FramedContent) { c.GroupID = []byte("other") })},
		{"an epoch ahead", rules(ErrEpoch), frame(func(c *wire.FramedContent) { c.Epoch++ })},
		{"an epoch behind", rules(ErrEpoch), frame(func(c *wire.FramedContent) { c.Epoch-- })},
		{"a leaf too far", rules(ErrSender), frame(func(c *wire.FramedContent) { c.Sender.LeafIndex = 1 << 30 })},
		{"a blank leaf", rules(ErrSender), frame(func(c *wire.FramedContent) { c.Sender.LeafIndex = 7 })},
		{"the leaf of somebody else", rules(ErrSignature), frame(func(c *wire.FramedContent) { c.Sender.LeafIndex = 1 })},
		{"an external committer", rules(ErrSender), frame(func(c *wire.FramedContent) { c.Sender = wire.Sender{SenderType: wire.SenderTypeExternal} })},
		{"a new member proposal that commits", rules(ErrSender), frame(func(c *wire.FramedContent) { c.Sender = wire.Sender{SenderType: wire.SenderTypeNewMemberProposal} })},
		{"application data", rules(ErrContent), func(w *world) *wire.AuthenticatedContent {
			c := w.frame(member(0))
			c.ContentType = wire.ContentTypeApplication
			return w.sign(w.signers[0], c)
		}},
		{"an unknown wire format", rules(ErrContent), func(w *world) *wire.AuthenticatedContent {
			ac := w.commit(member(0), nil, bad{})
			ac.WireFormat = wire.WireFormatWelcome
			w.resign(w.signers[0], ac)
			return ac
		}},
		{"an external commit as PrivateMessage", rules(ErrContent), func(w *world) *wire.AuthenticatedContent {
			key := w.signer()
			ac := w.commit(joining, values(w.externalInit()), bad{signer: key})
			ac.WireFormat = wire.WireFormatPrivateMessage
			w.resign(key, ac)
			return ac
		}},
		{"the signature of another wire format", rules(ErrSignature), func(w *world) *wire.AuthenticatedContent {
			ac := w.commit(member(0), nil, bad{})
			ac.WireFormat = wire.WireFormatPrivateMessage
			return ac
		}},
		{"a flipped signature", rules(ErrSignature), func(w *world) *wire.AuthenticatedContent {
			ac := w.commit(member(0), nil, bad{})
			ac.Auth.Signature[0] ^= 1
			return ac
		}},
		{"changed authenticated data", rules(ErrSignature), func(w *world) *wire.AuthenticatedContent {
			ac := w.commit(member(0), nil, bad{})
			ac.Content.AuthenticatedData = []byte("x")
			return ac
		}},
		{"a truncated confirmation tag", rules(ErrContent), func(w *world) *wire.AuthenticatedContent {
			ac := w.commit(member(0), nil, bad{})
			ac.Auth.ConfirmationTag = ac.Auth.ConfirmationTag[:31]
			return ac
		}},
		{"no confirmation tag", rules(ErrContent), func(w *world) *wire.AuthenticatedContent {
			ac := w.commit(member(0), nil, bad{})
			ac.Auth.ConfirmationTag = nil
			return ac
		}},
		{"a commit of the epoch before, replayed", rules(ErrEpoch), func(w *world) *wire.AuthenticatedContent {
			ac := w.commit(member(1), nil, bad{})
			w.apply(ac)
			return ac
		}},
	})
}

// TestRefuseProposals: proposals by themselves (§12.1) and their senders
// (§12.1.8).
func TestRefuseProposals(t *testing.T) {
	home := wire.Sender{SenderType: wire.SenderTypeExternal}
	fromHome := func(p func(*world) *wire.Proposal) func(*world) *wire.AuthenticatedContent {
		return func(w *world) *wire.AuthenticatedContent { return w.proposeAs(home, w.outside, p(w)) }
	}
	updating := func(change func(*world, *wire.LeafNode)) func(*world) *wire.AuthenticatedContent {
		return func(w *world) *wire.AuthenticatedContent {
			p := w.update(1)
			change(w, &p.Update.LeafNode)
			w.signLeaf(&p.Update.LeafNode, 1, w.signers[1])
			return w.propose(1, p)
		}
	}
	refuse(t, []refusal{
		{"an external sender that is not listed", rules(ErrSender), func(w *world) *wire.AuthenticatedContent {
			return w.proposeAs(wire.Sender{SenderType: wire.SenderTypeExternal, SenderIndex: 1}, w.outside, remove(1))
		}},
		{"an external sender with a rotated key", rules(ErrSignature), func(w *world) *wire.AuthenticatedContent {
			return w.proposeAs(home, w.signer(), remove(1))
		}},
		{"an external Update", rules(ErrSender), fromHome(func(w *world) *wire.Proposal { return w.update(1) })},
		{"an external SelfRemove", rules(ErrSender), fromHome(always(selfRemove()))},
		{"an external ExternalInit", rules(ErrSender), fromHome((*world).externalInit)},
		{"a new member that proposes a Remove", rules(ErrSender), func(w *world) *wire.AuthenticatedContent {
			return w.proposeAs(wire.Sender{SenderType: wire.SenderTypeNewMemberProposal}, w.signer(), remove(1))
		}},
		{"a new member's Add signed by somebody else", rules(ErrSignature), func(w *world) *wire.AuthenticatedContent {
			return w.proposeAs(wire.Sender{SenderType: wire.SenderTypeNewMemberProposal}, w.signer(), w.client("new").add())
		}},
		{"a new member's Add with a bad key package", rules(ErrKeyPackage, ErrSignature), func(w *world) *wire.AuthenticatedContent {
			c := w.client("new")
			c.kp.Signature[5] ^= 1
			return w.proposeAs(wire.Sender{SenderType: wire.SenderTypeNewMemberProposal}, c.signer, c.add())
		}},
		{"a proposal by somebody who joins by commit", rules(ErrSender), func(w *world) *wire.AuthenticatedContent {
			return w.proposeAs(joining, w.signer(), remove(1))
		}},
		{"a member's ExternalInit", rules(ErrSender), func(w *world) *wire.AuthenticatedContent { return w.propose(1, w.externalInit()) }},
		{"a Remove of a blank leaf", rules(ErrProposal), func(w *world) *wire.AuthenticatedContent { return w.propose(1, remove(6)) }},
		{"a Remove beyond the tree", rules(ErrProposal), func(w *world) *wire.AuthenticatedContent { return w.propose(1, remove(1<<31)) }},
		{"a SelfRemove as PrivateMessage", rules(ErrContent), func(w *world) *wire.AuthenticatedContent {
			ac := w.propose(1, selfRemove())
			ac.WireFormat = wire.WireFormatPrivateMessage
			w.resign(w.signers[1], ac)
			return ac
		}},
		{"a type that nobody knows", rules(ErrUnsupported), func(w *world) *wire.AuthenticatedContent {
			return w.propose(1, &wire.Proposal{ProposalType: 0xf123})
		}},
		{"a type that all list and this program does not know", rules(ErrUnsupported), func(w *world) *wire.AuthenticatedContent {
			return w.propose(1, &wire.Proposal{ProposalType: 0x3a3a})
		}},
		{"an Update with the source of a commit", rules(ErrProposal, tree.ErrLeafSource), updating(func(_ *world, l *wire.LeafNode) { l.LeafNodeSource = wire.LeafNodeSourceCommit })},
		{"an Update with the encryption key of before", rules(ErrProposal, tree.ErrDuplicateKey), updating(func(w *world, l *wire.LeafNode) { l.EncryptionKey = w.g.Leaf(1).EncryptionKey })},
		{"an Update with a low-order key", rules(ErrProposal, tree.ErrPublicKey), updating(func(_ *world, l *wire.LeafNode) { l.EncryptionKey = make([]byte, 32) })},
		{"an Update with another name", rules(ErrProposal, tree.ErrCredential), updating(func(_ *world, l *wire.LeafNode) { l.Credential.Identity = []byte("m2") })},
		{"an Update with an extension that its capabilities lack", rules(ErrProposal, tree.ErrCapabilities), updating(func(_ *world, l *wire.LeafNode) { l.Extensions = wire.Extensions{{ExtensionType: 0xfbfb}} })},
		{"an Update signed for another leaf", rules(ErrProposal, tree.ErrSignature), func(w *world) *wire.AuthenticatedContent {
			p := w.update(1)
			w.signLeaf(&p.Update.LeafNode, 2, w.signers[1])
			return w.propose(1, p)
		}},
		{"an Update by an external sender in a member's name", rules(ErrSignature), func(w *world) *wire.AuthenticatedContent {
			return w.proposeAs(member(1), w.outside, w.update(1))
		}},
		{"a PreSharedKey with a short nonce", rules(ErrProposal), func(w *world) *wire.AuthenticatedContent {
			p := w.psk()
			p.PreSharedKey.PSK.PSKNonce = p.PreSharedKey.PSK.PSKNonce[1:]
			return w.propose(1, p)
		}},
		{"a PreSharedKey of usage reinit", rules(ErrProposal), func(w *world) *wire.AuthenticatedContent {
			p := w.psk()
			p.PreSharedKey.PSK.PSKType, p.PreSharedKey.PSK.Usage = wire.PSKTypeResumption, wire.ResumptionPSKUsageReInit
			return w.propose(1, p)
		}},
		{"a PreSharedKey of usage branch", rules(ErrProposal), func(w *world) *wire.AuthenticatedContent {
			p := w.psk()
			p.PreSharedKey.PSK.PSKType, p.PreSharedKey.PSK.Usage = wire.PSKTypeResumption, wire.ResumptionPSKUsageBranch
			w.options.Succession = true // counts in epoch 0 only
			return w.propose(1, p)
		}},
		{"a ReInit to an older version", rules(ErrProposal), func(w *world) *wire.AuthenticatedContent {
			p := w.reinit()
			p.ReInit.Version = 0
			return w.propose(1, p)
		}},
		{"a ReInit with an extension twice", rules(ErrProposal), func(w *world) *wire.AuthenticatedContent {
			p := w.reinit()
			p.ReInit.Extensions = wire.Extensions{{ExtensionType: 5}, {ExtensionType: 5}}
			return w.propose(1, p)
		}},
		{"GroupContextExtensions with an extension twice", rules(ErrExtensions), func(w *world) *wire.AuthenticatedContent {
			x := w.g.Context().Extensions
			return w.propose(1, gce(append(x.Clone(), x[1])))
		}},
		{"GroupContextExtensions that change the dictionary", rules(ErrExtensions), func(w *world) *wire.AuthenticatedContent {
			return w.propose(1, gce(w.g.Context().Extensions[:2]))
		}},
		{"GroupContextExtensions that change an entry of the dictionary", rules(ErrExtensions), func(w *world) *wire.AuthenticatedContent {
			d := w.g.Dictionary().With(testComponent, []byte("other"))
			return w.propose(1, gce(w.g.Context().Extensions.With(wire.NewExtension(wire.ExtensionTypeAppDataDictionary, &d))))
		}},
		{"a type that some member lacks", rules(ErrUnsupported), func(w *world) *wire.AuthenticatedContent {
			c := w.client("old")
			c.kp.LeafNode.Capabilities.Proposals = []wire.ProposalType{wire.ProposalTypeAppDataUpdate, wire.ProposalTypeSelfRemove}
			w.seal(c)
			w.enter(0, c)
			return w.propose(1, &wire.Proposal{ProposalType: wire.ProposalTypeAppEphemeral, AppEphemeral: &wire.AppEphemeral{}})
		}},
		{"GroupContextExtensions with a refused external sender", rules(ErrExtensions), func(w *world) *wire.AuthenticatedContent {
			senders := wire.ExternalSenders{{SignatureKey: w.signer().Public(), Credential: wire.BasicCredential([]byte("mallory"))}}
			return w.propose(1, gce(w.g.Context().Extensions.With(wire.NewExtension(wire.ExtensionTypeExternalSenders, &senders))))
		}},
		{"GroupContextExtensions with malformed external senders", rules(ErrExtensions), func(w *world) *wire.AuthenticatedContent {
			return w.propose(1, gce(w.g.Context().Extensions.With(wire.Extension{ExtensionType: wire.ExtensionTypeExternalSenders, ExtensionData: []byte{200}})))
		}},
		{"GroupContextExtensions with malformed required capabilities", rules(ErrExtensions), func(w *world) *wire.AuthenticatedContent {
			return w.propose(1, gce(w.g.Context().Extensions.With(wire.Extension{ExtensionType: wire.ExtensionTypeRequiredCapabilities, ExtensionData: []byte{1}})))
		}},
	})
}

// TestRefuseKeyPackages: Adds by value (§10.1, §7.3).
func TestRefuseKeyPackages(t *testing.T) {
	refuse(t, []refusal{
		{"another version", rules(ErrKeyPackage), adding(func(_ *world, k *wire.KeyPackage) { k.Version = 2 })},
		{"another suite", rules(ErrKeyPackage), adding(func(_ *world, k *wire.KeyPackage) { k.CipherSuite = 3 })},
		{"the init key as encryption key", rules(ErrKeyPackage), adding(func(_ *world, k *wire.KeyPackage) { k.InitKey = k.LeafNode.EncryptionKey })},
		{"a low-order init key", rules(ErrKeyPackage, suite.ErrKey), adding(func(_ *world, k *wire.KeyPackage) { k.InitKey = make([]byte, 32) })},
		{"a short encryption key", rules(ErrKeyPackage, tree.ErrPublicKey), adding(func(_ *world, k *wire.KeyPackage) { k.LeafNode.EncryptionKey = k.LeafNode.EncryptionKey[1:] })},
		{"a leaf of source update", rules(ErrKeyPackage, tree.ErrLeafSource), adding(func(_ *world, k *wire.KeyPackage) { k.LeafNode.LeafNodeSource = wire.LeafNodeSourceUpdate })},
		{"a lifetime that ended", rules(ErrKeyPackage, tree.ErrLifetime), adding(func(w *world, k *wire.KeyPackage) { k.LeafNode.Lifetime.NotAfter = uint64(w.now.Unix()) - 1 })},
		{"a lifetime that has not begun", rules(ErrKeyPackage, tree.ErrLifetime), adding(func(w *world, k *wire.KeyPackage) { k.LeafNode.Lifetime.NotBefore = uint64(w.now.Unix()) + 1 })},
		{"a lifetime that ends before it begins", rules(ErrKeyPackage, tree.ErrLifetime), adding(func(w *world, k *wire.KeyPackage) {
			k.LeafNode.Lifetime = wire.Lifetime{NotBefore: uint64(w.now.Unix()), NotAfter: 1}
		})},
		{"a lifetime of a thousand years", rules(ErrKeyPackage, tree.ErrLifetime), adding(func(_ *world, k *wire.KeyPackage) { k.LeafNode.Lifetime.NotAfter = 1 << 40 })},
		{"no mls10", rules(ErrKeyPackage, tree.ErrCapabilities), adding(func(_ *world, k *wire.KeyPackage) { k.LeafNode.Capabilities.Versions = nil })},
		{"a suite it does not list", rules(ErrKeyPackage, tree.ErrCapabilities), adding(func(_ *world, k *wire.KeyPackage) { k.LeafNode.Capabilities.CipherSuites = nil })},
		{"a credential type it does not list", rules(ErrKeyPackage, tree.ErrCapabilities), adding(func(_ *world, k *wire.KeyPackage) { k.LeafNode.Capabilities.Credentials = []wire.CredentialType{7} })},
		{"a credential type that others do not support", rules(ErrTree, tree.ErrCapabilities), adding(func(_ *world, k *wire.KeyPackage) {
			k.LeafNode.Credential = wire.Credential{CredentialType: 0xf00d, Unknown: []byte("x")}
			k.LeafNode.Capabilities.Credentials = []wire.CredentialType{wire.CredentialTypeBasic, 0xf00d}
		})},
		{"no support for the credential type of others", rules(ErrTree, tree.ErrCapabilities), adding(func(_ *world, k *wire.KeyPackage) {
			k.LeafNode.Credential = wire.Credential{CredentialType: 0x4a4a, Unknown: []byte("x")}
			k.LeafNode.Capabilities.Credentials = []wire.CredentialType{0x4a4a}
		})},
		{"no support for a required extension", rules(ErrTree, tree.ErrCapabilities), adding(func(_ *world, k *wire.KeyPackage) { k.LeafNode.Capabilities.Extensions = []wire.ExtensionType{0x2a2a} })},
		{"no support for a required proposal", rules(ErrTree, tree.ErrCapabilities), adding(func(_ *world, k *wire.KeyPackage) { k.LeafNode.Capabilities.Proposals = nil })},
		{"a leaf extension it does not list", rules(ErrKeyPackage, tree.ErrCapabilities), adding(func(_ *world, k *wire.KeyPackage) { k.LeafNode.Extensions = wire.Extensions{{ExtensionType: 0xf999}} })},
		{"a package extension it does not list", rules(ErrKeyPackage, tree.ErrCapabilities), adding(func(_ *world, k *wire.KeyPackage) { k.Extensions = wire.Extensions{{ExtensionType: 0xf999}} })},
		{"a leaf extension twice", rules(ErrKeyPackage, tree.ErrExtensions), adding(func(_ *world, k *wire.KeyPackage) {
			k.LeafNode.Extensions = wire.Extensions{{ExtensionType: 0x2a2a}, {ExtensionType: 0x2a2a}}
		})},
		{"a dictionary out of order", rules(ErrKeyPackage, tree.ErrExtensions), adding(func(_ *world, k *wire.KeyPackage) {
			d := wire.AppDataDictionary{ComponentData: []wire.ComponentData{{ComponentID: 2}, {ComponentID: 1}}}
			k.Extensions = wire.Extensions{wire.NewExtension(wire.ExtensionTypeAppDataDictionary, &d)}
		})},
		{"a credential that the application refuses", rules(ErrKeyPackage, tree.ErrCredential), adding(func(_ *world, k *wire.KeyPackage) { k.LeafNode.Credential.Identity = []byte("mallory") })},
		{"a bad leaf signature", rules(ErrKeyPackage, ErrSignature), func(w *world) *wire.AuthenticatedContent {
			c := w.client("new")
			c.kp.LeafNode.Signature[9] ^= 1
			sig, err := c.signer.SignWithLabel("KeyPackageTBS", wire.Marshal((*wire.KeyPackageTBS)(c.kp)))
			w.must(err)
			c.kp.Signature = sig
			return w.commit(member(0), values(c.add()), bad{})
		}},
		{"a bad package signature", rules(ErrKeyPackage, ErrSignature), func(w *world) *wire.AuthenticatedContent {
			c := w.client("new")
			c.kp.Signature[9] ^= 1
			return w.commit(member(0), values(c.add()), bad{})
		}},
		{"a signature key of small order", rules(ErrKeyPackage, tree.ErrPublicKey), func(w *world) *wire.AuthenticatedContent {
			c := w.client("new")
			c.kp.LeafNode.SignatureKey = append([]byte{1}, make([]byte, 31)...)
			return w.commit(member(0), values(c.add()), bad{})
		}},
		{"a member's signature key", rules(ErrTree, tree.ErrDuplicateKey), func(w *world) *wire.AuthenticatedContent {
			c := w.client("new")
			c.signer = w.signers[3]
			c.kp.LeafNode.SignatureKey = c.signer.Public()
			w.seal(c)
			return w.commit(member(0), values(c.add()), bad{})
		}},
		{"a member's encryption key", rules(ErrTree, tree.ErrDuplicateKey), adding(func(w *world, k *wire.KeyPackage) { k.LeafNode.EncryptionKey = w.g.Leaf(3).EncryptionKey })},
		{"the encryption key of a parent", rules(ErrTree, tree.ErrDuplicateKey), adding(func(w *world, k *wire.KeyPackage) {
			k.LeafNode.EncryptionKey = w.g.Tree().PublicKey(w.g.Tree().Root())
		})},
		{"the second bad of many", rules(ErrKeyPackage, ErrSignature), func(w *world) *wire.AuthenticatedContent {
			a, b := w.client("a"), w.client("b")
			b.kp.Signature[0] ^= 1
			return w.commit(member(0), values(a.add(), b.add()), bad{})
		}},
	})
}

// TestRefuseLists: proposals that may not be committed together (§12.2).
func TestRefuseLists(t *testing.T) {
	refuse(t, []refusal{
		{"an Update by value", rules(ErrProposalList), committed(func(w *world) *wire.Proposal { return w.update(0) })},
		{"the committer's own Update by reference", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(1), []wire.ProposalOrRef{w.hold(w.propose(1, w.update(1)))}, bad{})
		}},
		{"a Remove of the committer", rules(ErrProposalList), committed(always(remove(0)))},
		{"a Remove of the committer by reference", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), []wire.ProposalOrRef{w.hold(w.propose(2, remove(0)))}, bad{})
		}},
		{"a SelfRemove by value", rules(ErrProposalList), committed(always(selfRemove()))},
		{"the committer's own SelfRemove", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), []wire.ProposalOrRef{w.hold(w.propose(0, selfRemove()))}, bad{})
		}},
		{"two Removes of one leaf", rules(ErrProposalList), committed(always(remove(2)), always(remove(2)))},
		{"an Update and a Remove of one leaf", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), append(values(remove(2)), w.hold(w.propose(2, w.update(2)))), bad{})
		}},
		{"two Updates of one leaf", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			a, b := w.hold(w.propose(2, w.update(2))), w.hold(w.propose(2, w.update(2)))
			return w.commit(member(0), []wire.ProposalOrRef{a, b}, bad{})
		}},
		{"a SelfRemove and a Remove of one leaf", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), append(values(remove(2)), w.hold(w.propose(2, selfRemove()))), bad{})
		}},
		{"one reference twice", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			ref := w.hold(w.propose(2, w.client("new").add()))
			return w.commit(member(0), []wire.ProposalOrRef{ref, ref}, bad{})
		}},
		{"one reference twice, of a proposal that may be repeated", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			ref := w.hold(w.propose(2, appUpdate(testComponent, "x")))
			return w.commit(member(0), []wire.ProposalOrRef{ref, ref}, bad{})
		}},
		{"a reference to nothing", rules(ErrUnknownProposal), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), []wire.ProposalOrRef{{Type: wire.ProposalOrRefTypeReference, Reference: w.bytes(32)}}, bad{})
		}},
		{"a reference to a proposal of the epoch before", rules(ErrUnknownProposal), func(w *world) *wire.AuthenticatedContent {
			ref := w.hold(w.propose(2, remove(3)))
			w.apply(w.commit(member(0), nil, bad{}))
			return w.commit(member(0), []wire.ProposalOrRef{ref}, bad{})
		}},
		{"one client added twice", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			c := w.client("new")
			return w.commit(member(0), values(c.add(), c.add()), bad{})
		}},
		{"two clients with one signature key", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			a, b := w.client("a"), w.client("b")
			b.signer, b.kp.LeafNode.SignatureKey = a.signer, a.kp.LeafNode.SignatureKey
			w.seal(b)
			return w.commit(member(0), values(a.add(), b.add()), bad{})
		}},
		{"two clients with one encryption key", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			a, b := w.client("a"), w.client("b")
			b.kp.LeafNode.EncryptionKey = a.kp.LeafNode.EncryptionKey
			w.seal(b)
			return w.commit(member(0), values(a.add(), b.add()), bad{})
		}},
		{"two clients with one init key", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			a, b := w.client("a"), w.client("b")
			b.kp.InitKey = a.kp.InitKey
			w.seal(b)
			return w.commit(member(0), values(a.add(), b.add()), bad{})
		}},
		{"one PreSharedKey twice", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			p := w.psk()
			return w.commit(member(0), values(p, p), bad{})
		}},
		{"two GroupContextExtensions", rules(ErrProposalList), func(w *world) *wire.AuthenticatedContent {
			p := gce(w.g.Context().Extensions)
			return w.commit(member(0), values(p, p), bad{})
		}},
		{"a ReInit in company", rules(ErrProposalList), committed((*world).reinit, (*world).psk)},
		{"an ExternalInit of a member", rules(ErrProposalList), committed((*world).externalInit)},
		{"a type that a member who stays lacks", rules(ErrUnsupported), func(w *world) *wire.AuthenticatedContent {
			// Nothing requires AppEphemeral, and the newcomer does not know it.
			c := w.client("old")
			c.kp.LeafNode.Capabilities.Proposals = []wire.ProposalType{wire.ProposalTypeAppDataUpdate, wire.ProposalTypeSelfRemove}
			w.seal(c)
			w.enter(0, c)
			return w.commit(member(0), values(&wire.Proposal{ProposalType: wire.ProposalTypeAppEphemeral, AppEphemeral: &wire.AppEphemeral{}}), bad{})
		}},
		{"an AppDataUpdate of an unknown component", rules(ErrProposal), committed(always(appUpdate(0x8888, "x")))},
		{"an AppDataUpdate that nobody can apply", rules(ErrProposal), func(w *world) *wire.AuthenticatedContent {
			w.options.AppData = nil
			return w.commit(member(0), values(appUpdate(testComponent, "x")), bad{})
		}},
		{"an AppDataUpdate that removes nothing", rules(ErrProposal), committed(always(appRemove(0x8002)))},
		{"a component changed and removed", rules(ErrProposalList), committed(always(appUpdate(testComponent, "x")), always(appRemove(testComponent)))},
		{"a component removed twice", rules(ErrProposalList), committed(always(appRemove(testComponent)), always(appRemove(testComponent)))},
		{"required capabilities that a member lacks", rules(ErrTree, tree.ErrCapabilities), func(w *world) *wire.AuthenticatedContent {
			r := wire.RequiredCapabilities{ProposalTypes: []wire.ProposalType{wire.ProposalTypeAppDataUpdate, 0xf321}}
			return w.commit(member(0), values(gce(w.g.Context().Extensions.With(wire.NewExtension(wire.ExtensionTypeRequiredCapabilities, &r)))), bad{})
		}},
		{"a required extension that a member lacks", rules(ErrTree, tree.ErrCapabilities), func(w *world) *wire.AuthenticatedContent {
			r := wire.RequiredCapabilities{ExtensionTypes: []wire.ExtensionType{0xf321}}
			return w.commit(member(0), values(gce(w.g.Context().Extensions.With(wire.NewExtension(wire.ExtensionTypeRequiredCapabilities, &r)))), bad{})
		}},
		{"a required credential type that a member lacks", rules(ErrTree, tree.ErrCapabilities), func(w *world) *wire.AuthenticatedContent {
			r := wire.RequiredCapabilities{CredentialTypes: []wire.CredentialType{wire.CredentialTypeX509}}
			return w.commit(member(0), values(gce(w.g.Context().Extensions.With(wire.NewExtension(wire.ExtensionTypeRequiredCapabilities, &r)))), bad{})
		}},
		{"a group extension that nobody supports", rules(ErrTree, tree.ErrCapabilities), func(w *world) *wire.AuthenticatedContent {
			return w.commit(member(0), values(gce(append(w.g.Context().Extensions.Clone(), wire.Extension{ExtensionType: 0xf777}))), bad{})
		}},
		{"an Add that lacks what the same commit requires", rules(ErrTree, tree.ErrCapabilities), func(w *world) *wire.AuthenticatedContent {
			c := w.client("old")
			c.kp.LeafNode.Capabilities.Extensions = []wire.ExtensionType{wire.ExtensionTypeAppDataDictionary, 0x2a2a}
			w.seal(c)
			x := append(w.g.Context().Extensions.Clone(), wire.Extension{ExtensionType: testExtension})
			return w.commit(member(0), values(gce(x), c.add()), bad{})
		}},
		{"an Update whose key another new leaf has", rules(ErrTree, tree.ErrDuplicateKey), func(w *world) *wire.AuthenticatedContent {
			c := w.client("new")
			p := w.update(2)
			p.Update.LeafNode.EncryptionKey = c.kp.LeafNode.EncryptionKey
			w.signLeaf(&p.Update.LeafNode, 2, w.signers[2])
			return w.commit(member(0), append(values(c.add()), w.hold(w.propose(2, p))), bad{})
		}},
	})
}
