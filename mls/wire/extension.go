package wire

import (
	"bytes"
	"slices"
)

// Extension is one extension as it travels (§13.4). The structures below are
// what ExtensionData holds for the types that have one.
type Extension struct {
	ExtensionType ExtensionType
	ExtensionData []byte
}

// AppendTo implements [Encoder].
func (e *Extension) AppendTo(b []byte) []byte {
	return AppendOpaque(AppendUint16(b, uint16(e.ExtensionType)), e.ExtensionData)
}

// DecodeFrom implements [Decoder].
func (e *Extension) DecodeFrom(r *Reader) {
	in := r.Begin("Extension")
	e.ExtensionType = ExtensionType(r.Uint16())
	e.ExtensionData = r.Opaque()
	r.End(in)
}

// NewExtension returns the extension of type t with the encoding of v as data.
func NewExtension(t ExtensionType, v Encoder) Extension {
	return Extension{ExtensionType: t, ExtensionData: Marshal(v)}
}

// Extensions is a vector of extensions. It is one field of a larger structure,
// and the content of a GroupContextExtensions proposal.
type Extensions []Extension

// AppendTo implements [Encoder].
func (x *Extensions) AppendTo(b []byte) []byte { return AppendVector(b, *x) }

// DecodeFrom implements [Decoder].
func (x *Extensions) DecodeFrom(r *Reader) { *x = ReadVector[Extension](r) }

// Find returns the data of the first extension of type t.
func (x Extensions) Find(t ExtensionType) (data []byte, found bool) {
	for i := range x {
		if x[i].ExtensionType == t {
			return x[i].ExtensionData, true
		}
	}
	return nil, false
}

// Decode decodes the first extension of type t into v. It reports whether
// there is one; the error is a [*DecodeError].
func (x Extensions) Decode(t ExtensionType, v Decoder) (found bool, err error) {
	data, found := x.Find(t)
	if !found {
		return false, nil
	}
	return true, Unmarshal(data, v)
}

// With returns extensions in which e stands in the place of the first of its
// type, or at the end; x is not changed.
func (x Extensions) With(e Extension) Extensions {
	x = slices.Clone(x)
	for i := range x {
		if x[i].ExtensionType == e.ExtensionType {
			x[i] = e
			return x
		}
	}
	return append(x, e)
}

// Clone returns a copy that shares no memory with x.
func (x Extensions) Clone() Extensions {
	c := slices.Clone(x)
	for i := range c {
		c[i].ExtensionData = bytes.Clone(c[i].ExtensionData)
	}
	return c
}

// Duplicate returns a type that occurs more than once, which no extensions
// vector of a valid message has.
func (x Extensions) Duplicate() (t ExtensionType, found bool) {
	// mutants: equivalent: the map finds the same, only slower for so few.
	if len(x) <= 16 {
		for i := range x {
			for j := range x[:i] {
				if x[i].ExtensionType == x[j].ExtensionType {
					return x[i].ExtensionType, true
				}
			}
		}
		return 0, false
	}
	seen := make(map[ExtensionType]struct{}, len(x))
	for i := range x {
		if _, twice := seen[x[i].ExtensionType]; twice {
			return x[i].ExtensionType, true
		}
		seen[x[i].ExtensionType] = struct{}{}
	}
	return 0, false
}

// RequiredCapabilities is the content of the required_capabilities extension of
// a GroupContext (§11.1): what every member must support beside the defaults.
type RequiredCapabilities struct {
	ExtensionTypes  []ExtensionType
	ProposalTypes   []ProposalType
	CredentialTypes []CredentialType
}

// AppendTo implements [Encoder].
func (c *RequiredCapabilities) AppendTo(b []byte) []byte {
	b = AppendUint16Vector(b, c.ExtensionTypes)
	b = AppendUint16Vector(b, c.ProposalTypes)
	return AppendUint16Vector(b, c.CredentialTypes)
}

// DecodeFrom implements [Decoder].
func (c *RequiredCapabilities) DecodeFrom(r *Reader) {
	in := r.Begin("RequiredCapabilities")
	c.ExtensionTypes = ReadUint16Vector[ExtensionType](r)
	c.ProposalTypes = ReadUint16Vector[ProposalType](r)
	c.CredentialTypes = ReadUint16Vector[CredentialType](r)
	r.End(in)
}

// ExternalSender is somebody outside the group who may propose (§12.1.8.1).
type ExternalSender struct {
	SignatureKey SignaturePublicKey
	Credential   Credential
}

// AppendTo implements [Encoder].
func (s *ExternalSender) AppendTo(b []byte) []byte {
	return s.Credential.AppendTo(AppendOpaque(b, s.SignatureKey))
}

// DecodeFrom implements [Decoder].
func (s *ExternalSender) DecodeFrom(r *Reader) {
	in := r.Begin("ExternalSender")
	s.SignatureKey = r.Opaque()
	s.Credential.DecodeFrom(r)
	r.End(in)
}

// ExternalSenders is the content of the external_senders extension of a
// GroupContext (§12.1.8.1). A Sender's SenderIndex counts in this list.
type ExternalSenders []ExternalSender

// AppendTo implements [Encoder].
func (s *ExternalSenders) AppendTo(b []byte) []byte { return AppendVector(b, *s) }

// DecodeFrom implements [Decoder].
func (s *ExternalSenders) DecodeFrom(r *Reader) { *s = ReadVector[ExternalSender](r) }

// ExternalPub is the content of the external_pub extension of a GroupInfo
// (§12.4.3.2): the key to which an external commit encrypts its init secret.
type ExternalPub struct {
	ExternalPub HPKEPublicKey
}

// AppendTo implements [Encoder].
func (p *ExternalPub) AppendTo(b []byte) []byte { return AppendOpaque(b, p.ExternalPub) }

// DecodeFrom implements [Decoder].
func (p *ExternalPub) DecodeFrom(r *Reader) {
	in := r.Begin("ExternalPub")
	p.ExternalPub = r.Opaque()
	r.End(in)
}

// ApplicationID is the content of the application_id extension of a leaf
// (§5.3.3): a name given by the application, not authenticated by MLS.
type ApplicationID struct {
	ApplicationID []byte
}

// AppendTo implements [Encoder].
func (a *ApplicationID) AppendTo(b []byte) []byte { return AppendOpaque(b, a.ApplicationID) }

// DecodeFrom implements [Decoder].
func (a *ApplicationID) DecodeFrom(r *Reader) {
	in := r.Begin("ApplicationID")
	a.ApplicationID = r.Opaque()
	r.End(in)
}

// WireFormats is the content of the supported_wire_formats extension of a leaf
// and of the required_wire_formats extension of a GroupContext (extensions
// draft §5).
type WireFormats struct {
	WireFormats []WireFormat
}

// AppendTo implements [Encoder].
func (w *WireFormats) AppendTo(b []byte) []byte { return AppendUint16Vector(b, w.WireFormats) }

// DecodeFrom implements [Decoder].
func (w *WireFormats) DecodeFrom(r *Reader) {
	in := r.Begin("WireFormats")
	w.WireFormats = ReadUint16Vector[WireFormat](r)
	r.End(in)
}
