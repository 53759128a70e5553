package mls

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/askucher/compax-core/mls/wire"
)

func ratchetKey(epoch uint64, leaf uint32, which ratchetType) string {
	return fmt.Sprintf("%s/%d", epochIndexKey(prefixLeaf, epoch, leaf), which)
}

// storeRatchet writes what using a key changed in a secret tree: the ratchet
// itself and, for a sender's first message, the nodes on the way to it.
func storeRatchet(d *Delta, epoch uint64, after *secretTree, change secretTreeChange) {
	for _, index := range change.consumed {
		d.drop(epochIndexKey(prefixNode, epoch, index))
	}
	for _, index := range change.derived {
		d.put(epochIndexKey(prefixNode, epoch, index), after.nodeAt(index).secret)
	}
	at := after.nodeAt(2 * change.leaf)
	for _, which := range []ratchetType{handshakeRatchet, applicationRatchet} {
		if change.started || which == change.which {
			d.put(ratchetKey(epoch, change.leaf, which), appendRatchet(nil, at.ratchets[which]))
		}
	}
}

// storeSecretTree writes all of a secret tree.
func storeSecretTree(d *Delta, epoch uint64, t *secretTree) {
	t.walk(func(index uint32, n *secretNode) {
		if n.secret != nil {
			d.put(epochIndexKey(prefixNode, epoch, index), n.secret)
			return
		}
		for which, r := range n.ratchets {
			d.put(ratchetKey(epoch, index/2, ratchetType(which)), appendRatchet(nil, r))
		}
	})
}

// dropSecretTree deletes all of a secret tree.
func dropSecretTree(d *Delta, epoch uint64, t *secretTree) {
	t.walk(func(index uint32, n *secretNode) {
		if n.secret != nil {
			d.drop(epochIndexKey(prefixNode, epoch, index))
			return
		}
		for which := range n.ratchets {
			d.drop(ratchetKey(epoch, index/2, ratchetType(which)))
		}
	})
}

func appendRatchet(b []byte, r *ratchet) []byte {
	b = wire.AppendUint64(b, r.next)
	b = wire.AppendOpaque(b, r.secret)
	for _, k := range r.skipped {
		b = wire.AppendUint32(b, k.generation)
		b = wire.AppendOpaque(b, k.key)
		b = wire.AppendOpaque(b, k.nonce)
	}
	return b
}

func readRatchet(body []byte) (*ratchet, error) {
	r := wire.NewReader(body)
	out := &ratchet{next: r.Uint64(), secret: r.Opaque()}
	for r.More() {
		out.skipped = append(out.skipped, messageKey{generation: r.Uint32(), key: r.Opaque(), nonce: r.Opaque()})
	}
	if err := r.Finish(); err != nil {
		return nil, err
	}
	return out, nil
}

// secretTrees collects the records of secret trees while a group is loaded.
type secretTrees map[uint64]*storedTree

type storedTree struct {
	nodes    map[uint32]Secret
	ratchets map[uint32]*[2]*ratchet
}

// add takes a record whose key has one of the two prefixes.
func (t secretTrees) add(r Record, body []byte) error {
	kind, place, _ := strings.Cut(r.Key, "/")
	at, rest, _ := strings.Cut(place, "/")
	node, which, _ := strings.Cut(rest, "/")
	epoch, err := strconv.ParseUint(at, 16, 64)
	if err != nil {
		return outOfPlace(r)
	}
	index, err := strconv.ParseUint(node, 16, 32)
	if err != nil {
		return outOfPlace(r)
	}
	st := t[epoch]
	if st == nil {
		st = &storedTree{nodes: map[uint32]Secret{}, ratchets: map[uint32]*[2]*ratchet{}}
		t[epoch] = st
	}
	if kind+"/" == prefixNode {
		if _, twice := st.nodes[uint32(index)]; twice {
			return twiceThere(r)
		}
		st.nodes[uint32(index)] = body
		return nil
	}
	if which != "0" && which != "1" {
		return outOfPlace(r)
	}
	stored, err := readRatchet(body)
	if err != nil {
		return fmt.Errorf("%w: record %q: %w", ErrState, r.Key, err)
	}
	pair := st.ratchets[uint32(index)]
	if pair == nil {
		pair = new([2]*ratchet)
		st.ratchets[uint32(index)] = pair
	}
	if pair[which[0]-'0'] != nil {
		return twiceThere(r)
	}
	pair[which[0]-'0'] = stored
	return nil
}

func outOfPlace(r Record) error { return fmt.Errorf("%w: record %q is out of place", ErrState, r.Key) }

func twiceThere(r Record) error { return fmt.Errorf("%w: record %q is there twice", ErrState, r.Key) }

// build makes the secret tree of an epoch, which must be complete.
func (t secretTrees) build(epoch uint64, width uint32) (*secretTree, error) {
	st := t[epoch]
	if st == nil {
		return nil, fmt.Errorf("%w: no secret tree of epoch %d", ErrState, epoch)
	}
	tree := &secretTree{width: width}
	for index, secret := range st.nodes {
		if !tree.insert(index, &secretNode{secret: secret}) {
			return nil, fmt.Errorf("%w: secret tree of epoch %d: node %d is out of place", ErrState, epoch, index)
		}
	}
	for leaf, pair := range st.ratchets {
		if !tree.insert(2*leaf, &secretNode{ratchets: *pair}) {
			return nil, fmt.Errorf("%w: secret tree of epoch %d: leaf %d is out of place", ErrState, epoch, leaf)
		}
	}
	if !tree.complete() {
		return nil, fmt.Errorf("%w: secret tree of epoch %d: a record is missing", ErrState, epoch)
	}
	return tree, nil
}
