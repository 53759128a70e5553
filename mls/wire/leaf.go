package wire

import (
	"bytes"
	"slices"
)

// Capabilities says what the client behind a leaf supports (§7.2). Unknown
// values are kept and ignored.
type Capabilities struct {
	Versions     []ProtocolVersion
	CipherSuites []CipherSuite
	Extensions   []ExtensionType
	Proposals    []ProposalType
	Credentials  []CredentialType
}

// AppendTo implements [Encoder].
func (c *Capabilities) AppendTo(b []byte) []byte {
	b = AppendUint16Vector(b, c.Versions)
	b = AppendUint16Vector(b, c.CipherSuites)
	b = AppendUint16Vector(b, c.Extensions)
	b = AppendUint16Vector(b, c.Proposals)
	return AppendUint16Vector(b, c.Credentials)
}

// DecodeFrom implements [Decoder].
func (c *Capabilities) DecodeFrom(r *Reader) {
	in := r.Begin("Capabilities")
	c.Versions = ReadUint16Vector[ProtocolVersion](r)
	c.CipherSuites = ReadUint16Vector[CipherSuite](r)
	c.Extensions = ReadUint16Vector[ExtensionType](r)
	c.Proposals = ReadUint16Vector[ProposalType](r)
	c.Credentials = ReadUint16Vector[CredentialType](r)
	r.End(in)
}

// Lifetime is when a KeyPackage's leaf may be used (§7.2), in seconds since
// the Unix epoch, both ends included.
type Lifetime struct {
	NotBefore uint64
	NotAfter  uint64
}

// AppendTo implements [Encoder].
func (l *Lifetime) AppendTo(b []byte) []byte {
	return AppendUint64(AppendUint64(b, l.NotBefore), l.NotAfter)
}

// DecodeFrom implements [Decoder].
func (l *Lifetime) DecodeFrom(r *Reader) {
	l.NotBefore = r.Uint64()
	l.NotAfter = r.Uint64()
}

// LeafNode is a leaf of the ratchet tree: one client (§7.2).
type LeafNode struct {
	EncryptionKey  HPKEPublicKey
	SignatureKey   SignaturePublicKey
	Credential     Credential
	Capabilities   Capabilities
	LeafNodeSource LeafNodeSource
	Lifetime       Lifetime // source key_package
	ParentHash     []byte   // source commit
	Extensions     Extensions
	Signature      []byte // SignWithLabel(., "LeafNodeTBS", LeafNodeTBS)
}

// AppendTo implements [Encoder].
func (l *LeafNode) AppendTo(b []byte) []byte {
	return AppendOpaque(l.appendUnsigned(b), l.Signature)
}

func (l *LeafNode) appendUnsigned(b []byte) []byte {
	b = AppendOpaque(b, l.EncryptionKey)
	b = AppendOpaque(b, l.SignatureKey)
	b = l.Credential.AppendTo(b)
	b = l.Capabilities.AppendTo(b)
	b = AppendUint8(b, uint8(l.LeafNodeSource))
	switch l.LeafNodeSource {
	case LeafNodeSourceKeyPackage:
		b = l.Lifetime.AppendTo(b)
	case LeafNodeSourceCommit:
		b = AppendOpaque(b, l.ParentHash)
	}
	return l.Extensions.AppendTo(b)
}

// DecodeFrom implements [Decoder].
func (l *LeafNode) DecodeFrom(r *Reader) {
	in := r.Begin("LeafNode")
	l.EncryptionKey = r.Opaque()
	l.SignatureKey = r.Opaque()
	l.Credential.DecodeFrom(r)
	l.Capabilities.DecodeFrom(r)
	l.LeafNodeSource = LeafNodeSource(r.Uint8())
	switch l.LeafNodeSource {
	case LeafNodeSourceKeyPackage:
		l.Lifetime.DecodeFrom(r)
	case LeafNodeSourceUpdate:
	case LeafNodeSourceCommit:
		l.ParentHash = r.Opaque()
	default:
		r.Fail(ErrValue)
	}
	l.Extensions.DecodeFrom(r)
	l.Signature = r.Opaque()
	r.End(in)
}

// Clone returns a copy that shares no memory with l, so that keeping it does
// not keep alive the message it came in.
func (l *LeafNode) Clone() *LeafNode {
	c := *l
	c.EncryptionKey = bytes.Clone(l.EncryptionKey)
	c.SignatureKey = bytes.Clone(l.SignatureKey)
	c.Credential.Identity = bytes.Clone(l.Credential.Identity)
	c.Credential.Unknown = bytes.Clone(l.Credential.Unknown)
	c.Credential.Certificates = slices.Clone(l.Credential.Certificates)
	for i := range c.Credential.Certificates {
		c.Credential.Certificates[i].CertData = bytes.Clone(c.Credential.Certificates[i].CertData)
	}
	c.Capabilities.Versions = slices.Clone(l.Capabilities.Versions)
	c.Capabilities.CipherSuites = slices.Clone(l.Capabilities.CipherSuites)
	c.Capabilities.Extensions = slices.Clone(l.Capabilities.Extensions)
	c.Capabilities.Proposals = slices.Clone(l.Capabilities.Proposals)
	c.Capabilities.Credentials = slices.Clone(l.Capabilities.Credentials)
	c.ParentHash = bytes.Clone(l.ParentHash)
	c.Extensions = l.Extensions.Clone()
	c.Signature = bytes.Clone(l.Signature)
	return &c
}

// LeafNodeTBS is what the signature of a leaf covers (§7.2). GroupID and
// LeafIndex count for the sources update and commit only.
type LeafNodeTBS struct {
	LeafNode  *LeafNode
	GroupID   []byte
	LeafIndex uint32
}

// AppendTo implements [Encoder].
func (t *LeafNodeTBS) AppendTo(b []byte) []byte {
	b = t.LeafNode.appendUnsigned(b)
	switch t.LeafNode.LeafNodeSource {
	case LeafNodeSourceUpdate, LeafNodeSourceCommit:
		b = AppendOpaque(b, t.GroupID)
		b = AppendUint32(b, t.LeafIndex)
	}
	return b
}
