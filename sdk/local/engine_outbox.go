package local

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/sdk"
)

func (e engine) Outbox(ctx context.Context, _ None) ([]Unsent, error) {
	unsent, err := e.Engine.Outbox(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Unsent, len(unsent))
	for i, u := range unsent {
		u.From, u.Device = e.Identity(), e.Device()
		if out[i].Row, err = e.row(ctx, u.Line); err != nil {
			return nil, err
		}
		out[i].Failed, out[i].Cause = u.Failed, u.Cause
	}
	return out, nil
}

func (r UnsentRequest) message() (id content.MessageID, err error) {
	b, err := hex.DecodeString(r.ID)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%w: %q", sdk.ErrNotWaiting, r.ID)
	}
	return content.MessageID(b), nil
}

func (e engine) Resend(ctx context.Context, r UnsentRequest) (Sent, error) {
	id, err := r.message()
	if err != nil {
		return Sent{}, err
	}
	return sentAs(e.Engine.Resend(ctx, r.Chat, id))
}

func (e engine) Discard(ctx context.Context, r UnsentRequest) (None, error) {
	id, err := r.message()
	if err != nil {
		return None{}, err
	}
	return None{}, e.Engine.Discard(ctx, r.Chat, id)
}
