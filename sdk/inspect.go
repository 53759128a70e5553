package sdk

import (
	"bytes"
	"context"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls/wire"
)

// EpochAuthenticator is the epoch that this device is in and the value that all
// members of it share (RFC 9420 §8.7): who compares it out of band sees whether
// everybody follows the same history.
func (e *Engine) EpochAuthenticator(ctx context.Context, id delivery.RoomID) (epoch uint64, authenticator []byte, err error) {
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return 0, nil, err
	}
	defer done()
	if err := e.mayAct(r); err != nil {
		return 0, nil, err
	}
	a := r.state.group.EpochAuthenticator()
	return r.state.group.Epoch(), bytes.Clone(a), nil
}

// SuiteOf is the cipher suite of a room, one of [Suites] (ErrNoRoom, ErrRequest,
// ErrOut).
func (e *Engine) SuiteOf(ctx context.Context, id delivery.RoomID) (wire.CipherSuite, error) {
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return 0, err
	}
	defer done()
	if r.state.group == nil {
		return 0, ErrOut
	}
	return r.state.group.CipherSuite(), nil
}
