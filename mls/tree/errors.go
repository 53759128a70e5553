package tree

import (
	"errors"
	"fmt"
)

// Why a tree or a leaf is refused. Errors of this package are or wrap one of
// these; a [*NodeError] says at which node.
var (
	// ErrMalformed: the serialised tree has a leaf where a parent belongs, ends
	// in a blank node, is empty, is wider than [MaxLeaves], or is wide and nearly
	// without members (§12.4.3.3; see [ParseBytes]).
	ErrMalformed = errors.New("the ratchet tree is malformed")
	// ErrFull: the tree cannot grow beyond [MaxLeaves].
	ErrFull = errors.New("the ratchet tree is full")
	// ErrNoLeaf: the index names no leaf of the tree, or a blank one.
	ErrNoLeaf = errors.New("there is no member at this leaf")
	// ErrUnmergedLeaves: an unmerged_leaves list is unsorted, or names a leaf
	// that is blank, elsewhere, or not listed in between (§7.1, §12.4.3.1).
	ErrUnmergedLeaves = errors.New("the unmerged leaves are inconsistent")
	// ErrParentHash: a parent node is not covered by exactly one chain of parent
	// hashes, or a leaf of a commit does not begin the right one (§7.9).
	ErrParentHash = errors.New("the parent hash is not valid")
	// ErrDuplicateKey: a signature or encryption key stands in two places (§7.3,
	// §12.4.2).
	ErrDuplicateKey = errors.New("the key is already in the tree")
	// ErrTreeHash: the tree is not the one that the group has agreed on.
	ErrTreeHash = errors.New("the tree hash does not match")
	// ErrSignature: a signature does not verify.
	ErrSignature = errors.New("the signature does not verify")
	// ErrBeside: of the signatures that were to be verified with those of the
	// leaves, not of a leaf, one does not verify.
	ErrBeside = errors.New("a signature beside those of the leaves does not verify")
	// ErrLeafSource: leaf_node_source is not the one required here (§7.3).
	ErrLeafSource = errors.New("the leaf node source is not allowed here")
	// ErrLifetime: the leaf is not valid yet, no longer, or for too long (§7.2).
	ErrLifetime = errors.New("the lifetime is not acceptable")
	// ErrCapabilities: a leaf uses what it does not list itself, or does not
	// support what the group or its members use (§7.2, §7.3, §13.4).
	ErrCapabilities = errors.New("the capabilities are not sufficient")
	// ErrExtensions: an extension occurs twice or its content is malformed
	// (§13.4).
	ErrExtensions = errors.New("the extensions are malformed")
	// ErrCredential: the application refused the credential (§5.3.1).
	ErrCredential = errors.New("the credential is not acceptable")
	// ErrPublicKey: a key is no public key of the cipher suite (§5.1.1).
	ErrPublicKey = errors.New("the public key is not valid for the cipher suite")
	// ErrPath: a path does not have the nodes of the filtered direct path (§7.5).
	ErrPath = errors.New("the path does not fit the tree")
	// ErrDelta: a stored change does not fit the tree it is applied to.
	ErrDelta = errors.New("the stored change does not fit the tree")
)

// NodeError says at which node of a tree a rule is broken.
type NodeError struct {
	Node NodeIndex
	Err  error
}

func (e *NodeError) Error() string {
	if e.Node.IsLeaf() {
		return fmt.Sprintf("mls/tree: leaf %d: %v", e.Node.Leaf(), e.Err)
	}
	return fmt.Sprintf("mls/tree: parent node %d: %v", e.Node, e.Err)
}

func (e *NodeError) Unwrap() error { return e.Err }

func atNode(n NodeIndex, err error) error { return &NodeError{Node: n, Err: err} }

func atLeaf(l LeafIndex, err error) error { return &NodeError{Node: l.Node(), Err: err} }
