package follower

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/askucher/compax-core/internal/parallel"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// UnverifiedKeyPackage is a key package that nobody has checked.
type UnverifiedKeyPackage struct{ k *wire.KeyPackage }

// ParseKeyPackage decodes a KeyPackage, without an MLSMessage around it. The
// error is a [*wire.DecodeError].
func ParseKeyPackage(data []byte) (UnverifiedKeyPackage, error) {
	k := new(wire.KeyPackage)
	if err := wire.Unmarshal(data, k); err != nil {
		return UnverifiedKeyPackage{}, err
	}
	return UnverifiedKeyPackage{k}, nil
}

// UnverifiedFrom takes a key package that was decoded as part of something else.
func UnverifiedFrom(k *wire.KeyPackage) UnverifiedKeyPackage { return UnverifiedKeyPackage{k} }

// KeyPackage is a key package that was verified.
type KeyPackage struct {
	cs  *suite.Suite
	k   *wire.KeyPackage
	ref wire.KeyPackageRef
}

// Verify checks a key package by itself (§10.1). Whether it fits a group is
// checked when it is added. The error wraps [ErrKeyPackage].
func (u UnverifiedKeyPackage) Verify(o Options) (*KeyPackage, error) {
	cs, err := suite.Lookup(u.k.CipherSuite)
	if err != nil {
		return nil, invalid(ErrKeyPackage, "%w", err)
	}
	if err := checkKeyPackages(cs, []*wire.KeyPackage{u.k}, &o); err != nil {
		return nil, err
	}
	return &KeyPackage{cs: cs, k: u.k, ref: cs.KeyPackageRef(u.k)}, nil
}

// Wire returns the structure; do not change it.
func (k *KeyPackage) Wire() *wire.KeyPackage { return k.k }

// Suite returns the cipher suite it is for.
func (k *KeyPackage) Suite() *suite.Suite { return k.cs }

// Ref returns the reference by which a Welcome names it (§5.2).
func (k *KeyPackage) Ref() wire.KeyPackageRef { return k.ref }

// LastResort reports whether it may be used more than once.
func (k *KeyPackage) LastResort() bool { return wire.IsLastResort(k.k.Extensions) }

// KeyPackageCache remembers by hash which key packages have good signatures, so
// that one which was fetched, and checked, is not verified again in the Add and
// in the commit. Lifetimes and credentials are judged each time. The zero value
// is ready; it is safe for concurrent use and holds up to 2 × 4,096 hashes.
type KeyPackageCache struct {
	mu       sync.Mutex // guards both maps
	now, old map[[32]byte]struct{}
}

const cacheGeneration = 4096

func (c *KeyPackageCache) has(h [32]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.now[h]; ok {
		return true
	}
	_, ok := c.old[h]
	return ok
}

func (c *KeyPackageCache) add(h [32]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || len(c.now) >= cacheGeneration {
		c.old, c.now = c.now, make(map[[32]byte]struct{}, 64)
	}
	c.now[h] = struct{}{}
}

// How many key packages one signature batch holds, two signatures each: large
// enough for a batch to pay, small enough to share out.
const minPackages, maxPackages = 3, 32

// checkKeyPackages checks key packages for a suite (§10.1, §7.3), signatures in
// batches. Errors name the first bad one by its position when there are several.
func checkKeyPackages(cs *suite.Suite, list []*wire.KeyPackage, o *Options) error {
	var unseen []int
	hashes := make([][32]byte, len(list))
	for i, k := range list {
		if err := checkKeyPackageForm(cs, k, o); err != nil {
			return at(i, len(list), err)
		}
		if o.KeyPackages != nil {
			hashes[i] = sha256.Sum256(wire.Marshal(k))
			if o.KeyPackages.has(hashes[i]) {
				continue
			}
		}
		unseen = append(unseen, i)
	}
	if err := verifyPackageSignatures(cs, list, unseen, o.Parallel); err != nil {
		return err
	}
	for _, i := range unseen {
		if o.KeyPackages != nil {
			o.KeyPackages.add(hashes[i])
		}
	}
	for i, k := range list {
		if o.Credentials == nil {
			break
		}
		if err := o.Credentials.ValidateCredential(&k.LeafNode, nil, o.Now); err != nil {
			return at(i, len(list), invalid(ErrKeyPackage, "%w: %w", tree.ErrCredential, err))
		}
	}
	return nil
}

// at says which of several key packages an error is about.
func at(i, of int, err error) error {
	// mutants: equivalent: only the wording differs
	if of == 1 {
		return err
	}
	return fmt.Errorf("key package %d of %d: %w", i+1, of, err)
}

// checkKeyPackageForm checks everything but signatures and credential.
func checkKeyPackageForm(cs *suite.Suite, k *wire.KeyPackage, o *Options) error {
	if k.Version != wire.ProtocolVersionMLS10 {
		return invalid(ErrKeyPackage, "its version is %d", k.Version)
	}
	if k.CipherSuite != cs.ID() {
		return invalid(ErrKeyPackage, "its cipher suite is %#04x, not %#04x", uint16(k.CipherSuite), uint16(cs.ID()))
	}
	if err := cs.ValidateHPKEPublicKey(k.InitKey); err != nil {
		return invalid(ErrKeyPackage, "init_key: %w", err)
	}
	if string(k.InitKey) == string(k.LeafNode.EncryptionKey) {
		return invalid(ErrKeyPackage, "init_key is its encryption_key")
	}
	if err := tree.CheckExtensions(k.Extensions, &k.LeafNode.Capabilities); err != nil {
		return invalid(ErrKeyPackage, "%w", err)
	}
	lo := o.leaf(wire.LeafNodeSourceKeyPackage, nil, 0, nil)
	lo.SignatureVerified, lo.Credentials = true, nil // both follow
	if err := tree.ValidateLeaf(cs, &k.LeafNode, lo); err != nil {
		return invalid(ErrKeyPackage, "%w", err)
	}
	return nil
}

func verifyPackageSignatures(cs *suite.Suite, list []*wire.KeyPackage, which []int, inParallel bool) error {
	verify := func(chunk []int) error {
		batch := cs.NewSignatureBatch()
		for _, i := range chunk {
			k := list[i]
			batch.Add(k.LeafNode.SignatureKey, "LeafNodeTBS", leafTBS(&k.LeafNode), k.LeafNode.Signature)
			batch.Add(k.LeafNode.SignatureKey, "KeyPackageTBS", wire.Marshal((*wire.KeyPackageTBS)(k)), k.Signature)
		}
		if batch.Verify() {
			return nil
		}
		for _, i := range chunk {
			k := list[i]
			if err := cs.ValidateSignaturePublicKey(k.LeafNode.SignatureKey); err != nil {
				return at(i, len(list), invalid(ErrKeyPackage, "%w: signature_key: %w", tree.ErrPublicKey, err))
			}
			if !cs.VerifyWithLabel(k.LeafNode.SignatureKey, "LeafNodeTBS", leafTBS(&k.LeafNode), k.LeafNode.Signature) {
				return at(i, len(list), invalid(ErrKeyPackage, "%w: of its leaf node", ErrSignature))
			}
			if !cs.VerifyWithLabel(k.LeafNode.SignatureKey, "KeyPackageTBS", wire.Marshal((*wire.KeyPackageTBS)(k)), k.Signature) {
				return at(i, len(list), invalid(ErrKeyPackage, "%w: of the whole", ErrSignature))
			}
		}
		return nil
	}
	workers := 1
	if inParallel {
		workers = runtime.GOMAXPROCS(0)
	}
	size := min(max((len(which)+workers-1)/workers, minPackages), maxPackages)
	chunks := slices.Collect(slices.Chunk(which, size))
	errs := make([]error, len(chunks))
	do := parallel.Do
	if !inParallel {
		do = parallel.InTurn
	}
	do(len(chunks), func(i int) { errs[i] = verify(chunks[i]) })
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// leafTBS is what the signature of a key package's leaf covers.
func leafTBS(leaf *wire.LeafNode) []byte { return wire.Marshal(&wire.LeafNodeTBS{LeafNode: leaf}) }
