package suite

import (
	"crypto/ed25519"

	"github.com/askucher/compax-core/internal/strict25519"
)

// ed25519Scheme is Ed25519 (RFC 8032) verified by the strict rule.
type ed25519Scheme struct{}

func (ed25519Scheme) SeedSize() int { return ed25519.SeedSize }

func (ed25519Scheme) Generate(seed []byte) ([]byte, error) {
	return append([]byte(nil), seed...), nil
}

func (ed25519Scheme) PublicKey(private []byte) ([]byte, error) {
	if len(private) != ed25519.SeedSize {
		return nil, ErrKey
	}
	key := ed25519.NewKeyFromSeed(private)
	return append([]byte(nil), key[ed25519.SeedSize:]...), nil
}

func (ed25519Scheme) ValidatePublicKey(public []byte) error {
	if !strict25519.ValidPublicKey(public) {
		return ErrKey
	}
	return nil
}

func (ed25519Scheme) Signer(private []byte) (func([]byte) ([]byte, error), error) {
	key := ed25519.NewKeyFromSeed(private)
	return func(message []byte) ([]byte, error) { return ed25519.Sign(key, message), nil }, nil
}

func (ed25519Scheme) Verify(public, message, signature []byte) bool {
	return strict25519.Verify(public, message, signature)
}
