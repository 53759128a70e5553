package mls

import (
	"fmt"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// exporterTree is the Exporter Tree of draft-ietf-mls-extensions Section 4.4: a
// secret tree of 2^16 leaves, one per component, each used at most once. It is
// immutable and derived lazily like secretTree.
type exporterTree struct {
	root *secretNode
}

// exporterRoot is the node index of the root of a tree of 2^16 leaves.
const exporterRoot = 1<<16 - 1

func newExporterTree(applicationExportSecret Secret) *exporterTree {
	return &exporterTree{root: &secretNode{secret: applicationExportSecret}}
}

// export takes the secret of a component. The next tree no longer holds it.
func (t *exporterTree) export(cs *suite.Suite, component wire.ComponentID) (Secret, *exporterTree, secretTreeChange, error) {
	change := secretTreeChange{leaf: uint32(component)}
	if t.root.forgotten(exporterRoot, uint32(component)) {
		return nil, nil, change, ErrForgotten
	}
	root, secret := t.root.take(cs, exporterRoot, uint32(component), &change)
	if secret == nil {
		return nil, nil, change, fmt.Errorf("%w: the secret of component %#04x was exported in this epoch already", ErrKeyConsumed, uint16(component))
	}
	return secret, &exporterTree{root: root}, change, nil
}

// take is open for a tree whose leaves are secrets.
func (n *secretNode) take(cs *suite.Suite, index, leaf uint32, change *secretTreeChange) (*secretNode, Secret) {
	if n == nil {
		return nil, nil
	}
	c := *n
	if level(index) == 0 {
		if c.secret == nil {
			return nil, nil
		}
		secret := c.secret.clone()
		change.consume(index, c.secret)
		c.secret = nil
		return &c, secret
	}
	if c.secret != nil {
		c.left = &secretNode{secret: cs.ExpandWithLabel(c.secret, "tree", []byte("left"), cs.HashSize())}
		c.right = &secretNode{secret: cs.ExpandWithLabel(c.secret, "tree", []byte("right"), cs.HashSize())}
		change.consume(index, c.secret)
		change.derived = append(change.derived, childIndex(index, false), childIndex(index, true))
		c.secret = nil
	}
	var secret Secret
	if goesRight(index, leaf) {
		c.right, secret = c.right.take(cs, childIndex(index, true), leaf, change)
	} else {
		c.left, secret = c.left.take(cs, childIndex(index, false), leaf, change)
	}
	return &c, secret
}

// asSecretTree lets the exporter tree be stored like a secret tree.
func (t *exporterTree) asSecretTree() *secretTree { return &secretTree{width: 1 << 16, root: t.root} }
