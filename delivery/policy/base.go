package policy

import (
	"fmt"

	"github.com/askucher/compax-core/mls/wire"
)

// BasePolicy is a BaseRoomPolicy (MIMI room policy §5). Our rooms have no
// parent, and members have one identity each, with any number of devices.
type BasePolicy struct {
	FixedMembership bool   // direct and self rooms
	MaxClients      uint32 // leaves; 0 = no bound
	MaxUsers        uint32 // participants that are not banned; 0 = no bound
	Discoverable    bool   // listed in the directory
}

// ParseBasePolicy decodes one (ErrComponent).
func ParseBasePolicy(data []byte) (BasePolicy, error) {
	var p BasePolicy
	r := wire.NewReader(data)
	p.FixedMembership = readBool(r)
	parent := readBool(r)
	uri := r.Opaque()
	multi := readBool(r)
	p.MaxClients = readOptional(r)
	p.MaxUsers = readOptional(r)
	pseudonyms := readBool(r)
	persistent := readBool(r)
	p.Discoverable = readBool(r)
	components := wire.ReadUint16Vector[wire.ComponentID](r)
	if err := r.Finish(); err != nil {
		return BasePolicy{}, fmt.Errorf("%w: base policy: %w", ErrComponent, err)
	}
	if parent || len(uri) != 0 || !multi || pseudonyms || persistent || len(components) != 0 {
		return BasePolicy{}, fmt.Errorf("%w: base policy asks for what rooms here do not have", ErrComponent)
	}
	return p, nil
}

// Bytes encodes it.
func (p BasePolicy) Bytes() []byte {
	b := appendBool(nil, p.FixedMembership)
	b = appendBool(b, false) // parent_dependant
	b = wire.AppendOpaque(b, "")
	b = appendBool(b, true) // multi_device
	b = appendOptional(b, p.MaxClients)
	b = appendOptional(b, p.MaxUsers)
	b = appendBool(b, false) // pseudonyms_allowed
	b = appendBool(b, false) // persistent_room
	b = appendBool(b, p.Discoverable)
	return wire.AppendVarint(b, 0) // policy_component_ids
}

func readBool(r *wire.Reader) bool {
	v := r.Uint8()
	if v > 1 {
		r.Fail(wire.ErrValue)
	}
	return v == 1
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// readOptional reads optional<uint32>; a bound of zero says nothing and is refused.
func readOptional(r *wire.Reader) uint32 {
	if !r.Present() {
		return 0
	}
	v := r.Uint32()
	if v == 0 {
		r.Fail(wire.ErrValue)
	}
	return v
}

func appendOptional(b []byte, v uint32) []byte {
	if v == 0 {
		return append(b, 0)
	}
	return wire.AppendUint32(append(b, 1), v)
}
