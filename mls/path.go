package mls

import (
	"fmt"
	"io"

	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// privateKeys are the private keys that a member holds of nodes of the ratchet
// tree: its leaf's and those of ancestors (RFC 9420 Section 4). A map that a
// group holds is never changed.
type privateKeys map[tree.NodeIndex]*hpke.PrivateKey

// within gives the keys that are still of use in a tree, and the others.
func (k privateKeys) within(t *tree.Tree) (kept privateKeys, dropped []wiper) {
	kept = make(privateKeys, len(k)+2)
	for node, key := range k {
		if string(key.Public()) == string(t.PublicKey(node)) {
			kept[node] = key
			continue
		}
		dropped = append(dropped, key)
	}
	return kept, dropped
}

// nodeKey derives the key pair of a parent node from its path secret (RFC 9420
// Section 7.4).
func nodeKey(cs *suite.Suite, pathSecret Secret) (*hpke.PrivateKey, error) {
	seed := Secret(cs.DeriveSecret(pathSecret, "node"))
	defer seed.Wipe()
	key, err := hpke.DeriveKeyPair(cs, seed)
	if err != nil {
		return nil, fmt.Errorf("mls: deriving a node's key pair: %w", err)
	}
	return key, nil
}

// pathSecrets are path secrets in the order of a filtered direct path, each with
// its key pair, and the commit_secret that follows the last one.
type pathSecrets struct {
	secrets []Secret
	keys    []*hpke.PrivateKey
	commit  Secret
}

// derivePath derives n path secrets, the first of which is first.
func derivePath(cs *suite.Suite, first Secret, n int) (*pathSecrets, error) {
	p := &pathSecrets{}
	secret := first.clone()
	for range n {
		key, err := nodeKey(cs, secret)
		if err != nil {
			return nil, err
		}
		p.secrets = append(p.secrets, secret)
		p.keys = append(p.keys, key)
		secret = cs.DeriveSecret(secret, "path")
	}
	if n == 0 {
		// Nobody else computes the commit_secret of a tree without other members.
		p.commit = cs.DeriveSecret(secret, "path")
		secret.Wipe()
		return p, nil
	}
	p.commit = secret
	return p, nil
}

// wipe wipes the secrets. The key pairs live on in a group.
func (p *pathSecrets) wipe() {
	for _, s := range p.secrets {
		s.Wipe()
	}
	p.commit.Wipe()
}

// ownPath is what a committer chose for its path: enough to process its own
// commit.
type ownPath struct {
	leaf  *hpke.PrivateKey
	first Secret // path_secret[0]
}

// newPath is an UpdatePath in the making (RFC 9420 Section 7.5).
type newPath struct {
	update  *wire.UpdatePath
	tree    *tree.Tree // with the path
	nodes   []tree.NodeIndex
	secrets *pathSecrets
	own     ownPath
	sealing *hpke.Sealing // of the path secrets
	counts  []int         // to how many nodes each is sealed
}

// buildPath gives the committer at leaf l new keys on its filtered direct path,
// in a tree t to which the proposals were applied, and signs its new leaf. The
// path secrets are still to be encrypted, for which everything begins that can:
// whoever does not go on calls wipe.
func buildPath(cs *suite.Suite, random io.Reader, t *tree.Tree, l tree.LeafIndex, added []tree.LeafIndex, leaf wire.LeafNode, signer *suite.SignatureKey, groupID []byte) (_ *newPath, err error) {
	nodes, err := t.FilteredDirectPath(l)
	if err != nil {
		return nil, err
	}
	p := &newPath{nodes: nodes, update: &wire.UpdatePath{Nodes: make([]wire.UpdatePathNode, len(nodes))}}
	if err := p.begin(cs, random, t, l, added); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.wipe()
		}
	}()
	leafKey, err := newKeyPair(cs, random)
	if err != nil {
		return nil, err
	}
	first, err := randomSecret(cs, random)
	if err != nil {
		return nil, err
	}
	p.own = ownPath{leaf: leafKey, first: first}
	if p.secrets, err = derivePath(cs, first, len(nodes)); err != nil {
		return nil, err
	}
	public := make([]wire.HPKEPublicKey, len(nodes))
	for i, key := range p.secrets.keys {
		public[i] = key.Public()
		p.update.Nodes[i].EncryptionKey = key.Public()
	}
	leaf.LeafNodeSource = wire.LeafNodeSourceCommit
	leaf.Lifetime = wire.Lifetime{}
	leaf.EncryptionKey = leafKey.Public()
	edit := t.Edit()
	if leaf.ParentHash, err = edit.SetPath(l, public); err != nil {
		return nil, err
	}
	if err := signLeaf(signer, &leaf, groupID, uint32(l)); err != nil {
		return nil, err
	}
	p.update.LeafNode = leaf
	if err := edit.SetLeaf(l, &leaf); err != nil {
		return nil, err
	}
	p.tree = edit.Freeze()
	return p, nil
}

// begin begins the encryption of each path secret to the resolution of the copath
// (RFC 9420 Section 7.6), whose nodes the path does not change.
func (p *newPath) begin(cs *suite.Suite, random io.Reader, t *tree.Tree, l tree.LeafIndex, added []tree.LeafIndex) (err error) {
	skip := tree.Except(added)
	var to []wire.HPKEPublicKey
	p.counts = make([]int, len(p.nodes))
	for i, node := range p.nodes {
		resolution := t.Resolution(node.Copath(l), skip)
		p.counts[i] = len(resolution)
		for _, n := range resolution {
			to = append(to, t.PublicKey(n))
		}
	}
	if p.sealing, err = hpke.Begin(cs, random, to); err != nil {
		return fmt.Errorf("mls: encrypting path secrets: %w", err)
	}
	return nil
}

// encrypt encrypts the path secrets. provisional is the encoded provisional
// GroupContext.
func (p *newPath) encrypt(provisional []byte) error {
	var all [][]byte
	for i, n := range p.counts {
		for range n {
			all = append(all, p.secrets.secrets[i])
		}
	}
	ciphertexts, err := p.sealing.Encrypt("UpdatePathNode", provisional, all)
	if err != nil {
		return fmt.Errorf("mls: encrypting path secrets: %w", err)
	}
	for i, n := range p.counts {
		p.update.Nodes[i].EncryptedPathSecret = ciphertexts[:n:n]
		ciphertexts = ciphertexts[n:]
	}
	return nil
}

// wipe ends what was begun and wipes the path secrets.
func (p *newPath) wipe() {
	p.sealing.Cancel()
	if p.secrets != nil {
		p.secrets.wipe()
	}
}

// keysOf adds the committer's own new keys to what it holds.
func (p *newPath) keysOf(held privateKeys, l tree.LeafIndex) (privateKeys, []wiper) {
	keys, dropped := held.within(p.tree)
	keys[l.Node()] = p.own.leaf
	for i, node := range p.nodes {
		keys[node] = p.secrets.keys[i]
	}
	return keys, dropped
}

// receivePath decrypts the path secret that a commit has for a member and
// derives the ones above it (RFC 9420 Section 7.5). merged is the tree with the
// path; held are the keys that the member held in the tree before the path.
func receivePath(cs *suite.Suite, merged *tree.Tree, path *wire.UpdatePath, committer, own tree.LeafIndex, added []tree.LeafIndex, held privateKeys, provisional []byte) (nodes []tree.NodeIndex, secrets *pathSecrets, err error) {
	nodes, err = merged.FilteredDirectPath(committer)
	if err != nil {
		return nil, nil, err
	}
	// mutants: equivalent: package follower has compared them
	if len(nodes) != len(path.Nodes) {
		return nil, nil, fmt.Errorf("%w: %d nodes, the filtered direct path has %d", ErrPath, len(path.Nodes), len(nodes))
	}
	skip := tree.Except(added)
	for i, node := range nodes {
		if !node.Contains(own) {
			continue
		}
		secret, err := decryptPathSecret(&path.Nodes[i], merged.Resolution(node.Copath(committer), skip), held, provisional)
		if err != nil {
			return nil, nil, err
		}
		secrets, err := derivePath(cs, secret, len(nodes)-i)
		secret.Wipe()
		if err != nil {
			return nil, nil, err
		}
		for j, key := range secrets.keys {
			if string(key.Public()) != string(merged.PublicKey(nodes[i+j])) {
				secrets.wipe()
				return nil, nil, fmt.Errorf("%w: the path secret of node %d gives another public key", ErrPath, nodes[i+j])
			}
		}
		return nodes[i:], secrets, nil
	}
	return nil, nil, fmt.Errorf("%w: no node of the path is above this member", ErrPath)
}

func decryptPathSecret(node *wire.UpdatePathNode, resolution []tree.NodeIndex, held privateKeys, provisional []byte) (Secret, error) {
	// mutants: equivalent: package follower has compared them
	if len(node.EncryptedPathSecret) != len(resolution) {
		return nil, fmt.Errorf("%w: %d ciphertexts for a resolution of %d nodes", ErrPath, len(node.EncryptedPathSecret), len(resolution))
	}
	for i, n := range resolution {
		key, ok := held[n]
		if !ok {
			continue
		}
		secret, err := key.DecryptWithLabel("UpdatePathNode", provisional, &node.EncryptedPathSecret[i])
		if err != nil {
			// A loaded key was taken for that of its node: whose fault is it?
			if err := key.CheckPair(); err != nil {
				return nil, fmt.Errorf("%w: private key of node %d: %w", ErrState, n, err)
			}
			return nil, fmt.Errorf("%w: the path secret for node %d does not open", ErrPath, n)
		}
		return secret, nil
	}
	return nil, fmt.Errorf("%w: no ciphertext for a key of this member", ErrPath)
}
