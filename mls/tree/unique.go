package tree

import (
	"fmt"

	"github.com/askucher/compax-core/mls/wire"
)

// NewKeys are the keys that a change brought into a tree.
type NewKeys struct {
	encryption, signature map[string]bool
	twice                 error
}

// AddLeaf notes the keys of a leaf that is in the changed tree.
func (k *NewKeys) AddLeaf(leaf *wire.LeafNode) {
	k.AddEncryption(leaf.EncryptionKey)
	k.add(&k.signature, leaf.SignatureKey, "signature_key")
}

// AddEncryption notes the encryption key of a parent that is in the changed tree.
func (k *NewKeys) AddEncryption(key wire.HPKEPublicKey) {
	k.add(&k.encryption, key, "encryption_key")
}

func (k *NewKeys) add(set *map[string]bool, key []byte, name string) {
	if *set == nil {
		*set = map[string]bool{}
	}
	if _, twice := (*set)[string(key)]; twice && k.twice == nil {
		k.twice = fmt.Errorf("mls/tree: %w: two new %ss are the same", ErrDuplicateKey, name)
	}
	(*set)[string(key)] = false
}

// CheckUnique checks that none of the new keys, which are in the tree once each,
// is there a second time (Sections 7.3, 12.4.2). The keys that were there before
// are unique already.
func (t *Tree) CheckUnique(k *NewKeys) (err error) {
	if k.twice != nil {
		return k.twice
	}
	if len(k.encryption) == 0 && len(k.signature) == 0 {
		return nil
	}
	walk(t.root, t.Root(), func(n *node, at NodeIndex) bool {
		if err != nil || n.blank() {
			return err == nil && n.filled
		}
		if seen, isNew := k.encryption[string(n.key())]; isNew {
			if seen {
				err = atNode(at, fmt.Errorf("%w: encryption_key", ErrDuplicateKey))
			}
			k.encryption[string(n.key())] = true
		}
		if n.leaf != nil {
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
	for _, key := range encryption {
		if _, twice := fresh[string(key)]; twice {
			return fmt.Errorf("mls/tree: %w: two new encryption_keys are the same", ErrDuplicateKey)
		}
		fresh[string(key)] = struct{}{}
	}
	walk(t.root, t.Root(), func(n *node, at NodeIndex) bool {
		if err != nil || n.blank() {
			return err == nil && n.filled
		}
		if _, there := fresh[string(n.key())]; there {
			err = atNode(at, fmt.Errorf("%w: encryption_key", ErrDuplicateKey))
		} else if n.leaf != nil && at.Leaf() != except && string(n.leaf.SignatureKey) == string(signature) {
			err = atNode(at, fmt.Errorf("%w: signature_key", ErrDuplicateKey))
		}
		return err == nil
	})
	return err
}
