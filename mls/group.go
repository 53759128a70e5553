package mls

import (
	"fmt"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// Config is what a group needs beside its state: keys that are kept elsewhere,
// the application's judgement and bounds. One Config can serve many groups; it
// must not be changed while a group uses it.
type Config struct {
	// Signers are the signature keys this client holds. A group uses the one
	// whose public half is in its leaf.
	Signers []*suite.SignatureKey
	// Credentials judges every credential that comes in (RFC 9420 Section
	// 5.3.1). Servers use the same. Nil accepts all.
	Credentials tree.CredentialValidator
	// AppData is the meaning of AppDataUpdates (draft-ietf-mls-extensions Section
	// 4.7): it gives a component's new data from the old (nil for none) and the
	// updates of one commit in order, or an error to refuse the commit. Nil knows
	// no component.
	AppData func(component wire.ComponentID, old []byte, updates [][]byte) ([]byte, error)
	// MaxLifetime bounds the lifetime of key packages; zero sets no bound.
	MaxLifetime time.Duration
	// KeyPackages remembers which key packages were verified already; nil
	// verifies each time.
	KeyPackages *follower.KeyPackageCache
	// SameClient decides whether two leaves, in different groups, are of one
	// client, for ReInit and branch. Nil compares the credentials.
	SameClient func(a, b *wire.LeafNode) bool
	// PSKs gives external pre-shared keys; nil means there are none.
	PSKs PSKStore
	// Limits bounds work and memory per sender.
	Limits Limits
	// PastEpochs is how many past epochs' messages can still be opened. Zero
	// means 4, a negative number none.
	PastEpochs int
	// PastEpochAge is how long after its end a past epoch is kept at most. Zero
	// means 7 days.
	PastEpochAge time.Duration
	// ResumptionEpochs is for how many past epochs the resumption PSK is kept
	// (RFC 9420 Section 8.6). Zero means 32, a negative number none.
	ResumptionEpochs int
}

func (c *Config) pastEpochs() int       { return orDefault(c.PastEpochs, 4) }
func (c *Config) resumptionEpochs() int { return orDefault(c.ResumptionEpochs, 32) }

func (c *Config) pastEpochAge() time.Duration {
	if c.PastEpochAge == 0 {
		return 7 * 24 * time.Hour
	}
	return c.PastEpochAge
}

func orDefault(n, standard int) int {
	switch {
	case n == 0:
		return standard
	case n < 0:
		return 0
	}
	return n
}

// signer finds the signer for a leaf's signature key.
func (c *Config) signer(public wire.SignaturePublicKey) (*suite.SignatureKey, error) {
	for _, s := range c.Signers {
		if string(s.Public()) == string(public) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w: none of the %d signers has the leaf's signature key", ErrParams, len(c.Signers))
}

// status says what a group can still do.
type status uint8

const (
	statusActive  status = iota // everything
	statusRemoved               // this client was removed: open past messages only
	statusReInit                // a ReInit closed the group: its last epoch can be read
)

// Group is one client's view of one epoch of a group: an immutable value, safe
// for concurrent use. See the package documentation for how it moves on.
type Group struct {
	config *Config
	cs     *suite.Suite
	status status

	public *follower.Group // context, tree, transcript: what a server has too
	leaf   tree.LeafIndex  // own
	signer *suite.SignatureKey

	keys     epochSecrets
	messages *secretTree
	exporter *exporterTree
	private  privateKeys

	// updates are the private keys of Update proposals of our own, by
	// ProposalRef; own are our commits of this epoch, by SHA-256 of the message.
	updates map[string]*hpke.PrivateKey
	own     map[[32]byte]*ownCommit

	// past are past epochs, newest first; resumption are their PSKs.
	past       []*pastEpoch
	resumption []resumptionPSK

	base   treeBase     // what of the public state is stored
	reinit *wire.ReInit // set when a ReInit closed the group
	// outside marks the view of somebody who is about to join by external commit:
	// public state without secrets and without a leaf.
	outside bool
}

// pastEpoch is what is kept of an epoch that is over: enough to open its late
// application messages with its own keys and credentials (RFC 9420 Section
// 15.3).
type pastEpoch struct {
	public     *follower.Group
	leaf       tree.LeafIndex
	senderData Secret
	messages   *secretTree
	ended      time.Time
}

func (p *pastEpoch) epoch() uint64 { return p.public.Epoch() }

// resumptionPSK is the resumption_psk of a past epoch (RFC 9420 Section 8.6).
type resumptionPSK struct {
	epoch  uint64
	secret Secret
}
