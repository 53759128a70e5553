package hpke

import (
	"errors"
	"fmt"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

var (
	// ErrOpen: the ciphertext was not made for this key, label and context,
	// or was changed.
	ErrOpen = errors.New("mls/hpke: the ciphertext does not open")
	// ErrKey: a key or KEM output is not one of the suite's KEM, or is of low
	// order.
	ErrKey = errors.New("mls/hpke: the key is not valid")
	// ErrNoKEM: the suite's KEM is not part of this program: package hpke448
	// is not imported.
	ErrNoKEM = errors.New("mls/hpke: the key encapsulation mechanism is not linked in")
)

// PrivateKey is an HPKE key pair of one suite. It prints its public key only.
type PrivateKey struct {
	suite  *suite.Suite
	kem    kem
	secret []byte
	public wire.HPKEPublicKey
	state  any // what the KEM keeps beside the bytes
}

// DeriveKeyPair derives a key pair from ikm (RFC 9180 §7.1.3). The error wraps
// [ErrNoKEM], or [ErrKey] in a case of probability below 2^-128.
func DeriveKeyPair(cs *suite.Suite, ikm []byte) (*PrivateKey, error) {
	k, err := lookup(cs)
	if err != nil {
		return nil, err
	}
	secret, err := k.derive(ikm)
	if err != nil {
		return nil, err
	}
	return newPrivateKey(cs, k, secret)
}

// NewPrivateKey reads a private key in the form of RFC 9180 §7.1.2 and computes
// its public key. The error wraps [ErrKey] or [ErrNoKEM].
func NewPrivateKey(cs *suite.Suite, secret []byte) (*PrivateKey, error) {
	k, err := lookup(cs)
	if err != nil {
		return nil, err
	}
	return newPrivateKey(cs, k, append([]byte(nil), secret...))
}

// NewKeyPair is [NewPrivateKey] for a key whose public key was stored with it:
// for the Diffie-Hellman KEMs it saves computing the public key, which is most
// of the work of loading one. public is taken on trust, and its wrong value
// only makes every ciphertext fail to open; [PrivateKey.CheckPair] tells then.
func NewKeyPair(cs *suite.Suite, secret, public []byte) (*PrivateKey, error) {
	k, err := lookup(cs)
	if err != nil {
		return nil, err
	}
	if d, ok := k.(*dhKEM); ok && len(secret) == d.group.SecretSize() {
		return &PrivateKey{
			suite: cs, kem: k,
			secret: append([]byte(nil), secret...),
			public: append([]byte(nil), public...),
		}, nil
	}
	return newPrivateKey(cs, k, append([]byte(nil), secret...))
}

// CheckPair computes the public key again and compares it with the one of
// [NewKeyPair]. The error wraps [ErrKey].
func (k *PrivateKey) CheckPair() error {
	public, _, err := k.kem.public(k.secret)
	if err != nil {
		return err
	}
	if string(public) != string(k.public) {
		return fmt.Errorf("%w: the private key belongs to another public key", ErrKey)
	}
	return nil
}

func newPrivateKey(cs *suite.Suite, k kem, secret []byte) (*PrivateKey, error) {
	public, state, err := k.public(secret)
	if err != nil {
		return nil, err
	}
	return &PrivateKey{suite: cs, kem: k, secret: secret, public: public, state: state}, nil
}

// Public returns the public key. The caller must not change it.
func (k *PrivateKey) Public() wire.HPKEPublicKey { return k.public }

// Bytes returns the private key as [NewPrivateKey] reads it. The caller must
// not change it.
func (k *PrivateKey) Bytes() []byte { return k.secret }

// Suite returns the suite of the key.
func (k *PrivateKey) Suite() *suite.Suite { return k.suite }

// Wipe overwrites the private key. The key cannot be used afterwards.
func (k *PrivateKey) Wipe() {
	clear(k.secret)
	k.secret, k.state = nil, nil
}

// Format writes the public key whatever the verb is.
func (k PrivateKey) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "PrivateKey(public %x)", []byte(k.public))
}
