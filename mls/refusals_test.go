package mls_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// Who was removed can neither export nor take handshakes of its last epoch.
func TestRemovedMemberGetsNothing(t *testing.T) {
	w := trio(t, 3)
	gone := w.Members[2]
	commit := commitOf(t, w, w.Members[0], mls.CommitParams{Proposals: mlstest.Remove(gone)})
	w.Deliver(w.Members[0], commit)
	if _, err := gone.Group.Export("label", nil, 32); !errors.Is(err, mls.ErrRemoved) {
		t.Errorf("exporting: %v", err)
	}
	if _, err := gone.Group.ExportSafe(0x8000); !errors.Is(err, mls.ErrRemoved) {
		t.Errorf("the safe exporter: %v", err)
	}
	if _, err := gone.Group.Process(commit.Message, mls.ProcessParams{Now: w.Now}); !errors.Is(err, mls.ErrRemoved) {
		t.Errorf("the commit again: %v", err)
	}
}

// A closed group takes no handshakes.
func TestClosedGroupTakesNoHandshakes(t *testing.T) {
	w := trio(t, 2)
	by, other := w.Members[0], w.Members[1]
	w.Commit(by, mls.CommitParams{Proposals: []wire.Proposal{mls.ReInitProposal([]byte("next"), testSuite, mlstest.Capable())}})
	proposal := mls.RemoveProposal(other.Group.OwnLeaf())
	frame := content(by.Group, wire.ContentTypeProposal)
	frame.Proposal = &proposal
	refused(t, w, other, by.Group.ForgePublic(frame, nil, nil), mls.ErrReInit)
}

// What a caller asks for is bounded and checked before anything is made.
func TestCallsThatAreRefused(t *testing.T) {
	w := trio(t, 2)
	c := w.Members[0]
	if _, err := c.Group.Export("label", nil, -1); !errors.Is(err, mls.ErrParams) {
		t.Errorf("exporting -1 bytes: %v", err)
	}
	if _, err := c.Group.Seal(mls.SealParams{Random: w.Random(), Content: make([]byte, wire.MaxVectorLength/4+1)}); !errors.Is(err, mls.ErrParams) {
		t.Errorf("a message of more than 256 MiB: %v", err)
	}
	if _, err := c.Group.Propose(mls.ProposeParams{Now: w.Now, Private: true, Random: w.Random(), Proposal: mls.SelfRemoveProposal()}); !errors.Is(err, mls.ErrParams) {
		t.Errorf("a SelfRemove as PrivateMessage: %v", err)
	}
	leaf := *c.Group.Member(c.Group.OwnLeaf()).Node
	update := wire.Proposal{ProposalType: wire.ProposalTypeUpdate, Update: &wire.Update{LeafNode: leaf}}
	if _, err := c.Group.Propose(mls.ProposeParams{Now: w.Now, Random: w.Random(), Proposal: update}); !errors.Is(err, mls.ErrParams) {
		t.Errorf("an update of which nobody has the key: %v", err)
	}
	commit := commitOf(t, w, c, mls.CommitParams{})
	stranger := mlstest.NewWorld(t, testSuite, 3, nil).Members[0]
	for stranger.Group.Epoch() < c.Group.Epoch() {
		made := commitOf(t, w, stranger, mls.CommitParams{})
		staged, err := made.Apply(stranger.Group, w.Now)
		if err != nil {
			t.Fatal(err)
		}
		stranger.Take(staged.Step)
	}
	for name, g := range map[string]*mls.Group{"no group": nil, "another group": stranger.Group} {
		if _, err := commit.Apply(g, w.Now); !errors.Is(err, mls.ErrParams) {
			t.Errorf("a commit applied to %s: %v", name, err)
		}
	}
	for name, life := range map[string][2]time.Time{
		"ends before it begins": {w.Now, w.Now.Add(-time.Second)},
		"begins before 1970":    {time.Unix(-1, 0), w.Now},
	} {
		_, err := mls.NewKeyPackage(mls.KeyPackageParams{
			CipherSuite: testSuite, Random: w.Random(), Signer: c.Signer, Credential: c.Credential(),
			NotBefore: life[0], NotAfter: life[1],
		})
		if !errors.Is(err, mls.ErrParams) {
			t.Errorf("a lifetime that %s: %v", name, err)
		}
	}
}

// Who enters with what is not a GroupInfo for that, or not a SelfRemove, is told so.
func TestExternalJoinOfOtherMessages(t *testing.T) {
	w := trio(t, 2)
	member, guest := w.Members[0], w.Client()
	join := func(info []byte, selfRemoves ...[]byte) error {
		_, err := guest.Config.ExternalJoin(mls.ExternalJoinParams{
			Random: w.Random(), Now: w.Now, GroupInfo: info, Signer: guest.Signer, Credential: guest.Credential(),
			SelfRemoves: selfRemoves,
		})
		return err
	}
	info, err := member.Group.GroupInfo(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := join(guest.KeyPackage(w.Now).Message()); !errors.Is(err, mls.ErrWireFormat) {
		t.Errorf("a key package for a group info: %v", err)
	}
	var without wire.MLSMessage
	if err := wire.Unmarshal(info, &without); err != nil {
		t.Fatal(err)
	}
	var kept wire.Extensions
	for _, x := range without.GroupInfo.Extensions {
		if x.ExtensionType != wire.ExtensionTypeExternalPub {
			kept = append(kept, x)
		}
	}
	without.GroupInfo.Extensions = kept
	member.Group.SignGroupInfo(without.GroupInfo)
	if err := join(wire.Marshal(&without)); !errors.Is(err, mls.ErrGroupInfo) || !strings.Contains(err.Error(), "no external_pub") {
		t.Errorf("a group info without external_pub: %v", err)
	}
	add := mls.AddProposal(&w.Client().KeyPackage(w.Now).KeyPackage)
	proposed, err := member.Group.Propose(mls.ProposeParams{Now: w.Now, Proposal: add})
	if err != nil {
		t.Fatal(err)
	}
	for name, message := range map[string][]byte{
		"a key package": guest.KeyPackage(w.Now).Message(),
		"a commit":      commitOf(t, w, member, mls.CommitParams{}).Message,
		"an Add":        proposed.Message,
	} {
		if err := join(info, message); !errors.Is(err, mls.ErrWireFormat) {
			t.Errorf("%s for a SelfRemove: %v", name, err)
		}
	}
}

// Who joins uses the private key of its own leaf, and finds that leaf whole.
func TestJoinWithForeignKeys(t *testing.T) {
	w := trio(t, 2)
	guest := w.Client()
	bundle := guest.KeyPackage(w.Now)
	commit := commitOf(t, w, w.Members[0], mls.CommitParams{
		Proposals: []wire.Proposal{mls.AddProposal(&bundle.KeyPackage)}, TreeInWelcome: true,
	})
	foreign := *bundle
	foreign.EncryptionPrivate = w.Client().KeyPackage(w.Now).EncryptionPrivate
	p := mls.JoinParams{Welcome: commit.Welcome, Bundles: []*mls.KeyPackageBundle{&foreign}, Now: w.Now}
	if _, err := guest.Config.Join(p); !errors.Is(err, mls.ErrParams) {
		t.Errorf("an encryption key of another key package: %v", err)
	}
	own := *w.Members[0].Group.Member(w.Members[0].Group.OwnLeaf()).Node
	if err := w.Members[1].Group.FindOwnLeaf(&own); err != nil {
		t.Fatal(err)
	}
	changed := own
	changed.EncryptionKey = bundle.KeyPackage.LeafNode.EncryptionKey
	if err := w.Members[1].Group.FindOwnLeaf(&changed); !errors.Is(err, mls.ErrTree) {
		t.Errorf("a leaf of the same signature key: %v", err)
	}
	if err := w.Members[1].Group.FindOwnLeaf(&bundle.KeyPackage.LeafNode); !errors.Is(err, mls.ErrTree) {
		t.Errorf("a leaf that is not in the tree: %v", err)
	}
	second := w.Members[1]
	w.Commit(second, mls.CommitParams{Proposals: mlstest.Remove(w.Members[0])})
	if err := second.Group.FindOwnLeaf(&own); !errors.Is(err, mls.ErrTree) {
		t.Errorf("a leaf of a tree whose first is blank: %v", err)
	}
}

// A group that says to follow another one must be the one that was announced
// (RFC 9420 Section 11.2), or a branch of the same suite (Section 11.3).
func TestSuccessionIsTheOneAnnounced(t *testing.T) {
	w := trio(t, 2)
	open := w.Members[0].Group
	w.Commit(w.Members[0], mls.CommitParams{Proposals: []wire.Proposal{mls.ReInitProposal([]byte("next"), testSuite, mlstest.Capable())}})
	old := w.Members[0].Group
	context := wire.GroupContext{CipherSuite: testSuite, GroupID: []byte("next"), Epoch: 1, Extensions: mlstest.Capable()}
	from := wire.PreSharedKeyID{
		PSKType: wire.PSKTypeResumption, Usage: wire.ResumptionPSKUsageReInit, PSKGroupID: old.GroupID(), PSKEpoch: old.Epoch(),
	}
	branch := from
	branch.Usage = wire.ResumptionPSKUsageBranch
	for name, good := range map[string]wire.PreSharedKeyID{"the successor": from, "a branch": branch} {
		if err := mls.CheckSuccession(&good, context, old, old); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	type change struct {
		from    wire.PreSharedKeyID
		context wire.GroupContext
		old     *mls.Group
	}
	for name, edit := range map[string]func(*change){
		"without the old group":        func(c *change) { c.old = nil },
		"of another group":             func(c *change) { c.from.PSKGroupID = []byte("other") },
		"of an open group":             func(c *change) { c.old, c.from.PSKEpoch = open, open.Epoch() },
		"of another epoch":             func(c *change) { c.from.PSKEpoch-- },
		"at epoch 2":                   func(c *change) { c.context.Epoch = 2 },
		"with another id":              func(c *change) { c.context.GroupID = []byte("other") },
		"of another suite":             func(c *change) { c.context.CipherSuite = suite.P256AES128GCMSHA256P256 },
		"with other extensions":        func(c *change) { c.context.Extensions = nil },
		"as a branch of another suite": func(c *change) { c.from, c.context.CipherSuite = branch, suite.P256AES128GCMSHA256P256 },
	} {
		c := change{from, context, old}
		edit(&c)
		if err := mls.CheckSuccession(&c.from, c.context, old, c.old); !errors.Is(err, mls.ErrGroupInfo) {
			t.Errorf("a successor %s: %v", name, err)
		}
	}
	announced := old.ReInit()
	version := announced.Version
	announced.Version = version + 1
	if err := mls.CheckSuccession(&from, context, old, old); !errors.Is(err, mls.ErrGroupInfo) {
		t.Errorf("a successor of another version: %v", err)
	}
	announced.Version = version
}
