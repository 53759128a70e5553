package mls_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

var record = flag.Bool("record", false, "write the recorded states of testdata anew")

// eventful is a member whose stored state has every kind of record.
func eventful(t testing.TB) (*mlstest.World, *mlstest.Client) {
	t.Helper()
	w := trio(t, 5)
	c := w.Members[1]
	w.Chat(10)
	w.Commit(w.Members[0], mls.CommitParams{})
	for range 3 {
		w.Members[2].Seal("lost") // skipped generations
	}
	if _, err := c.Process(w.Now, w.Members[2].Seal("found")); err != nil {
		t.Fatal(err)
	}
	update, err := c.Group.ProposeUpdate(mls.ProposeParams{Random: w.Random(), Now: w.Now}, mls.LeafChange{})
	if err != nil {
		t.Fatal(err)
	}
	w.Propose(c, update)
	commit := commitOf(t, w, c, mls.CommitParams{})
	c.Take(*commit.Keep())
	exported, err := c.Group.ExportSafe(0x8001)
	if err != nil {
		t.Fatal(err)
	}
	c.Take(exported.Step)
	return w, c
}

// Every record is checked when a group is loaded: changed, cut, missing, moved
// or of a newer version, and the error says which.
func TestLoadChecksIntegrity(t *testing.T) {
	_, c := eventful(t)
	records := c.Records()
	kinds := map[string]bool{}
	for i, r := range records {
		kind, _, _ := bytes.Cut([]byte(r.Key), []byte("/"))
		kinds[string(kind)] = true
		bad := func(what string, change func([]mls.Record) []mls.Record) {
			t.Helper()
			list := append([]mls.Record(nil), records...)
			if _, err := c.Config.Load(change(list)); !errors.Is(err, mls.ErrState) {
				t.Errorf("%s, %s: %v", r.Key, what, err)
			}
		}
		step := max(1, len(r.Value)/40)
		for at := 0; at < len(r.Value); at += step {
			bad(fmt.Sprintf("byte %d changed", at), func(l []mls.Record) []mls.Record { l[i].Value = flip(r.Value, at); return l })
			bad(fmt.Sprintf("cut to %d", at), func(l []mls.Record) []mls.Record { l[i].Value = r.Value[:at]; return l })
		}
		switch string(kind) {
		case "proposal", "update", "own", "resumption", "export", "past":
			// Without one of these a group is a valid one that holds less.
		default:
			bad("missing", func(l []mls.Record) []mls.Record { return append(l[:i:i], l[i+1:]...) })
		}
		bad("twice", func(l []mls.Record) []mls.Record { return append(l, r) })
		bad("in another's place", func(l []mls.Record) []mls.Record {
			l[i].Value = l[(i+1)%len(l)].Value
			return l
		})
		bad("of a newer version", func(l []mls.Record) []mls.Record {
			l[i].Value = append([]byte{200}, r.Value[1:]...)
			return l
		})
	}
	for _, kind := range []string{"core", "tree", "past", "node", "ratchet", "export", "own", "update", "proposal", "resumption"} {
		if !kinds[kind] {
			t.Errorf("the state has no record of kind %s", kind)
		}
	}
	if _, err := c.Config.Load(nil); !errors.Is(err, mls.ErrState) {
		t.Errorf("nothing at all: %v", err)
	}
}

// A status that no version of the program wrote is refused.
func TestLoadRefusesUnknownStatus(t *testing.T) {
	_, c := eventful(t)
	records := c.Records()
	core := mls.DamageRecord(recordOf(t, records, "core"), 0, 3) // the status, of which there are three
	if _, err := c.Config.Load(replaced(records, core)); !errors.Is(err, mls.ErrState) {
		t.Errorf("status 3: %v", err)
	}
}

// Keys that do not belong to the tree are never used. A private key of another
// node passes the load of a Diffie-Hellman suite, opens nothing, and the error
// blames the stored state instead of the committer; the hybrid suite, which
// computes public keys when it loads, refuses it at once.
func TestStoredKeyOfAnotherNode(t *testing.T) {
	for _, id := range []wire.CipherSuite{suite.X25519AES128GCMSHA256Ed25519, suite.MLKEM768X25519AES256GCMSHA384Ed25519} {
		w := mlstest.NewWorld(t, id, 7, nil)
		for len(w.Members) < 5 {
			w.Add(w.Members[len(w.Members)-1], 1)
		}
		for range 2 {
			w.Commit(w.Members[4], mls.CommitParams{})
			w.Commit(w.Members[0], mls.CommitParams{})
		}
		c := w.Members[1]
		stranger := w.Client().KeyPackage(w.Now)
		other := map[uint32][]byte{}
		for node := range c.Group.PrivateKeys() {
			other[node] = stranger.InitPrivate
		}
		records := replaced(c.Records(), c.Group.CoreWith(other, nil))
		loaded, err := c.Config.Load(records)
		if id != suite.X25519AES128GCMSHA256Ed25519 {
			if !errors.Is(err, mls.ErrState) {
				t.Errorf("%#x: loaded with keys of nobody: %v", uint16(id), err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		before := mlstest.State(loaded)
		commit := commitOf(t, w, w.Members[4], mls.CommitParams{})
		if _, err := loaded.Process(commit.Message, mls.ProcessParams{Now: w.Now}); !errors.Is(err, mls.ErrState) || errors.Is(err, mls.ErrPath) {
			t.Errorf("a path was read with keys of nobody: %v", err)
		}
		if !bytes.Equal(before, mlstest.State(loaded)) {
			t.Error("the refusal changed the state")
		}
		if _, err := c.Group.Process(commit.Message, mls.ProcessParams{Now: w.Now}); err != nil {
			t.Errorf("with its own keys: %v", err)
		}
	}
}

// The secrets of an epoch are loaded only with the public state that they belong
// to, however well the checksums fit: the confirmation tag ties them.
func TestStoredSecretsOfAnotherEpoch(t *testing.T) {
	w := trio(t, 3)
	c := w.Members[1]
	records := replaced(c.Records(), c.Group.CoreWith(nil, make([]byte, 32)))
	if _, err := c.Config.Load(records); !errors.Is(err, mls.ErrState) {
		t.Errorf("loaded with another confirmation key: %v", err)
	}
	// Two commits of one epoch lead to two groups with the same members.
	fork := c.Copy()
	ours, theirs := commitOf(t, w, w.Members[0], mls.CommitParams{}), commitOf(t, w, w.Members[2], mls.CommitParams{})
	for client, commit := range map[*mlstest.Client]*mls.Commit{c: ours, fork: theirs} {
		if _, err := client.Process(w.Now, commit.Message); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range fork.Records() {
		if r.Key == "core" {
			records = replaced(c.Records(), r)
		}
	}
	if _, err := c.Config.Load(records); !errors.Is(err, mls.ErrState) {
		t.Errorf("loaded with the secrets of the other branch: %v", err)
	}
}

// replaced gives records in which one stands for that of its key.
func replaced(records []mls.Record, r mls.Record) []mls.Record {
	for i := range records {
		if records[i].Key == r.Key {
			records[i] = r
		}
	}
	return records
}

// recordOf gives the record of a key.
func recordOf(t *testing.T, records []mls.Record, key string) mls.Record {
	t.Helper()
	i := slices.IndexFunc(records, func(r mls.Record) bool { return r.Key == key })
	if i < 0 {
		t.Fatalf("no record %q", key)
	}
	return records[i]
}

// Deltas merged with Then are the same as one after the other.
func TestDeltaThen(t *testing.T) {
	w, c := eventful(t)
	one, both := map[string][]byte{}, map[string][]byte{}
	for key, value := range c.Store {
		one[key], both[key] = value, value
	}
	var merged mls.Delta
	for range 5 {
		sealed, err := c.Group.Seal(mls.SealParams{Random: w.Random(), Content: []byte("x"), IgnoreProposals: true})
		if err != nil {
			t.Fatal(err)
		}
		sealed.Delta.ApplyTo(one)
		merged = merged.Then(sealed.Delta)
		c.Take(sealed.Step)
	}
	r, err := c.Group.Process(commitOf(t, w, w.Members[0], mls.CommitParams{}).Message, mls.ProcessParams{Now: w.Now})
	if err != nil {
		t.Fatal(err)
	}
	delta := r.(*mls.StagedCommit).Delta
	delta.ApplyTo(one)
	merged.Then(delta).ApplyTo(both)
	if len(one) != len(both) {
		t.Fatalf("%d records, %d merged", len(one), len(both))
	}
	for key, value := range one {
		if !bytes.Equal(value, both[key]) {
			t.Fatalf("record %s differs", key)
		}
	}
}

// A store that only ever saw deltas stays bounded: neither past epochs nor the
// changes of the tree pile up.
func TestStoreStaysBounded(t *testing.T) {
	w := trio(t, 4)
	c := w.Members[1]
	size := func() (n int) {
		for _, r := range c.Records() {
			n += len(r.Value)
		}
		return n
	}
	for range 40 {
		w.Commit(w.Members[0], mls.CommitParams{})
	}
	rows, bytes := len(c.Store), size()
	for range 200 {
		w.Commit(w.Pick(), mls.CommitParams{})
		w.Chat(1)
	}
	c.Restart()
	if len(c.Store) > 2*rows+100 || size() > 4*bytes+200_000 {
		t.Fatalf("the store grew from %d rows and %d bytes to %d and %d", rows, bytes, len(c.Store), size())
	}
}

// States that earlier versions stored still load.
func TestRecordedStatesLoad(t *testing.T) {
	path := filepath.Join("testdata", "state-v1.bin")
	if *record {
		_, c := eventful(t)
		body := wire.AppendOpaque(nil, c.Signer.Private())
		body = append(body, mls.MarshalRecords(c.Records())...)
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := wire.NewReader(body)
	private := r.Opaque()
	records, err := mls.UnmarshalRecords(r.Rest())
	if err != nil {
		t.Fatal(err)
	}
	cs, err := suite.Lookup(testSuite)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := cs.NewSignatureKey(private)
	if err != nil {
		t.Fatal(err)
	}
	config := &mls.Config{Signers: []*suite.SignatureKey{signer}, AppData: mlstest.Replace}
	g, err := config.Load(records)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Members()) != 5 || len(g.Proposals()) != 1 || !g.Active() {
		t.Fatalf("%v with %d members and %d proposals", g, len(g.Members()), len(g.Proposals()))
	}
	if _, err := g.Seal(mls.SealParams{Random: bytes.NewReader(make([]byte, 64)), Content: []byte("on we go"), IgnoreProposals: true}); err != nil {
		t.Fatal(err)
	}
}
