package wire

// Add asks for a client to be added (§12.1.1).
type Add struct {
	KeyPackage KeyPackage
}

// AppendTo implements [Encoder].
func (p *Add) AppendTo(b []byte) []byte { return p.KeyPackage.AppendTo(b) }

// DecodeFrom implements [Decoder].
func (p *Add) DecodeFrom(r *Reader) { p.KeyPackage.DecodeFrom(r) }

// Update asks for the sender's leaf to be replaced (§12.1.2).
type Update struct {
	LeafNode LeafNode
}

// AppendTo implements [Encoder].
func (p *Update) AppendTo(b []byte) []byte { return p.LeafNode.AppendTo(b) }

// DecodeFrom implements [Decoder].
func (p *Update) DecodeFrom(r *Reader) { p.LeafNode.DecodeFrom(r) }

// Remove asks for a member to be removed, by leaf index (§12.1.3).
type Remove struct {
	Removed uint32
}

// AppendTo implements [Encoder].
func (p *Remove) AppendTo(b []byte) []byte { return AppendUint32(b, p.Removed) }

// DecodeFrom implements [Decoder].
func (p *Remove) DecodeFrom(r *Reader) { p.Removed = r.Uint32() }

// PreSharedKey asks for a PSK to be mixed into the key schedule (§12.1.4).
type PreSharedKey struct {
	PSK PreSharedKeyID
}

// AppendTo implements [Encoder].
func (p *PreSharedKey) AppendTo(b []byte) []byte { return p.PSK.AppendTo(b) }

// DecodeFrom implements [Decoder].
func (p *PreSharedKey) DecodeFrom(r *Reader) { p.PSK.DecodeFrom(r) }

// ReInit asks for the group to be closed and begun again with other parameters
// (§12.1.5).
type ReInit struct {
	GroupID     []byte
	Version     ProtocolVersion
	CipherSuite CipherSuite
	Extensions  Extensions
}

// AppendTo implements [Encoder].
func (p *ReInit) AppendTo(b []byte) []byte {
	b = AppendOpaque(b, p.GroupID)
	b = AppendUint16(b, uint16(p.Version))
	b = AppendUint16(b, uint16(p.CipherSuite))
	return p.Extensions.AppendTo(b)
}

// DecodeFrom implements [Decoder].
func (p *ReInit) DecodeFrom(r *Reader) {
	in := r.Begin("ReInit")
	p.GroupID = r.Opaque()
	p.Version = ProtocolVersion(r.Uint16())
	p.CipherSuite = CipherSuite(r.Uint16())
	p.Extensions.DecodeFrom(r)
	r.End(in)
}

// ExternalInit carries the init secret of an external commit, encapsulated to
// the group's external key (§12.1.6).
type ExternalInit struct {
	KEMOutput []byte
}

// AppendTo implements [Encoder].
func (p *ExternalInit) AppendTo(b []byte) []byte { return AppendOpaque(b, p.KEMOutput) }

// DecodeFrom implements [Decoder].
func (p *ExternalInit) DecodeFrom(r *Reader) { p.KEMOutput = r.Opaque() }

// GroupContextExtensions replaces the extensions of the GroupContext (§12.1.7).
type GroupContextExtensions struct {
	Extensions Extensions
}

// AppendTo implements [Encoder].
func (p *GroupContextExtensions) AppendTo(b []byte) []byte { return p.Extensions.AppendTo(b) }

// DecodeFrom implements [Decoder].
func (p *GroupContextExtensions) DecodeFrom(r *Reader) { p.Extensions.DecodeFrom(r) }

// SelfRemove asks for the sender's own leaf to be removed (extensions draft
// §6.3). It has no content.
type SelfRemove struct{}

// AppendTo implements [Encoder].
func (p *SelfRemove) AppendTo(b []byte) []byte { return b }

// DecodeFrom implements [Decoder].
func (p *SelfRemove) DecodeFrom(*Reader) {}

// AppDataUpdateOperation is what an [AppDataUpdate] does.
type AppDataUpdateOperation uint8

// The operations of the extensions draft §4.7.
const (
	AppDataUpdateOperationUpdate AppDataUpdateOperation = 1
	AppDataUpdateOperationRemove AppDataUpdateOperation = 2
)

// AppDataUpdate changes one component's entry in the GroupContext's dictionary
// (extensions draft §4.7).
type AppDataUpdate struct {
	ComponentID ComponentID
	Op          AppDataUpdateOperation
	Update      []byte // op update
}

// AppendTo implements [Encoder].
func (p *AppDataUpdate) AppendTo(b []byte) []byte {
	b = AppendUint16(b, uint16(p.ComponentID))
	b = AppendUint8(b, uint8(p.Op))
	if p.Op == AppDataUpdateOperationUpdate {
		b = AppendOpaque(b, p.Update)
	}
	return b
}

// DecodeFrom implements [Decoder].
func (p *AppDataUpdate) DecodeFrom(r *Reader) {
	in := r.Begin("AppDataUpdate")
	p.ComponentID = ComponentID(r.Uint16())
	p.Op = AppDataUpdateOperation(r.Uint8())
	switch p.Op {
	case AppDataUpdateOperationUpdate:
		p.Update = r.Opaque()
	case AppDataUpdateOperationRemove:
	default:
		r.Fail(ErrValue)
	}
	r.End(in)
}

// AppEphemeral attaches a component's data to a commit without changing the
// group (extensions draft §4.8).
type AppEphemeral struct {
	ComponentID ComponentID
	Data        []byte
}

// AppendTo implements [Encoder].
func (p *AppEphemeral) AppendTo(b []byte) []byte {
	return AppendOpaque(AppendUint16(b, uint16(p.ComponentID)), p.Data)
}

// DecodeFrom implements [Decoder].
func (p *AppEphemeral) DecodeFrom(r *Reader) {
	p.ComponentID = ComponentID(r.Uint16())
	p.Data = r.Opaque()
}

// Proposal is a proposal of any type (§12.1). Exactly the field that
// ProposalType names is set.
//
// The RFC gives an unknown proposal type no shape of its own. Implementations
// that carry custom proposals frame them as opaque<V>, and so does this
// package: the content is kept in Unknown.
type Proposal struct {
	ProposalType           ProposalType
	Add                    *Add
	Update                 *Update
	Remove                 *Remove
	PreSharedKey           *PreSharedKey
	ReInit                 *ReInit
	ExternalInit           *ExternalInit
	GroupContextExtensions *GroupContextExtensions
	AppDataUpdate          *AppDataUpdate
	AppEphemeral           *AppEphemeral
	SelfRemove             *SelfRemove
	Unknown                []byte
}

// AppendTo implements [Encoder].
func (p *Proposal) AppendTo(b []byte) []byte {
	b = AppendUint16(b, uint16(p.ProposalType))
	switch p.ProposalType {
	case ProposalTypeAdd:
		return p.Add.AppendTo(b)
	case ProposalTypeUpdate:
		return p.Update.AppendTo(b)
	case ProposalTypeRemove:
		return p.Remove.AppendTo(b)
	case ProposalTypePSK:
		return p.PreSharedKey.AppendTo(b)
	case ProposalTypeReInit:
		return p.ReInit.AppendTo(b)
	case ProposalTypeExternalInit:
		return p.ExternalInit.AppendTo(b)
	case ProposalTypeGroupContextExtensions:
		return p.GroupContextExtensions.AppendTo(b)
	case ProposalTypeAppDataUpdate:
		return p.AppDataUpdate.AppendTo(b)
	case ProposalTypeAppEphemeral:
		return p.AppEphemeral.AppendTo(b)
	case ProposalTypeSelfRemove:
		return b
	default:
		return AppendOpaque(b, p.Unknown)
	}
}

// DecodeFrom implements [Decoder].
func (p *Proposal) DecodeFrom(r *Reader) {
	in := r.Begin("Proposal")
	p.ProposalType = ProposalType(r.Uint16())
	switch p.ProposalType {
	case ProposalTypeAdd:
		p.Add = new(Add)
		p.Add.DecodeFrom(r)
	case ProposalTypeUpdate:
		p.Update = new(Update)
		p.Update.DecodeFrom(r)
	case ProposalTypeRemove:
		p.Remove = new(Remove)
		p.Remove.DecodeFrom(r)
	case ProposalTypePSK:
		p.PreSharedKey = new(PreSharedKey)
		p.PreSharedKey.DecodeFrom(r)
	case ProposalTypeReInit:
		p.ReInit = new(ReInit)
		p.ReInit.DecodeFrom(r)
	case ProposalTypeExternalInit:
		p.ExternalInit = new(ExternalInit)
		p.ExternalInit.DecodeFrom(r)
	case ProposalTypeGroupContextExtensions:
		p.GroupContextExtensions = new(GroupContextExtensions)
		p.GroupContextExtensions.DecodeFrom(r)
	case ProposalTypeAppDataUpdate:
		p.AppDataUpdate = new(AppDataUpdate)
		p.AppDataUpdate.DecodeFrom(r)
	case ProposalTypeAppEphemeral:
		p.AppEphemeral = new(AppEphemeral)
		p.AppEphemeral.DecodeFrom(r)
	case ProposalTypeSelfRemove:
		p.SelfRemove = new(SelfRemove)
	default:
		p.Unknown = r.Opaque()
	}
	r.End(in)
}
