package mls

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// Load reads a group from its stored records, in any order, and keeps none of their
// memory. It checks the integrity of every record, that none is missing, that the
// secrets of the epoch are those of its public state, and that a configured signer
// has the leaf's key. That a private key belongs to the public one in the tree shows
// when it is first used: nothing opens with another. Errors wrap ErrState or
// ErrParams.
func (c *Config) Load(records []Record) (*Group, error) {
	l := loader{kinds: map[string][]Record{}, trees: secretTrees{}, checksums: newChecksums()}
	for _, r := range records {
		if err := l.add(r); err != nil {
			return nil, err
		}
	}
	return l.group(c)
}

// loader sorts records by what they are.
type loader struct {
	// kinds are the records, with the body as their value, by the prefix of
	// their keys; those of core and tree base by the whole key.
	kinds     map[string][]Record
	trees     secretTrees
	checksums *checksums
}

func (l *loader) add(r Record) error {
	body, err := l.checksums.openRecord(r)
	if err != nil {
		return err
	}
	kind := r.Key[:strings.IndexByte(r.Key, '/')+1]
	if kind == "" {
		kind = r.Key
	}
	switch kind {
	case keyTreeBase, prefixTree, prefixProposal: // public, and copied where they are read
	default:
		body = bytes.Clone(body) // or what the group forgets would be wiped in the caller's record
	}
	if kind == prefixNode || kind == prefixLeaf {
		return l.trees.add(r, body)
	}
	l.kinds[kind] = append(l.kinds[kind], Record{Key: r.Key, Value: body})
	return nil
}

// one gives the body of the only record of a key.
func (l *loader) one(key string) ([]byte, error) {
	switch found := l.kinds[key]; len(found) {
	case 1:
		return found[0].Value, nil
	case 0:
		return nil, fmt.Errorf("%w: record %q is missing", ErrState, key)
	}
	return nil, twiceThere(l.kinds[key][1])
}

// withPrefix gives the records of a kind, sorted by key.
func (l *loader) withPrefix(prefix string) ([]Record, error) {
	list := l.kinds[prefix]
	slices.SortFunc(list, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
	for i := 1; i < len(list); i++ {
		if list[i].Key == list[i-1].Key {
			return nil, twiceThere(list[i])
		}
	}
	return list, nil
}

// number reads the number that follows the prefix of a key.
func number(r Record, prefix string, bits int) (uint64, error) {
	n, err := strconv.ParseUint(r.Key[len(prefix):], 16, bits)
	if err != nil {
		return 0, outOfPlace(r)
	}
	return n, nil
}

func (l *loader) group(c *Config) (*Group, error) {
	body, err := l.one(keyCore)
	if err != nil {
		return nil, err
	}
	g := &Group{config: c}
	core, err := g.readCore(body)
	if err != nil {
		return nil, err
	}
	epoch := core.epoch
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
	if err := g.checkCore(core); err != nil {
		return nil, err
	}
	if err := l.resumption(g); err != nil {
		return nil, err
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
	return g, nil
}

// storedCore is what a core record says that means something only together with
// the public state.
type storedCore struct {
	epoch   uint64
	nodes   []tree.NodeIndex
	secrets [][]byte // their private keys
}

// readCore reads what appendCore wrote.
func (g *Group) readCore(body []byte) (core storedCore, err error) {
	r := wire.NewReader(body)
	g.status = status(r.Uint8())
	id := wire.CipherSuite(r.Uint16())
	g.leaf = tree.LeafIndex(r.Uint32())
	core.epoch = r.Uint64()
	public := wire.SignaturePublicKey(r.Opaque())
	for _, s := range g.keys.all() {
		*s = r.Opaque()
	}
	if g.cs, err = suite.Lookup(id); err != nil {
		return core, fmt.Errorf("%w: %w", ErrState, err)
	}
	outer := r.EnterVector()
	for r.More() {
		core.nodes = append(core.nodes, tree.NodeIndex(r.Uint32()))
		core.secrets = append(core.secrets, r.Opaque())
	}
	r.LeaveVector(outer)
	g.reinit = wire.ReadOptional[wire.ReInit](r)
	if err := r.Finish(); err != nil {
		return core, fmt.Errorf("%w: record %q: %w", ErrState, keyCore, err)
	}
	if g.status > statusReInit {
		return core, fmt.Errorf("%w: record %q: status %d", ErrState, keyCore, g.status)
	}
	if g.status != statusRemoved {
		g.signer, err = g.config.signer(public)
	}
	return core, err
}

// checkCore joins the core with the public state. The confirmation tag ties the
// secrets of the epoch, and with them the private keys in the same record, to
// the transcript. A private key is taken for that of its node without computing
// the public one, which would be most of the work of loading a small group.
func (g *Group) checkCore(core storedCore) error {
	if leaf := g.public.Leaf(g.leaf); leaf == nil || string(leaf.SignatureKey) != string(g.signer.Public()) {
		return fmt.Errorf("%w: the leaf %d is not this client's", ErrState, g.leaf)
	}
	if !suite.Equal(g.cs.MAC(g.keys.confirmation, g.public.Context().ConfirmedTranscriptHash), g.public.ConfirmationTag()) {
		return fmt.Errorf("%w: record %q holds other secrets than those of epoch %d", ErrState, keyCore, core.epoch)
	}
	g.private = make(privateKeys, len(core.nodes))
	for i, node := range core.nodes {
		public := g.public.Tree().PublicKey(node)
		if public == nil {
			return fmt.Errorf("%w: a private key of the blank node %d", ErrState, node)
		}
		key, err := hpke.NewKeyPair(g.cs, core.secrets[i], public)
		if err != nil {
			return fmt.Errorf("%w: private key of node %d: %w", ErrState, node, err)
		}
		if string(key.Public()) != string(public) {
			return fmt.Errorf("%w: the private key of node %d belongs to another public key", ErrState, node)
		}
		g.private[node] = key
	}
	if g.private[g.leaf.Node()] == nil {
		return fmt.Errorf("%w: the private key of the leaf is missing", ErrState)
	}
	return nil
}

// public rebuilds the public states from the base to the current epoch: the
// current one and those of past epochs. What lies between is replayed without
// being hashed.
func (l *loader) public(g *Group, epoch uint64) (map[uint64]*follower.Group, error) {
	base, err := l.one(keyTreeBase)
	if err != nil {
		return nil, err
	}
	at, err := follower.Unmarshal(base)
	if err != nil {
		return nil, fmt.Errorf("%w: record %q: %w", ErrState, keyTreeBase, err)
	}
	changes, err := l.withPrefix(prefixTree)
	if err != nil {
		return nil, err
	}
	g.base = treeBase{epoch: at.Epoch(), size: len(base)}
	states := map[uint64]*follower.Group{at.Epoch(): at}
	reached := at.Epoch()
	var replay [][]byte
	for _, r := range changes {
		leadsTo, err := number(r, prefixTree, 64)
		switch {
		case err != nil:
			return nil, err
		case leadsTo <= reached || leadsTo > epoch:
			continue
		case leadsTo != reached+1:
			return nil, fmt.Errorf("%w: record %q is missing", ErrState, epochKey(prefixTree, reached+1))
		}
		reached = leadsTo
		g.base.added += len(r.Value)
		replay = append(replay, r.Value)
		if reached != epoch && !l.isPast(reached) {
			continue
		}
		if at, err = at.ApplyDeltas(replay...); err != nil {
			return nil, fmt.Errorf("%w: the records up to %q: %w", ErrState, r.Key, err)
		}
		states[reached], replay = at, replay[:0]
	}
	switch {
	case reached < epoch:
		return nil, fmt.Errorf("%w: record %q is missing", ErrState, epochKey(prefixTree, reached+1))
	case reached > epoch:
		return nil, fmt.Errorf("%w: record %q is of epoch %d, the group of %d", ErrState, keyTreeBase, reached, epoch)
	}
	g.public = at
	return states, nil
}

// isPast says that an epoch is kept as a past one.
func (l *loader) isPast(epoch uint64) bool {
	key := epochKey(prefixPast, epoch)
	return slices.ContainsFunc(l.kinds[prefixPast], func(r Record) bool { return r.Key == key })
}

func (l *loader) pastEpochs(g *Group, states map[uint64]*follower.Group) error {
	list, err := l.withPrefix(prefixPast)
	if err != nil {
		return err
	}
	for _, record := range slices.Backward(list) {
		epoch, err := number(record, prefixPast, 64)
		if err != nil || states[epoch] == nil {
			return fmt.Errorf("%w: record %q is of no known epoch", ErrState, record.Key)
		}
		r := wire.NewReader(record.Value)
		p := &pastEpoch{
			public: states[epoch], leaf: tree.LeafIndex(r.Uint32()),
			ended: time.UnixMilli(int64(r.Uint64())), senderData: r.Opaque(),
		}
		if err := r.Finish(); err != nil {
			return fmt.Errorf("%w: record %q: %w", ErrState, record.Key, err)
		}
		if p.messages, err = l.trees.build(epoch, p.public.Tree().Width()); err != nil {
			return err
		}
		g.past = append(g.past, p)
	}
	return nil
}

func (l *loader) resumption(g *Group) error {
	list, err := l.withPrefix(prefixResumption)
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(list) {
		epoch, err := number(r, prefixResumption, 64)
		if err != nil {
			return err
		}
		g.resumption = append(g.resumption, resumptionPSK{epoch: epoch, secret: r.Value})
	}
	return nil
}

func (l *loader) exporterTree(g *Group) error {
	list, err := l.withPrefix(prefixExport)
	if err != nil {
		return err
	}
	t := &secretTree{width: 1 << 16, root: &secretNode{}}
	for _, r := range list {
		index, err := number(r, prefixExport, 32)
		if err != nil {
			return err
		}
		if !t.insert(uint32(index), &secretNode{secret: r.Value}) {
			return outOfPlace(r)
		}
	}
	g.exporter = &exporterTree{root: t.root}
	return nil
}

// handshakes reads held proposals, the keys of our own updates and our own
// commits.
func (l *loader) handshakes(g *Group) error {
	for prefix, read := range map[string]func(*Group, Record) error{
		prefixProposal: (*Group).readProposal, prefixUpdate: (*Group).readUpdate, prefixOwn: (*Group).readOwn,
	} {
		list, err := l.withPrefix(prefix)
		if err != nil {
			return err
		}
		for _, r := range list {
			if err := read(g, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Group) readProposal(r Record) error {
	ac := new(wire.AuthenticatedContent)
	if err := wire.Unmarshal(r.Value, ac); err != nil {
		return fmt.Errorf("%w: record %q: %w", ErrState, r.Key, err)
	}
	g.public = g.public.Restore(ac)
	return nil
}

func (g *Group) readUpdate(r Record) error {
	private, err := hpke.NewPrivateKey(g.cs, r.Value)
	if err != nil {
		return fmt.Errorf("%w: record %q: %w", ErrState, r.Key, err)
	}
	ref, err := hexSuffix(r, prefixUpdate)
	if err != nil {
		return err
	}
	g.updates = withEntry(g.updates, string(ref), private)
	return nil
}

func (g *Group) readOwn(r Record) error {
	hash, err := hexSuffix(r, prefixOwn)
	if err != nil {
		return err
	}
	own, err := readOwnCommit(g.cs, r.Value)
	if err != nil {
		return fmt.Errorf("%w: record %q: %w", ErrState, r.Key, err)
	}
	if len(hash) != sha256.Size {
		return outOfPlace(r)
	}
	g.own = withEntry(g.own, [sha256.Size]byte(hash), own)
	return nil
}

func hexSuffix(r Record, prefix string) ([]byte, error) {
	b, err := hex.DecodeString(strings.TrimPrefix(r.Key, prefix))
	if err != nil {
		return nil, outOfPlace(r)
	}
	return b, nil
}
