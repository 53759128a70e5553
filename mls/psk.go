package mls

import (
	"fmt"
	"math"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// PSKStore looks up pre-shared keys of the types external and application, and
// resumption PSKs of other groups (see [Group.ResumptionPSK]), by what identifies
// them; the nonce of id is not part of that. An unknown key is an error, best one
// that wraps [ErrMissingPSK]. The result is copied. Resumption PSKs of the group
// itself come from the group.
type PSKStore interface {
	PSK(id wire.PreSharedKeyID) (Secret, error)
}

// PSKs is a PSKStore held in memory: external keys by their psk_id.
type PSKs map[string]Secret

// PSK gives the external key with the id.
func (m PSKs) PSK(id wire.PreSharedKeyID) (Secret, error) {
	if id.PSKType == wire.PSKTypeExternal {
		if secret, ok := m[string(id.PSKID)]; ok {
			return secret, nil
		}
	}
	return nil, ErrMissingPSK
}

// pskInput is one pre-shared key with its id.
type pskInput struct {
	id     wire.PreSharedKeyID
	secret Secret
}

// pskSecret computes psk_secret from the keys in the order of their proposals
// (RFC 9420 Section 8.4). Without keys it is the all-zero vector.
func pskSecret(cs *suite.Suite, inputs []pskInput) (Secret, error) {
	if len(inputs) > math.MaxUint16 {
		return nil, fmt.Errorf("%w: %d pre-shared keys, 65535 are possible", ErrParams, len(inputs))
	}
	zero := zeroSecret(cs)
	secret := zeroSecret(cs)
	for i, in := range inputs {
		extracted := Secret(cs.Extract(zero, in.secret))
		label := wire.PSKLabel{ID: in.id, Index: uint16(i), Count: uint16(len(inputs))}
		input := Secret(cs.ExpandWithLabel(extracted, "derived psk", wire.Marshal(&label), cs.HashSize()))
		next := Secret(cs.Extract(input, secret))
		wipeAll([]Secret{extracted, input, secret})
		secret = next
	}
	return secret, nil
}
