package mls

import (
	"slices"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// epochStart is the key schedule of a new epoch while its commit is made or
// checked: what the Welcome and the confirmation tag need.
type epochStart struct {
	joiner Secret // joiner_secret
	member Secret // see memberSecret
	keys   epochKeys
	tag    wire.MAC // confirmation_tag
}

// startEpoch runs the key schedule (RFC 9420 Figure 22). context is the encoded
// GroupContext of the new epoch, confirmed its confirmed_transcript_hash. The
// pre-shared keys are wiped.
func startEpoch(cs *suite.Suite, init, commit Secret, psks []pskInput, context, confirmed []byte) (*epochStart, error) {
	defer wipePSKs(psks)
	psk, err := pskSecret(cs, psks)
	if err != nil {
		return nil, err
	}
	defer psk.Wipe()
	s := &epochStart{joiner: joinerSecret(cs, init, commit, context)}
	s.member = memberSecret(cs, s.joiner, psk)
	s.keys = deriveEpoch(cs, s.member, context)
	s.tag = cs.MAC(s.keys.confirmation, confirmed)
	return s, nil
}

// wipe wipes what the epoch itself does not need.
func (s *epochStart) wipe() {
	s.joiner.Wipe()
	s.member.Wipe()
}

// nextEpoch is what a commit leads to for a member that stays.
type nextEpoch struct {
	public  *follower.Group
	leaf    tree.LeafIndex
	signer  *suite.SignatureKey
	keys    epochKeys
	private privateKeys
	dropped []wiper // private keys that the next epoch does not use
	reinit  *wire.ReInit
	now     time.Time
}

// enter gives the group in the next epoch and what that changes in the store.
func (g *Group) enter(n nextEpoch) Step {
	next := &Group{
		config:   g.config,
		cs:       g.cs,
		public:   n.public,
		leaf:     n.leaf,
		signer:   n.signer,
		keys:     n.keys.epochSecrets,
		messages: newSecretTree(n.keys.encryption, n.public.Tree().Width()),
		exporter: newExporterTree(n.keys.applicationExport),
		private:  n.private,
	}
	if n.reinit != nil {
		next.status, next.reinit = statusReInit, n.reinit
	}
	step := Step{Next: next}
	step.forgets(n.dropped...)
	for _, key := range g.updates {
		if next.private[next.leaf.Node()] != key {
			step.forgets(key)
		}
	}
	// The secrets of the old epoch that nothing needs any more; past messages
	// need sender_data_secret, PSKs of past epochs the resumption_psk.
	for _, s := range []Secret{g.keys.exporter, g.keys.external, g.keys.confirmation, g.keys.membership, g.keys.authenticator, g.keys.init} {
		step.forgets(s)
	}
	g.exporter.asSecretTree().walk(func(_ uint32, n *secretNode) { step.forgets(n.secret) })
	g.keepPast(&step, n.now)
	g.keepResumption(&step)
	g.storeEpoch(&step)
	return step
}

// keepPast makes the epoch that ends a past one and lets go of those that are
// too old or too many.
func (g *Group) keepPast(step *Step, now time.Time) {
	next := step.Next
	ended := &pastEpoch{public: g.public, leaf: g.leaf, senderData: g.keys.senderData, messages: g.messages, ended: now}
	limit := g.config.pastEpochs()
	for i, p := range append([]*pastEpoch{ended}, g.past...) {
		if i < limit && now.Sub(p.ended) <= g.config.pastEpochAge() {
			next.past = append(next.past, p)
			continue
		}
		step.forgets(p.senderData)
		p.messages.walk(func(_ uint32, n *secretNode) { step.forgets(n) })
		if p != ended {
			step.Delta.drop(epochKey(prefixPast, p.epoch()))
		}
		dropSecretTree(&step.Delta, p.epoch(), p.messages)
	}
	if slices.Contains(next.past, ended) {
		step.Delta.put(epochKey(prefixPast, ended.epoch()), ended.append(nil))
	}
}

// keepResumption keeps the resumption_psk of the epoch that ends.
func (g *Group) keepResumption(step *Step) {
	limit := g.config.resumptionEpochs()
	all := append([]resumptionPSK{{epoch: g.Epoch(), secret: g.keys.resumption}}, g.resumption...)
	for i, r := range all {
		if i < limit {
			continue
		}
		step.forgets(r.secret)
		if i > 0 {
			step.Delta.drop(epochKey(prefixResumption, r.epoch))
		}
	}
	step.Next.resumption = all[:min(limit, len(all))]
	if limit > 0 {
		step.Delta.put(epochKey(prefixResumption, g.Epoch()), g.keys.resumption)
	}
}
