package wire

// GroupContext is what all members of an epoch agree on (§8.1).
type GroupContext struct {
	CipherSuite             CipherSuite
	GroupID                 []byte
	Epoch                   uint64
	TreeHash                []byte
	ConfirmedTranscriptHash []byte
	Extensions              Extensions
}

// AppendTo implements [Encoder].
func (c *GroupContext) AppendTo(b []byte) []byte {
	b = AppendUint16(b, uint16(ProtocolVersionMLS10))
	b = AppendUint16(b, uint16(c.CipherSuite))
	b = AppendOpaque(b, c.GroupID)
	b = AppendUint64(b, c.Epoch)
	b = AppendOpaque(b, c.TreeHash)
	b = AppendOpaque(b, c.ConfirmedTranscriptHash)
	return c.Extensions.AppendTo(b)
}

// DecodeFrom implements [Decoder].
func (c *GroupContext) DecodeFrom(r *Reader) {
	in := r.Begin("GroupContext")
	if ProtocolVersion(r.Uint16()) != ProtocolVersionMLS10 {
		r.Fail(ErrVersion)
	}
	c.CipherSuite = CipherSuite(r.Uint16())
	c.GroupID = r.Opaque()
	c.Epoch = r.Uint64()
	c.TreeHash = r.Opaque()
	c.ConfirmedTranscriptHash = r.Opaque()
	c.Extensions.DecodeFrom(r)
	r.End(in)
}

// GroupInfo describes an epoch to those who join it (§12.4.3).
type GroupInfo struct {
	GroupContext    GroupContext
	Extensions      Extensions
	ConfirmationTag MAC
	Signer          uint32
	Signature       []byte // SignWithLabel(., "GroupInfoTBS", GroupInfoTBS)
}

// AppendTo implements [Encoder].
func (g *GroupInfo) AppendTo(b []byte) []byte {
	return AppendOpaque((*GroupInfoTBS)(g).AppendTo(b), g.Signature)
}

// DecodeFrom implements [Decoder].
func (g *GroupInfo) DecodeFrom(r *Reader) {
	in := r.Begin("GroupInfo")
	g.GroupContext.DecodeFrom(r)
	g.Extensions.DecodeFrom(r)
	g.ConfirmationTag = r.Opaque()
	g.Signer = r.Uint32()
	g.Signature = r.Opaque()
	r.End(in)
}

// GroupInfoTBS is what the signature of a GroupInfo covers: all of it but the
// signature (§12.4.3). Convert with (*GroupInfoTBS)(groupInfo).
type GroupInfoTBS GroupInfo

// AppendTo implements [Encoder].
func (t *GroupInfoTBS) AppendTo(b []byte) []byte {
	b = t.GroupContext.AppendTo(b)
	b = t.Extensions.AppendTo(b)
	b = AppendOpaque(b, t.ConfirmationTag)
	return AppendUint32(b, t.Signer)
}

// ConfirmedTranscriptHashInput is hashed into the confirmed transcript hash
// (§8.2).
type ConfirmedTranscriptHashInput struct {
	WireFormat WireFormat
	Content    *FramedContent // content type commit
	Signature  []byte
}

// AppendTo implements [Encoder].
func (i *ConfirmedTranscriptHashInput) AppendTo(b []byte) []byte {
	b = AppendUint16(b, uint16(i.WireFormat))
	b = i.Content.AppendTo(b)
	return AppendOpaque(b, i.Signature)
}

// InterimTranscriptHashInput is hashed into the interim transcript hash (§8.2).
type InterimTranscriptHashInput struct {
	ConfirmationTag MAC
}

// AppendTo implements [Encoder].
func (i *InterimTranscriptHashInput) AppendTo(b []byte) []byte {
	return AppendOpaque(b, i.ConfirmationTag)
}
