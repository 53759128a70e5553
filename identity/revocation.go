package identity

import (
	"encoding/binary"
	"fmt"
)

const (
	revocationDomain = "compax-revocation-v1"
	// RevocationSize is the size of a signed revocation in bytes.
	RevocationSize = len(revocationDomain) + 32 + 16 + 8 + SignatureSize
)

// RevocationFields is what a revocation says: this device of this identity is
// over, for good.
type RevocationFields struct {
	Identity PublicKey `json:"identity"`
	DeviceID DeviceID  `json:"device_id"`
	IssuedAt uint64    `json:"issued_at"` // seconds since 1970; for people, it decides nothing
}

// UnverifiedRevocation is a revocation whose signature nobody has checked. It
// is also its JSON form.
type UnverifiedRevocation struct {
	RevocationFields
	Signature Signature `json:"signature"`
}

// Revocation is a verified revocation. It is permanent: no later attestation
// brings the device back, and any two revocations of a device mean the same.
type Revocation struct {
	u UnverifiedRevocation
}

// appendTo appends the signed bytes, big-endian:
//
//	"compax-revocation-v1" ‖ identity[32] ‖ device_id[16] ‖ issued_at u64
func (f RevocationFields) appendTo(b []byte) []byte {
	b = append(b, revocationDomain...)
	b = append(b, f.Identity[:]...)
	b = append(b, f.DeviceID[:]...)
	return binary.BigEndian.AppendUint64(b, f.IssuedAt)
}

// Revoke signs a revocation with the identity's key (ErrKey, ErrSigner).
func Revoke(f RevocationFields, identityKey Signer) (Revocation, error) {
	if err := f.Identity.Check(); err != nil {
		return Revocation{}, err
	}
	sig, err := sign(identityKey, f.Identity, f.appendTo(nil))
	if err != nil {
		return Revocation{}, err
	}
	return Revocation{UnverifiedRevocation{f, sig}}, nil
}

// ParseRevocation reads the RevocationSize bytes that Bytes returns
// (ErrFormat).
func ParseRevocation(b []byte) (UnverifiedRevocation, error) {
	var u UnverifiedRevocation
	if len(b) != RevocationSize {
		return u, fmt.Errorf("%w: revocation of %d bytes, not %d", ErrFormat, len(b), RevocationSize)
	}
	if string(b[:len(revocationDomain)]) != revocationDomain {
		return u, fmt.Errorf("%w: revocation does not start with %q", ErrFormat, revocationDomain)
	}
	b = b[len(revocationDomain):]
	b = b[copy(u.Identity[:], b):]
	b = b[copy(u.DeviceID[:], b):]
	u.IssuedAt = binary.BigEndian.Uint64(b)
	copy(u.Signature[:], b[8:])
	return u, nil
}

// Verify checks the identity's signature by the strict rule (ErrSignature).
func (u UnverifiedRevocation) Verify() (Revocation, error) {
	if !VerifyStrict(u.Identity[:], u.appendTo(nil), u.Signature[:]) {
		return Revocation{}, fmt.Errorf("%w: revocation of device %s", ErrSignature, u.DeviceID)
	}
	return Revocation{u}, nil
}

// Fields returns what the identity signed.
func (r Revocation) Fields() RevocationFields { return r.u.RevocationFields }

// Unverified returns the form that JSON carries.
func (r Revocation) Unverified() UnverifiedRevocation { return r.u }

// Bytes returns the RevocationSize bytes that ParseRevocation reads.
func (r Revocation) Bytes() []byte {
	return append(r.u.appendTo(make([]byte, 0, RevocationSize)), r.u.Signature[:]...)
}

// Covers reports whether the revocation ends the device of c.
func (r Revocation) Covers(c Credential) bool {
	return r.u.Identity == c.u.Attestation.Identity && r.u.DeviceID == c.u.Attestation.DeviceID
}
