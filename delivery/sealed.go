package delivery

import (
	"encoding/binary"
	"errors"
)

// What an account seals for itself names the generation of its key in the clear,
// before the ciphertext:
//
//	"CXA1" ‖ generation u64, big-endian ‖ ciphertext
//
// The generation is one more than the revocations of the account's devices, so
// that a device which was revoked holds no key of what is sealed afterwards. The
// service refuses what is sealed under an earlier one.

// SealedHeaderSize is the size in bytes of what stands before the ciphertext.
const SealedHeaderSize = len(sealedMagic) + 8

// Sizes of what an account keeps for itself, in bytes.
const (
	MaxSegment     = 4 << 20     // a sealed segment of history
	MaxSegmentName = 128         // its name
	MaxWrapped     = 4 << 10     // a wrapped key
	MaxSnapshot    = 3 << 20 / 4 // a sealed snapshot: what MaxJSON holds in base64
)

const sealedMagic = "CXA1"

var errSealed = errors.New("delivery: no generation stands before what is sealed")

// AppendSealedHeader adds the header of a generation to b.
func AppendSealedHeader(b []byte, generation uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, sealedMagic...), generation)
}

// SealedGeneration reads the generation that sealed bytes name, from 1.
func SealedGeneration(sealed []byte) (uint64, error) {
	if len(sealed) < SealedHeaderSize || string(sealed[:len(sealedMagic)]) != sealedMagic {
		return 0, errSealed
	}
	g := binary.BigEndian.Uint64(sealed[len(sealedMagic):])
	if g == 0 || g > MaxNumber {
		return 0, errSealed
	}
	return g, nil
}
