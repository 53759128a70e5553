package wire

// HashReference is a hash that stands for a structure (§5.2).
type HashReference []byte

// KeyPackageRef stands for a KeyPackage (§5.2).
type KeyPackageRef = HashReference

// ProposalRef stands for a proposal's AuthenticatedContent (§5.2).
type ProposalRef = HashReference

// KeyPackage lets others add a client to groups (§10).
type KeyPackage struct {
	Version     ProtocolVersion
	CipherSuite CipherSuite
	InitKey     HPKEPublicKey
	LeafNode    LeafNode
	Extensions  Extensions
	Signature   []byte // SignWithLabel(., "KeyPackageTBS", KeyPackageTBS)
}

// AppendTo implements [Encoder].
func (k *KeyPackage) AppendTo(b []byte) []byte {
	return AppendOpaque((*KeyPackageTBS)(k).AppendTo(b), k.Signature)
}

// DecodeFrom implements [Decoder].
func (k *KeyPackage) DecodeFrom(r *Reader) {
	in := r.Begin("KeyPackage")
	k.Version = ProtocolVersion(r.Uint16())
	k.CipherSuite = CipherSuite(r.Uint16())
	k.InitKey = r.Opaque()
	k.LeafNode.DecodeFrom(r)
	k.Extensions.DecodeFrom(r)
	k.Signature = r.Opaque()
	r.End(in)
}

// KeyPackageTBS is what the signature of a KeyPackage covers: all of it but the
// signature (§10). Convert with (*KeyPackageTBS)(keyPackage).
type KeyPackageTBS KeyPackage

// AppendTo implements [Encoder].
func (t *KeyPackageTBS) AppendTo(b []byte) []byte {
	b = AppendUint16(b, uint16(t.Version))
	b = AppendUint16(b, uint16(t.CipherSuite))
	b = AppendOpaque(b, t.InitKey)
	b = t.LeafNode.AppendTo(b)
	return t.Extensions.AppendTo(b)
}
