package mlstest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// Start is the time at which worlds begin.
var Start = time.Unix(1_800_000_000, 0)

// Client is one client: keys, configuration, what it stored of its group, and
// the group as it holds it in memory.
type Client struct {
	Name   string
	Suite  *suite.Suite
	Signer *suite.SignatureKey
	Config *mls.Config
	PSKs   mls.PSKs
	// Group is the group in memory, nil when it is in none; Store is what its
	// deltas amount to.
	Group *mls.Group
	Store map[string][]byte
	// Bundles are the key packages that were not used yet.
	Bundles []*mls.KeyPackageBundle

	t      testing.TB
	random io.Reader
}

// NewClient makes a client with a basic credential of its name.
func NewClient(t testing.TB, random io.Reader, id wire.CipherSuite, name string) *Client {
	t.Helper()
	cs, err := suite.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := cs.GenerateSignatureKey(random)
	if err != nil {
		t.Fatal(err)
	}
	psks := mls.PSKs{}
	return &Client{
		Name: name, Suite: cs, Signer: signer, PSKs: psks, t: t, random: random,
		Config: &mls.Config{Signers: []*suite.SignatureKey{signer}, PSKs: psks, AppData: Replace},
		Store:  map[string][]byte{},
	}
}

// Replace is an application logic for AppDataUpdate by which an update is the new
// data.
func Replace(_ wire.ComponentID, _ []byte, updates [][]byte) ([]byte, error) {
	return updates[len(updates)-1], nil
}

// Credential is the client's basic credential.
func (c *Client) Credential() wire.Credential { return wire.BasicCredential([]byte(c.Name)) }

// KeyPackage makes a key package that is valid for a year around now and keeps
// its bundle.
func (c *Client) KeyPackage(now time.Time) *mls.KeyPackageBundle {
	c.t.Helper()
	b, err := mls.NewKeyPackage(mls.KeyPackageParams{
		CipherSuite: c.Suite.ID(), Random: c.random, Signer: c.Signer, Credential: c.Credential(),
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(365 * 24 * time.Hour),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.Bundles = append(c.Bundles, b)
	return b
}

// Leaf is the leaf with which the client creates groups.
func (c *Client) Leaf(now time.Time) mls.CreatorLeaf {
	return mls.CreatorLeaf{
		Signer: c.Signer, Credential: c.Credential(),
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(365 * 24 * time.Hour),
	}
}

// Create makes a group of this client alone.
func (c *Client) Create(now time.Time, groupID []byte, extensions wire.Extensions) {
	c.t.Helper()
	step, err := c.Config.Create(mls.CreateParams{
		Random: c.random, Now: now, CipherSuite: c.Suite.ID(), GroupID: groupID, Extensions: extensions, Leaf: c.Leaf(now),
	})
	if err != nil {
		c.t.Fatalf("%s: %v", c.Name, err)
	}
	c.enter(*step)
}

// Join enters a group by Welcome, with the tree beside it or in it.
func (c *Client) Join(now time.Time, welcome, tree []byte) {
	c.t.Helper()
	joined, err := c.Config.Join(mls.JoinParams{Welcome: welcome, Bundles: c.Bundles, Tree: tree, Now: now})
	if err != nil {
		c.t.Fatalf("%s: join: %v", c.Name, err)
	}
	c.enter(joined.Step)
}

// enter begins a group.
func (c *Client) enter(s mls.Step) {
	c.Store = map[string][]byte{}
	c.Take(s)
}

// Take takes a step: stores its delta, forgets what it consumed and goes on.
func (c *Client) Take(s mls.Step) {
	s.Delta.ApplyTo(c.Store)
	s.Forget()
	c.Group = s.Next
}

// Process takes a message and the step it gives. Errors are returned.
func (c *Client) Process(now time.Time, message []byte) (mls.Received, error) {
	r, err := c.Group.Process(message, mls.ProcessParams{Now: now})
	if err != nil {
		return nil, err
	}
	switch r := r.(type) {
	case *mls.Application:
		c.Take(r.Step)
	case *mls.ProposalReceived:
		c.Take(r.Step)
	case *mls.StagedCommit:
		c.Take(r.Step)
	default:
		return nil, fmt.Errorf("mlstest: %T is no result of Process", r)
	}
	return r, nil
}

// Seal encrypts a message of the client.
func (c *Client) Seal(content string) []byte {
	c.t.Helper()
	sealed, err := c.Group.Seal(mls.SealParams{Random: c.random, Content: []byte(content), PadTo: 64, IgnoreProposals: true})
	if err != nil {
		c.t.Fatalf("%s: seal: %v", c.Name, err)
	}
	c.Take(sealed.Step)
	return sealed.Message
}

// Records is what the client stored, in the order of the keys.
func (c *Client) Records() []mls.Record {
	records := make([]mls.Record, 0, len(c.Store))
	for key, value := range c.Store {
		records = append(records, mls.Record{Key: key, Value: value})
	}
	return records
}

// Restart drops the group from memory and loads it from the store. The loaded
// group must be the one that was dropped.
func (c *Client) Restart() {
	c.t.Helper()
	loaded, err := c.Config.Load(c.Records())
	if err != nil {
		c.t.Fatalf("%s: load: %v", c.Name, err)
	}
	if d := Diff(c.Group, loaded); d != "" {
		c.t.Fatalf("%s: the loaded group is not the one that was stored: %s", c.Name, d)
	}
	c.Group = loaded
}

// Copy is an independent copy of the client, loaded from its store.
func (c *Client) Copy() *Client {
	c.t.Helper()
	d := *c
	d.Store = map[string][]byte{}
	for key, value := range c.Store {
		d.Store[key] = append([]byte(nil), value...)
	}
	d.PSKs = maps.Clone(c.PSKs)
	d.Group = nil
	loaded, err := c.Config.Load(d.Records())
	if err != nil {
		c.t.Fatalf("%s: copy: %v", c.Name, err)
	}
	d.Group = loaded
	return &d
}

// State is the whole state of a group as bytes, to see whether it changed.
func State(g *mls.Group) []byte { return mls.MarshalRecords(g.Records()) }

// Remove is the list of proposals that removes clients.
func Remove(clients ...*Client) []wire.Proposal {
	var list []wire.Proposal
	for _, c := range clients {
		list = append(list, mls.RemoveProposal(c.Group.OwnLeaf()))
	}
	return list
}

// Diff names the records in which two groups differ, "" when there are none.
func Diff(a, b *mls.Group) string {
	have := map[string][]byte{}
	for _, r := range a.Records() {
		have[r.Key] = r.Value
	}
	var out []string
	for _, r := range b.Records() {
		if value, found := have[r.Key]; !found {
			out = append(out, "+"+r.Key)
		} else if !bytes.Equal(value, r.Value) {
			out = append(out, "!"+r.Key)
		}
		delete(have, r.Key)
	}
	for key := range have {
		out = append(out, "-"+key)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
