package wire

// HPKECiphertext is the result of EncryptWithLabel (§7.6).
type HPKECiphertext struct {
	KEMOutput  []byte
	Ciphertext []byte
}

// AppendTo implements [Encoder].
func (c *HPKECiphertext) AppendTo(b []byte) []byte {
	return AppendOpaque(AppendOpaque(b, c.KEMOutput), c.Ciphertext)
}

// DecodeFrom implements [Decoder].
func (c *HPKECiphertext) DecodeFrom(r *Reader) {
	in := r.Begin("HPKECiphertext")
	c.KEMOutput = r.Opaque()
	c.Ciphertext = r.Opaque()
	r.End(in)
}

// UpdatePathNode is one node of a committer's filtered direct path, with its
// path secret encrypted to the resolution of the copath node (§7.6).
type UpdatePathNode struct {
	EncryptionKey       HPKEPublicKey
	EncryptedPathSecret []HPKECiphertext
}

// AppendTo implements [Encoder].
func (n *UpdatePathNode) AppendTo(b []byte) []byte {
	return AppendVector(AppendOpaque(b, n.EncryptionKey), n.EncryptedPathSecret)
}

// DecodeFrom implements [Decoder].
func (n *UpdatePathNode) DecodeFrom(r *Reader) {
	in := r.Begin("UpdatePathNode")
	n.EncryptionKey = r.Opaque()
	n.EncryptedPathSecret = ReadVector[HPKECiphertext](r)
	r.End(in)
}

// UpdatePath is a committer's new leaf and path (§7.6).
type UpdatePath struct {
	LeafNode LeafNode
	Nodes    []UpdatePathNode
}

// AppendTo implements [Encoder].
func (p *UpdatePath) AppendTo(b []byte) []byte {
	return AppendVector(p.LeafNode.AppendTo(b), p.Nodes)
}

// DecodeFrom implements [Decoder].
func (p *UpdatePath) DecodeFrom(r *Reader) {
	in := r.Begin("UpdatePath")
	p.LeafNode.DecodeFrom(r)
	p.Nodes = ReadVector[UpdatePathNode](r)
	r.End(in)
}

// ProposalOrRef is a proposal, or the reference of one that was sent (§12.4).
type ProposalOrRef struct {
	Type      ProposalOrRefType
	Proposal  *Proposal
	Reference ProposalRef
}

// AppendTo implements [Encoder].
func (p *ProposalOrRef) AppendTo(b []byte) []byte {
	b = AppendUint8(b, uint8(p.Type))
	switch p.Type {
	case ProposalOrRefTypeProposal:
		return p.Proposal.AppendTo(b)
	case ProposalOrRefTypeReference:
		return AppendOpaque(b, p.Reference)
	}
	return b
}

// DecodeFrom implements [Decoder].
func (p *ProposalOrRef) DecodeFrom(r *Reader) {
	in := r.Begin("ProposalOrRef")
	p.Type = ProposalOrRefType(r.Uint8())
	switch p.Type {
	case ProposalOrRefTypeProposal:
		p.Proposal = new(Proposal)
		p.Proposal.DecodeFrom(r)
	case ProposalOrRefTypeReference:
		p.Reference = r.Opaque()
	default:
		r.Fail(ErrValue)
	}
	r.End(in)
}

// Commit ends an epoch (§12.4). Path is nil when there is none.
type Commit struct {
	Proposals []ProposalOrRef
	Path      *UpdatePath
}

// AppendTo implements [Encoder].
func (c *Commit) AppendTo(b []byte) []byte {
	return AppendOptional(AppendVector(b, c.Proposals), c.Path)
}

// DecodeFrom implements [Decoder].
func (c *Commit) DecodeFrom(r *Reader) {
	in := r.Begin("Commit")
	c.Proposals = ReadVector[ProposalOrRef](r)
	c.Path = ReadOptional[UpdatePath](r)
	r.End(in)
}
