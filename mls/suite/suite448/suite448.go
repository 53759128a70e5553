// Package suite448 makes the cipher suites 4 and 6 of RFC 9420 known, by the
// Ed448 that the standard library lacks. Import it for its effect:
//
//	import _ "github.com/askucher/compax-core/mls/suite/suite448"
//
// It verifies, signs and validates keys. Encrypting with X448 is added by
// package hpke/hpke448, which imports this one.
package suite448

import (
	"bytes"

	"github.com/cloudflare/circl/ecc/goldilocks"
	"github.com/cloudflare/circl/sign/ed448"

	"github.com/askucher/compax-core/mls/suite"
)

func init() { suite.RegisterEd448(scheme{}) }

// scheme is Ed448 (RFC 8032 §5.2) with the empty context.
type scheme struct{}

func (scheme) SeedSize() int { return ed448.SeedSize }

func (scheme) Generate(seed []byte) ([]byte, error) {
	return append([]byte(nil), seed...), nil
}

func (scheme) PublicKey(private []byte) ([]byte, error) {
	if len(private) != ed448.SeedSize {
		return nil, suite.ErrKey
	}
	key := ed448.NewKeyFromSeed(private)
	return append([]byte(nil), key[ed448.SeedSize:]...), nil
}

func (scheme) Signer(private []byte) (func([]byte) ([]byte, error), error) {
	if len(private) != ed448.SeedSize {
		return nil, suite.ErrKey
	}
	key := ed448.NewKeyFromSeed(private)
	return func(message []byte) ([]byte, error) { return ed448.Sign(key, message, ""), nil }, nil
}

func (scheme) Verify(public, message, signature []byte) bool {
	return len(signature) == ed448.SignatureSize && validPoint(public) &&
		validPoint(signature[:ed448.PublicKeySize]) &&
		ed448.Verify(public, message, signature, "")
}

func (scheme) ValidatePublicKey(public []byte) error {
	if !validPoint(public) {
		return suite.ErrKey
	}
	return nil
}

// validPoint reports whether b is the canonical encoding of a point of Ed448
// whose order does not divide the cofactor 4: the same demands as on Ed25519.
func validPoint(b []byte) bool {
	if len(b) != ed448.PublicKeySize {
		return false
	}
	p, err := goldilocks.FromBytes(b)
	if err != nil {
		return false
	}
	var again [ed448.PublicKeySize]byte
	if p.ToBytes(again[:]) != nil || !bytes.Equal(again[:], b) {
		return false
	}
	p.Double()
	p.Double()
	return !p.IsIdentity()
}
