package mls_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls"
	_ "github.com/askucher/compax-core/mls/hpke/hpke448"
	"github.com/askucher/compax-core/mls/suite"
	_ "github.com/askucher/compax-core/mls/suite/suite448"
	"github.com/askucher/compax-core/mls/wire"
)

// recordedRun is a run of package interop with other implementations, as one
// client of ours saw it; that package writes them (see its record_test.go).
type recordedRun struct {
	Now     int64            `json:"now"`
	Clients []recordedClient `json:"clients"` // each one's group follows that of the one before
}

type recordedClient struct {
	Name   string           `json:"name"`
	Suite  wire.CipherSuite `json:"suite"`
	Signer []byte           `json:"signer"`
	Events []recordedEvent  `json:"events"`
}

type recordedEvent struct {
	Do            string   `json:"do"`
	Data          []byte   `json:"data"`
	ID            []byte   `json:"id"`
	Kind          string   `json:"kind"`
	Content       []byte   `json:"content"`
	Epoch         uint64   `json:"epoch"`
	Authenticator []byte   `json:"authenticator"`
	Exported      []byte   `json:"exported"`
	Members       []string `json:"members"`
}

// TestRecordedRuns replays what OpenMLS and ts-mls sent in real runs, and compares
// with what all members agreed on then.
func TestRecordedRuns(t *testing.T) {
	paths, err := filepath.Glob("testdata/recorded/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 7 {
		t.Fatalf("testdata/recorded holds %d runs", len(paths))
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var run recordedRun
			if err := json.Unmarshal(text, &run); err != nil {
				t.Fatal(err)
			}
			compared := 0
			var r replay
			for _, c := range run.Clients {
				r = replay{t: t, now: time.Unix(run.Now, 0), from: r.group, psks: mls.PSKs{}}
				r.client(c)
				compared += r.compared
			}
			if compared < 10 {
				t.Errorf("only %d states were compared", compared)
			}
		})
	}
}

// replay is one client whose recording is run again.
type replay struct {
	t        *testing.T
	now      time.Time
	config   *mls.Config
	psks     mls.PSKs
	bundles  []*mls.KeyPackageBundle
	group    *mls.Group
	from     *mls.Group // the group that this one follows, if any
	compared int
}

func (r *replay) client(c recordedClient) {
	cs, err := suite.Lookup(c.Suite)
	r.must(0, err)
	signer, err := cs.NewSignatureKey(c.Signer)
	r.must(0, err)
	r.config = &mls.Config{
		Signers: []*suite.SignatureKey{signer}, PSKs: r.psks,
		SameClient: func(a, b *wire.LeafNode) bool { return bytes.Equal(a.Credential.Identity, b.Credential.Identity) },
	}
	for i, e := range c.Events {
		r.event(i, e)
	}
}

func (r *replay) must(i int, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("event %d: %v", i, err)
	}
}

func (r *replay) event(i int, e recordedEvent) {
	switch e.Do {
	case "bundle":
		b := new(mls.KeyPackageBundle)
		r.must(i, b.UnmarshalBinary(e.Data))
		r.bundles = append(r.bundles, b)
	case "psk":
		r.psks[string(e.ID)] = e.Data
	case "load":
		records, err := mls.UnmarshalRecords(e.Data)
		r.must(i, err)
		r.group, err = r.config.Load(records)
		r.must(i, err)
	case "join":
		joined, err := r.config.Join(mls.JoinParams{Welcome: e.Data, Tree: e.ID, Bundles: r.bundles, From: r.from, Now: r.now})
		r.must(i, err)
		r.group = joined.Next
	case "handle":
		r.handle(i, e)
	case "expect":
		r.expect(i, e)
	default:
		r.t.Fatalf("event %d: unknown %q", i, e.Do)
	}
}

func (r *replay) handle(i int, e recordedEvent) {
	received, err := r.group.Process(e.Data, mls.ProcessParams{Now: r.now})
	r.must(i, err)
	kind := ""
	switch received := received.(type) {
	case *mls.Application:
		kind, r.group = "application", received.Next
		if !bytes.Equal(received.Content, e.Content) {
			r.t.Fatalf("event %d: read %q, not %q", i, received.Content, e.Content)
		}
	case *mls.ProposalReceived:
		kind, r.group = "proposal", received.Next
	case *mls.StagedCommit:
		kind, r.group = "commit", received.Next
	}
	if kind != e.Kind {
		r.t.Fatalf("event %d: %s, not %s", i, kind, e.Kind)
	}
}

func (r *replay) expect(i int, e recordedEvent) {
	exported, err := r.group.Export("interop", []byte("context"), 32)
	r.must(i, err)
	var members []string
	for _, m := range r.group.Members() {
		members = append(members, string(m.Node.Credential.Identity))
	}
	switch {
	case r.group.Epoch() != e.Epoch:
		r.t.Fatalf("event %d: epoch %d, not %d", i, r.group.Epoch(), e.Epoch)
	case !r.group.EpochAuthenticator().Equal(e.Authenticator):
		r.t.Fatalf("event %d: epoch %d: another epoch authenticator", i, e.Epoch)
	case !exported.Equal(e.Exported):
		r.t.Fatalf("event %d: epoch %d: another exported secret", i, e.Epoch)
	case !slices.Equal(members, e.Members):
		r.t.Fatalf("event %d: epoch %d: members %v, not %v", i, e.Epoch, members, e.Members)
	}
	r.compared++
}
