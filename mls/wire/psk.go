package wire

// PreSharedKeyID names a pre-shared key (§8.4).
type PreSharedKeyID struct {
	PSKType     PSKType
	PSKID       []byte             // external, application
	Usage       ResumptionPSKUsage // resumption
	PSKGroupID  []byte             // resumption
	PSKEpoch    uint64             // resumption
	ComponentID ComponentID        // application (extensions draft §4.5)
	PSKNonce    []byte
}

// AppendTo implements [Encoder].
func (p *PreSharedKeyID) AppendTo(b []byte) []byte {
	b = AppendUint8(b, uint8(p.PSKType))
	switch p.PSKType {
	case PSKTypeExternal:
		b = AppendOpaque(b, p.PSKID)
	case PSKTypeResumption:
		b = AppendUint8(b, uint8(p.Usage))
		b = AppendOpaque(b, p.PSKGroupID)
		b = AppendUint64(b, p.PSKEpoch)
	case PSKTypeApplication:
		b = AppendUint16(b, uint16(p.ComponentID))
		b = AppendOpaque(b, p.PSKID)
	}
	return AppendOpaque(b, p.PSKNonce)
}

// DecodeFrom implements [Decoder].
func (p *PreSharedKeyID) DecodeFrom(r *Reader) {
	in := r.Begin("PreSharedKeyID")
	p.PSKType = PSKType(r.Uint8())
	switch p.PSKType {
	case PSKTypeExternal:
		p.PSKID = r.Opaque()
	case PSKTypeResumption:
		p.Usage = ResumptionPSKUsage(r.Uint8())
		if p.Usage < ResumptionPSKUsageApplication || p.Usage > ResumptionPSKUsageBranch {
			r.Fail(ErrValue)
		}
		p.PSKGroupID = r.Opaque()
		p.PSKEpoch = r.Uint64()
	case PSKTypeApplication:
		p.ComponentID = ComponentID(r.Uint16())
		p.PSKID = r.Opaque()
	default:
		r.Fail(ErrValue)
	}
	p.PSKNonce = r.Opaque()
	r.End(in)
}

// PSKLabel is the context under which one of several PSKs is mixed into the
// psk_secret (§8.4).
type PSKLabel struct {
	ID    PreSharedKeyID
	Index uint16
	Count uint16
}

// AppendTo implements [Encoder].
func (l *PSKLabel) AppendTo(b []byte) []byte {
	b = l.ID.AppendTo(b)
	b = AppendUint16(b, l.Index)
	return AppendUint16(b, l.Count)
}
