package suite

import (
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/askucher/compax-core/mls/wire"
)

// The cipher suites of RFC 9420 §17.1.
const (
	X25519AES128GCMSHA256Ed25519        wire.CipherSuite = 1
	P256AES128GCMSHA256P256             wire.CipherSuite = 2
	X25519ChaCha20Poly1305SHA256Ed25519 wire.CipherSuite = 3
	X448AES256GCMSHA512Ed448            wire.CipherSuite = 4
	P521AES256GCMSHA512P521             wire.CipherSuite = 5
	X448ChaCha20Poly1305SHA512Ed448     wire.CipherSuite = 6
	P384AES256GCMSHA384P384             wire.CipherSuite = 7
)

// MLKEM768X25519AES256GCMSHA384Ed25519 is the hybrid post-quantum suite. Code
// points for such suites are not assigned yet, so it stands in the range for
// private use; when one is assigned, this constant is the place to change.
const MLKEM768X25519AES256GCMSHA384Ed25519 wire.CipherSuite = 0xf0c0

// ErrUnknown: no suite has this code point in this program. Suites 4 and 6 are
// known where package suite448 is imported.
var ErrUnknown = errors.New("mls/suite: unknown cipher suite")

// KEM is a key encapsulation mechanism of the HPKE KEM registry (RFC 9180 §7.1).
type KEM uint16

// The mechanisms that a suite here uses.
const (
	KEMP256           KEM = 0x0010
	KEMP384           KEM = 0x0011
	KEMP521           KEM = 0x0012
	KEMX25519         KEM = 0x0020
	KEMX448           KEM = 0x0021
	KEMMLKEM768X25519 KEM = 0x647a
)

// KDF is a key derivation function of the HPKE KDF registry (RFC 9180 §7.2). It
// also names the hash of a suite: each is HKDF with that hash.
type KDF uint16

// The functions that a suite here uses.
const (
	KDFSHA256 KDF = 0x0001
	KDFSHA384 KDF = 0x0002
	KDFSHA512 KDF = 0x0003
)

// New returns a new state of the KDF's hash.
func (k KDF) New() hash.Hash {
	switch k {
	case KDFSHA256:
		return sha256.New()
	case KDFSHA384:
		return sha512.New384()
	default:
		return sha512.New()
	}
}

// Size returns the size of the KDF's hash, in bytes.
func (k KDF) Size() int {
	switch k {
	case KDFSHA256:
		return sha256.Size
	case KDFSHA384:
		return sha512.Size384
	default:
		return sha512.Size
	}
}

// AEAD is an algorithm of the HPKE AEAD registry (RFC 9180 §7.3).
type AEAD uint16

// The algorithms that a suite here uses.
const (
	AEADAES128GCM        AEAD = 0x0001
	AEADAES256GCM        AEAD = 0x0002
	AEADChaCha20Poly1305 AEAD = 0x0003
)

// Suite is one cipher suite. There is one value per code point, so pointers may
// be compared; it is safe for concurrent use.
type Suite struct {
	id     wire.CipherSuite
	name   string
	kem    KEM
	kdf    KDF
	aead   AEAD
	scheme Scheme
}

var table = []*Suite{
	{X25519AES128GCMSHA256Ed25519, "MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519", KEMX25519, KDFSHA256, AEADAES128GCM, ed25519Scheme{}},
	{P256AES128GCMSHA256P256, "MLS_128_DHKEMP256_AES128GCM_SHA256_P256", KEMP256, KDFSHA256, AEADAES128GCM, ecdsaP256},
	{X25519ChaCha20Poly1305SHA256Ed25519, "MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519", KEMX25519, KDFSHA256, AEADChaCha20Poly1305, ed25519Scheme{}},
	{X448AES256GCMSHA512Ed448, "MLS_256_DHKEMX448_AES256GCM_SHA512_Ed448", KEMX448, KDFSHA512, AEADAES256GCM, nil},
	{P521AES256GCMSHA512P521, "MLS_256_DHKEMP521_AES256GCM_SHA512_P521", KEMP521, KDFSHA512, AEADAES256GCM, ecdsaP521},
	{X448ChaCha20Poly1305SHA512Ed448, "MLS_256_DHKEMX448_CHACHA20POLY1305_SHA512_Ed448", KEMX448, KDFSHA512, AEADChaCha20Poly1305, nil},
	{P384AES256GCMSHA384P384, "MLS_256_DHKEMP384_AES256GCM_SHA384_P384", KEMP384, KDFSHA384, AEADAES256GCM, ecdsaP384},
	{MLKEM768X25519AES256GCMSHA384Ed25519, "MLS_128_MLKEM768X25519_AES256GCM_SHA384_Ed25519", KEMMLKEM768X25519, KDFSHA384, AEADAES256GCM, ed25519Scheme{}},
}

// Lookup returns the suite with a code point. The error wraps [ErrUnknown].
func Lookup(id wire.CipherSuite) (*Suite, error) {
	for _, s := range table {
		if s.id == id && s.scheme != nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%w %#04x", ErrUnknown, uint16(id))
}

// Known returns the code points of all suites that this program knows, in the
// table's order.
func Known() []wire.CipherSuite {
	ids := make([]wire.CipherSuite, 0, len(table))
	for _, s := range table {
		if s.scheme != nil {
			ids = append(ids, s.id)
		}
	}
	return slices.Clip(ids)
}

// ID returns the suite's code point.
func (s *Suite) ID() wire.CipherSuite { return s.id }

// String returns the suite's name in the registry.
func (s *Suite) String() string { return s.name }

// KEM returns the suite's key encapsulation mechanism.
func (s *Suite) KEM() KEM { return s.kem }

// KDF returns the suite's key derivation function, which also names its hash.
func (s *Suite) KDF() KDF { return s.kdf }

// AEAD returns the suite's AEAD algorithm.
func (s *Suite) AEAD() AEAD { return s.aead }
