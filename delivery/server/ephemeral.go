package server

import (
	"context"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// ephemeral passes presence or typing on to the room's other devices: from a
// leaf of the current epoch, by the device at that leaf. What does not fit is
// dropped in silence: nothing depends on it.
func (s *Server) ephemeral(ctx context.Context, from delivery.ConnectedDevice, e *delivery.Ephemeral) {
	if s.here(e.Room) != nil || s.spend(ctx, "ephemeral", from.Device.String(), 1) != nil {
		return
	}
	f, err := s.follow(ctx, e.Room)
	if err != nil || f.epoch != e.Epoch {
		return
	}
	m, in := f.roster.At(e.Leaf)
	if !in || m.Device != from.Device {
		return
	}
	all, err := s.members(ctx, e.Room, f.epoch)
	if err != nil {
		return
	}
	others := make([]identity.DeviceID, 0, len(all))
	for _, d := range all {
		if d != from.Device {
			others = append(others, d)
		}
	}
	s.ring(ctx, others, delivery.Hint{Kind: delivery.HintEphemeral, Room: e.Room, Payload: delivery.AppendFrame(nil, e)})
}
