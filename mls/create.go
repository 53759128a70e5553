package mls

import (
	"fmt"
	"io"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// CreatorLeaf makes the leaf of a group's creator.
type CreatorLeaf struct {
	Signer     *suite.SignatureKey
	Credential wire.Credential
	// Capabilities, when zero, are DefaultCapabilities with GREASE.
	Capabilities wire.Capabilities
	Extensions   wire.Extensions
	// NotBefore and NotAfter bound the leaf's lifetime.
	NotBefore, NotAfter time.Time
}

// CreateParams is a new group.
type CreateParams struct {
	Random      io.Reader
	Now         time.Time
	CipherSuite wire.CipherSuite
	// GroupID names the group; it should be unique without anybody's help. Empty
	// means random, KDF.Nh bytes.
	GroupID []byte
	// Extensions are the GroupContext's.
	Extensions wire.Extensions
	Leaf       CreatorLeaf
}

// Create makes a group of one (RFC 9420 Section 11), in epoch 0. Add others by
// [Group.Commit].
func (c *Config) Create(p CreateParams) (*Step, error) {
	cs, err := suite.Lookup(p.CipherSuite)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParams, err)
	}
	if len(p.GroupID) == 0 {
		id, err := randomSecret(cs, p.Random)
		if err != nil {
			return nil, err
		}
		p.GroupID = id
	}
	leaf, leafKey, err := newLeaf(cs, &KeyPackageParams{
		Random: p.Random, Signer: p.Leaf.Signer, Credential: p.Leaf.Credential,
		Capabilities: p.Leaf.Capabilities, NotBefore: p.Leaf.NotBefore, NotAfter: p.Leaf.NotAfter,
		LeafExtensions: p.Leaf.Extensions,
	})
	if err != nil {
		return nil, err
	}
	epoch, err := randomSecret(cs, p.Random)
	if err != nil {
		return nil, err
	}
	defer epoch.Wipe()
	keys := deriveFromEpochSecret(cs, epoch)
	tag := cs.MAC(keys.confirmation, nil)
	public, err := follower.Create(cs, p.GroupID, p.Extensions, leaf, tag, c.options(p.Now))
	if err != nil {
		return nil, err
	}
	g := newGroup(c, cs, public, 0, p.Leaf.Signer, keys, privateKeys{tree.LeafIndex(0).Node(): leafKey})
	step := g.born()
	return &step, nil
}

// newGroup is a group as it begins for a client.
func newGroup(c *Config, cs *suite.Suite, public *follower.Group, leaf tree.LeafIndex, signer *suite.SignatureKey, keys epochKeys, private privateKeys) *Group {
	return &Group{
		config: c, cs: cs, public: public, leaf: leaf, signer: signer,
		keys:     keys.epochSecrets,
		messages: newSecretTree(keys.encryption, public.Tree().Width()),
		exporter: newExporterTree(keys.applicationExport),
		private:  private,
	}
}

// born gives the step by which a whole group is stored for the first time.
func (g *Group) born() Step {
	next := *g
	step := Step{Next: &next}
	next.writeBase(&step.Delta, next.public)
	step.Delta.put(keyCore, next.appendCore(nil))
	storeSecretTree(&step.Delta, next.Epoch(), next.messages)
	next.storeExporter(&step.Delta, nil)
	step.Delta.sort()
	return step
}
