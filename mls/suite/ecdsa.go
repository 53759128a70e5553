package suite

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	_ "crypto/sha256" // crypto.SHA256
	_ "crypto/sha512" // crypto.SHA384 and crypto.SHA512
)

// ecdsaScheme is ECDSA over a NIST curve with the hash of the same strength.
// Public keys are uncompressed points, signatures are DER (RFC 8446 §4.2.3).
// Signing is deterministic (RFC 6979), so it takes no randomness.
type ecdsaScheme struct {
	curve elliptic.Curve
	size  int // of a scalar, in bytes
	hash  crypto.Hash
}

var (
	ecdsaP256 = ecdsaScheme{elliptic.P256(), 32, crypto.SHA256}
	ecdsaP384 = ecdsaScheme{elliptic.P384(), 48, crypto.SHA384}
	ecdsaP521 = ecdsaScheme{elliptic.P521(), 66, crypto.SHA512}
)

func (e ecdsaScheme) digest(message []byte) []byte {
	h := e.hash.New()
	h.Write(message)
	return h.Sum(nil)
}

// candidates is how many scalars a seed holds. One is refused when it is not
// below the order: at most once in 2^32 (P-256), so all four never are.
const candidates = 4

func (e ecdsaScheme) SeedSize() int { return candidates * e.size }

// Generate takes the first candidate in the seed that is a private key.
func (e ecdsaScheme) Generate(seed []byte) ([]byte, error) {
	for i := range candidates {
		private := append([]byte(nil), seed[i*e.size:(i+1)*e.size]...)
		if e.size == 66 {
			private[0] &= 1
		}
		if _, err := ecdsa.ParseRawPrivateKey(e.curve, private); err == nil {
			return private, nil
		}
	}
	return nil, ErrKey
}

func (e ecdsaScheme) PublicKey(private []byte) ([]byte, error) {
	key, err := ecdsa.ParseRawPrivateKey(e.curve, private)
	if err != nil {
		return nil, ErrKey
	}
	return key.PublicKey.Bytes()
}

func (e ecdsaScheme) ValidatePublicKey(public []byte) error {
	if _, err := ecdsa.ParseUncompressedPublicKey(e.curve, public); err != nil {
		return ErrKey
	}
	return nil
}

func (e ecdsaScheme) Signer(private []byte) (func([]byte) ([]byte, error), error) {
	key, err := ecdsa.ParseRawPrivateKey(e.curve, private)
	if err != nil {
		return nil, ErrKey
	}
	return func(message []byte) ([]byte, error) {
		return key.Sign(nil, e.digest(message), e.hash)
	}, nil
}

func (e ecdsaScheme) Verify(public, message, signature []byte) bool {
	key, err := ecdsa.ParseUncompressedPublicKey(e.curve, public)
	return err == nil && ecdsa.VerifyASN1(key, e.digest(message), signature)
}
