package identity

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/askucher/compax-core/internal/strict25519"
)

// SignatureSize is the size of an Ed25519 signature in bytes.
const SignatureSize = 64

var (
	// ErrFormat says that bytes or text do not have the layout of what was to
	// be parsed. Nothing can be done with them.
	ErrFormat = errors.New("identity: malformed")
	// ErrKey says that a public key can never verify anything: not canonical,
	// not on the curve, or of small order.
	ErrKey = errors.New("identity: unusable public key")
	// ErrSignature says that a signature does not verify by the strict rule.
	ErrSignature = errors.New("identity: signature does not verify")
	// ErrSigner says that a signer is not an Ed25519 key, is not the key that
	// the structure names, or returned something that does not verify.
	ErrSigner = errors.New("identity: wrong signer")
	// ErrEquivocation says that two different structures of one signer carry
	// the same version. Neither may replace the other.
	ErrEquivocation = errors.New("identity: same version, different content")
	// ErrStale says that a structure is older than the one it should replace.
	ErrStale = errors.New("identity: version is not newer")
)

// PublicKey is an identity: an Ed25519 public key of 32 bytes. Its text and
// JSON form is lower-case hex.
type PublicKey [32]byte

// DevicePublicKey is a device's Ed25519 public key, which is also the signature
// key of its MLS leaf. Its text and JSON form is lower-case hex.
type DevicePublicKey [32]byte

// DeviceHPKEKey is the X25519 public key to which secrets of the account are
// wrapped for a device. Its text and JSON form is lower-case hex.
type DeviceHPKEKey [32]byte

// DeviceID names a device of an identity; see DeriveDeviceID. Its text and JSON
// form is lower-case hex.
type DeviceID [16]byte

// Home is the label of a server: three opaque bytes, never a domain. Its text
// and JSON form is lower-case hex.
type Home [3]byte

// Signature is an Ed25519 signature, R ‖ S. Its text and JSON form is
// lower-case hex.
type Signature [SignatureSize]byte

// Signer signs with an Ed25519 key: an ed25519.PrivateKey, or a key that stays
// elsewhere (a sealed store, WebCrypto). Public must return an
// ed25519.PublicKey; Sign gets the whole message and crypto.Hash(0).
type Signer = crypto.Signer

// ParsePublicKey reads an identity from 64 hex digits and checks that it is a
// key that can verify (ErrFormat, ErrKey).
func ParsePublicKey(s string) (PublicKey, error) {
	var k PublicKey
	if err := k.UnmarshalText([]byte(s)); err != nil {
		return PublicKey{}, err
	}
	if err := k.Check(); err != nil {
		return PublicKey{}, err
	}
	return k, nil
}

// ParseDeviceID reads a device id from 32 hex digits (ErrFormat).
func ParseDeviceID(s string) (DeviceID, error) {
	var d DeviceID
	err := d.UnmarshalText([]byte(s))
	return d, err
}

// ParseHome reads a home label from 6 hex digits (ErrFormat).
func ParseHome(s string) (Home, error) {
	var h Home
	err := h.UnmarshalText([]byte(s))
	return h, err
}

// Check returns ErrKey when no signature can ever verify under k.
func (k PublicKey) Check() error { return checkKey("identity", k[:]) }

// Check returns ErrKey when no signature can ever verify under k.
func (k DevicePublicKey) Check() error { return checkKey("device", k[:]) }

func checkKey(what string, k []byte) error {
	if !strict25519.ValidPublicKey(k) {
		return fmt.Errorf("%w: %s key %x", ErrKey, what, k)
	}
	return nil
}

// VerifyStrict reports whether sig is a valid Ed25519 signature of message
// under pub by the one rule of this program (see internal/strict25519):
// canonical A and R, S < L, no small order, cofactored equation.
func VerifyStrict(pub, message, sig []byte) bool {
	return strict25519.Verify(pub, message, sig)
}

const deviceIDDomain = "compax-device-v1"

// DeriveDeviceID returns the first 16 bytes of
// SHA-256("compax-device-v1" ‖ identity ‖ device public key).
func DeriveDeviceID(id PublicKey, device DevicePublicKey) DeviceID {
	h := sha256.New()
	h.Write([]byte(deviceIDDomain))
	h.Write(id[:])
	h.Write(device[:])
	var out DeviceID
	copy(out[:], h.Sum(nil))
	return out
}

// PublicKeyOf returns the Ed25519 public key of a signer (ErrSigner).
func PublicKeyOf(s Signer) ([32]byte, error) {
	if s == nil {
		return [32]byte{}, fmt.Errorf("%w: no key", ErrSigner)
	}
	pub, _ := s.Public().(ed25519.PublicKey) // nil when it is of another kind
	if len(pub) != ed25519.PublicKeySize {
		return [32]byte{}, fmt.Errorf("%w: not an Ed25519 key", ErrSigner)
	}
	return [32]byte(pub), nil
}

// sign signs message with s, which must be the key want, and checks the result
// by the strict rule before anybody relies on it.
func sign(s Signer, want [32]byte, message []byte) (Signature, error) {
	pub, err := PublicKeyOf(s)
	if err != nil {
		return Signature{}, err
	}
	if pub != want {
		return Signature{}, fmt.Errorf("%w: the key is %x, the structure names %x", ErrSigner, pub, want)
	}
	// Ed25519 is deterministic: no randomness is needed.
	raw, err := s.Sign(nil, message, crypto.Hash(0))
	if err != nil {
		return Signature{}, fmt.Errorf("%w: %w", ErrSigner, err)
	}
	if !strict25519.Verify(pub[:], message, raw) {
		return Signature{}, fmt.Errorf("%w: its signature does not verify", ErrSigner)
	}
	return Signature(raw), nil
}

// Compare orders identities by their bytes.
func (k PublicKey) Compare(o PublicKey) int { return bytes.Compare(k[:], o[:]) }

func (k PublicKey) String() string       { return hex.EncodeToString(k[:]) }
func (k DevicePublicKey) String() string { return hex.EncodeToString(k[:]) }
func (k DeviceHPKEKey) String() string   { return hex.EncodeToString(k[:]) }
func (d DeviceID) String() string        { return hex.EncodeToString(d[:]) }
func (h Home) String() string            { return hex.EncodeToString(h[:]) }
func (s Signature) String() string       { return hex.EncodeToString(s[:]) }

// MarshalText writes lower-case hex.
func (k PublicKey) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// MarshalText writes lower-case hex.
func (k DevicePublicKey) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// MarshalText writes lower-case hex.
func (k DeviceHPKEKey) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, k[:]), nil }

// MarshalText writes lower-case hex.
func (d DeviceID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// MarshalText writes lower-case hex.
func (h Home) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// MarshalText writes lower-case hex.
func (s Signature) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads hex of the exact length (ErrFormat). It does not check
// that the key is usable: use Check, or Verify of what carries it.
func (k *PublicKey) UnmarshalText(b []byte) error { return readHex("identity", k[:], b) }

// UnmarshalText reads hex of the exact length (ErrFormat).
func (k *DevicePublicKey) UnmarshalText(b []byte) error { return readHex("device key", k[:], b) }

// UnmarshalText reads hex of the exact length (ErrFormat).
func (k *DeviceHPKEKey) UnmarshalText(b []byte) error { return readHex("device HPKE key", k[:], b) }

// UnmarshalText reads hex of the exact length (ErrFormat).
func (d *DeviceID) UnmarshalText(b []byte) error { return readHex("device id", d[:], b) }

// UnmarshalText reads hex of the exact length (ErrFormat).
func (h *Home) UnmarshalText(b []byte) error { return readHex("home label", h[:], b) }

// UnmarshalText reads hex of the exact length (ErrFormat).
func (s *Signature) UnmarshalText(b []byte) error { return readHex("signature", s[:], b) }

// readHex leaves dst alone unless text is exactly its hex.
func readHex(what string, dst, text []byte) error {
	if len(text) != 2*len(dst) {
		return fmt.Errorf("%w: %s has %d characters, not %d hex digits", ErrFormat, what, len(text), 2*len(dst))
	}
	raw := make([]byte, len(dst))
	if _, err := hex.Decode(raw, text); err != nil {
		return fmt.Errorf("%w: %s is not hex: %w", ErrFormat, what, err)
	}
	copy(dst, raw)
	return nil
}

func (n Nonce) String() string { return hex.EncodeToString(n[:]) }

// MarshalText writes lower-case hex.
func (n Nonce) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, n[:]), nil }

// UnmarshalText reads hex of the exact length (ErrFormat).
func (n *Nonce) UnmarshalText(b []byte) error { return readHex("nonce", n[:], b) }
