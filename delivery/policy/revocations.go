package policy

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// maxRevocations bounds what a room remembers. Anybody may fill it with
// revocations of devices of their own that never were, so a full list must not
// stop a removal: the service refuses revoked devices by its own tombstones.
const maxRevocations = 4096

// Revocations are a room's verified revocations, by device id and identity,
// each once. The data is the concatenation of identity.RevocationSize bytes each
// behind one length.
type Revocations []identity.Revocation

// ParseRevocations decodes and verifies them (ErrComponent).
func ParseRevocations(data []byte) (Revocations, error) {
	r := wire.NewReader(data)
	raw := r.Opaque()
	if err := r.Finish(); err != nil {
		return nil, fmt.Errorf("%w: revocations: %w", ErrComponent, err)
	}
	const size = identity.RevocationSize
	if len(raw)%size != 0 || len(raw)/size > maxRevocations {
		return nil, fmt.Errorf("%w: revocations of %d bytes, not up to %d times %d", ErrComponent, len(raw), maxRevocations, size)
	}
	list := make(Revocations, len(raw)/size)
	for i := range list {
		var err error
		if list[i], err = verified.verify(raw[i*size : (i+1)*size]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrComponent, err)
		}
		if i > 0 && compareRevocations(list[i-1], list[i]) >= 0 {
			return nil, fmt.Errorf("%w: revocations are not in order", ErrComponent)
		}
	}
	return list, nil
}

func compareRevocations(a, b identity.Revocation) int {
	return compareFields(a.Fields(), b.Fields())
}

func compareFields(a, b identity.RevocationFields) int {
	return cmp.Or(bytes.Compare(a.DeviceID[:], b.DeviceID[:]), a.Identity.Compare(b.Identity))
}

// Bytes encodes them; it is also the form of an update.
func (l Revocations) Bytes() []byte {
	b := wire.AppendVarint(nil, len(l)*identity.RevocationSize)
	for _, r := range l {
		b = append(b, r.Bytes()...)
	}
	return b
}

// Union has every device of both; of two revocations that mean the same the one
// of l stays (ErrComponent when there are too many).
func (l Revocations) Union(more Revocations) (Revocations, error) {
	out := slices.Clone(l)
	for _, r := range more {
		if i, found := slices.BinarySearchFunc(out, r, compareRevocations); !found {
			out = slices.Insert(out, i, r)
		}
	}
	if len(out) > maxRevocations {
		return nil, fmt.Errorf("%w: more than %d revocations", ErrComponent, maxRevocations)
	}
	return out, nil
}

// RevocationsUpdate makes the update that adds revocations in the order it must have.
func RevocationsUpdate(revocations ...identity.Revocation) []byte {
	l, _ := Revocations(nil).Union(revocations)
	return l.Bytes()
}

// Covers reports whether the device was revoked by its own identity. What
// somebody else signs about a device says nothing.
func (l Revocations) Covers(id identity.PublicKey, device identity.DeviceID) bool {
	want := identity.RevocationFields{Identity: id, DeviceID: device}
	_, found := slices.BinarySearchFunc(l, want, func(r identity.Revocation, f identity.RevocationFields) int {
		return compareFields(r.Fields(), f)
	})
	return found
}
