package hpke

import (
	"crypto/ecdh"
	"fmt"

	"github.com/askucher/compax-core/mls/suite"
)

// kem is a key encapsulation mechanism over encoded keys.
type kem interface {
	// seedSize is how many random bytes encapsulate takes.
	seedSize() int
	// derive is DeriveKeyPair (RFC 9180 §7.1.3) up to the private key.
	derive(ikm []byte) (secret []byte, err error)
	// public returns the public key of a private key, and what setupR wants
	// to keep of it; ErrKey when it is none.
	public(secret []byte) (public []byte, state any, err error)
	// prepare does what depends on info alone, once for many encryptions: an
	// info of hundreds of kilobytes would otherwise be hashed for each.
	prepare(cs *suite.Suite, info []byte) (prepared []byte)
	// encapsulate is Encap (RFC 9180 §4.1) with given randomness, most of what
	// setupS costs; ahead says that it is. A KEM whose library does both at once
	// does it all in setupS.
	encapsulate(seed, public []byte) (encapsulated, error)
	ahead() bool
	// setupS and setupR are SetupBaseS and SetupBaseR (RFC 9180 §5.1.1): they
	// give the context of one encryption, and the sender enc. setupS uses e up.
	setupS(e encapsulated, public []byte, cs *suite.Suite, prepared []byte) (enc []byte, c context, err error)
	setupR(key *PrivateKey, enc, prepared []byte) (context, error)
}

// context seals or opens the one message of an encryption, or exports from it.
type context interface {
	seal(plaintext []byte) ([]byte, error)
	open(ciphertext []byte) ([]byte, error)
	export(exporterContext string, length int) ([]byte, error)
}

// Group is a Diffie-Hellman group of RFC 9180 §7.1 that turns into a KEM. The
// ones of the standard library are built in; [RegisterX448] adds the missing
// one.
type Group interface {
	// Public returns the public key of a private key of SecretSize bytes,
	// or ErrKey.
	Public(secret []byte) ([]byte, error)
	// DH returns the shared secret, or ErrKey for a public key that is not
	// one or is of low order.
	DH(secret, public []byte) ([]byte, error)
	// Derive makes a private key of an output of LabeledExtract by calling
	// expand (LabeledExpand), as RFC 9180 §7.1.3 tells for the group.
	Derive(expand func(label string, info []byte, length int) []byte) (secret []byte, err error)
	// SecretSize is Nsk, in bytes.
	SecretSize() int
}

var (
	kemX25519 = newDHKEM(suite.KEMX25519, suite.KDFSHA256, x25519{})
	kemP256   = newDHKEM(suite.KEMP256, suite.KDFSHA256, nist{ecdh.P256(), 32, 0xff})
	kemP384   = newDHKEM(suite.KEMP384, suite.KDFSHA384, nist{ecdh.P384(), 48, 0xff})
	kemP521   = newDHKEM(suite.KEMP521, suite.KDFSHA512, nist{ecdh.P521(), 66, 0x01})
	kemX448   *dhKEM
)

// RegisterX448 makes suites 4 and 6 usable. Package hpke448 calls it before
// main begins; nobody else needs to.
func RegisterX448(g Group) { kemX448 = newDHKEM(suite.KEMX448, suite.KDFSHA512, g) }

func lookup(cs *suite.Suite) (kem, error) {
	switch cs.KEM() {
	case suite.KEMX25519:
		return kemX25519, nil
	case suite.KEMP256:
		return kemP256, nil
	case suite.KEMP384:
		return kemP384, nil
	case suite.KEMP521:
		return kemP521, nil
	case suite.KEMX448:
		if kemX448 != nil {
			return kemX448, nil
		}
	case suite.KEMMLKEM768X25519:
		return hybrid{}, nil
	}
	return nil, fmt.Errorf("%w: KEM %#04x of %v", ErrNoKEM, uint16(cs.KEM()), cs)
}

// nist is a NIST curve (RFC 9180 §7.1.3): private keys are scalars below the
// order, drawn until one fits, with the first byte masked.
type nist struct {
	curve ecdh.Curve
	size  int
	mask  byte
}

func (g nist) SecretSize() int { return g.size }

func (g nist) Public(secret []byte) ([]byte, error) {
	key, err := g.curve.NewPrivateKey(secret)
	if err != nil {
		return nil, ErrKey
	}
	return key.PublicKey().Bytes(), nil
}

func (g nist) DH(secret, public []byte) ([]byte, error) {
	key, err := g.curve.NewPrivateKey(secret)
	if err != nil {
		return nil, ErrKey
	}
	peer, err := g.curve.NewPublicKey(public)
	if err != nil {
		return nil, ErrKey
	}
	shared, err := key.ECDH(peer)
	if err != nil {
		return nil, ErrKey
	}
	return shared, nil
}

func (g nist) Derive(expand func(label string, info []byte, length int) []byte) ([]byte, error) {
	for counter := range 256 {
		secret := expand("candidate", []byte{byte(counter)}, g.size)
		secret[0] &= g.mask
		if _, err := g.curve.NewPrivateKey(secret); err == nil {
			return secret, nil
		}
	}
	return nil, ErrKey
}
