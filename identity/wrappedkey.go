package identity

import (
	"encoding/binary"
	"fmt"
)

const wrappedKeyDomain = "compax-wrapped-key-v1"

// MaxWrappedSecret bounds the ciphertext in a wrapped key, in bytes.
const MaxWrappedSecret = 1024

// WrappedKeyFields are a secret of the account, encrypted to one of its devices.
// The signature says that the account gave it: anybody can encrypt to a device,
// also who would like to know under which key it seals.
type WrappedKeyFields struct {
	Identity   PublicKey
	DeviceID   DeviceID
	Generation uint64 // from 1
	Sealed     []byte // to the device's HPKE key, at most MaxWrappedSecret bytes
}

// UnverifiedWrappedKey is a wrapped key whose signature nobody has checked.
type UnverifiedWrappedKey struct {
	WrappedKeyFields
	Signature Signature
}

// WrappedKey is a verified wrapped key.
type WrappedKey struct {
	u UnverifiedWrappedKey
}

// appendTo appends the signed bytes, big-endian:
//
//	"compax-wrapped-key-v1" ‖ identity[32] ‖ device_id[16] ‖ generation u64 ‖ length u16 ‖ sealed
func (f WrappedKeyFields) appendTo(b []byte) []byte {
	b = append(b, wrappedKeyDomain...)
	b = append(b, f.Identity[:]...)
	b = append(b, f.DeviceID[:]...)
	b = binary.BigEndian.AppendUint64(b, f.Generation)
	b = binary.BigEndian.AppendUint16(b, uint16(len(f.Sealed)))
	return append(b, f.Sealed...)
}

// SignWrappedKey signs with the identity's key (ErrFormat, ErrKey, ErrSigner).
func SignWrappedKey(f WrappedKeyFields, identityKey Signer) (WrappedKey, error) {
	if len(f.Sealed) == 0 || len(f.Sealed) > MaxWrappedSecret || f.Generation == 0 {
		return WrappedKey{}, fmt.Errorf("%w: a wrapped key of generation %d with %d bytes", ErrFormat, f.Generation, len(f.Sealed))
	}
	if err := f.Identity.Check(); err != nil {
		return WrappedKey{}, err
	}
	sig, err := sign(identityKey, f.Identity, f.appendTo(nil))
	if err != nil {
		return WrappedKey{}, err
	}
	return WrappedKey{UnverifiedWrappedKey{f, sig}}, nil
}

// ParseWrappedKey reads the bytes that Bytes returns (ErrFormat).
func ParseWrappedKey(b []byte) (UnverifiedWrappedKey, error) {
	var u UnverifiedWrappedKey
	const head = len(wrappedKeyDomain) + 32 + 16 + 8 + 2
	if len(b) < head+1+SignatureSize || string(b[:len(wrappedKeyDomain)]) != wrappedKeyDomain {
		return u, fmt.Errorf("%w: no wrapped key", ErrFormat)
	}
	b = b[len(wrappedKeyDomain):]
	b = b[copy(u.Identity[:], b):]
	b = b[copy(u.DeviceID[:], b):]
	u.Generation = binary.BigEndian.Uint64(b)
	n := int(binary.BigEndian.Uint16(b[8:]))
	b = b[10:]
	if u.Generation == 0 || n > MaxWrappedSecret || len(b) != n+SignatureSize {
		return u, fmt.Errorf("%w: a wrapped key of %d bytes", ErrFormat, n)
	}
	u.Sealed = append([]byte(nil), b[:n]...)
	copy(u.Signature[:], b[n:])
	return u, nil
}

// Verify checks the identity's signature by the strict rule (ErrSignature).
func (u UnverifiedWrappedKey) Verify() (WrappedKey, error) {
	if !VerifyStrict(u.Identity[:], u.appendTo(nil), u.Signature[:]) {
		return WrappedKey{}, fmt.Errorf("%w: wrapped key of generation %d", ErrSignature, u.Generation)
	}
	return WrappedKey{u}, nil
}

// Fields is what the wrapped key says. Sealed must not be changed.
func (k WrappedKey) Fields() WrappedKeyFields { return k.u.WrappedKeyFields }

// Bytes is its encoding: what is signed, then the signature.
func (k WrappedKey) Bytes() []byte { return append(k.u.appendTo(nil), k.u.Signature[:]...) }
