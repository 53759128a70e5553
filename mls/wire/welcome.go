package wire

import (
	"errors"
	"fmt"
	"io"
)

// errSecretMarshal is what secrets answer to whoever writes them as JSON.
var errSecretMarshal = errors.New("mls/wire: a secret is not written as text")

// PathSecret is the secret of the lowest common ancestor of a joiner and the
// committer (§12.4.3.1). It is secret, prints as a fixed text and is not
// written as JSON.
type PathSecret struct {
	PathSecret []byte
}

// AppendTo implements [Encoder].
func (s *PathSecret) AppendTo(b []byte) []byte { return AppendOpaque(b, s.PathSecret) }

// DecodeFrom implements [Decoder].
func (s *PathSecret) DecodeFrom(r *Reader) {
	in := r.Begin("PathSecret")
	s.PathSecret = r.Opaque()
	r.End(in)
}

// Format hides the secret from every verb of package fmt.
func (s PathSecret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "PathSecret(hidden)") }

// MarshalJSON always fails.
func (s PathSecret) MarshalJSON() ([]byte, error) { return nil, errSecretMarshal }

// GroupSecrets is what a Welcome tells one joiner (§12.4.3.1). It is secret,
// prints as a fixed text and is not written as JSON.
type GroupSecrets struct {
	JoinerSecret []byte
	PathSecret   *PathSecret
	PSKs         []PreSharedKeyID
}

// AppendTo implements [Encoder].
func (s *GroupSecrets) AppendTo(b []byte) []byte {
	b = AppendOpaque(b, s.JoinerSecret)
	b = AppendOptional(b, s.PathSecret)
	return AppendVector(b, s.PSKs)
}

// DecodeFrom implements [Decoder].
func (s *GroupSecrets) DecodeFrom(r *Reader) {
	in := r.Begin("GroupSecrets")
	s.JoinerSecret = r.Opaque()
	s.PathSecret = ReadOptional[PathSecret](r)
	s.PSKs = ReadVector[PreSharedKeyID](r)
	r.End(in)
}

// Format hides the secrets from every verb of package fmt.
func (s GroupSecrets) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "GroupSecrets(hidden)") }

// MarshalJSON always fails.
func (s GroupSecrets) MarshalJSON() ([]byte, error) { return nil, errSecretMarshal }

// EncryptedGroupSecrets is one joiner's part of a Welcome (§12.4.3.1).
type EncryptedGroupSecrets struct {
	NewMember             KeyPackageRef
	EncryptedGroupSecrets HPKECiphertext
}

// AppendTo implements [Encoder].
func (s *EncryptedGroupSecrets) AppendTo(b []byte) []byte {
	return s.EncryptedGroupSecrets.AppendTo(AppendOpaque(b, s.NewMember))
}

// DecodeFrom implements [Decoder].
func (s *EncryptedGroupSecrets) DecodeFrom(r *Reader) {
	in := r.Begin("EncryptedGroupSecrets")
	s.NewMember = r.Opaque()
	s.EncryptedGroupSecrets.DecodeFrom(r)
	r.End(in)
}

// Welcome lets the clients that a commit added join its new epoch (§12.4.3.1).
type Welcome struct {
	CipherSuite        CipherSuite
	Secrets            []EncryptedGroupSecrets
	EncryptedGroupInfo []byte
}

// AppendTo implements [Encoder].
func (w *Welcome) AppendTo(b []byte) []byte {
	b = AppendUint16(b, uint16(w.CipherSuite))
	b = AppendVector(b, w.Secrets)
	return AppendOpaque(b, w.EncryptedGroupInfo)
}

// DecodeFrom implements [Decoder].
func (w *Welcome) DecodeFrom(r *Reader) {
	in := r.Begin("Welcome")
	w.CipherSuite = CipherSuite(r.Uint16())
	w.Secrets = ReadVector[EncryptedGroupSecrets](r)
	w.EncryptedGroupInfo = r.Opaque()
	r.End(in)
}
