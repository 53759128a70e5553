package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Append adds one entry to a room. It may be called again with the same bytes
// until it gives an answer or a definitive refusal: the service answers a
// repeated append as it did the first time.
//
// [delivery.CodeStaleEpoch]: catch up and encrypt anew.
// [delivery.CodeCommitFirst]: commit the held proposals, then send.
// [delivery.CodeHealing]: offer kept entries by [Client.Heal], then retry.
func (c *Client) Append(ctx context.Context, room delivery.RoomID, a delivery.AppendRequest) (delivery.Accepted, error) {
	q := call{route: delivery.RouteAppend, path: []string{room.String()}, body: a.AppendTo(nil), media: delivery.BinaryType}
	r, err := c.send(ctx, q)
	if err != nil {
		return delivery.Accepted{}, err
	}
	b, err := readBody(r, 64<<10)
	if err != nil {
		return delivery.Accepted{}, err
	}
	var got delivery.Accepted
	if err := json.Unmarshal(b, &got); err != nil || got.Seq == 0 {
		return delivery.Accepted{}, fmt.Errorf("%w: an append without a seq", ErrGarbage)
	}
	return got, nil
}

// CreateRoom makes a room of a group's first GroupInfo and its tree.
// [delivery.CodeConflict] when the room exists.
func (c *Client) CreateRoom(ctx context.Context, r delivery.CreateRoomRequest) error {
	return c.drop(ctx, call{route: delivery.RouteCreateRoom, body: r.AppendTo(nil), media: delivery.BinaryType})
}

// Room reads where a room stands.
func (c *Client) Room(ctx context.Context, room delivery.RoomID) (delivery.RoomHead, error) {
	var h delivery.RoomHead
	err := c.json(ctx, call{route: delivery.RouteRoom, path: []string{room.String()}}, nil, &h)
	return h, err
}

// Idle lists the devices of a room that have been away for [delivery.IdleAfter], as
// the service says.
func (c *Client) Idle(ctx context.Context, room delivery.RoomID) ([]identity.DeviceID, error) {
	var out delivery.IdleResponse
	err := c.json(ctx, call{route: delivery.RouteIdle, path: []string{room.String()}}, nil, &out)
	return out.Devices, err
}

// Rooms lists rooms of this device and of other devices of the same identity.
func (c *Client) Rooms(ctx context.Context) ([]delivery.RoomView, error) {
	var out delivery.RoomsResponse
	err := c.json(ctx, call{route: delivery.RouteRooms}, nil, &out)
	return out.Rooms, err
}

// Log reads a page of a room's log after a seq; limit 0 means as many as the
// service gives. The entries are checked to lie after it and to be contiguous: one
// that does not, or a gap that is not an incarnation's, is an error that wraps
// [ErrGarbage].
func (c *Client) Log(ctx context.Context, room delivery.RoomID, after uint64, limit int) (delivery.LogPage, error) {
	q := call{route: delivery.RouteLog, path: []string{room.String()}, query: map[string]string{"after": strconv.FormatUint(after, 10)}}
	if limit > 0 {
		q.query["limit"] = strconv.Itoa(limit)
	}
	page, err := c.page(ctx, q, true)
	if err != nil {
		return page, err
	}
	if len(page.Entries) > 0 && page.Entries[0].Seq <= after { // who asks on would ask without end
		return delivery.LogPage{}, fmt.Errorf("%w: a log after %d begins with %d", ErrGarbage, after, page.Entries[0].Seq)
	}
	return page, nil
}

// Held reads the entries of the proposals that the room holds.
func (c *Client) Held(ctx context.Context, room delivery.RoomID) (delivery.LogPage, error) {
	return c.page(ctx, call{route: delivery.RouteHeld, path: []string{room.String()}}, false)
}

func (c *Client) page(ctx context.Context, q call, contiguous bool) (delivery.LogPage, error) {
	b, err := c.binary(ctx, q, delivery.MaxLogPage+delivery.MaxEntry+1<<20)
	if err != nil {
		return delivery.LogPage{}, err
	}
	page, err := delivery.ParseLogPage(b)
	if err != nil {
		return delivery.LogPage{}, fmt.Errorf("%w: %w", ErrGarbage, err)
	}
	for i := 1; i < len(page.Entries); i++ {
		before, e := page.Entries[i-1].Seq, page.Entries[i]
		jump := e.Kind == delivery.KindIncarnation && e.Seq > before
		if contiguous && e.Seq != before+1 && !jump || e.Seq <= before {
			return delivery.LogPage{}, fmt.Errorf("%w: seq %d follows %d in a log", ErrGarbage, e.Seq, before)
		}
	}
	return page, nil
}

// GroupInfo reads the GroupInfo of an epoch, an MLSMessage without the tree;
// Tree its ratchet tree.
func (c *Client) GroupInfo(ctx context.Context, room delivery.RoomID, epoch uint64) ([]byte, error) {
	return c.binary(ctx, call{route: delivery.RouteGroupInfo, path: []string{room.String()}, query: epochQuery(epoch)}, delivery.MaxGroupInfo)
}

// CurrentGroupInfo reads the GroupInfo of whatever epoch the room is in.
func (c *Client) CurrentGroupInfo(ctx context.Context, room delivery.RoomID) ([]byte, error) {
	return c.binary(ctx, call{route: delivery.RouteGroupInfo, path: []string{room.String()}}, delivery.MaxGroupInfo)
}

// Tree reads the ratchet tree of an epoch (RFC 9420 §12.4.3.3).
func (c *Client) Tree(ctx context.Context, room delivery.RoomID, epoch uint64) ([]byte, error) {
	return c.binary(ctx, call{route: delivery.RouteTree, path: []string{room.String()}, query: epochQuery(epoch)}, delivery.MaxTree)
}

func epochQuery(epoch uint64) map[string]string {
	return map[string]string{"epoch": strconv.FormatUint(epoch, 10)}
}

// Report says that a commit could not be processed.
func (c *Client) Report(ctx context.Context, room delivery.RoomID, r delivery.ReportRequest) error {
	return c.json(ctx, call{route: delivery.RouteReport, path: []string{room.String()}}, r, nil)
}

// Succeed closes a room for its successor.
func (c *Client) Succeed(ctx context.Context, room, successor delivery.RoomID) error {
	return c.json(ctx, call{route: delivery.RouteSucceed, path: []string{room.String()}}, delivery.SucceedRequest{Successor: successor}, nil)
}

// Heal offers kept entries of a room that is behind its members.
func (c *Client) Heal(ctx context.Context, room delivery.RoomID, h delivery.HealRequest) (delivery.HealResponse, error) {
	var out delivery.HealResponse
	r, err := c.send(ctx, call{route: delivery.RouteHeal, path: []string{room.String()}, body: h.AppendTo(nil), media: delivery.BinaryType})
	if err != nil {
		return out, err
	}
	b, err := readBody(r, 64<<10)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fmt.Errorf("%w: %s answers no such JSON", ErrGarbage, delivery.RouteHeal)
	}
	return out, nil
}

// drop does a call and throws its answer away.
func (c *Client) drop(ctx context.Context, q call) error {
	r, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	_, err = readBody(r, 1<<20)
	return err
}
