package tree

import (
	"encoding/binary"
	"fmt"

	"github.com/askucher/compax-core/mls/wire"
)

// NewKeys are the keys that a change brought into a tree.
type NewKeys struct {
	encryption, signature map[string]bool
	marks                 markFilter
}

// AddLeaf notes the keys of a leaf that is in the changed tree.
func (k *NewKeys) AddLeaf(leaf *wire.LeafNode) {
	k.AddEncryption(leaf.EncryptionKey)
	k.add(&k.signature, leaf.SignatureKey)
}

// AddEncryption notes the encryption key of a parent that is in the changed tree.
func (k *NewKeys) AddEncryption(key wire.HPKEPublicKey) {
	k.add(&k.encryption, key)
}

func (k *NewKeys) add(set *map[string]bool, key []byte) {
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[string(key)] = false
	k.marks.add(key)
}

// CheckUnique checks that each of the new keys stands in the tree only once
// (Sections 7.3, 12.4.2). The keys that were there before are unique already. It
// uses k up.
func (t *Tree) CheckUnique(k *NewKeys) (err error) {
	if len(k.encryption) == 0 && len(k.signature) == 0 {
		return nil
	}
	walk(t.root, t.Root(), func(n *node, at NodeIndex) bool {
		if err != nil || n.blank() {
			return err == nil && n.filled
		}
		if k.marks.has(n.marks[0]) {
			if seen, isNew := k.encryption[string(n.key())]; isNew {
				if seen {
					err = atNode(at, fmt.Errorf("%w: encryption_key", ErrDuplicateKey))
				}
				k.encryption[string(n.key())] = true
			}
		}
		if n.leaf != nil && k.marks.has(n.marks[1]) {
			if seen, isNew := k.signature[string(n.leaf.SignatureKey)]; isNew {
				if seen {
					err = atNode(at, fmt.Errorf("%w: signature_key", ErrDuplicateKey))
				}
				k.signature[string(n.leaf.SignatureKey)] = true
			}
		}
		return err == nil
	})
	return err
}

// CheckAbsent checks that encryption keys that are to come into the tree are
// different from each other and stand at no node of it (Section 12.4.2), and
// that a signature key is at no leaf other than except (Section 7.3).
func (t *Tree) CheckAbsent(encryption []wire.HPKEPublicKey, signature wire.SignaturePublicKey, except LeafIndex) (err error) {
	fresh := make(map[string]struct{}, len(encryption))
	var filter markFilter
	for _, key := range encryption {
		if _, twice := fresh[string(key)]; twice {
			return fmt.Errorf("mls/tree: %w: two new encryption_keys are the same", ErrDuplicateKey)
		}
		fresh[string(key)] = struct{}{}
		filter.add(key)
	}
	own := mark(signature)
	walk(t.root, t.Root(), func(n *node, at NodeIndex) bool {
		if err != nil || n.blank() {
			return err == nil && n.filled
		}
		if filter.has(n.marks[0]) {
			if _, there := fresh[string(n.key())]; there {
				err = atNode(at, fmt.Errorf("%w: encryption_key", ErrDuplicateKey))
			}
		}
		if n.leaf != nil && n.marks[1] == own && at.Leaf() != except && string(n.leaf.SignatureKey) == string(signature) {
			err = atNode(at, fmt.Errorf("%w: signature_key", ErrDuplicateKey))
		}
		return err == nil
	})
	return err
}

// mark is a short sign of a key: keys with different marks are different. Nodes
// carry the marks of their keys, so that looking for a few keys in a tree reads
// the nodes alone and compares a key only where its mark fits. Whoever crafts
// keys with equal marks makes that comparison happen and nothing else.
func mark(key []byte) uint64 {
	if len(key) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(key[len(key)-8:])
}

// marks gives the marks of a node's encryption key and, for a leaf, of its
// signature key.
func marks(n *node) (m [2]uint64) {
	m[0] = mark(n.key())
	if n.leaf != nil {
		m[1] = mark(n.leaf.SignatureKey)
	}
	return m
}

// markFilter says for most marks that none of the keys put into it has them.
type markFilter [16]uint64

func (f *markFilter) add(key []byte) {
	b := mark(key) >> 40 & 1023
	f[b>>6] |= 1 << (b & 63)
}

func (f *markFilter) has(m uint64) bool {
	b := m >> 40 & 1023
	return f[b>>6]>>(b&63)&1 == 1
}
