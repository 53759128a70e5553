package mls_test

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// person is a client of the examples: a configuration, and the rows in which its
// group is stored.
type person struct {
	name   string
	config *mls.Config
	signer *suite.SignatureKey
	group  *mls.Group
	rows   map[string][]byte
}

func newPerson(name string) *person {
	cs, err := suite.Lookup(suite.X25519AES128GCMSHA256Ed25519)
	if err != nil {
		panic(err)
	}
	signer, err := cs.GenerateSignatureKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return &person{
		name: name, signer: signer, rows: map[string][]byte{},
		config: &mls.Config{Signers: []*suite.SignatureKey{signer}},
	}
}

// take stores a step, wipes what it consumed and goes on with the next group.
func (p *person) take(step mls.Step) {
	step.Delta.ApplyTo(p.rows) // durable before anything leaves the device
	step.Forget()
	p.group = step.Next
}

func (p *person) keyPackage(now time.Time) *mls.KeyPackageBundle {
	bundle, err := mls.NewKeyPackage(mls.KeyPackageParams{
		CipherSuite: suite.X25519AES128GCMSHA256Ed25519, Random: rand.Reader,
		Signer: p.signer, Credential: wire.BasicCredential([]byte(p.name)),
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(30 * 24 * time.Hour),
	})
	if err != nil {
		panic(err)
	}
	return bundle
}

func (p *person) create(now time.Time) {
	step, err := p.config.Create(mls.CreateParams{
		Random: rand.Reader, Now: now, CipherSuite: suite.X25519AES128GCMSHA256Ed25519,
		Leaf: mls.CreatorLeaf{
			Signer: p.signer, Credential: wire.BasicCredential([]byte(p.name)),
			NotBefore: now.Add(-time.Hour), NotAfter: now.Add(30 * 24 * time.Hour),
		},
	})
	if err != nil {
		panic(err)
	}
	p.take(*step)
}

// Two people: one creates a group and adds the other, who writes.
func Example() {
	now := time.Unix(1_800_000_000, 0)
	ada, bob := newPerson("ada"), newPerson("bob")
	bundle := bob.keyPackage(now) // its public half is published
	ada.create(now)

	// Ada makes the commit and stores it before she sends it.
	commit, err := ada.group.Commit(mls.CommitParams{
		Random: rand.Reader, Now: now, Proposals: []wire.Proposal{mls.AddProposal(&bundle.KeyPackage)},
	})
	if err != nil {
		panic(err)
	}
	ada.take(*commit.Keep())
	// The delivery service accepted commit.Message: it comes back to Ada, and the
	// Welcome goes to Bob.
	received, err := ada.group.Process(commit.Message, mls.ProcessParams{Now: now})
	if err != nil {
		panic(err)
	}
	staged := received.(*mls.StagedCommit)
	fmt.Printf("own commit: %v, added: %s\n", staged.Own, staged.Added[0].Node.Credential.Identity)
	ada.take(staged.Step)

	joined, err := bob.config.Join(mls.JoinParams{
		Welcome: commit.Welcome, Bundles: []*mls.KeyPackageBundle{bundle}, Tree: ada.group.RatchetTree(), Now: now,
	})
	if err != nil {
		panic(err)
	}
	bob.take(joined.Step)

	sealed, err := bob.group.Seal(mls.SealParams{Random: rand.Reader, Content: []byte("hello Ada"), PadTo: 128})
	if err != nil {
		panic(err)
	}
	bob.take(sealed.Step)

	received, err = ada.group.Process(sealed.Message, mls.ProcessParams{Now: now})
	if err != nil {
		panic(err)
	}
	message := received.(*mls.Application)
	ada.take(message.Step)
	fmt.Printf("%s in epoch %d: %s\n", message.Sender.Node.Credential.Identity, message.Epoch, message.Content)
	fmt.Println("same epoch:", ada.group.EpochAuthenticator().Equal(bob.group.EpochAuthenticator()))
	// Output:
	// own commit: true, added: bob
	// bob in epoch 1: hello Ada
	// same epoch: true
}

// A group is loaded from the rows that its deltas wrote.
func ExampleConfig_Load() {
	now := time.Unix(1_800_000_000, 0)
	ada := newPerson("ada")
	ada.create(now)
	var records []mls.Record
	for key, value := range ada.rows {
		records = append(records, mls.Record{Key: key, Value: value})
	}
	group, err := ada.config.Load(records)
	if err != nil {
		panic(err)
	}
	fmt.Println(group.Epoch(), len(group.Members()))
	// Output: 0 1
}

// A client that knows a GroupInfo enters by itself.
func ExampleConfig_ExternalJoin() {
	now := time.Unix(1_800_000_000, 0)
	ada, eve := newPerson("ada"), newPerson("eve")
	ada.create(now)
	info, err := ada.group.GroupInfo(false, nil)
	if err != nil {
		panic(err)
	}
	commit, err := eve.config.ExternalJoin(mls.ExternalJoinParams{
		Random: rand.Reader, Now: now, GroupInfo: info, Tree: ada.group.RatchetTree(),
		Signer: eve.signer, Credential: wire.BasicCredential([]byte("eve")),
	})
	if err != nil {
		panic(err)
	}
	received, err := ada.group.Process(commit.Message, mls.ProcessParams{Now: now})
	if err != nil {
		panic(err)
	}
	staged := received.(*mls.StagedCommit)
	fmt.Printf("external: %v, who: %s\n", staged.External, staged.Committer.Node.Credential.Identity)
	ada.take(staged.Step)
	applied, err := commit.Apply(nil, now)
	if err != nil {
		panic(err)
	}
	eve.take(applied.Step)
	fmt.Println("same epoch:", ada.group.EpochAuthenticator().Equal(eve.group.EpochAuthenticator()))
	// Output:
	// external: true, who: eve
	// same epoch: true
}

// Proposals are sent on their own, held by everybody and committed by somebody.
func ExampleGroup_Propose() {
	now := time.Unix(1_800_000_000, 0)
	ada, bob := newPerson("ada"), newPerson("bob")
	ada.create(now)
	bundle := bob.keyPackage(now)
	proposed, err := ada.group.Propose(mls.ProposeParams{Now: now, Proposal: mls.AddProposal(&bundle.KeyPackage)})
	if err != nil {
		panic(err)
	}
	ada.take(proposed.Step)
	_, err = ada.group.Seal(mls.SealParams{Random: rand.Reader, Content: []byte("too early")})
	fmt.Println(err)
	commit, err := ada.group.Commit(mls.CommitParams{Random: rand.Reader, Now: now})
	if err != nil {
		panic(err)
	}
	applied, err := commit.Apply(ada.group, now)
	if err != nil {
		panic(err)
	}
	ada.take(applied.Step)
	fmt.Println("members:", len(ada.group.Members()))
	// Output:
	// mls: proposals must be committed first
	// members: 2
}
