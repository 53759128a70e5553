package identity

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	safetyDomain     = "compax-safety-v1"
	roomSafetyDomain = "compax-room-safety-v1"

	// safetyRounds makes each attempt to find a key with a similar number cost
	// five thousand hashes; a person waits some milliseconds once.
	safetyRounds = 5200

	pairQRPrefix = "compax-verify:1:"
	roomQRPrefix = "compax-verify-room:1:"
)

var (
	// ErrQRMismatch says that a scanned code is well formed and does not match:
	// the two devices do not hold the same keys. Show it as a warning.
	ErrQRMismatch = errors.New("identity: the codes do not match")
	// ErrSafetyRoster says that a room's safety number was asked for a list of
	// identities that is empty or names one twice.
	ErrSafetyRoster = errors.New("identity: roster is empty or names an identity twice")
)

// SafetyNumber is what two people compare by eye or ear: 60 decimal digits.
type SafetyNumber [60]byte

// String writes the digits in twelve groups of five.
func (n SafetyNumber) String() string {
	var b strings.Builder
	for i := 0; i < len(n); i += 5 {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.Write(n[i : i+5])
	}
	return b.String()
}

// PairSafetyNumber returns the safety number of two identities, the same for
// both ends: 30 digits (just under 100 bits) of each, the smaller first.
func PairSafetyNumber(a, b PublicKey) SafetyNumber {
	x, y := identityDigits(a), identityDigits(b)
	if bytes.Compare(x[:], y[:]) > 0 {
		x, y = y, x
	}
	return SafetyNumber(append(x[:], y[:]...))
}

// RoomSafetyNumber returns the safety number of a room: one number of its id
// and everybody in it, which changes when somebody comes or goes
// (ErrSafetyRoster).
func RoomSafetyNumber(room [16]byte, identities []PublicKey) (SafetyNumber, error) {
	digest, err := roomDigest(room, identities)
	if err != nil {
		return SafetyNumber{}, err
	}
	return SafetyNumber(digits(digest[:60])), nil
}

// identityDigits returns 30 digits of SHA-512 iterated over an identity.
func identityDigits(k PublicKey) [30]byte {
	digest := iterate(append([]byte(safetyDomain), k[:]...))
	return [30]byte(digits(digest[:30]))
}

// roomDigest hashes domain ‖ room[16] ‖ u32 count ‖ the identities in order.
func roomDigest(room [16]byte, identities []PublicKey) ([64]byte, error) {
	sorted := slices.Clone(identities)
	slices.SortFunc(sorted, PublicKey.Compare)
	if len(sorted) == 0 || len(slices.Compact(slices.Clone(sorted))) != len(sorted) {
		return [64]byte{}, ErrSafetyRoster
	}
	b := append([]byte(roomSafetyDomain), room[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(sorted)))
	for _, k := range sorted {
		b = append(b, k[:]...)
	}
	return iterate(b), nil
}

// iterate returns h(safetyRounds) with h(0) = SHA-512(b) and
// h(i) = SHA-512(h(i-1) ‖ h(0)).
func iterate(b []byte) [64]byte {
	first := sha512.Sum512(b)
	h := first
	var block [128]byte
	copy(block[64:], first[:])
	for range safetyRounds {
		copy(block[:64], h[:])
		h = sha512.Sum512(block[:])
	}
	return h
}

// digits turns each five bytes into five decimal digits, modulo 100000.
func digits(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i+5 <= len(b); i += 5 {
		n := uint64(b[i])<<32 | uint64(binary.BigEndian.Uint32(b[i+1:i+5]))
		n %= 100000
		for div := uint64(10000); div > 0; div /= 10 {
			out = append(out, '0'+byte(n/div%10))
		}
	}
	return out
}

// PairQR returns the text of the QR code that own shows to other: a prefix and
// base64url of both identities, own first.
func PairQR(own, other PublicKey) string {
	return pairQRPrefix + base64.RawURLEncoding.EncodeToString(append(append([]byte(nil), own[:]...), other[:]...))
}

// CheckPairQR compares a scanned code with what this device holds: ErrFormat
// when it is no such code, ErrQRMismatch when the shower is not the identity
// other or takes this person for somebody else than own.
func CheckPairQR(scanned string, own, other PublicKey) error {
	raw, err := decodeQR(scanned, pairQRPrefix, 64)
	if err != nil {
		return err
	}
	if [32]byte(raw[:32]) != other {
		return fmt.Errorf("%w: the code is shown by %x, this device knows them as %s", ErrQRMismatch, raw[:32], other)
	}
	if [32]byte(raw[32:]) != own {
		return fmt.Errorf("%w: they know this person as %x, which is not %s", ErrQRMismatch, raw[32:], own)
	}
	return nil
}

// RoomQR returns the text of the QR code of a room: a prefix and base64url of
// the room id and the digest that its safety number comes from
// (ErrSafetyRoster).
func RoomQR(room [16]byte, identities []PublicKey) (string, error) {
	digest, err := roomDigest(room, identities)
	if err != nil {
		return "", err
	}
	return roomQRPrefix + base64.RawURLEncoding.EncodeToString(append(room[:], digest[:]...)), nil
}

// CheckRoomQR compares a scanned room code with the roster that this device
// holds (ErrFormat, ErrQRMismatch, ErrSafetyRoster).
func CheckRoomQR(scanned string, room [16]byte, identities []PublicKey) error {
	raw, err := decodeQR(scanned, roomQRPrefix, 16+64)
	if err != nil {
		return err
	}
	digest, err := roomDigest(room, identities)
	if err != nil {
		return err
	}
	if [16]byte(raw[:16]) != room {
		return fmt.Errorf("%w: the code is of another room", ErrQRMismatch)
	}
	if [64]byte(raw[16:]) != digest {
		return fmt.Errorf("%w: the two devices see different people in the room", ErrQRMismatch)
	}
	return nil
}

func decodeQR(s, prefix string, size int) ([]byte, error) {
	text, ok := strings.CutPrefix(s, prefix)
	if !ok || len(text) != base64.RawURLEncoding.EncodedLen(size) {
		return nil, fmt.Errorf("%w: not a code that starts with %q", ErrFormat, prefix)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != size {
		return nil, fmt.Errorf("%w: the code after %q is not base64url of %d bytes", ErrFormat, prefix, size)
	}
	return raw, nil
}
