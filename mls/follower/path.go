package follower

import (
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// mergePath validates a commit's path and merges it into the tree (§12.4.2,
// §7.5). leafVerified says that the signature of its leaf node, at the
// committer's place, was verified.
func (d *Draft) mergePath(path *wire.UpdatePath, leafVerified bool, o *Options) (*tree.Tree, error) {
	g := d.group
	previous := d.Former
	if !d.External {
		previous = g.tree.Leaf(d.Committer)
	}
	lo := o.leaf(wire.LeafNodeSourceCommit, g.context.GroupID, d.Committer, previous)
	lo.SignatureVerified = leafVerified
	if err := tree.ValidateLeaf(g.cs, &path.LeafNode, lo); err != nil {
		return nil, invalid(ErrPath, "its leaf node: %w", err)
	}
	if err := d.checkPathKeys(path); err != nil {
		return nil, err
	}
	if err := d.checkPathShape(path); err != nil {
		return nil, err
	}
	keys := make([]wire.HPKEPublicKey, len(path.Nodes))
	for i := range path.Nodes {
		keys[i] = path.Nodes[i].EncryptionKey
	}
	edit := d.Tree.Edit()
	parentHash, err := edit.SetPath(d.Committer, keys)
	if err != nil {
		return nil, invalid(ErrPath, "%w", err)
	}
	if !suite.Equal(parentHash, path.LeafNode.ParentHash) {
		return nil, invalid(ErrPath, "%w: of its leaf node", tree.ErrParentHash)
	}
	if err := edit.SetLeaf(d.Committer, path.LeafNode.Clone()); err != nil {
		return nil, invalid(ErrPath, "%w", err)
	}
	return edit.Freeze(), nil
}

// checkPathKeys checks that the keys of a path are keys, and new: none is in the
// tree before the path, none occurs twice (§12.4.2). The committer may keep its
// own signature key.
func (d *Draft) checkPathKeys(path *wire.UpdatePath) error {
	keys := make([]wire.HPKEPublicKey, 0, len(path.Nodes)+1)
	keys = append(keys, path.LeafNode.EncryptionKey)
	for i := range path.Nodes {
		key := path.Nodes[i].EncryptionKey
		if err := d.group.cs.ValidateHPKEPublicKey(key); err != nil {
			return invalid(ErrPath, "node %d of the path: %w", i, err)
		}
		keys = append(keys, key)
	}
	if err := d.Tree.CheckAbsent(keys, path.LeafNode.SignatureKey, d.Committer); err != nil {
		return invalid(ErrPath, "%w", err)
	}
	return nil
}

// checkPathShape checks that a path has the nodes of the filtered direct path
// and one ciphertext for each node of each resolution, new members left out
// (§7.5, §7.6).
func (d *Draft) checkPathShape(path *wire.UpdatePath) error {
	nodes, err := d.Tree.FilteredDirectPath(d.Committer)
	if err != nil {
		return invalid(ErrPath, "%w", err)
	}
	if len(nodes) != len(path.Nodes) {
		return invalid(ErrPath, "%d nodes; the filtered direct path has %d", len(path.Nodes), len(nodes))
	}
	added := tree.Except(d.Added)
	kem, sealed := d.group.cs.KEMOutputSize(), d.group.cs.HashSize()+d.group.cs.AEAD().Overhead()
	for i, n := range nodes {
		want := len(d.Tree.Resolution(n.Copath(d.Committer), added))
		if got := len(path.Nodes[i].EncryptedPathSecret); got != want {
			return invalid(ErrPath, "%d ciphertexts for a resolution of %d nodes at node %d", got, want, n)
		}
		for _, c := range path.Nodes[i].EncryptedPathSecret {
			if len(c.KEMOutput) != kem || len(c.Ciphertext) != sealed {
				return invalid(ErrPath, "a ciphertext at node %d has the sizes %d and %d, not %d and %d", n, len(c.KEMOutput), len(c.Ciphertext), kem, sealed)
			}
		}
	}
	return nil
}
