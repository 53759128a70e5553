package mls

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// JoinParams is a Welcome and what belongs to it.
type JoinParams struct {
	// Welcome is the MLSMessage.
	Welcome []byte
	// Bundles are the KeyPackages that it may be for.
	Bundles []*KeyPackageBundle
	// Tree is the encoded ratchet tree, when the Welcome does not carry it.
	Tree []byte
	// From is the group that this one follows: by ReInit (closed) or by branch.
	// A Welcome that names such a group needs it.
	From *Group
	// Now is the time for credentials.
	Now time.Time
}

// Joined is a group that was entered.
type Joined struct {
	Step
	// Bundle is the KeyPackage that was used. Delete it with its private keys in
	// the same transaction, unless it is one of last resort.
	Bundle *KeyPackageBundle
	// Sender is the member who signed the GroupInfo: the committer.
	Sender Member
	// Extensions are those of the GroupInfo.
	Extensions wire.Extensions
}

// Join enters a group by Welcome (RFC 9420 Section 12.4.3.1), after verifying
// the whole tree. That this client is not in a group of that id already is for
// the caller to check, before it stores the Step. Errors: ErrNotForUs,
// ErrDecrypt, ErrTree, ErrGroupInfo, ErrMissingPSK, ErrConfirmationTag, ErrPath.
func (c *Config) Join(p JoinParams) (*Joined, error) {
	w, err := c.openWelcome(p)
	if err != nil {
		return nil, err
	}
	defer w.wipe()
	cs, bundle, info := w.cs, w.bundle, w.info
	public, err := c.enterPublic(cs, info, p.Tree, p.Now)
	if err != nil {
		return nil, err
	}
	leaf, err := ownLeaf(public, &bundle.KeyPackage.LeafNode)
	if err != nil {
		return nil, err
	}
	signer, err := c.signer(bundle.KeyPackage.LeafNode.SignatureKey)
	if err != nil {
		return nil, err
	}
	private, err := joinerKeys(cs, public, leaf, tree.LeafIndex(info.Signer), bundle, w.secrets.PathSecret)
	if err != nil {
		return nil, err
	}
	keys := deriveEpoch(cs, w.member, public.EncodedContext())
	if !cs.VerifyMAC(keys.confirmation, info.GroupContext.ConfirmedTranscriptHash, info.ConfirmationTag) {
		return nil, ErrConfirmationTag
	}
	if err := checkSuccession(w.from, info, public, p.From); err != nil {
		return nil, err
	}
	g := newGroup(c, cs, public, leaf, signer, keys, private)
	return &Joined{
		Step: g.born(), Bundle: bundle, Extensions: info.Extensions,
		Sender: Member{Leaf: info.Signer, Node: public.Leaf(tree.LeafIndex(info.Signer))},
	}, nil
}

// findBundle opens the group secrets with the first bundle that they are for.
func findBundle(cs *suite.Suite, w *wire.Welcome, bundles []*KeyPackageBundle) (*KeyPackageBundle, *wire.GroupSecrets, error) {
	err := fmt.Errorf("%w: it names none of %d", ErrNotForUs, len(bundles))
	for _, b := range bundles {
		secrets, e := openGroupSecrets(cs, w, b)
		if e == nil {
			return b, secrets, nil
		}
		if !errors.Is(e, ErrNotForUs) {
			err = e
		}
	}
	return nil, nil, err
}

// ownLeaf finds the leaf that is identical to the KeyPackage's.
func ownLeaf(public *follower.Group, own *wire.LeafNode) (tree.LeafIndex, error) {
	l, ok := public.Tree().FindLeaf(own.SignatureKey)
	if !ok || !bytes.Equal(wire.Marshal(public.Leaf(l)), wire.Marshal(own)) {
		return 0, fmt.Errorf("%w: this client's leaf is not in it", ErrTree)
	}
	return l, nil
}

// joinerKeys gives the private keys of a joiner: of its leaf, and of the nodes
// that it shares with the committer.
func joinerKeys(cs *suite.Suite, public *follower.Group, own, signer tree.LeafIndex, bundle *KeyPackageBundle, pathSecret *wire.PathSecret) (privateKeys, error) {
	leafKey, err := hpke.NewPrivateKey(cs, bundle.EncryptionPrivate)
	if err != nil {
		return nil, fmt.Errorf("%w: encryption key: %w", ErrParams, err)
	}
	if !bytes.Equal(leafKey.Public(), bundle.KeyPackage.LeafNode.EncryptionKey) {
		return nil, fmt.Errorf("%w: the encryption key is not the key package's", ErrParams)
	}
	keys := privateKeys{own.Node(): leafKey}
	if pathSecret == nil {
		return keys, nil
	}
	nodes, err := public.Tree().FilteredDirectPath(signer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTree, err)
	}
	for i, n := range nodes {
		if !n.Contains(own) {
			continue
		}
		secrets, err := derivePath(cs, pathSecret.PathSecret, len(nodes)-i)
		if err != nil {
			return nil, err
		}
		defer secrets.wipe()
		for j, key := range secrets.keys {
			node := nodes[i+j]
			if !bytes.Equal(key.Public(), public.Tree().PublicKey(node)) {
				return nil, fmt.Errorf("%w: the path secret gives another public key for node %d", ErrPath, node)
			}
			keys[node] = key
		}
		return keys, nil
	}
	return nil, fmt.Errorf("%w: a path secret without a common ancestor", ErrPath)
}
