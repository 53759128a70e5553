package wire

// HPKEPublicKey is a serialised KEM public key (§5.1.1).
type HPKEPublicKey []byte

// SignaturePublicKey is a serialised signature public key (§5.1.1).
type SignaturePublicKey []byte

// Certificate is one DER-encoded X.509 certificate (§5.3).
type Certificate struct {
	CertData []byte
}

// AppendTo implements [Encoder].
func (c *Certificate) AppendTo(b []byte) []byte { return AppendOpaque(b, c.CertData) }

// DecodeFrom implements [Decoder].
func (c *Certificate) DecodeFrom(r *Reader) { c.CertData = r.Opaque() }

// Credential binds a leaf to an identity (§5.3).
//
// The RFC gives an unknown credential type no shape of its own. Every type
// known so far is a single vector, so an unknown one is read as opaque<V> and
// kept in Unknown.
type Credential struct {
	CredentialType CredentialType
	Identity       []byte        // basic
	Certificates   []Certificate // x509: the end entity first
	Unknown        []byte        // any other type
}

// BasicCredential returns a basic credential with the given identity.
func BasicCredential(identity []byte) Credential {
	return Credential{CredentialType: CredentialTypeBasic, Identity: identity}
}

// AppendTo implements [Encoder].
func (c *Credential) AppendTo(b []byte) []byte {
	b = AppendUint16(b, uint16(c.CredentialType))
	switch c.CredentialType {
	case CredentialTypeBasic:
		return AppendOpaque(b, c.Identity)
	case CredentialTypeX509:
		return AppendVector(b, c.Certificates)
	default:
		return AppendOpaque(b, c.Unknown)
	}
}

// DecodeFrom implements [Decoder].
func (c *Credential) DecodeFrom(r *Reader) {
	in := r.Begin("Credential")
	c.CredentialType = CredentialType(r.Uint16())
	switch c.CredentialType {
	case CredentialTypeBasic:
		c.Identity = r.Opaque()
	case CredentialTypeX509:
		c.Certificates = ReadVector[Certificate](r)
	default:
		c.Unknown = r.Opaque()
	}
	r.End(in)
}
