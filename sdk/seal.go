package sdk

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"io"
)

// SealKeySize is the size in bytes of the key under which a profile's long-lived
// secrets lie in its store. It is kept beside the store, not in it, so that a
// copy of the store alone opens nothing.
const SealKeySize = 32

func gcm(key []byte, purpose string) (cipher.AEAD, error) {
	if len(key) != SealKeySize {
		return nil, fmt.Errorf("%w: a key of %d bytes, not %d", ErrSeal, len(key), SealKeySize)
	}
	k, err := hkdf.Key(sha256.New, key, nil, "compax-seal-v1 "+purpose, 32)
	if err != nil {
		return nil, fmt.Errorf("sdk: derive a sealing key: %w", err)
	}
	defer clear(k)
	block, err := aes.NewCipher(k)
	if err != nil {
		return nil, fmt.Errorf("sdk: sealing cipher: %w", err)
	}
	return cipher.NewGCM(block)
}

// seal encrypts under key for one purpose: nonce[12] ‖ AES-256-GCM.
func seal(random io.Reader, key []byte, purpose string, plain []byte) ([]byte, error) {
	a, err := gcm(key, purpose)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, a.NonceSize(), a.NonceSize()+len(plain)+a.Overhead())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return nil, fmt.Errorf("sdk: random bytes for a nonce: %w", err)
	}
	return a.Seal(nonce, nonce, plain, []byte(purpose)), nil
}

// unseal opens what seal made (ErrSeal).
func unseal(key []byte, purpose string, sealed []byte) ([]byte, error) {
	a, err := gcm(key, purpose)
	if err != nil {
		return nil, err
	}
	if len(sealed) < a.NonceSize() {
		return nil, fmt.Errorf("%w: %s is cut short", ErrSeal, purpose)
	}
	plain, err := a.Open(nil, sealed[:a.NonceSize()], sealed[a.NonceSize():], []byte(purpose))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrSeal, purpose)
	}
	return plain, nil
}
