package identity

import (
	"encoding/binary"
	"fmt"
)

// Role says what a device may do.
type Role uint8

const (
	// RoleMember is a device of a person or a bot: it enrols, publishes key
	// packages and becomes a leaf.
	RoleMember Role = 0
	// RoleBotSigner signs requests of a bot's backend and nothing else: it
	// never enrols, never publishes key packages, never becomes a leaf. Of one
	// bot only the attestation with the highest version is valid, so raising
	// the version revokes a leaked key.
	RoleBotSigner Role = 1
)

// String names the role.
func (r Role) String() string {
	switch r {
	case RoleMember:
		return "member"
	case RoleBotSigner:
		return "bot signer"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

const (
	attestationDomain = "compax-attestation-v1"
	// AttestationSize is the size of the signed layout in bytes.
	AttestationSize = len(attestationDomain) + 32 + 16 + 32 + 32 + 3 + 1 + 8 + 8
)

// Attestation is what an identity says about a device: that its keys speak for
// the identity. It is signed by both keys; see Credential.
type Attestation struct {
	Home         Home            `json:"home"`          // where the account lives; other homes accept it too
	Identity     PublicKey       `json:"identity"`      //
	DeviceID     DeviceID        `json:"device_id"`     // DeriveDeviceID(Identity, DevicePubkey)
	DevicePubkey DevicePublicKey `json:"device_pubkey"` //
	DeviceHPKE   DeviceHPKEKey   `json:"device_hpke"`   // unused by RoleBotSigner
	Role         Role            `json:"role"`          //
	Version      uint64          `json:"version"`       // monotonic per device (RoleMember) or per bot (RoleBotSigner)
	IssuedAt     uint64          `json:"issued_at"`     // seconds since 1970
}

// AppendTo appends the AttestationSize bytes that both keys sign, big-endian:
//
//	"compax-attestation-v1" ‖ identity[32] ‖ device_id[16] ‖ device_pubkey[32] ‖
//	device_hpke[32] ‖ home[3] ‖ role u8 ‖ version u64 ‖ issued_at u64
func (a Attestation) AppendTo(b []byte) []byte {
	b = append(b, attestationDomain...)
	b = append(b, a.Identity[:]...)
	b = append(b, a.DeviceID[:]...)
	b = append(b, a.DevicePubkey[:]...)
	b = append(b, a.DeviceHPKE[:]...)
	b = append(b, a.Home[:]...)
	b = append(b, byte(a.Role))
	b = binary.BigEndian.AppendUint64(b, a.Version)
	return binary.BigEndian.AppendUint64(b, a.IssuedAt)
}

// parseAttestation reads exactly AttestationSize bytes.
func parseAttestation(b []byte) (Attestation, error) {
	var a Attestation
	if len(b) != AttestationSize {
		return a, fmt.Errorf("%w: attestation of %d bytes, not %d", ErrFormat, len(b), AttestationSize)
	}
	if string(b[:len(attestationDomain)]) != attestationDomain {
		return a, fmt.Errorf("%w: attestation does not start with %q", ErrFormat, attestationDomain)
	}
	b = b[len(attestationDomain):]
	b = b[copy(a.Identity[:], b):]
	b = b[copy(a.DeviceID[:], b):]
	b = b[copy(a.DevicePubkey[:], b):]
	b = b[copy(a.DeviceHPKE[:], b):]
	b = b[copy(a.Home[:], b):]
	a.Role = Role(b[0])
	a.Version = binary.BigEndian.Uint64(b[1:])
	a.IssuedAt = binary.BigEndian.Uint64(b[9:])
	return a, nil
}

// check holds the rules that need no signature: a known role, the derived
// device id, usable and different keys.
func (a Attestation) check() error {
	if a.Role != RoleMember && a.Role != RoleBotSigner {
		return fmt.Errorf("%w: attestation has the unknown %s", ErrFormat, a.Role)
	}
	if want := DeriveDeviceID(a.Identity, a.DevicePubkey); a.DeviceID != want {
		return fmt.Errorf("%w: attestation names device %s, its keys make %s", ErrFormat, a.DeviceID, want)
	}
	if [32]byte(a.Identity) == [32]byte(a.DevicePubkey) {
		return fmt.Errorf("%w: attestation uses the identity key as a device key", ErrKey)
	}
	if err := a.Identity.Check(); err != nil {
		return err
	}
	return a.DevicePubkey.Check()
}
