package mls

import (
	"encoding/hex"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// Load reads a group from its stored records, in any order. It checks the
// integrity of every record, that none is missing, that the private keys belong
// to the public ones in the tree, and that a configured signer has the leaf's
// key. Errors wrap ErrState or ErrParams.
func (c *Config) Load(records []Record) (*Group, error) {
	l := loader{bodies: make(map[string][]byte, len(records)), trees: secretTrees{}, changes: map[uint64][]byte{}}
	for _, r := range records {
		if err := l.add(r); err != nil {
			return nil, err
		}
	}
	return l.group(c)
}

// loader sorts records by what they are.
type loader struct {
	bodies  map[string][]byte
	trees   secretTrees
	changes map[uint64][]byte // of the public state, by epoch
}

func (l *loader) add(r Record) error {
	body, err := openRecord(r)
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(r.Key, prefixNode), strings.HasPrefix(r.Key, prefixLeaf):
		return l.trees.add(r, body)
	case strings.HasPrefix(r.Key, prefixTree):
		epoch, err := strconv.ParseUint(strings.TrimPrefix(r.Key, prefixTree), 16, 64)
		if err != nil {
			return fmt.Errorf("%w: record %q is out of place", ErrState, r.Key)
		}
		l.changes[epoch] = body
		return nil
	}
	l.bodies[r.Key] = body
	return nil
}

// withPrefix gives the records of a kind, sorted by key.
func (l *loader) withPrefix(prefix string) []string {
	var keys []string
	for key := range l.bodies {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	return keys
}

func (l *loader) group(c *Config) (*Group, error) {
	core, ok := l.bodies[keyCore]
	if !ok {
		return nil, fmt.Errorf("%w: record %q is missing", ErrState, keyCore)
	}
	g := &Group{config: c}
	epoch, err := g.readCore(core)
	if err != nil {
		return nil, err
	}
	states, err := l.public(g, epoch)
	if err != nil {
		return nil, err
	}
	if err := l.pastEpochs(g, states); err != nil {
		return nil, err
	}
	if g.status == statusRemoved {
		if len(g.past) > 0 && g.past[0].epoch() != epoch {
			return nil, fmt.Errorf("%w: the last epoch before the removal is missing", ErrState)
		}
		return g, nil
	}
	for _, key := range l.withPrefix(prefixResumption) {
		e, err := strconv.ParseUint(strings.TrimPrefix(key, prefixResumption), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: record %q is out of place", ErrState, key)
		}
		g.resumption = append([]resumptionPSK{{epoch: e, secret: l.bodies[key]}}, g.resumption...)
	}
	if g.messages, err = l.trees.build(epoch, g.public.Tree().Width()); err != nil {
		return nil, err
	}
	if err := l.exporterTree(g); err != nil {
		return nil, err
	}
	if err := l.handshakes(g); err != nil {
		return nil, err
	}
	return g, g.checkKeys()
}

// readCore reads what appendCore wrote; it gives the epoch.
func (g *Group) readCore(body []byte) (epoch uint64, err error) {
	r := wire.NewReader(body)
	g.status = status(r.Uint8())
	id := wire.CipherSuite(r.Uint16())
	g.leaf = tree.LeafIndex(r.Uint32())
	epoch = r.Uint64()
	public := wire.SignaturePublicKey(r.Opaque())
	for _, s := range g.keys.all() {
		*s = r.Opaque()
	}
	if g.cs, err = suite.Lookup(id); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrState, err)
	}
	g.private = privateKeys{}
	outer := r.EnterVector()
	for r.More() {
		node, secret := tree.NodeIndex(r.Uint32()), r.Opaque()
		if r.Err() != nil {
			break
		}
		key, err := hpke.NewPrivateKey(g.cs, secret)
		if err != nil {
			return 0, fmt.Errorf("%w: private key of node %d: %w", ErrState, node, err)
		}
		g.private[node] = key
	}
	r.LeaveVector(outer)
	g.reinit = wire.ReadOptional[wire.ReInit](r)
	if err := r.Finish(); err != nil {
		return 0, fmt.Errorf("%w: record %q: %w", ErrState, keyCore, err)
	}
	if g.status > statusReInit {
		return 0, fmt.Errorf("%w: record %q: status %d", ErrState, keyCore, g.status)
	}
	if g.status != statusRemoved {
		g.signer, err = g.config.signer(public)
	}
	return epoch, err
}

// public rebuilds the public states from the base to the current epoch.
func (l *loader) public(g *Group, epoch uint64) (map[uint64]*follower.Group, error) {
	base, ok := l.bodies[keyTreeBase]
	if !ok {
		return nil, fmt.Errorf("%w: record %q is missing", ErrState, keyTreeBase)
	}
	at, err := follower.Unmarshal(base)
	if err != nil {
		return nil, fmt.Errorf("%w: record %q: %w", ErrState, keyTreeBase, err)
	}
	g.base = treeBase{epoch: at.Epoch(), size: len(base)}
	states := map[uint64]*follower.Group{at.Epoch(): at}
	for at.Epoch() < epoch {
		key := epochKey(prefixTree, at.Epoch()+1)
		change, ok := l.changes[at.Epoch()+1]
		if !ok {
			return nil, fmt.Errorf("%w: record %q is missing", ErrState, key)
		}
		next, err := at.ApplyDelta(change)
		if err != nil {
			return nil, fmt.Errorf("%w: record %q: %w", ErrState, key, err)
		}
		if next.Epoch() != at.Epoch()+1 {
			return nil, fmt.Errorf("%w: record %q leads to epoch %d", ErrState, key, next.Epoch())
		}
		g.base.added += len(change)
		at = next
		states[at.Epoch()] = at
	}
	if at.Epoch() != epoch {
		return nil, fmt.Errorf("%w: record %q is of epoch %d, the group of %d", ErrState, keyTreeBase, at.Epoch(), epoch)
	}
	g.public = at
	return states, nil
}

func (l *loader) pastEpochs(g *Group, states map[uint64]*follower.Group) error {
	for _, key := range l.withPrefix(prefixPast) {
		epoch, err := strconv.ParseUint(strings.TrimPrefix(key, prefixPast), 16, 64)
		if err != nil || states[epoch] == nil {
			return fmt.Errorf("%w: record %q is of no known epoch", ErrState, key)
		}
		r := wire.NewReader(l.bodies[key])
		p := &pastEpoch{
			public: states[epoch], leaf: tree.LeafIndex(r.Uint32()),
			ended: time.UnixMilli(int64(r.Uint64())), senderData: r.Opaque(),
		}
		if err := r.Finish(); err != nil {
			return fmt.Errorf("%w: record %q: %w", ErrState, key, err)
		}
		if p.messages, err = l.trees.build(epoch, p.public.Tree().Width()); err != nil {
			return err
		}
		g.past = append([]*pastEpoch{p}, g.past...)
	}
	return nil
}

func (l *loader) exporterTree(g *Group) error {
	t := &secretTree{width: 1 << 16, root: &secretNode{}}
	for _, key := range l.withPrefix(prefixExport) {
		index, err := strconv.ParseUint(strings.TrimPrefix(key, prefixExport), 16, 32)
		if err != nil || !t.insert(uint32(index), &secretNode{secret: l.bodies[key]}) {
			return fmt.Errorf("%w: record %q is out of place", ErrState, key)
		}
	}
	g.exporter = &exporterTree{root: t.root}
	return nil
}

// handshakes reads held proposals, the keys of our own updates and our own
// commits.
func (l *loader) handshakes(g *Group) error {
	for _, key := range l.withPrefix(prefixProposal) {
		ac := new(wire.AuthenticatedContent)
		if err := wire.Unmarshal(l.bodies[key], ac); err != nil {
			return fmt.Errorf("%w: record %q: %w", ErrState, key, err)
		}
		g.public = g.public.Restore(ac)
	}
	for _, key := range l.withPrefix(prefixUpdate) {
		private, err := hpke.NewPrivateKey(g.cs, l.bodies[key])
		if err != nil {
			return fmt.Errorf("%w: record %q: %w", ErrState, key, err)
		}
		ref, err := hexSuffix(key, prefixUpdate)
		if err != nil {
			return err
		}
		g.updates = withEntry(g.updates, string(ref), private)
	}
	for _, key := range l.withPrefix(prefixOwn) {
		hash, err := hexSuffix(key, prefixOwn)
		if err != nil {
			return err
		}
		own, err := readOwnCommit(g.cs, l.bodies[key])
		if err != nil || len(hash) != 32 {
			return fmt.Errorf("%w: record %q: %w", ErrState, key, err)
		}
		g.own = withEntry(g.own, [32]byte(hash), own)
	}
	return nil
}

// checkKeys checks that every private key is the one of its node.
func (g *Group) checkKeys() error {
	if g.public.Leaf(g.leaf) == nil || string(g.public.Leaf(g.leaf).SignatureKey) != string(g.signer.Public()) {
		return fmt.Errorf("%w: the leaf %d is not this client's", ErrState, g.leaf)
	}
	if g.private[g.leaf.Node()] == nil {
		return fmt.Errorf("%w: the private key of the leaf is missing", ErrState)
	}
	for node, key := range g.private {
		if string(key.Public()) != string(g.public.Tree().PublicKey(node)) {
			return fmt.Errorf("%w: the private key of node %d is not that of its public key", ErrState, node)
		}
	}
	return nil
}

func hexSuffix(key, prefix string) ([]byte, error) {
	b, err := hex.DecodeString(strings.TrimPrefix(key, prefix))
	if err != nil {
		return nil, fmt.Errorf("%w: record %q is out of place", ErrState, key)
	}
	return b, nil
}
