package suite

import (
	"crypto/ecdh"
	"crypto/mlkem"
	"encoding/hex"
	"fmt"
	"slices"
)

// Sizes of HPKE public keys, in bytes (RFC 9180 §7.1).
const (
	sizeX25519 = 32
	sizeX448   = 56
	sizeHybrid = mlkem.EncapsulationKeySize768 + sizeX25519
)

// HPKEPublicKeySize returns Npk: the size of public keys of the suite's KEM, in
// bytes (RFC 9180 §7.1).
func (s *Suite) HPKEPublicKeySize() int {
	if s.kem == KEMMLKEM768X25519 {
		return sizeHybrid
	}
	return s.KEMOutputSize()
}

// KEMOutputSize returns Nenc: the size of what the suite's KEM sends along with a
// ciphertext, in bytes (RFC 9180 §7.1).
func (s *Suite) KEMOutputSize() int {
	switch s.kem {
	case KEMP256:
		return 65
	case KEMP384:
		return 97
	case KEMP521:
		return 133
	case KEMX448:
		return sizeX448
	case KEMMLKEM768X25519:
		return mlkem.CiphertextSize768 + sizeX25519
	}
	return sizeX25519
}

// ValidateHPKEPublicKey returns an error that wraps [ErrKey] when public is not
// a public key of the suite's KEM (RFC 9180 §7.1.4): wrong size, not on the
// curve, not reduced, or of low order. A low-order key, which RFC 9180 leaves
// to be found by whoever encrypts to it, is refused here, because a leaf that
// nobody can encrypt to would stop every commit with a path.
func (s *Suite) ValidateHPKEPublicKey(public []byte) error {
	if !validHPKEPublicKey(s.kem, public) {
		return fmt.Errorf("HPKE public key of %s: %w", s.name, ErrKey)
	}
	return nil
}

func validHPKEPublicKey(kem KEM, public []byte) bool {
	switch kem {
	case KEMX25519:
		return validX25519(public)
	case KEMX448:
		return len(public) == sizeX448 && !slices.Contains(lowOrderX448, string(public))
	case KEMP256:
		_, err := ecdh.P256().NewPublicKey(public)
		return err == nil
	case KEMP384:
		_, err := ecdh.P384().NewPublicKey(public)
		return err == nil
	case KEMP521:
		_, err := ecdh.P521().NewPublicKey(public)
		return err == nil
	case KEMMLKEM768X25519:
		if len(public) != sizeHybrid || !validX25519(public[mlkem.EncapsulationKeySize768:]) {
			return false
		}
		_, err := mlkem.NewEncapsulationKey768(public[:mlkem.EncapsulationKeySize768])
		return err == nil
	}
	return false
}

// ValidateKEMOutput returns an error that wraps [ErrKey] when nobody can use what a
// sender sent along with a ciphertext, whatever the private key: it has the wrong
// size, or is or holds an ephemeral public key that [Suite.ValidateHPKEPublicKey]
// would refuse (RFC 9180 §7.1.4).
func (s *Suite) ValidateKEMOutput(output []byte) error {
	ok := false
	switch s.kem {
	case KEMMLKEM768X25519:
		ok = len(output) == s.KEMOutputSize() && validX25519(output[mlkem.CiphertextSize768:])
	default:
		ok = validHPKEPublicKey(s.kem, output)
	}
	if !ok {
		return fmt.Errorf("KEM output of %s: %w", s.name, ErrKey)
	}
	return nil
}

// validX25519 refuses the points of low order in every encoding that RFC 7748
// reads as them: with the top bit set, and not reduced.
func validX25519(public []byte) bool {
	if len(public) != sizeX25519 {
		return false
	}
	masked := [sizeX25519]byte(public)
	masked[31] &= 0x7f
	return !slices.Contains(lowOrderX25519, string(masked[:]))
}

// lowOrderX25519 holds the u-coordinates, below 2^255 and little-endian, of the
// points of order 1, 2, 4 and 8 on Curve25519 and its twist.
var lowOrderX25519 = unhex(
	"0000000000000000000000000000000000000000000000000000000000000000", // 0
	"0100000000000000000000000000000000000000000000000000000000000000", // 1
	"e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800", // order 8
	"5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157", // order 8
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p - 1
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p, that is 0
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p + 1, that is 1
)

// lowOrderX448 holds the u-coordinates, little-endian, of the points of order
// 1, 2 and 4 on Curve448 and its twist; p = 2^448 - 2^224 - 1.
var lowOrderX448 = unhex(
	"0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000", // 0
	"0100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000", // 1
	"fefffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffffffffffffffffffffffffffffffffffffffffffffffffff", // p - 1
	"fffffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffffffffffffffffffffffffffffffffffffffffffffffffff", // p, that is 0
	"00000000000000000000000000000000000000000000000000000000ffffffffffffffffffffffffffffffffffffffffffffffffffffffff", // p + 1, that is 1
)

func unhex(texts ...string) []string {
	list := make([]string, len(texts))
	for i, t := range texts {
		b, err := hex.DecodeString(t)
		if err != nil {
			panic(err) // a constant of this file
		}
		list[i] = string(b)
	}
	return list
}
