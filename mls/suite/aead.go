package suite

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"

	"golang.org/x/crypto/chacha20poly1305"
)

// ErrOpen: a ciphertext, its additional data, its key or its nonce is not what
// was sealed. Nothing more can be said about it.
var ErrOpen = errors.New("mls/suite: the ciphertext does not open")

var errKeySize = errors.New("mls/suite: wrong key or nonce size")

// KeySize returns Nk: the size of the AEAD's key, in bytes.
func (a AEAD) KeySize() int {
	if a == AEADAES128GCM {
		return 16
	}
	return 32
}

// NonceSize returns Nn: the size of the AEAD's nonce, in bytes.
func (a AEAD) NonceSize() int { return 12 }

// Overhead returns by how many bytes a ciphertext is longer than its plaintext.
func (a AEAD) Overhead() int { return 16 }

// New returns the AEAD with a key. It fails only for a wrong key size.
func (a AEAD) New(key []byte) (cipher.AEAD, error) {
	if len(key) != a.KeySize() {
		return nil, errKeySize
	}
	if a == AEADChaCha20Poly1305 {
		return chacha20poly1305.New(key)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// KeySize returns AEAD.Nk, in bytes.
func (s *Suite) KeySize() int { return s.aead.KeySize() }

// NonceSize returns AEAD.Nn, in bytes.
func (s *Suite) NonceSize() int { return s.aead.NonceSize() }

// Seal is AEAD.Seal (§5.1). It fails only for a wrong key or nonce size.
func (s *Suite) Seal(key, nonce, aad, plaintext []byte) ([]byte, error) {
	a, err := s.aead.New(key)
	if err != nil {
		return nil, err
	}
	if len(nonce) != a.NonceSize() {
		return nil, errKeySize
	}
	return a.Seal(nil, nonce, plaintext, aad), nil
}

// Open is AEAD.Open (§5.1). It fails with [ErrOpen], or for a wrong key or
// nonce size.
func (s *Suite) Open(key, nonce, aad, ciphertext []byte) ([]byte, error) {
	a, err := s.aead.New(key)
	if err != nil {
		return nil, err
	}
	if len(nonce) != a.NonceSize() {
		return nil, errKeySize
	}
	plaintext, err := a.Open(nil, nonce, ciphertext, aad)
	if err != nil {
		return nil, ErrOpen
	}
	return plaintext, nil
}
