package wire

import "bytes"

// PrivateMessage is a signed and encrypted message (§6.3).
type PrivateMessage struct {
	GroupID             []byte
	Epoch               uint64
	ContentType         ContentType
	AuthenticatedData   []byte
	EncryptedSenderData []byte
	Ciphertext          []byte
}

// AppendTo implements [Encoder].
func (m *PrivateMessage) AppendTo(b []byte) []byte {
	b = AppendOpaque(b, m.GroupID)
	b = AppendUint64(b, m.Epoch)
	b = AppendUint8(b, uint8(m.ContentType))
	b = AppendOpaque(b, m.AuthenticatedData)
	b = AppendOpaque(b, m.EncryptedSenderData)
	return AppendOpaque(b, m.Ciphertext)
}

// DecodeFrom implements [Decoder].
func (m *PrivateMessage) DecodeFrom(r *Reader) {
	in := r.Begin("PrivateMessage")
	m.GroupID = r.Opaque()
	m.Epoch = r.Uint64()
	m.ContentType = readContentType(r)
	m.AuthenticatedData = r.Opaque()
	m.EncryptedSenderData = r.Opaque()
	m.Ciphertext = r.Opaque()
	r.End(in)
}

func readContentType(r *Reader) ContentType {
	t := ContentType(r.Uint8())
	if t < ContentTypeApplication || t > ContentTypeCommit {
		r.Fail(ErrValue)
	}
	return t
}

// PrivateMessageContent is the plaintext of a PrivateMessage's ciphertext
// (§6.3.1). ContentType is not part of it: the encoder and the decoder take it
// from the PrivateMessage. Set it before decoding.
type PrivateMessageContent struct {
	ContentType     ContentType
	ApplicationData []byte
	Proposal        *Proposal
	Commit          *Commit
	Auth            FramedContentAuthData
	Padding         int // zero bytes that follow
}

// AppendTo implements [Encoder].
func (c *PrivateMessageContent) AppendTo(b []byte) []byte {
	switch c.ContentType {
	case ContentTypeApplication:
		b = AppendOpaque(b, c.ApplicationData)
	case ContentTypeProposal:
		b = c.Proposal.AppendTo(b)
	case ContentTypeCommit:
		b = c.Commit.AppendTo(b)
	}
	b = c.Auth.appendTo(b, c.ContentType)
	return append(b, make([]byte, c.Padding)...)
}

// DecodeFrom reads a plaintext of the content type that c.ContentType names.
// Padding that is not all zero fails with [ErrValue] (§6.3.1).
func (c *PrivateMessageContent) DecodeFrom(r *Reader) {
	in := r.Begin("PrivateMessageContent")
	switch c.ContentType {
	case ContentTypeApplication:
		c.ApplicationData = r.Opaque()
	case ContentTypeProposal:
		c.Proposal = new(Proposal)
		c.Proposal.DecodeFrom(r)
	case ContentTypeCommit:
		c.Commit = new(Commit)
		c.Commit.DecodeFrom(r)
	default:
		r.Fail(ErrValue)
	}
	c.Auth.decodeFrom(r, c.ContentType)
	padding := r.Rest()
	c.Padding = len(padding)
	if len(bytes.TrimLeft(padding, "\x00")) != 0 {
		r.Fail(ErrValue)
	}
	r.End(in)
}

// PrivateContentAAD is the additional data of a PrivateMessage's ciphertext
// (§6.3.1).
type PrivateContentAAD struct {
	GroupID           []byte
	Epoch             uint64
	ContentType       ContentType
	AuthenticatedData []byte
}

// AppendTo implements [Encoder].
func (a *PrivateContentAAD) AppendTo(b []byte) []byte {
	b = AppendOpaque(b, a.GroupID)
	b = AppendUint64(b, a.Epoch)
	b = AppendUint8(b, uint8(a.ContentType))
	return AppendOpaque(b, a.AuthenticatedData)
}

// SenderData is the plaintext of a PrivateMessage's encrypted sender data
// (§6.3.2): 12 bytes.
type SenderData struct {
	LeafIndex  uint32
	Generation uint32
	ReuseGuard [4]byte
}

// AppendTo implements [Encoder].
func (d *SenderData) AppendTo(b []byte) []byte {
	b = AppendUint32(b, d.LeafIndex)
	b = AppendUint32(b, d.Generation)
	return append(b, d.ReuseGuard[:]...)
}

// DecodeFrom implements [Decoder].
func (d *SenderData) DecodeFrom(r *Reader) {
	in := r.Begin("SenderData")
	d.LeafIndex = r.Uint32()
	d.Generation = r.Uint32()
	copy(d.ReuseGuard[:], r.Bytes(len(d.ReuseGuard)))
	r.End(in)
}

// SenderDataAAD is the additional data of a PrivateMessage's encrypted sender
// data (§6.3.2).
type SenderDataAAD struct {
	GroupID     []byte
	Epoch       uint64
	ContentType ContentType
}

// AppendTo implements [Encoder].
func (a *SenderDataAAD) AppendTo(b []byte) []byte {
	b = AppendOpaque(b, a.GroupID)
	b = AppendUint64(b, a.Epoch)
	return AppendUint8(b, uint8(a.ContentType))
}
