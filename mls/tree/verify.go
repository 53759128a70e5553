package tree

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/askucher/compax-core/internal/parallel"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// VerifyOptions says which group a tree claims to be of.
type VerifyOptions struct {
	// GroupID is covered by the signatures of leaves.
	GroupID []byte
	// TreeHash is the hash that the group agreed on (Section 8.1); nil skips
	// the comparison.
	TreeHash []byte
	// Extensions are those of the GroupContext, RequiredCapabilities what they
	// require (nil: nothing).
	Extensions           wire.Extensions
	RequiredCapabilities *wire.RequiredCapabilities
	// LifetimeAt is when all leaves of key packages must be valid. Zero, as is
	// usual, accepts members whose lifetime ended while they were in the group.
	LifetimeAt  time.Time
	MaxLifetime time.Duration
	// Credentials judges every leaf, at Now; nil leaves that to the caller.
	Credentials CredentialValidator
	Now         time.Time
	// Beside holds signatures that are to be verified together with those of the
	// leaves, which costs half as much as by themselves; nil for none. When one of
	// them does not verify and everything else does, the error wraps [ErrBeside].
	Beside *suite.SignatureBatch
	// Parallel lets up to GOMAXPROCS goroutines verify signatures. None
	// survives the call.
	Parallel bool
}

// Verify checks everything that a joiner must check of a tree (Section
// 12.4.3.1) and returns it. Errors say at which node, as [*NodeError], and wrap
// one of the errors of this package.
func (u *Unverified) Verify(o VerifyOptions) (*Tree, error) {
	t := u.t
	if o.TreeHash != nil && !slices.Equal(t.Hash(), o.TreeHash) {
		return nil, fmt.Errorf("mls/tree: %w", ErrTreeHash)
	}
	for _, check := range []func() error{
		t.checkUnmerged,
		t.checkAllKeys,
		t.checkParentHashes,
		func() error { return t.CheckSupport(o.Extensions, o.RequiredCapabilities) },
		func() error { return t.checkLeaves(&o) },
		func() error { return t.checkCredentials(&o) },
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// checkUnmerged checks every unmerged_leaves list: it ascends, and names filled
// leaves below its node that every filled node in between lists as well
// (Sections 7.1, 12.4.3.1).
func (t *Tree) checkUnmerged() (err error) {
	walk(t.root, t.Root(), func(n *node, at NodeIndex) bool {
		if err != nil || n.parent == nil {
			return err == nil && n.filled
		}
		list := n.parent.UnmergedLeaves
		for i, l := range list {
			if i > 0 && list[i-1] >= l || !at.Contains(LeafIndex(l)) || !unmergedBelow(n, at, LeafIndex(l)) {
				err = atNode(at, ErrUnmergedLeaves)
				return false
			}
		}
		return true
	})
	return err
}

// unmergedBelow reports whether the next filled node on the way from n down to l
// lists l as unmerged, or is the filled leaf l. The nodes further down are
// looked at when that node is.
func unmergedBelow(n *node, at NodeIndex, l LeafIndex) bool {
	for n.left != nil {
		if at.Left().Contains(l) {
			n, at = n.left, at.Left()
		} else {
			n, at = n.right, at.Right()
		}
		if n.parent != nil {
			_, listed := slices.BinarySearch(n.parent.UnmergedLeaves, uint32(l))
			return listed
		}
	}
	return n.leaf != nil
}

// checkAllKeys checks that no encryption key stands at two nodes and no
// signature key at two leaves, and that parents' keys are keys of the suite.
func (t *Tree) checkAllKeys() (err error) {
	encryption := make(map[string]struct{}, 2*t.Members())
	signature := make(map[string]struct{}, t.Members())
	walk(t.root, t.Root(), func(n *node, at NodeIndex) bool {
		if err != nil || n.blank() {
			return err == nil && n.filled
		}
		if _, twice := encryption[string(n.key())]; twice {
			err = atNode(at, fmt.Errorf("%w: encryption_key", ErrDuplicateKey))
			return false
		}
		encryption[string(n.key())] = struct{}{}
		if n.parent != nil {
			if e := t.cs.ValidateHPKEPublicKey(n.parent.EncryptionKey); e != nil {
				err = atNode(at, fmt.Errorf("%w: encryption_key: %w", ErrPublicKey, e))
			}
			return err == nil
		}
		if _, twice := signature[string(n.leaf.SignatureKey)]; twice {
			err = atNode(at, fmt.Errorf("%w: signature_key", ErrDuplicateKey))
			return false
		}
		signature[string(n.leaf.SignatureKey)] = struct{}{}
		return true
	})
	return err
}

// How many leaves one batch holds: large enough for a batch to pay, small enough to
// share out. Handing one over costs some µs, its five signatures more than 100.
const minChunk, maxChunk = 5, 64

// checkLeaves validates every leaf by itself, signatures in batches.
func (t *Tree) checkLeaves(o *VerifyOptions) error {
	type member struct {
		index LeafIndex
		leaf  *wire.LeafNode
	}
	members := make([]member, 0, t.Members())
	for l, leaf := range t.Leaves() {
		members = append(members, member{l, leaf})
	}
	verify := func(chunk []member, batch *suite.SignatureBatch, beside bool) error {
		lo := LeafOptions{GroupID: o.GroupID, Now: o.LifetimeAt, MaxLifetime: o.MaxLifetime}
		for _, m := range chunk {
			if err := checkLeaf(t.cs, m.leaf, &lo); err != nil {
				return atLeaf(m.index, err)
			}
			AddLeafSignature(batch, m.leaf, o.GroupID, m.index)
		}
		if batch.Verify() {
			return nil
		}
		for _, m := range chunk {
			if err := checkLeafSignature(t.cs, m.leaf, o.GroupID, m.index); err != nil {
				return atLeaf(m.index, err)
			}
		}
		if beside {
			return fmt.Errorf("mls/tree: %w", ErrBeside)
		}
		return nil
	}
	workers := 1
	if o.Parallel {
		workers = runtime.GOMAXPROCS(0)
	}
	size := min(max((len(members)+workers-1)/workers, minChunk), maxChunk)
	chunks := slices.Collect(slices.Chunk(members, size))
	if len(chunks) == 0 && o.Beside != nil {
		chunks = append(chunks, nil) // no leaves, but signatures
	}
	errs := make([]error, len(chunks))
	do := parallel.Do
	if !o.Parallel {
		do = parallel.InTurn
	}
	do(len(chunks), func(i int) {
		batch, beside := t.cs.NewSignatureBatch(), i == 0 && o.Beside != nil
		if beside {
			batch = o.Beside
		}
		errs[i] = verify(chunks[i], batch, beside)
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkCredentials asks the application about every leaf.
func (t *Tree) checkCredentials(o *VerifyOptions) error {
	if o.Credentials == nil {
		return nil
	}
	if all, ok := o.Credentials.(MembersValidator); ok {
		leaves := make([]*wire.LeafNode, 0, t.Members())
		for _, leaf := range t.Leaves() {
			leaves = append(leaves, leaf)
		}
		if err := all.ValidateMembers(leaves, o.Now); err != nil {
			return fmt.Errorf("mls/tree: %w: %w", ErrCredential, err)
		}
		return nil
	}
	for l, leaf := range t.Leaves() {
		if err := checkCredential(leaf, &LeafOptions{Credentials: o.Credentials, Now: o.Now}); err != nil {
			return atLeaf(l, err)
		}
	}
	return nil
}
