package mls

import (
	"fmt"
	"io"

	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
)

// randomSecret reads a secret of KDF.Nh bytes.
func randomSecret(cs *suite.Suite, random io.Reader) (Secret, error) {
	s := make(Secret, cs.HashSize())
	if _, err := io.ReadFull(random, s); err != nil {
		return nil, fmt.Errorf("mls: reading randomness: %w", err)
	}
	return s, nil
}

// newKeyPair makes an HPKE key pair from fresh randomness.
func newKeyPair(cs *suite.Suite, random io.Reader) (*hpke.PrivateKey, error) {
	seed, err := randomSecret(cs, random)
	if err != nil {
		return nil, err
	}
	defer seed.Wipe()
	key, err := hpke.DeriveKeyPair(cs, seed)
	if err != nil {
		return nil, fmt.Errorf("mls: deriving a key pair: %w", err)
	}
	return key, nil
}
