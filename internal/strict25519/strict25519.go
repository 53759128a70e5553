// Package strict25519 verifies Ed25519 signatures by one strict rule, the same
// for single signatures and for batches, so that every member, every server and
// every batch of either reaches the same verdict on the same bytes.
//
// The rule is RFC 8032 section 5.1.7 with every choice it leaves open closed:
//
//   - the public key A and the commitment R are canonical encodings of points
//     on the curve (y < 2^255-19, and no "negative zero" x);
//   - neither A nor R has small order (order dividing 8), so no signature holds
//     for two messages and no key signs everything;
//   - S is canonical (S < L), so nobody can turn one valid signature into
//     another valid one;
//   - the cofactored equation [8][S]B = [8]R + [8][k]A holds. It is the
//     equation of the RFC and the only one that a batch can decide exactly.
//
// Signatures made by any conforming signer pass. Signing needs nothing special
// and is left to crypto/ed25519. The package never takes randomness: the
// coefficients of a batch are derived from everything that the batch holds.
//
// Start reading at Verify.
package strict25519

import (
	"bytes"
	"crypto/sha512"
	"encoding/binary"

	"filippo.io/edwards25519"
)

const (
	// PublicKeySize is the size of an encoded public key, in bytes.
	PublicKeySize = 32
	// SignatureSize is the size of a signature R ‖ S, in bytes.
	SignatureSize = 64
)

// batchDomain separates the hash that derives batch coefficients from every
// other use of SHA-512 here.
const batchDomain = "compax-strict25519-batch-v1"

// ValidPublicKey reports whether pub is a key under which Verify could accept
// anything: 32 bytes, canonical, on the curve and not of small order.
func ValidPublicKey(pub []byte) bool {
	_, ok := decodePoint(pub)
	return ok
}

// Verify reports whether sig is a valid signature of message under pub by the
// strict rule of the package. Wrong sizes are simply invalid.
func Verify(pub, message, sig []byte) bool {
	e, ok := parse(pub, message, sig)
	if !ok {
		return false
	}
	// [S]B - [k]A, then minus R, then times 8.
	minusA := new(edwards25519.Point).Negate(e.a)
	p := new(edwards25519.Point).VarTimeDoubleScalarBaseMult(e.k, minusA, e.s)
	p.Subtract(p, e.r)
	return isSmallOrder(p)
}

// entry is one signature whose parts passed every check but the equation.
type entry struct {
	a, r *edwards25519.Point
	s, k *edwards25519.Scalar
}

func parse(pub, message, sig []byte) (entry, bool) {
	if len(sig) != SignatureSize {
		return entry{}, false
	}
	a, ok := decodePoint(pub)
	if !ok {
		return entry{}, false
	}
	r, ok := decodePoint(sig[:32])
	if !ok {
		return entry{}, false
	}
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(sig[32:])
	if err != nil {
		return entry{}, false
	}
	h := sha512.New()
	h.Write(sig[:32])
	h.Write(pub)
	h.Write(message)
	k, err := new(edwards25519.Scalar).SetUniformBytes(h.Sum(nil))
	if err != nil {
		return entry{}, false
	}
	return entry{a: a, r: r, s: s, k: k}, true
}

// decodePoint reads a canonical point that is not of small order.
func decodePoint(b []byte) (*edwards25519.Point, bool) {
	if len(b) != PublicKeySize {
		return nil, false
	}
	p, err := new(edwards25519.Point).SetBytes(b)
	if err != nil {
		return nil, false
	}
	// SetBytes takes y >= p and x = 0 with the sign bit set, as RFC 7748
	// readers do; encoding the point again shows both.
	if !bytes.Equal(p.Bytes(), b) || isSmallOrder(p) {
		return nil, false
	}
	return p, true
}

func isSmallOrder(p *edwards25519.Point) bool {
	return new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 1
}

// Batch collects signatures and verifies them together, at less than half of
// the price of one by one from some tens of signatures up. The zero value is an
// empty batch. A Batch is for one goroutine.
type Batch struct {
	entries    []entry
	transcript [sha512.Size]byte
	malformed  bool
}

// Add puts one signature into the batch. The arguments are not kept.
func (b *Batch) Add(pub, message, sig []byte) {
	e, ok := parse(pub, message, sig)
	if !ok {
		b.malformed = true
		return
	}
	// The transcript chains every signature: k binds R, A and the message,
	// and S is added to it.
	h := sha512.New()
	h.Write([]byte(batchDomain))
	h.Write(b.transcript[:])
	h.Write(pub)
	h.Write(sig)
	h.Write(e.k.Bytes())
	h.Sum(b.transcript[:0])
	b.entries = append(b.entries, e)
}

// Verify reports whether Verify of the package accepts every signature that was
// added. An empty batch is valid. To learn which one is bad, verify one by one.
func (b *Batch) Verify() bool {
	if b.malformed {
		return false
	}
	if len(b.entries) == 0 {
		return true
	}
	// 8 * ( -(sum z_i s_i) B + sum z_i R_i + sum (z_i k_i) A_i ) = identity,
	// with z_i of 128 bits drawn from the hash of the whole batch: nobody can
	// choose one signature to cancel another.
	n := len(b.entries)
	scalars := make([]*edwards25519.Scalar, 0, 2*n+1)
	points := make([]*edwards25519.Point, 0, 2*n+1)
	sum := edwards25519.NewScalar()
	for i, e := range b.entries {
		z := b.coefficient(i)
		sum.MultiplyAdd(z, e.s, sum)
		scalars = append(scalars, z, edwards25519.NewScalar().Multiply(z, e.k))
		points = append(points, e.r, e.a)
	}
	scalars = append(scalars, sum.Negate(sum))
	points = append(points, edwards25519.NewGeneratorPoint())
	return isSmallOrder(new(edwards25519.Point).VarTimeMultiScalarMult(scalars, points))
}

func (b *Batch) coefficient(i int) *edwards25519.Scalar {
	h := sha512.New()
	h.Write([]byte(batchDomain))
	h.Write(b.transcript[:])
	var index [8]byte
	binary.BigEndian.PutUint64(index[:], uint64(i))
	h.Write(index[:])
	digest := h.Sum(nil)
	var wide [64]byte
	copy(wide[:16], digest[:16])
	z, err := edwards25519.NewScalar().SetUniformBytes(wide[:])
	if err != nil {
		panic("strict25519: SetUniformBytes refused 64 bytes")
	}
	return z
}
