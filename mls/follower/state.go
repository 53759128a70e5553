package follower

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// Stored state is a base, written once, and a change for each commit. Both begin
// with a version and end in a checksum, so that damage and programs that are too
// old are noticed, and the tree is hashed again when it is loaded. Held proposals
// are not in it: they are messages, and [Group.Restore] takes them back.
const (
	baseVersion  = 1
	deltaVersion = 1
)

// flags of stored state.
const flagClosed = 1

func stateError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrState, fmt.Errorf(format, args...))
}

func (g *Group) flags() uint8 {
	if g.closed {
		return flagClosed
	}
	return 0
}

// seal appends the checksum of b from a place on, and unseal checks and removes it.
func seal(b []byte, from int) []byte {
	sum := sha256.Sum256(b[from:])
	return append(b, sum[:]...)
}

func unseal(b []byte) ([]byte, error) {
	n := len(b) - sha256.Size
	if n < 0 {
		return nil, stateError("%d bytes are too few", len(b))
	}
	if sum := sha256.Sum256(b[:n]); !bytes.Equal(sum[:], b[n:]) {
		return nil, stateError("the checksum of %d bytes is wrong", len(b))
	}
	return b[:n], nil
}

// Marshal returns the group as a base: self-contained, about as large as its
// tree. Held proposals are left out.
func (g *Group) Marshal() []byte {
	nodes := g.tree.RatchetTree()
	b := make([]byte, 0, 512+300*g.tree.Members())
	b = wire.AppendUint8(b, baseVersion)
	b = wire.AppendUint8(b, g.flags())
	b = g.context.AppendTo(b)
	b = wire.AppendOpaque(b, g.tag)
	b = nodes.AppendTo(b)
	return seal(b, 0)
}

// base is the content of a stored base.
type base struct {
	flags   uint8
	context wire.GroupContext
	tag     wire.MAC
	nodes   wire.RatchetTree
}

func (s *base) DecodeFrom(r *wire.Reader) {
	if r.Uint8() != baseVersion {
		r.Fail(wire.ErrVersion)
	}
	if s.flags = r.Uint8(); s.flags > flagClosed {
		r.Fail(wire.ErrValue)
	}
	s.context.DecodeFrom(r)
	s.tag = r.Opaque()
	s.nodes.DecodeFrom(r)
}

// Unmarshal loads a base that [Group.Marshal] wrote. It checks the checksum and
// the tree hash, not signatures again: what is stored was verified. Errors wrap
// [ErrState].
func Unmarshal(data []byte) (*Group, error) {
	body, err := unseal(data)
	if err != nil {
		return nil, err
	}
	var s base
	if err := wire.Unmarshal(body, &s); err != nil {
		return nil, stateError("base: %w", err)
	}
	cs, err := suiteOf(s.context.CipherSuite)
	if err != nil {
		return nil, err
	}
	u, err := tree.Parse(cs, s.nodes)
	if err != nil {
		return nil, stateError("base: %w", err)
	}
	return stored(u.Trust(), s.context, wire.Marshal(&s.context), s.tag, s.flags)
}

// stored puts a group together from loaded parts.
func stored(t *tree.Tree, context wire.GroupContext, encoded []byte, tag wire.MAC, flags uint8) (*Group, error) {
	if !bytes.Equal(t.Hash(), context.TreeHash) {
		return nil, stateError("epoch %d: %w", context.Epoch, tree.ErrTreeHash)
	}
	terms, err := readTerms(context.Extensions)
	if err != nil {
		return nil, stateError("epoch %d: %w", context.Epoch, err)
	}
	g := newGroup(t.Suite(), context, encoded, terms, t, tag)
	g.closed = flags&flagClosed != 0
	return g, nil
}

// AppendDelta appends to b the change from the group before, of the epoch before,
// to g. Its size is that of what the commit changed: the path, the leaves, the
// extensions only when they are others.
func (g *Group) AppendDelta(b []byte, before *Group) []byte {
	from := len(b)
	b = wire.AppendUint8(b, deltaVersion)
	b = wire.AppendUint8(b, g.flags())
	b = wire.AppendOpaque(b, before.stamp())
	b = wire.AppendUint64(b, g.context.Epoch)
	b = wire.AppendOpaque(b, g.context.TreeHash)
	b = wire.AppendOpaque(b, g.context.ConfirmedTranscriptHash)
	b = wire.AppendOpaque(b, g.tag)
	b = wire.AppendOptional(b, g.changedExtensions(before))
	b = g.tree.AppendDelta(b, before.tree)
	return seal(b, from)
}

// Delta returns the change to [Staged.Apply], to be stored with the commit.
func (s *Staged) Delta() []byte { return s.Apply().AppendDelta(nil, s.group) }

// changedExtensions returns the extensions when they differ from before's.
func (g *Group) changedExtensions(before *Group) *wire.Extensions {
	x := g.context.Extensions
	if bytes.Equal(wire.Marshal(&x), wire.Marshal(&before.context.Extensions)) {
		return nil
	}
	return &x
}

// stamp identifies a state in the change that follows on it.
func (g *Group) stamp() []byte { return stamp(g.encoded, g.tag) }

func stamp(context []byte, tag wire.MAC) []byte {
	sum := sha256.Sum256(append(context[:len(context):len(context)], tag...))
	return sum[:16]
}

// ApplyDelta loads the change that [Group.AppendDelta] wrote and gives the group
// of the next epoch. Errors wrap [ErrState].
func (g *Group) ApplyDelta(data []byte) (*Group, error) { return g.ApplyDeltas(data) }

// ApplyDeltas loads changes one after the other and gives the group after the
// last one. The tree hash is compared there: it covers what all of them left.
// Errors wrap [ErrState].
func (g *Group) ApplyDeltas(deltas ...[]byte) (*Group, error) {
	if len(deltas) == 0 {
		return g, nil
	}
	edit := g.tree.Edit()
	at := replayed{context: g.context, encoded: g.encoded, tag: g.tag}
	for _, data := range deltas {
		if err := at.apply(edit, data); err != nil {
			return nil, err
		}
	}
	return stored(edit.Freeze(), at.context, at.encoded, at.tag, at.flags)
}

// replayed is a state between two changes, without its tree.
type replayed struct {
	context wire.GroupContext
	encoded []byte // context
	tag     wire.MAC
	flags   uint8
}

// apply reads a change, checks that it follows on s, and changes s and the tree.
func (s *replayed) apply(edit *tree.Editor, data []byte) error {
	body, err := unseal(data)
	if err != nil {
		return err
	}
	r := wire.NewReader(bytes.Clone(body))
	if r.Uint8() != deltaVersion {
		r.Fail(wire.ErrVersion)
	}
	if s.flags = r.Uint8(); s.flags > flagClosed {
		r.Fail(wire.ErrValue)
	}
	before, expected := r.Opaque(), stamp(s.encoded, s.tag)
	epoch := s.context.Epoch + 1
	s.context.Epoch = r.Uint64()
	s.context.TreeHash = r.Opaque()
	s.context.ConfirmedTranscriptHash = r.Opaque()
	s.tag = r.Opaque()
	if x := wire.ReadOptional[wire.Extensions](r); x != nil {
		s.context.Extensions = *x
	}
	if err := r.Err(); err != nil {
		return stateError("change: %w", err)
	}
	if !bytes.Equal(before, expected) || s.context.Epoch != epoch {
		return stateError("the change to epoch %d does not follow on this state of epoch %d", s.context.Epoch, epoch-1)
	}
	s.encoded = wire.Marshal(&s.context)
	if err := edit.ApplyDelta(r); err != nil {
		return stateError("change: %w", err)
	}
	if err := r.Finish(); err != nil {
		return stateError("change: %w", err)
	}
	return nil
}

// Load loads a base and the changes after it, in order. Errors wrap [ErrState].
func Load(base []byte, deltas ...[]byte) (*Group, error) {
	g, err := Unmarshal(base)
	if err != nil {
		return nil, err
	}
	return g.ApplyDeltas(deltas...)
}

// suiteOf is suite.Lookup with the error of stored state.
func suiteOf(id wire.CipherSuite) (*suite.Suite, error) {
	cs, err := suite.Lookup(id)
	if err != nil {
		return nil, stateError("%w", err)
	}
	return cs, nil
}
