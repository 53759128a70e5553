package wire

// MAC is an authentication tag (§6). Its length is the suite's Nh; that is
// checked where it is compared.
type MAC []byte

// Sender says who a message claims to be from (§6).
type Sender struct {
	SenderType  SenderType
	LeafIndex   uint32 // member
	SenderIndex uint32 // external: index into the external_senders extension
}

// AppendTo implements [Encoder].
func (s *Sender) AppendTo(b []byte) []byte {
	b = AppendUint8(b, uint8(s.SenderType))
	switch s.SenderType {
	case SenderTypeMember:
		return AppendUint32(b, s.LeafIndex)
	case SenderTypeExternal:
		return AppendUint32(b, s.SenderIndex)
	}
	return b
}

// DecodeFrom implements [Decoder].
func (s *Sender) DecodeFrom(r *Reader) {
	in := r.Begin("Sender")
	s.SenderType = SenderType(r.Uint8())
	switch s.SenderType {
	case SenderTypeMember:
		s.LeafIndex = r.Uint32()
	case SenderTypeExternal:
		s.SenderIndex = r.Uint32()
	case SenderTypeNewMemberProposal, SenderTypeNewMemberCommit:
	default:
		r.Fail(ErrValue)
	}
	r.End(in)
}

// FramedContent is the content of a message with its header (§6).
type FramedContent struct {
	GroupID           []byte
	Epoch             uint64
	Sender            Sender
	AuthenticatedData []byte
	ContentType       ContentType
	ApplicationData   []byte    // content type application
	Proposal          *Proposal // content type proposal
	Commit            *Commit   // content type commit
}

// AppendTo implements [Encoder].
func (c *FramedContent) AppendTo(b []byte) []byte {
	b = AppendOpaque(b, c.GroupID)
	b = AppendUint64(b, c.Epoch)
	b = c.Sender.AppendTo(b)
	b = AppendOpaque(b, c.AuthenticatedData)
	b = AppendUint8(b, uint8(c.ContentType))
	switch c.ContentType {
	case ContentTypeApplication:
		return AppendOpaque(b, c.ApplicationData)
	case ContentTypeProposal:
		return c.Proposal.AppendTo(b)
	case ContentTypeCommit:
		return c.Commit.AppendTo(b)
	}
	return b
}

// DecodeFrom implements [Decoder].
func (c *FramedContent) DecodeFrom(r *Reader) {
	in := r.Begin("FramedContent")
	c.GroupID = r.Opaque()
	c.Epoch = r.Uint64()
	c.Sender.DecodeFrom(r)
	c.AuthenticatedData = r.Opaque()
	c.ContentType = ContentType(r.Uint8())
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
	r.End(in)
}

// FramedContentAuthData authenticates a FramedContent (§6.1). Whether the
// confirmation tag is on the wire follows from the content's type, so this
// structure is only encoded and decoded together with one.
type FramedContentAuthData struct {
	Signature       []byte // SignWithLabel(., "FramedContentTBS", FramedContentTBS)
	ConfirmationTag MAC    // content type commit
}

func (a *FramedContentAuthData) appendTo(b []byte, t ContentType) []byte {
	b = AppendOpaque(b, a.Signature)
	if t == ContentTypeCommit {
		b = AppendOpaque(b, a.ConfirmationTag)
	}
	return b
}

func (a *FramedContentAuthData) decodeFrom(r *Reader, t ContentType) {
	in := r.Begin("FramedContentAuthData")
	a.Signature = r.Opaque()
	if t == ContentTypeCommit {
		a.ConfirmationTag = r.Opaque()
	}
	r.End(in)
}

// FramedContentTBS is what a message's signature covers (§6.1). Context is the
// encoding of the GroupContext: it must be set for the senders member and
// new_member_commit and is ignored for the others.
type FramedContentTBS struct {
	WireFormat WireFormat
	Content    *FramedContent
	Context    []byte
}

// AppendTo implements [Encoder].
func (t *FramedContentTBS) AppendTo(b []byte) []byte {
	b = AppendUint16(b, uint16(ProtocolVersionMLS10))
	b = AppendUint16(b, uint16(t.WireFormat))
	b = t.Content.AppendTo(b)
	switch t.Content.Sender.SenderType {
	case SenderTypeMember, SenderTypeNewMemberCommit:
		b = append(b, t.Context...)
	}
	return b
}

// AuthenticatedContentTBM is what a PublicMessage's membership tag covers (§6.2).
type AuthenticatedContentTBM struct {
	ContentTBS FramedContentTBS
	Auth       *FramedContentAuthData
}

// AppendTo implements [Encoder].
func (t *AuthenticatedContentTBM) AppendTo(b []byte) []byte {
	return t.Auth.appendTo(t.ContentTBS.AppendTo(b), t.ContentTBS.Content.ContentType)
}

// AuthenticatedContent is a content with its authentication, whichever way it
// travelled (§6). A ProposalRef is the hash of one.
type AuthenticatedContent struct {
	WireFormat WireFormat
	Content    FramedContent
	Auth       FramedContentAuthData
}

// AppendTo implements [Encoder].
func (c *AuthenticatedContent) AppendTo(b []byte) []byte {
	b = AppendUint16(b, uint16(c.WireFormat))
	return c.Auth.appendTo(c.Content.AppendTo(b), c.Content.ContentType)
}

// DecodeFrom implements [Decoder].
func (c *AuthenticatedContent) DecodeFrom(r *Reader) {
	in := r.Begin("AuthenticatedContent")
	c.WireFormat = WireFormat(r.Uint16())
	c.Content.DecodeFrom(r)
	c.Auth.decodeFrom(r, c.Content.ContentType)
	r.End(in)
}

// TBS returns the encoding of the FramedContentTBS that the content's signature
// covers (§6.1). context is as in [FramedContentTBS].
func (c *AuthenticatedContent) TBS(context []byte) []byte {
	tbs := FramedContentTBS{WireFormat: c.WireFormat, Content: &c.Content, Context: context}
	return tbs.AppendTo(c.buffer(context))
}

// TBM returns the encoding of the AuthenticatedContentTBM that a PublicMessage's
// membership tag covers (§6.2). context is as in [FramedContentTBS].
func (c *AuthenticatedContent) TBM(context []byte) []byte {
	tbm := AuthenticatedContentTBM{
		ContentTBS: FramedContentTBS{WireFormat: c.WireFormat, Content: &c.Content, Context: context},
		Auth:       &c.Auth,
	}
	return tbm.AppendTo(c.buffer(context))
}

// buffer has room for most contents with their context.
func (c *AuthenticatedContent) buffer(context []byte) []byte {
	return make([]byte, 0, 1024+len(c.Content.ApplicationData)+len(c.Content.AuthenticatedData)+len(context))
}

// PublicMessage is a signed message that is not encrypted (§6.2).
type PublicMessage struct {
	Content       FramedContent
	Auth          FramedContentAuthData
	MembershipTag MAC // sender member
}

// AppendTo implements [Encoder].
func (m *PublicMessage) AppendTo(b []byte) []byte {
	b = m.Auth.appendTo(m.Content.AppendTo(b), m.Content.ContentType)
	if m.Content.Sender.SenderType == SenderTypeMember {
		b = AppendOpaque(b, m.MembershipTag)
	}
	return b
}

// DecodeFrom implements [Decoder].
func (m *PublicMessage) DecodeFrom(r *Reader) {
	in := r.Begin("PublicMessage")
	m.Content.DecodeFrom(r)
	m.Auth.decodeFrom(r, m.Content.ContentType)
	if m.Content.Sender.SenderType == SenderTypeMember {
		m.MembershipTag = r.Opaque()
	}
	r.End(in)
}

// MLSMessage is the outermost structure: one of the five wire formats (§6).
// Exactly the field that WireFormat names is set.
type MLSMessage struct {
	WireFormat     WireFormat
	PublicMessage  *PublicMessage
	PrivateMessage *PrivateMessage
	Welcome        *Welcome
	GroupInfo      *GroupInfo
	KeyPackage     *KeyPackage
}

// AppendTo implements [Encoder].
func (m *MLSMessage) AppendTo(b []byte) []byte {
	b = AppendUint16(b, uint16(ProtocolVersionMLS10))
	b = AppendUint16(b, uint16(m.WireFormat))
	switch m.WireFormat {
	case WireFormatPublicMessage:
		return m.PublicMessage.AppendTo(b)
	case WireFormatPrivateMessage:
		return m.PrivateMessage.AppendTo(b)
	case WireFormatWelcome:
		return m.Welcome.AppendTo(b)
	case WireFormatGroupInfo:
		return m.GroupInfo.AppendTo(b)
	case WireFormatKeyPackage:
		return m.KeyPackage.AppendTo(b)
	}
	return b
}

// DecodeFrom implements [Decoder].
func (m *MLSMessage) DecodeFrom(r *Reader) {
	in := r.Begin("MLSMessage")
	if ProtocolVersion(r.Uint16()) != ProtocolVersionMLS10 {
		r.Fail(ErrVersion)
	}
	m.WireFormat = WireFormat(r.Uint16())
	switch m.WireFormat {
	case WireFormatPublicMessage:
		m.PublicMessage = new(PublicMessage)
		m.PublicMessage.DecodeFrom(r)
	case WireFormatPrivateMessage:
		m.PrivateMessage = new(PrivateMessage)
		m.PrivateMessage.DecodeFrom(r)
	case WireFormatWelcome:
		m.Welcome = new(Welcome)
		m.Welcome.DecodeFrom(r)
	case WireFormatGroupInfo:
		m.GroupInfo = new(GroupInfo)
		m.GroupInfo.DecodeFrom(r)
	case WireFormatKeyPackage:
		m.KeyPackage = new(KeyPackage)
		m.KeyPackage.DecodeFrom(r)
	default:
		r.Fail(ErrValue)
	}
	r.End(in)
}
