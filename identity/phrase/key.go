package phrase

import (
	"crypto"
	"crypto/ed25519"
	"fmt"
	"io"
)

// Key is an Ed25519 private key that signs and does not show itself. It is an
// identity.Signer. Identities, bots and devices all use it. The zero value is
// no key.
type Key struct {
	k hidden[[ed25519.PrivateKeySize]byte]
}

// KeyFromSeed makes a key of a 32-byte seed (RFC 8032 section 5.1.5). The seed
// is copied.
func KeyFromSeed(seed []byte) (Key, error) {
	if len(seed) != ed25519.SeedSize {
		return Key{}, fmt.Errorf("phrase: seed of %d bytes, not %d", len(seed), ed25519.SeedSize)
	}
	return Key{hide((*[ed25519.PrivateKeySize]byte)(ed25519.NewKeyFromSeed(seed)))}, nil
}

// GenerateKey makes a key, a device's for example, from 32 bytes of random,
// which must be a cryptographic source.
func GenerateKey(random io.Reader) (Key, error) {
	var seed [ed25519.SeedSize]byte
	defer clear(seed[:])
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return Key{}, fmt.Errorf("phrase: read randomness: %w", err)
	}
	return KeyFromSeed(seed[:])
}

// Public returns an ed25519.PublicKey, or an empty one after Wipe.
func (k Key) Public() crypto.PublicKey {
	if k.k.get() == nil {
		return ed25519.PublicKey{}
	}
	b := k.PublicBytes()
	return ed25519.PublicKey(b[:])
}

// PublicBytes returns the 32 bytes of the public key, zeros after Wipe.
func (k Key) PublicBytes() [32]byte {
	raw := k.k.get()
	if raw == nil {
		return [32]byte{}
	}
	return [32]byte(raw[ed25519.SeedSize:])
}

// Sign signs message by RFC 8032 (Ed25519, not pre-hashed); random is not used
// (ErrWiped).
func (k Key) Sign(random io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	raw := k.k.get()
	if raw == nil {
		return nil, ErrWiped
	}
	sig, err := ed25519.PrivateKey(raw[:]).Sign(random, message, opts)
	if err != nil {
		return nil, fmt.Errorf("phrase: sign: %w", err)
	}
	return sig, nil
}

// Seed returns the 32 bytes that KeyFromSeed reads, to seal them at rest; nil
// after Wipe. The caller wipes them.
func (k Key) Seed() []byte {
	raw := k.k.get()
	if raw == nil {
		return nil
	}
	return append([]byte(nil), raw[:ed25519.SeedSize]...)
}

// Wipe overwrites the key in this and every copy of the value.
func (k Key) Wipe() { k.k.wipe() }
