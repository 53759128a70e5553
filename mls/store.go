package mls

import (
	"fmt"
	"sort"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

func proposalKey(n int) string              { return fmt.Sprintf("%s%08x", prefixProposal, n) }
func updateKey(ref wire.ProposalRef) string { return fmt.Sprintf("%s%x", prefixUpdate, []byte(ref)) }
func ownKey(hash [32]byte) string           { return fmt.Sprintf("%s%x", prefixOwn, hash[:]) }

// treeBase says how the public state is stored: a base at some epoch and one
// change for every epoch after it, so that a commit never rewrites the tree.
type treeBase struct {
	epoch uint64 // of the base
	size  int    // of the base, in bytes
	added int    // of the changes after it, in bytes
}

// rebaseAbove is the size of changes, in bytes, from which on a new base is
// written when they outgrow the base: two pages of a database, so that a group of
// ten does not replay a hundred changes when it is loaded.
const rebaseAbove = 8 << 10

// storePublic writes the change from one epoch to the next or, now and then, a
// new base at the oldest epoch that is still needed.
func (g *Group) storePublic(d *Delta, before *follower.Group) {
	change := g.public.AppendDelta(nil, before)
	g.base.added += len(change)
	d.put(epochKey(prefixTree, g.Epoch()), change)
	if g.base.added <= max(g.base.size, rebaseAbove) {
		return
	}
	oldest := g.public
	if len(g.past) > 0 {
		oldest = g.past[len(g.past)-1].public
	}
	if oldest.Epoch() == g.base.epoch {
		return
	}
	for epoch := g.base.epoch + 1; epoch <= oldest.Epoch(); epoch++ {
		d.drop(epochKey(prefixTree, epoch))
	}
	g.writeBase(d, oldest)
	g.base.added = 0
	states := []*follower.Group{g.public}
	for _, p := range g.past {
		states = append(states, p.public)
	}
	for i := len(states) - 1; i > 0; i-- {
		g.base.added += len(states[i-1].AppendDelta(nil, states[i]))
	}
}

func (g *Group) writeBase(d *Delta, at *follower.Group) {
	body := at.Marshal()
	g.base = treeBase{epoch: at.Epoch(), size: len(body)}
	d.put(keyTreeBase, body)
}

// appendCore encodes what a group keeps of its current epoch beside the public
// state and the secret tree.
func (g *Group) appendCore(b []byte) []byte {
	b = wire.AppendUint8(b, uint8(g.status))
	b = wire.AppendUint16(b, uint16(g.cs.ID()))
	b = wire.AppendUint32(b, uint32(g.leaf))
	b = wire.AppendUint64(b, g.Epoch())
	var public wire.SignaturePublicKey
	if g.status != statusRemoved {
		public = g.signer.Public()
	}
	b = wire.AppendOpaque(b, public)
	for _, s := range g.keys.all() {
		b = wire.AppendOpaque(b, *s)
	}
	nodes := make([]tree.NodeIndex, 0, len(g.private))
	for n := range g.private {
		nodes = append(nodes, n)
	}
	sort.Slice(nodes, func(i, j int) bool { return nodes[i] < nodes[j] })
	b, mark := wire.OpenVector(b)
	for _, n := range nodes {
		b = wire.AppendUint32(b, uint32(n))
		b = wire.AppendOpaque(b, g.private[n].Bytes())
	}
	b = wire.CloseVector(b, mark)
	return wire.AppendOptional(b, g.reinit)
}

// append encodes a past epoch.
func (p *pastEpoch) append(b []byte) []byte {
	b = wire.AppendUint32(b, uint32(p.leaf))
	b = wire.AppendUint64(b, uint64(p.ended.UnixMilli()))
	return wire.AppendOpaque(b, p.senderData)
}

// storeEpoch writes what entering an epoch changes. g is the group before.
func (g *Group) storeEpoch(step *Step) {
	d, next := &step.Delta, step.Next
	next.base = g.base
	next.storePublic(d, g.public)
	d.put(keyCore, next.appendCore(nil))
	storeSecretTree(d, next.Epoch(), next.messages)
	next.storeExporter(d, g.exporter)
	g.dropHandshakes(step)
	d.sort()
}

// storeExporter replaces the stored exporter tree of the epoch before.
func (g *Group) storeExporter(d *Delta, before *exporterTree) {
	if before != nil {
		before.asSecretTree().walk(func(index uint32, n *secretNode) {
			if index != exporterRoot {
				d.drop(exportKey(index))
			}
		})
	}
	g.exporter.asSecretTree().walk(func(index uint32, n *secretNode) { d.put(exportKey(index), n.secret) })
}

func exportKey(index uint32) string { return fmt.Sprintf("%s%08x", prefixExport, index) }

// Records gives the whole stored state of the group: what all deltas since its
// first step amount to, except that the public state is written afresh.
func (g *Group) Records() []Record {
	var d Delta
	states := []*follower.Group{g.public}
	if g.status == statusRemoved && len(g.past) > 0 {
		states = nil // it is the newest of the past ones
	}
	for _, p := range g.past {
		states = append(states, p.public)
		d.put(epochKey(prefixPast, p.epoch()), p.append(nil))
		storeSecretTree(&d, p.epoch(), p.messages)
	}
	d.put(keyTreeBase, states[len(states)-1].Marshal())
	for i := len(states) - 1; i > 0; i-- {
		d.put(epochKey(prefixTree, states[i-1].Epoch()), states[i-1].AppendDelta(nil, states[i]))
	}
	d.put(keyCore, g.appendCore(nil))
	if g.status == statusRemoved {
		d.sort()
		return d.Put
	}
	for ref, key := range g.updates {
		d.put(updateKey(wire.ProposalRef(ref)), key.Bytes())
	}
	for hash, own := range g.own {
		d.put(ownKey(hash), own.append(nil))
	}
	storeSecretTree(&d, g.Epoch(), g.messages)
	g.storeExporter(&d, nil)
	for i, p := range g.public.Proposals() {
		d.put(proposalKey(i), wire.Marshal(p.Content))
	}
	for _, r := range g.resumption {
		d.put(epochKey(prefixResumption, r.epoch), r.secret)
	}
	d.sort()
	return d.Put
}
