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
	"encoding/hex"

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
	p := new(edwards25519.Point).VarTimeDoubleScalarBaseMult(&e.k, minusA, &e.s)
	p.Subtract(p, e.r)
	return isSmallOrder(p)
}

// entry is one signature whose parts passed every check but the equation.
type entry struct {
	a, r *edwards25519.Point
	s, k edwards25519.Scalar
}

func parse(pub, message, sig []byte) (entry, bool) {
	a, ok := decodePoint(pub)
	if !ok {
		return entry{}, false
	}
	return parseUnder(a, pub, message, sig)
}

// parseUnder is parse with the point of pub at hand.
func parseUnder(a *edwards25519.Point, pub, message, sig []byte) (entry, bool) {
	if len(sig) != SignatureSize {
		return entry{}, false
	}
	e := entry{a: a}
	var ok bool
	if e.r, ok = decodePoint(sig[:32]); !ok {
		return entry{}, false
	}
	if _, err := e.s.SetCanonicalBytes(sig[32:]); err != nil {
		return entry{}, false
	}
	h := sha512.New()
	h.Write(sig[:32])
	h.Write(pub)
	h.Write(message)
	var digest [sha512.Size]byte
	if _, err := e.k.SetUniformBytes(h.Sum(digest[:0])); err != nil {
		return entry{}, false
	}
	return e, true
}

// decodePoint reads a canonical point that is not of small order.
func decodePoint(b []byte) (*edwards25519.Point, bool) {
	if len(b) != PublicKeySize {
		return nil, false
	}
	y := [PublicKeySize]byte(b)
	y[31] &= 0x7f
	// SetBytes takes y >= p and x = 0 with the sign bit set, as RFC 7748
	// readers do. The points with x = 0 have small order, with either sign.
	if !reduced(&y) || smallOrderY(&y) {
		return nil, false
	}
	p, err := new(edwards25519.Point).SetBytes(b)
	return p, err == nil
}

// reduced reports whether y, of 255 bits and little-endian, is below 2^255-19.
func reduced(y *[32]byte) bool {
	if y[0] < 0xed || y[31] != 0x7f {
		return true
	}
	for _, b := range y[1:31] {
		if b != 0xff {
			return true
		}
	}
	return false
}

// smallOrderY reports whether y is the coordinate of a point of order 1, 2, 4 or
// 8. Such points share a y with none of another order.
func smallOrderY(y *[32]byte) bool {
	return *y == order1 || *y == order2 || *y == order4 || *y == order8a || *y == order8b
}

// The y-coordinates of the points of small order, little-endian: 1, -1, 0, and
// the two of order 8.
var (
	order1  = [32]byte{0: 1}
	order2  = [32]byte(unhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"))
	order4  = [32]byte{}
	order8a = [32]byte(unhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"))
	order8b = [32]byte(unhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"))
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err) // a constant of this file
	}
	return b
}

func isSmallOrder(p *edwards25519.Point) bool {
	return new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 1
}

// Batch collects signatures and verifies them together, at less than half of
// the price of one by one from some tens of signatures up. Signatures of one key
// that are added one after the other share the work for the key. The zero value
// is an empty batch. A Batch is for one goroutine.
type Batch struct {
	entries    []entry
	key        [PublicKeySize]byte // of the last entry
	transcript [sha512.Size]byte
	malformed  bool
}

// Add puts one signature into the batch. The arguments are not kept.
func (b *Batch) Add(pub, message, sig []byte) {
	e, ok := b.parse(pub, message, sig)
	if !ok {
		b.malformed = true
		return
	}
	// The transcript chains every signature: k binds R, A and the message,
	// and S is added to it.
	var buf [len(batchDomain) + sha512.Size + PublicKeySize + SignatureSize + 32]byte
	in := append(append(buf[:0], batchDomain...), b.transcript[:]...)
	in = append(append(append(in, pub...), sig...), e.k.Bytes()...)
	b.transcript = sha512.Sum512(in)
	b.entries = append(b.entries, e)
	b.key = [PublicKeySize]byte(pub)
}

// parse takes the point of a key from the last entry when it is that one's.
func (b *Batch) parse(pub, message, sig []byte) (entry, bool) {
	if n := len(b.entries); n > 0 && bytes.Equal(pub, b.key[:]) {
		return parseUnder(b.entries[n-1].a, pub, message, sig)
	}
	return parse(pub, message, sig)
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
	sum, shared := edwards25519.NewScalar(), (*edwards25519.Scalar)(nil)
	coefficients := b.coefficients()
	for i := range b.entries {
		e, z := &b.entries[i], &coefficients[i]
		sum.MultiplyAdd(z, &e.s, sum)
		scalars, points = append(scalars, z), append(points, e.r)
		if i > 0 && e.a == b.entries[i-1].a {
			shared.MultiplyAdd(z, &e.k, shared) // (z_i k_i + z_j k_j) A
			continue
		}
		shared = edwards25519.NewScalar().Multiply(z, &e.k)
		scalars, points = append(scalars, shared), append(points, e.a)
	}
	scalars = append(scalars, sum.Negate(sum))
	points = append(points, edwards25519.NewGeneratorPoint())
	return isSmallOrder(new(edwards25519.Point).VarTimeMultiScalarMult(scalars, points))
}

// coefficientSize is the size of a coefficient, in bytes, coefficientsPerHash how
// many of them one hash gives.
const (
	coefficientSize     = 16
	coefficientsPerHash = sha512.Size / coefficientSize
)

// coefficients draws one for each entry from hashes of the whole batch.
func (b *Batch) coefficients() []edwards25519.Scalar {
	out := make([]edwards25519.Scalar, len(b.entries))
	var digest [sha512.Size]byte
	for i := range out {
		part := i % coefficientsPerHash
		if part == 0 {
			var buf [len(batchDomain) + sha512.Size + 8]byte
			in := append(append(buf[:0], batchDomain...), b.transcript[:]...)
			digest = sha512.Sum512(binary.BigEndian.AppendUint64(in, uint64(i)))
		}
		var canonical [32]byte // 128 bits are below L
		copy(canonical[:], digest[part*coefficientSize:(part+1)*coefficientSize])
		if _, err := out[i].SetCanonicalBytes(canonical[:]); err != nil {
			panic("strict25519: SetCanonicalBytes refused 128 bits")
		}
	}
	return out
}
