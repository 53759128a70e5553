package tree

import (
	"fmt"
	"slices"

	"github.com/askucher/compax-core/mls/wire"
)

// What a stored change does to one node.
const (
	changeBlank    = 0 // it becomes blank
	changeLeaf     = 1 // a LeafNode follows
	changeParent   = 2 // a ParentNode follows
	changeUnmerged = 3 // the leaves follow that are unmerged in addition
)

// AppendDelta appends to b what turns the tree before into t: the width, and
// each node that was given another content. Its size is that of the changed
// nodes, whatever the size of the tree. t must come from editing before.
func (t *Tree) AppendDelta(b []byte, before *Tree) []byte {
	b = wire.AppendUint8(b, uint8(t.top))
	b, mark := wire.OpenVector(b)
	old, now, at := before.root, t.root, t.Root()
	switch {
	case t.top < before.top:
		for range before.top - t.top {
			old = old.left
		}
	case t.top > before.top:
		// The old tree is at the bottom left; all around it was blank.
		for range t.top - before.top {
			b = appendChange(b, nil, now, at)
			b = appendChanges(b, nil, now.right, at.Right())
			now, at = now.left, at.Left()
		}
	}
	b = appendChanges(b, old, now, at)
	return wire.CloseVector(b, mark)
}

// appendChanges appends the changes from old, nil for blank, to now and below.
func appendChanges(b []byte, old, now *node, at NodeIndex) []byte {
	if old == now || old == nil && !now.filled {
		return b
	}
	b = appendChange(b, old, now, at)
	if now.left == nil {
		return b
	}
	var oldLeft, oldRight *node
	if old != nil {
		oldLeft, oldRight = old.left, old.right
	}
	b = appendChanges(b, oldLeft, now.left, at.Left())
	return appendChanges(b, oldRight, now.right, at.Right())
}

func appendChange(b []byte, old, now *node, at NodeIndex) []byte {
	if old == nil {
		old = &node{}
	}
	if old.leaf == now.leaf && old.parent == now.parent {
		return b
	}
	b = wire.AppendUint32(b, uint32(at))
	switch {
	case now.leaf != nil:
		return now.leaf.AppendTo(wire.AppendUint8(b, changeLeaf))
	case now.parent == nil:
		return wire.AppendUint8(b, changeBlank)
	}
	if more, ok := added(old.parent, now.parent); ok {
		return wire.AppendUint32Vector(wire.AppendUint8(b, changeUnmerged), more)
	}
	return now.parent.AppendTo(wire.AppendUint8(b, changeParent))
}

// added returns the unmerged leaves that now has more than old, when that is all
// in which they differ.
func added(old, now *wire.ParentNode) ([]uint32, bool) {
	if old == nil || string(old.EncryptionKey) != string(now.EncryptionKey) ||
		// mutants: equivalent: a parent hash changes only together with the key
		string(old.ParentHash) != string(now.ParentHash) {
		return nil, false
	}
	var more []uint32
	i := 0
	for _, l := range now.UnmergedLeaves {
		if i < len(old.UnmergedLeaves) && old.UnmergedLeaves[i] == l {
			i++
		} else {
			more = append(more, l)
		}
	}
	return more, i == len(old.UnmergedLeaves)
}

// stored is one change as it was read.
type stored struct {
	at     NodeIndex
	kind   uint8
	leaf   *wire.LeafNode
	parent *wire.ParentNode
	more   []uint32
}

// ApplyDelta returns the tree that a change stored by [Tree.AppendDelta] turns t
// into. It reads the change from r, checks that it fits, and nothing more: what
// is stored was verified before, and the caller compares the tree hash. The
// error wraps [ErrDelta].
func (t *Tree) ApplyDelta(r *wire.Reader) (*Tree, error) {
	e := t.Edit()
	if err := e.ApplyDelta(r); err != nil {
		return nil, err
	}
	return e.Freeze(), nil
}

// ApplyDelta is [Tree.ApplyDelta] of the tree as it is now, for several changes
// one after the other: the trees between them are never hashed. After an error
// the Editor must not be used.
func (e *Editor) ApplyDelta(r *wire.Reader) error {
	top := int(r.Uint8())
	var changes []stored
	leaves := 0
	outer := r.EnterVector()
	for r.More() {
		c := stored{at: NodeIndex(r.Uint32()), kind: r.Uint8()}
		switch c.kind {
		case changeBlank:
		case changeLeaf:
			c.leaf = new(wire.LeafNode)
			c.leaf.DecodeFrom(r)
			leaves++
		case changeParent:
			c.parent = new(wire.ParentNode)
			c.parent.DecodeFrom(r)
		case changeUnmerged:
			c.more = wire.ReadUint32Vector[uint32](r)
		default:
			r.Fail(wire.ErrValue)
		}
		changes = append(changes, c)
	}
	r.LeaveVector(outer)
	if err := r.Err(); err != nil {
		return fmt.Errorf("mls/tree: %w: %w", ErrDelta, err)
	}
	if err := e.resize(top, leaves); err != nil {
		return err
	}
	for i := range changes {
		if err := e.change(&changes[i]); err != nil {
			return err
		}
	}
	return nil
}

// resize gives the tree the width 2^top. New leaves go to the leftmost blank
// places, so a tree never becomes wider than twice what its members and the new
// leaves fill; that bounds memory by what is there to read.
func (e *Editor) resize(top, leaves int) error {
	if top > e.top && (top > 24 || 1<<top > 2*(int(e.Width())+leaves)) {
		return fmt.Errorf("mls/tree: %w: %d leaves cannot widen %d to 2^%d", ErrDelta, leaves, e.Width(), top)
	}
	for e.top < top {
		if err := e.extend(); err != nil {
			return err
		}
	}
	for e.top > top {
		e.root = e.root.left
		e.top--
	}
	return nil
}

// change sets the content of one node.
func (e *Editor) change(c *stored) error {
	at, level := c.at, c.at.Level()
	if uint64(at) >= 2<<e.top-1 { // so no level is above the root's either
		return fmt.Errorf("mls/tree: %w: node %d of a tree of %d leaves", ErrDelta, at, e.Width())
	}
	if isLeaf := c.kind == changeLeaf; c.kind != changeBlank && isLeaf != at.IsLeaf() {
		return fmt.Errorf("mls/tree: %w: node %d cannot hold that content", ErrDelta, at)
	}
	first, _ := at.span()
	way, err := e.way(first) // owns some nodes too many, which is harmless
	if err != nil {
		return err
	}
	n := way[e.top-level]
	switch {
	case c.kind != changeUnmerged:
		n.leaf, n.parent = c.leaf, c.parent
	case n.parent == nil:
		return fmt.Errorf("mls/tree: %w: node %d is blank", ErrDelta, at)
	default:
		p := *n.parent
		p.UnmergedLeaves = append(slices.Clone(p.UnmergedLeaves), c.more...)
		slices.Sort(p.UnmergedLeaves)
		n.parent = &p
	}
	n.ownParent = false
	settle(way)
	return nil
}
