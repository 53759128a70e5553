package mls_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// The safe exporter gives each component its own secret, once, the same to all,
// and forgets it in the store too.
func TestSafeExporter(t *testing.T) {
	w := trio(t, 2)
	a, b := w.Members[0], w.Members[1]
	export := func(c *mlstest.Client, component wire.ComponentID) mls.Secret {
		t.Helper()
		out, err := c.Group.ExportSafe(component)
		if err != nil {
			t.Fatal(err)
		}
		c.Take(out.Step)
		return out.Secret
	}
	seen := map[string]bool{}
	for _, component := range []wire.ComponentID{0, 1, 0x8000, 0x8001, 0xffff} {
		secret := export(a, component)
		if !secret.Equal(export(b, component)) || seen[string(secret)] {
			t.Fatalf("component %#x: not the same for both, or the same as another's", component)
		}
		seen[string(secret)] = true
		for range 2 {
			if _, err := a.Group.ExportSafe(component); !errors.Is(err, mls.ErrKeyConsumed) {
				t.Fatalf("component %#x a second time: %v", component, err)
			}
			a.Restart()
		}
		if bytes.Contains(mls.MarshalRecords(a.Records()), secret) {
			t.Fatal("the store still holds an exported secret")
		}
	}
	w.Commit(a, mls.CommitParams{})
	if seen[string(export(a, 1))] {
		t.Fatal("the next epoch exports the same secret")
	}
	if _, err := a.Group.Export("label", nil, 255*32+1); !errors.Is(err, mls.ErrParams) {
		t.Fatalf("too long an export: %v", err)
	}
}

// A key package of last resort can be used twice; its bundle survives storage.
func TestLastResort(t *testing.T) {
	w := trio(t, 1)
	c := w.Client()
	bundle, err := mls.NewKeyPackage(mls.KeyPackageParams{
		CipherSuite: testSuite, Random: w.Random(), Signer: c.Signer, Credential: c.Credential(),
		NotBefore: w.Now.AddDate(0, 0, -1), NotAfter: w.Now.AddDate(1, 0, 0), LastResort: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := bundle.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	loaded := new(mls.KeyPackageBundle)
	if err := loaded.UnmarshalBinary(stored); err != nil || !loaded.LastResort() || c.KeyPackage(w.Now).LastResort() {
		t.Fatalf("the stored bundle: %v", err)
	}
	for i := range stored {
		if err := new(mls.KeyPackageBundle).UnmarshalBinary(flip(stored, i)); !errors.Is(err, mls.ErrState) {
			t.Fatalf("a bundle with byte %d changed: %v", i, err)
		}
	}
	c.Bundles = []*mls.KeyPackageBundle{loaded}
	for seed := range uint64(2) {
		other := mlstest.NewWorld(t, testSuite, 50+seed, nil)
		other.Commit(other.Members[0], mls.CommitParams{Proposals: []wire.Proposal{mls.AddProposal(&loaded.KeyPackage)}}, c)
		goesOn(t, other)
	}
}

// A client rotates its signature key in a path and in an Update that another
// member commits; both survive a restart.
func TestSignatureKeyRotation(t *testing.T) {
	w := trio(t, 4)
	c := w.Members[1]
	rotate := func() mls.LeafChange {
		signer, err := c.Suite.GenerateSignatureKey(w.Random())
		if err != nil {
			t.Fatal(err)
		}
		c.Config.Signers = append([]*suite.SignatureKey{signer}, c.Config.Signers...)
		return mls.LeafChange{Signer: signer}
	}
	change := rotate()
	w.Commit(c, mls.CommitParams{Leaf: change})
	if string(c.Group.Member(c.Group.OwnLeaf()).Node.SignatureKey) != string(change.Signer.Public()) {
		t.Fatal("the path did not change the signature key")
	}
	goesOn(t, w)
	change = rotate()
	proposed, err := c.Group.ProposeUpdate(mls.ProposeParams{Random: w.Random(), Now: w.Now}, change)
	if err != nil {
		t.Fatal(err)
	}
	w.Propose(c, proposed)
	c.Restart()
	staged := w.Commit(w.Members[0], mls.CommitParams{})
	if len(staged.Updated) != 1 || string(c.Group.Member(c.Group.OwnLeaf()).Node.SignatureKey) != string(change.Signer.Public()) {
		t.Fatal("the update did not change the signature key")
	}
	c.Restart()
	goesOn(t, w)
	c.Config.Signers = c.Config.Signers[1:]
	if _, err := c.Config.Load(c.Records()); !errors.Is(err, mls.ErrParams) {
		t.Fatalf("loading without the signer: %v", err)
	}
}

// AppDataUpdate changes the dictionary without a path, for everybody and for
// who joins by it.
func TestAppData(t *testing.T) {
	w := trio(t, 3)
	newcomer := w.Client()
	w.Commit(w.Members[1], mls.CommitParams{
		OmitPath: true,
		Proposals: []wire.Proposal{
			mls.AppDataUpdateProposal(0x8001, []byte("one")), mls.AppDataUpdateProposal(0x8001, []byte("two")),
			mls.AppEphemeralProposal(0x8002, []byte("passing")), mls.AddProposal(&newcomer.KeyPackage(w.Now).KeyPackage),
		},
	}, newcomer)
	for _, c := range w.Members {
		d := c.Group.Public().Dictionary()
		if d == nil {
			t.Fatalf("%s: no dictionary", c.Name)
		}
		if data, ok := d.Get(0x8001); !ok || string(data) != "two" {
			t.Fatalf("%s: the component holds %q", c.Name, data)
		}
	}
	w.Commit(w.Members[0], mls.CommitParams{Proposals: []wire.Proposal{mls.AppDataRemoveProposal(0x8001)}})
	if _, ok := newcomer.Group.Public().Dictionary().Get(0x8001); ok {
		t.Fatal("the component is still there")
	}
	goesOn(t, w)
}

// Held proposals that exclude each other are not committed together; nothing
// wedges.
func TestCommitChoosesProposals(t *testing.T) {
	w := trio(t, 6)
	propose := func(by *mlstest.Client, p wire.Proposal) {
		t.Helper()
		out, err := by.Group.Propose(mls.ProposeParams{Now: w.Now, Proposal: p})
		if err != nil {
			t.Fatal(err)
		}
		w.Propose(by, out)
	}
	update := func(by *mlstest.Client) {
		t.Helper()
		out, err := by.Group.ProposeUpdate(mls.ProposeParams{Random: w.Random(), Now: w.Now}, mls.LeafChange{})
		if err != nil {
			t.Fatal(err)
		}
		w.Propose(by, out)
	}
	gone, updated, self := w.Members[2], w.Members[3], w.Members[4]
	kp := &w.Client().KeyPackage(w.Now).KeyPackage
	update(gone)
	propose(w.Members[1], mls.RemoveProposal(gone.Group.OwnLeaf()))
	propose(w.Members[5], mls.RemoveProposal(gone.Group.OwnLeaf()))
	update(updated)
	update(updated)
	propose(self, mls.SelfRemoveProposal())
	propose(w.Members[1], mls.RemoveProposal(self.Group.OwnLeaf()))
	update(w.Members[0])
	propose(w.Members[1], mls.ReInitProposal([]byte("later"), testSuite, nil))
	propose(w.Members[1], mls.GroupContextExtensionsProposal(w.Members[0].Group.Context().Extensions))
	propose(w.Members[1], mls.GroupContextExtensionsProposal(mlstest.Capable()))
	propose(w.Members[1], mls.AddProposal(kp))
	propose(w.Members[5], mls.AddProposal(kp))
	if _, err := w.Members[0].Group.Seal(mls.SealParams{Random: w.Random(), Content: []byte("x")}); !errors.Is(err, mls.ErrPendingProposals) {
		t.Fatalf("application data before the commit: %v", err)
	}
	commit := commitOf(t, w, w.Members[0], mls.CommitParams{})
	s := commit.Staged
	if len(s.Removed) != 2 || len(s.Updated) != 1 || len(s.Added) != 1 || s.ReInit != nil {
		t.Fatalf("%d removed, %d updated, %d added", len(s.Removed), len(s.Updated), len(s.Added))
	}
	for _, c := range w.Members[1:] {
		if _, err := c.Group.Process(commit.Message, mls.ProcessParams{Now: w.Now}); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
	}
	var all []wire.ProposalRef
	for _, p := range w.Members[0].Group.Proposals() {
		all = append(all, p.Ref)
	}
	skipped := commitOf(t, w, w.Members[0], mls.CommitParams{Skip: all})
	if len(skipped.Staged.Proposals) != 0 {
		t.Fatal("skipped proposals were committed")
	}
	value := commitOf(t, w, w.Members[0], mls.CommitParams{Proposals: []wire.Proposal{mls.RemoveProposal(updated.Group.OwnLeaf())}})
	if len(value.Staged.Removed) != 3 || len(value.Staged.Updated) != 0 {
		t.Fatal("a removal by value does not come before a held update")
	}
}

// Held AppDataUpdates that exclude each other, or that the application refuses,
// are left out of a commit: no member can wedge the group by proposing them.
func TestCommitChoosesAppDataUpdates(t *testing.T) {
	w := trio(t, 4)
	refusing := func(id wire.ComponentID, old []byte, updates [][]byte) ([]byte, error) {
		for _, u := range updates {
			if string(u) == "refused" {
				return nil, errors.New("not like this")
			}
		}
		return mlstest.Replace(id, old, updates)
	}
	for _, c := range w.Members {
		c.Config.AppData = refusing
	}
	there := wire.ComponentID(0x8001)
	w.Commit(w.Members[0], mls.CommitParams{Proposals: []wire.Proposal{mls.AppDataUpdateProposal(there, []byte("there"))}})
	propose := func(by int, p wire.Proposal) wire.ProposalRef {
		t.Helper()
		out, err := w.Members[by].Group.Propose(mls.ProposeParams{Now: w.Now, Proposal: p})
		if err != nil {
			t.Fatal(err)
		}
		w.Propose(w.Members[by], out)
		return out.Ref
	}
	good := []wire.ProposalRef{
		propose(1, mls.AppDataRemoveProposal(there)),
		propose(1, mls.AppDataUpdateProposal(0x8002, []byte("first"))),
	}
	propose(2, mls.AppDataRemoveProposal(there))                      // a second removal
	propose(2, mls.AppDataUpdateProposal(there, []byte("after all"))) // removed and changed
	propose(2, mls.AppDataRemoveProposal(0x8002))                     // changed and removed
	propose(2, mls.AppDataRemoveProposal(0x8003))                     // nothing to remove
	propose(3, mls.AppDataUpdateProposal(0x8004, []byte("refused")))  // by the application
	good = append(good, propose(3, mls.AppDataUpdateProposal(0x8002, []byte("second"))))

	commit := commitOf(t, w, w.Members[0], mls.CommitParams{})
	var got []wire.ProposalRef
	for _, p := range commit.Staged.Proposals {
		got = append(got, p.Ref)
	}
	if fmt.Sprint(got) != fmt.Sprint(good) {
		t.Fatalf("committed %x, not %x", got, good)
	}
	byValue := commitOf(t, w, w.Members[0], mls.CommitParams{
		Proposals: []wire.Proposal{mls.AppDataUpdateProposal(there, []byte("by value"))},
	})
	if n := len(byValue.Staged.Proposals); n != 4 {
		t.Fatalf("%d proposals beside an update by value, not the three updates", n-1)
	}
	w.Commit(w.Members[0], mls.CommitParams{})
	d := w.Members[1].Group.Public().Dictionary()
	if _, found := d.Get(there); found {
		t.Error("the removed component is still there")
	}
	if data, _ := d.Get(0x8002); string(data) != "second" {
		t.Errorf("the changed component holds %q", data)
	}
}

// A held pre-shared key that this client lacks is for others to commit.
func TestCommitLeavesUnknownPSKs(t *testing.T) {
	w := trio(t, 3)
	by, other := w.Members[0], w.Members[1]
	other.PSKs["known to one"] = mls.Secret("the secret of one")
	p, err := other.Group.ExternalPSKProposal(w.Random(), []byte("known to one"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.Group.Propose(mls.ProposeParams{Now: w.Now, Proposal: p})
	if err != nil {
		t.Fatal(err)
	}
	w.Propose(other, out)
	if n := len(commitOf(t, w, other, mls.CommitParams{}).Staged.Proposals); n != 1 {
		t.Fatalf("who has the key commits %d proposals", n)
	}
	if staged := w.Commit(by, mls.CommitParams{}); len(staged.Proposals) != 0 {
		t.Fatalf("who lacks the key commits %d proposals", len(staged.Proposals))
	}
}

// A commit that was made before other messages came still uses up nothing twice
// when it is applied: keys used in between stay used.
func TestApplyAfterMessages(t *testing.T) {
	w := trio(t, 3)
	by, other := w.Members[0], w.Members[1]
	for _, private := range []bool{false, true} {
		commit := commitOf(t, w, by, mls.CommitParams{Private: private})
		by.Take(*commit.Keep())
		message := other.Seal("in between")
		if _, err := by.Process(w.Now, message); err != nil {
			t.Fatal(err)
		}
		by.Seal("and one of mine")
		r, err := by.Process(w.Now, commit.Message)
		if err != nil || !r.(*mls.StagedCommit).Own {
			t.Fatalf("the own commit: %v", err)
		}
		if _, err := by.Group.Process(message, mls.ProcessParams{Now: w.Now}); !errors.Is(err, mls.ErrKeyConsumed) {
			t.Fatalf("a message that was read before the commit is read again: %v", err)
		}
		for _, c := range []*mlstest.Client{other, w.Members[2]} {
			if _, err := c.Process(w.Now, commit.Message); err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
		}
		by.Restart()
	}
	stale := commitOf(t, w, by, mls.CommitParams{})
	if _, err := by.Process(w.Now, commitOf(t, w, other, mls.CommitParams{}).Message); err != nil {
		t.Fatal(err)
	}
	if _, err := stale.Apply(by.Group, w.Now); !errors.Is(err, mls.ErrParams) {
		t.Fatalf("a commit of the epoch before is applied: %v", err)
	}
}

// A commit of our own that was not kept is named as such, not taken for an
// attack.
func TestOwnCommitNotKept(t *testing.T) {
	w := trio(t, 2)
	commit := commitOf(t, w, w.Members[0], mls.CommitParams{})
	refused(t, w, w.Members[0], commit.Message, mls.ErrOwnMessage)
}

// The same randomness gives the same bytes, and no goroutine outlives a call,
// however many clients a commit adds.
func TestCommitIsRepeatableAndLeavesNoGoroutine(t *testing.T) {
	w := trio(t, 3)
	by := w.Members[0]
	var adds []wire.Proposal
	for range 100 {
		adds = append(adds, mls.AddProposal(&w.Client().KeyPackage(w.Now).KeyPackage))
	}
	before := runtime.NumGoroutine()
	var first *mls.Commit
	for range 3 {
		commit, err := by.Group.Commit(mls.CommitParams{
			Random: rand.NewChaCha8([32]byte{1}), Now: w.Now, Proposals: adds, TreeInWelcome: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = commit
		}
		if !bytes.Equal(first.Message, commit.Message) || !bytes.Equal(first.Welcome, commit.Welcome) || !bytes.Equal(first.GroupInfo, commit.GroupInfo) {
			t.Fatal("the same randomness gives another commit")
		}
		if _, err := w.Members[1].Group.Process(commit.Message, mls.ProcessParams{Now: w.Now}); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < 1000 && runtime.NumGoroutine() > before; i++ {
		runtime.Gosched() // a worker that has said that it is done is still on its way out
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Fatalf("%d goroutines before, %d after", before, after)
	}
}
