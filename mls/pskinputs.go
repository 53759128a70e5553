package mls

import (
	"fmt"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// ResumptionPSK gives the resumption_psk of the current epoch or of a past one
// that is still kept (RFC 9420 Section 8.6), for a [PSKStore] that serves other
// groups. The caller wipes its copy.
func (g *Group) ResumptionPSK(epoch uint64) (Secret, error) {
	if epoch == g.Epoch() && g.status != statusRemoved {
		return g.keys.resumption.clone(), nil
	}
	for _, r := range g.resumption {
		if r.epoch == epoch {
			return r.secret.clone(), nil
		}
	}
	return nil, fmt.Errorf("%w: resumption PSK of epoch %d", ErrMissingPSK, epoch)
}

// psk finds the pre-shared key with an id: resumption keys of the group from
// itself, everything else from the configured store.
func (g *Group) psk(id wire.PreSharedKeyID) (Secret, error) {
	if id.PSKType == wire.PSKTypeResumption && string(id.PSKGroupID) == string(g.GroupID()) && !g.outside {
		return g.ResumptionPSK(id.PSKEpoch)
	}
	return g.config.psk(id)
}

func (c *Config) psk(id wire.PreSharedKeyID) (Secret, error) {
	if c.PSKs == nil {
		return nil, fmt.Errorf("%w: no store of pre-shared keys is configured", ErrMissingPSK)
	}
	secret, err := c.PSKs.PSK(id)
	if err != nil {
		return nil, fmt.Errorf("mls: looking up a pre-shared key: %w", err)
	}
	return secret.clone(), nil
}

// pskInputs finds the keys for ids, in order. known serves first, unless nil.
func (g *Group) pskInputs(ids []wire.PreSharedKeyID, known func(wire.PreSharedKeyID) (Secret, bool)) ([]pskInput, error) {
	inputs := make([]pskInput, len(ids))
	for i, id := range ids {
		secret, ok := Secret(nil), false
		if known != nil {
			secret, ok = known(id)
		}
		if !ok {
			var err error
			if secret, err = g.psk(id); err != nil {
				wipePSKs(inputs[:i])
				return nil, err
			}
		}
		inputs[i] = pskInput{id: id, secret: secret}
	}
	return inputs, nil
}

func wipePSKs(inputs []pskInput) {
	for _, in := range inputs {
		in.secret.Wipe()
	}
}

// welcomePSKs finds the keys that a Welcome names. from is the id of the one by
// which the group follows another one, if any (RFC 9420 Section 12.4.3.1).
func (c *Config) welcomePSKs(cs *suite.Suite, ids []wire.PreSharedKeyID, old *Group) (inputs []pskInput, from *wire.PreSharedKeyID, err error) {
	defer func() {
		if err != nil {
			wipePSKs(inputs)
		}
	}()
	seen := make(map[string]bool, len(ids))
	for i := range ids {
		id := ids[i]
		if len(id.PSKNonce) != cs.HashSize() {
			return inputs, nil, fmt.Errorf("%w: a psk_nonce of %d bytes in a welcome", ErrMalformed, len(id.PSKNonce))
		}
		encoded := string(wire.Marshal(&id))
		if seen[encoded] {
			return inputs, nil, fmt.Errorf("%w: a pre-shared key twice in a welcome", ErrMalformed)
		}
		seen[encoded] = true
		var secret Secret
		if id.PSKType == wire.PSKTypeResumption && id.Usage != wire.ResumptionPSKUsageApplication {
			if from != nil {
				return inputs, nil, fmt.Errorf("%w: a welcome follows two groups", ErrMalformed)
			}
			from = &ids[i]
		}
		switch {
		case id.PSKType == wire.PSKTypeResumption && old != nil && string(id.PSKGroupID) == string(old.GroupID()):
			secret, err = old.ResumptionPSK(id.PSKEpoch)
		default:
			secret, err = c.psk(id)
		}
		if err != nil {
			return inputs, nil, err
		}
		inputs = append(inputs, pskInput{id: id, secret: secret})
	}
	return inputs, from, nil
}
