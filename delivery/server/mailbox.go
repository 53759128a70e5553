package server

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

const maxMailPage = 100

// mail puts an item into a device's mailbox and rings. Known keys are ignored.
func (s *Server) mail(ctx context.Context, device identity.DeviceID, item delivery.MailItem) error {
	_, put, err := s.store.PutMail(ctx, device, item)
	if errors.Is(err, delivery.ErrNotFound) {
		return nil // the device is gone: nobody to tell
	}
	if err != nil {
		return err
	}
	if put {
		s.metrics.mail.WithLabelValues(mailKind(item.Kind)).Inc()
		s.ring(ctx, []identity.DeviceID{device}, delivery.Hint{Kind: delivery.HintMail})
	}
	return nil
}

func mailKind(k delivery.MailKind) string {
	switch k {
	case delivery.MailWelcome:
		return "welcome"
	case delivery.MailLowKeys:
		return "low_keys"
	case delivery.MailAsk:
		return "ask"
	case delivery.MailRemoved:
		return "removed"
	case delivery.MailReissued:
		return "reissued"
	}
	return "other"
}

// mailbox answers with the items that are not acknowledged, Welcomes included.
func (s *Server) mailbox(c *call) error {
	after, err := c.number("after", 0)
	if err != nil {
		return err
	}
	limit, err := c.number("limit", maxMailPage)
	if err != nil {
		return err
	}
	n := int(min(max(limit, 1), maxMailPage))
	items, err := s.store.Mail(c, c.device(), after, n+1)
	if err != nil {
		return err
	}
	out := delivery.MailResponse{Items: []delivery.MailView{}, More: len(items) > n}
	size := 0
	for _, item := range items[:min(n, len(items))] {
		v, err := s.view(c, item)
		if err != nil {
			return err
		}
		// A page carries at most a few Welcomes of a large room.
		if size += len(v.Welcome) + len(v.Payload); size > delivery.MaxLogPage && len(out.Items) > 0 {
			out.More = true
			break
		}
		out.Items = append(out.Items, v)
	}
	return c.json(out)
}

func (s *Server) view(c *call, item delivery.MailItem) (delivery.MailView, error) {
	v := delivery.MailView{
		ID: item.ID, Kind: item.Kind, Epoch: item.Epoch, StartSeq: item.StartSeq, Payload: item.Payload, CreatedMS: item.CreatedMS,
	}
	if item.Room != (delivery.RoomID{}) {
		room, home := item.Room, item.Room.Home()
		v.Room, v.ReadAt = &room, &home
	}
	if item.Kind != delivery.MailWelcome {
		return v, nil
	}
	w, err := s.store.Welcome(c, item.Room, item.Epoch, c.device())
	if errors.Is(err, delivery.ErrNotFound) {
		return v, nil // acknowledged already: the item goes with the next acknowledgement
	}
	v.Welcome = w
	return v, err
}

// ackMail forgets items; a Welcome among them frees the room's copy first, so
// that a crash in between leaves an item that is acknowledged again.
func (s *Server) ackMail(c *call) error {
	var req delivery.AckRequest
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if len(req.IDs) == 0 || len(req.IDs) > 1000 {
		return bad("acknowledge 1 to 1000 items")
	}
	ids := make([]uint64, len(req.IDs))
	for i, text := range req.IDs {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil || id == 0 {
			return bad("an item's id is not a number")
		}
		ids[i] = id
	}
	slices.Sort(ids)
	for next := 0; next < len(ids); {
		items, err := s.store.Mail(c, c.device(), ids[next]-1, maxMailPage)
		if err != nil {
			return err
		}
		for _, item := range items {
			if _, wanted := slices.BinarySearch(ids, item.ID); wanted && item.Kind == delivery.MailWelcome {
				if err := s.store.AckWelcome(c, item.Room, item.Epoch, c.device()); err != nil {
					return err
				}
			}
		}
		if len(items) < maxMailPage {
			break
		}
		last := items[len(items)-1].ID
		for next < len(ids) && ids[next] <= last {
			next++
		}
	}
	if err := s.store.AckMail(c, c.device(), ids); err != nil {
		return err
	}
	return c.nothing()
}
