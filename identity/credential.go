package identity

import (
	"bytes"
	"fmt"

	"github.com/askucher/compax-core/internal/strict25519"
)

// CredentialSize is the size of a credential in bytes: an attestation, the
// identity's signature and the device's.
const CredentialSize = AttestationSize + 2*SignatureSize

// UnverifiedCredential is an attestation with two signatures that nobody has
// checked. It is also the JSON form that files and requests carry.
type UnverifiedCredential struct {
	Attestation     Attestation `json:"attestation"`
	Signature       Signature   `json:"signature"`        // by the identity, over Attestation.AppendTo
	DeviceSignature Signature   `json:"device_signature"` // by the device, over the same bytes
}

// Credential is a verified attestation with its signatures. Its bytes are the
// identity of the MLS basic credential, so every member and every server reads
// the same roster. The zero value is no credential; see IsZero.
type Credential struct {
	u UnverifiedCredential
}

// ParseCredential reads the CredentialSize bytes
// attestation ‖ identity signature ‖ device signature (ErrFormat).
func ParseCredential(b []byte) (UnverifiedCredential, error) {
	if len(b) != CredentialSize {
		return UnverifiedCredential{}, fmt.Errorf("%w: credential of %d bytes, not %d", ErrFormat, len(b), CredentialSize)
	}
	a, err := parseAttestation(b[:AttestationSize])
	if err != nil {
		return UnverifiedCredential{}, err
	}
	u := UnverifiedCredential{Attestation: a}
	copy(u.Signature[:], b[AttestationSize:])
	copy(u.DeviceSignature[:], b[AttestationSize+SignatureSize:])
	return u, nil
}

// Verify checks the role, the derivation of the device id, the keys and both
// signatures by the strict rule (ErrFormat, ErrKey, ErrSignature). It does not
// know revocations, versions seen before, or which roles the caller takes.
func (u UnverifiedCredential) Verify() (Credential, error) {
	if err := u.Attestation.check(); err != nil {
		return Credential{}, err
	}
	signed := u.Attestation.AppendTo(make([]byte, 0, AttestationSize))
	if !VerifyStrict(u.Attestation.Identity[:], signed, u.Signature[:]) {
		return Credential{}, fmt.Errorf("%w: attestation of device %s by its identity", ErrSignature, u.Attestation.DeviceID)
	}
	if !VerifyStrict(u.Attestation.DevicePubkey[:], signed, u.DeviceSignature[:]) {
		return Credential{}, fmt.Errorf("%w: attestation of device %s by the device", ErrSignature, u.Attestation.DeviceID)
	}
	return Credential{u}, nil
}

// VerifyCredentials verifies many credentials as Verify does each, with one
// batch of signatures: less than half of the price for a roster. On an error
// nothing is returned but the error of the first bad one.
func VerifyCredentials(us []UnverifiedCredential) ([]Credential, error) {
	var batch strict25519.Batch
	out := make([]Credential, len(us))
	for i, u := range us {
		if err := u.Attestation.check(); err != nil {
			return nil, fmt.Errorf("credential %d: %w", i, err)
		}
		signed := u.Attestation.AppendTo(make([]byte, 0, AttestationSize))
		batch.Add(u.Attestation.Identity[:], signed, u.Signature[:])
		batch.Add(u.Attestation.DevicePubkey[:], signed, u.DeviceSignature[:])
		out[i] = Credential{u}
	}
	if batch.Verify() {
		return out, nil
	}
	for i, u := range us {
		if _, err := u.Verify(); err != nil {
			return nil, fmt.Errorf("credential %d: %w", i, err)
		}
	}
	return nil, fmt.Errorf("%w: in a batch of %d credentials", ErrSignature, len(us))
}

// Attest signs an attestation with both keys. DeviceID may be zero and is then
// derived; anything else must be right already (ErrFormat, ErrKey, ErrSigner).
func Attest(a Attestation, identityKey, deviceKey Signer) (Credential, error) {
	u, err := AttestAsDevice(a, deviceKey)
	if err != nil {
		return Credential{}, err
	}
	return AttestAsIdentity(u, identityKey)
}

// AttestAsDevice makes the device's half of an attestation, on the device. The
// result travels to where the identity key is; see AttestAsIdentity.
func AttestAsDevice(a Attestation, deviceKey Signer) (UnverifiedCredential, error) {
	if a.DeviceID == (DeviceID{}) {
		a.DeviceID = DeriveDeviceID(a.Identity, a.DevicePubkey)
	}
	if err := a.check(); err != nil {
		return UnverifiedCredential{}, err
	}
	sig, err := sign(deviceKey, a.DevicePubkey, a.AppendTo(nil))
	if err != nil {
		return UnverifiedCredential{}, fmt.Errorf("device key: %w", err)
	}
	return UnverifiedCredential{Attestation: a, DeviceSignature: sig}, nil
}

// AttestAsIdentity adds the identity's signature to what the device signed
// (ErrFormat, ErrKey, ErrSigner, ErrSignature). The caller has decided that the
// device is its owner's and has looked at every field.
func AttestAsIdentity(u UnverifiedCredential, identityKey Signer) (Credential, error) {
	if err := u.Attestation.check(); err != nil {
		return Credential{}, err
	}
	sig, err := sign(identityKey, u.Attestation.Identity, u.Attestation.AppendTo(nil))
	if err != nil {
		return Credential{}, fmt.Errorf("identity key: %w", err)
	}
	u.Signature = sig
	return u.Verify()
}

// Attestation returns what both keys signed.
func (c Credential) Attestation() Attestation { return c.u.Attestation }

// Identity returns the identity that the credential speaks for.
func (c Credential) Identity() PublicKey { return c.u.Attestation.Identity }

// DeviceID returns the device that the credential speaks for.
func (c Credential) DeviceID() DeviceID { return c.u.Attestation.DeviceID }

// Unverified returns the form that JSON carries.
func (c Credential) Unverified() UnverifiedCredential { return c.u }

// IsZero reports whether c is the zero value rather than a credential.
func (c Credential) IsZero() bool { return c == Credential{} }

// Bytes returns the CredentialSize bytes that ParseCredential reads, or nil for
// the zero value.
func (c Credential) Bytes() []byte {
	if c.IsZero() {
		return nil
	}
	return c.u.Bytes()
}

// Bytes returns the CredentialSize bytes that ParseCredential reads.
func (u UnverifiedCredential) Bytes() []byte {
	b := u.Attestation.AppendTo(make([]byte, 0, CredentialSize))
	b = append(b, u.Signature[:]...)
	return append(b, u.DeviceSignature[:]...)
}

// CheckSuccessor decides whether next may stand where c stood for one device
// (RFC 9420 section 5.3.1; device rows of a server): identity, device id, both
// keys and role stay; the version rises, or everything is the same. The home
// may change. ErrStale, ErrEquivocation, or ErrKey when it is another device.
func (c Credential) CheckSuccessor(next Credential) error {
	was, is := c.u.Attestation, next.u.Attestation
	switch {
	// mutants: equivalent: the device id is derived from the two keys, so that one of the three never changes alone
	case was.Identity != is.Identity, was.DeviceID != is.DeviceID, was.DevicePubkey != is.DevicePubkey:
		return fmt.Errorf("%w: a successor of device %s names device %s of %s", ErrKey, was.DeviceID, is.DeviceID, is.Identity)
	case was.DeviceHPKE != is.DeviceHPKE:
		return fmt.Errorf("%w: a successor of device %s has another HPKE key", ErrKey, was.DeviceID)
	case was.Role != is.Role:
		return fmt.Errorf("%w: a successor of device %s changes %s to %s", ErrFormat, was.DeviceID, was.Role, is.Role)
	case is.Version < was.Version:
		return fmt.Errorf("%w: device %s is at %d, offered %d", ErrStale, was.DeviceID, was.Version, is.Version)
	case is.Version == was.Version && !bytes.Equal(c.Bytes(), next.Bytes()):
		return fmt.Errorf("%w: device %s at version %d", ErrEquivocation, was.DeviceID, is.Version)
	}
	return nil
}

// CheckBotSigner decides whether next may be the request signer of a bot whose
// signer was c; the device may be another one. The version must rise, or
// everything is the same. ErrFormat when a role is not RoleBotSigner, ErrKey
// when it is another bot, ErrStale, ErrEquivocation.
func (c Credential) CheckBotSigner(next Credential) error {
	was, is := c.u.Attestation, next.u.Attestation
	switch {
	case was.Role != RoleBotSigner || is.Role != RoleBotSigner:
		return fmt.Errorf("%w: a request signer must have role %d", ErrFormat, RoleBotSigner)
	case was.Identity != is.Identity:
		return fmt.Errorf("%w: a request signer of bot %s is for %s", ErrKey, was.Identity, is.Identity)
	case is.Version < was.Version:
		return fmt.Errorf("%w: the bot's signer is at %d, offered %d", ErrStale, was.Version, is.Version)
	case is.Version == was.Version && c != next:
		return fmt.Errorf("%w: the bot's signer at version %d", ErrEquivocation, is.Version)
	}
	return nil
}
