package hpke

import (
	"crypto/subtle"

	"filippo.io/edwards25519"
	"filippo.io/edwards25519/field"
)

// x25519 is X25519 (RFC 7748 §5). The base point is multiplied on the Edwards
// curve, where a table of its multiples is at hand, and mapped back; any other
// point by the Montgomery ladder. crypto/ecdh would multiply the base point by
// the ladder for each key that it is given, which is half of all the work here.
type x25519 struct{}

func (x25519) SecretSize() int { return 32 }

func (x25519) Public(secret []byte) ([]byte, error) {
	scalar, err := edwards25519.NewScalar().SetBytesWithClamping(secret)
	if err != nil {
		return nil, ErrKey
	}
	return new(edwards25519.Point).ScalarBaseMult(scalar).BytesMontgomery(), nil
}

func (x25519) DH(secret, public []byte) ([]byte, error) {
	if len(secret) != 32 || len(public) != 32 {
		return nil, ErrKey
	}
	shared := ladder([32]byte(secret), public)
	var zero [32]byte
	if subtle.ConstantTimeCompare(shared, zero[:]) == 1 {
		return nil, ErrKey // a point of low order: RFC 9180 §7.1.4
	}
	return shared, nil
}

func (x25519) Derive(expand func(label string, info []byte, length int) []byte) ([]byte, error) {
	secret := expand("sk", nil, 32)
	clamp((*[32]byte)(secret))
	return secret, nil
}

func clamp(e *[32]byte) {
	e[0] &= 248
	e[31] &= 127
	e[31] |= 64
}

// ladder multiplies the point with the given u-coordinate by the clamped
// scalar, in constant time (RFC 7748 §5).
func ladder(scalar [32]byte, u []byte) []byte {
	clamp(&scalar)
	defer clear(scalar[:])

	var x1, x2, z2, x3, z3, a, b field.Element
	if _, err := x1.SetBytes(u); err != nil {
		panic("mls/hpke: a coordinate of 32 bytes was refused") // the length was checked
	}
	x2.One()
	x3.Set(&x1)
	z3.One()
	swap := 0
	for i := 254; i >= 0; i-- {
		bit := int(scalar[i/8]>>(i%8)) & 1
		swap ^= bit
		x2.Swap(&x3, swap)
		z2.Swap(&z3, swap)
		swap = bit

		a.Subtract(&x3, &z3)
		b.Subtract(&x2, &z2)
		x2.Add(&x2, &z2)
		z2.Add(&x3, &z3)
		z3.Multiply(&a, &x2)
		z2.Multiply(&z2, &b)
		a.Square(&b)
		b.Square(&x2)
		x3.Add(&z3, &z2)
		z2.Subtract(&z3, &z2)
		x2.Multiply(&b, &a)
		b.Subtract(&b, &a)
		z2.Square(&z2)
		z3.Mult32(&b, 121666)
		x3.Square(&x3)
		a.Add(&a, &z3)
		z3.Multiply(&x1, &z2)
		z2.Multiply(&b, &a)
	}
	x2.Swap(&x3, swap)
	z2.Swap(&z3, swap)
	return x2.Multiply(&x2, z2.Invert(&z2)).Bytes()
}
