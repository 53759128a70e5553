package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
)

// uplink is where frames go up, and what was said last.
type uplink struct {
	turn turn // held while frames are written

	mu     sync.Mutex                  // guards everything below
	conn   *client.Connection          // of Follow; nil = it is not connected
	typing map[delivery.RoomID]saidNow // in which rooms the person is said to type
	online time.Time                   // when presence was said last; zero = the person is not said to be there
}

type saidNow struct {
	epoch uint64 // who came in since was not told
	at    time.Time
}

func newUplink() *uplink { return &uplink{turn: newTurn(), typing: map[delivery.RoomID]saidNow{}} }

// use makes a connection that of all frames until the returned function is called.
func (u *uplink) use(c *client.Connection) (done func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conn = c
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.conn == c {
			u.conn = nil
		}
	}
}

// smallRooms lists the rooms that are told of presence.
func (e *Engine) smallRooms(ctx context.Context) (out []delivery.RoomID, err error) {
	type place struct {
		room delivery.RoomID
		time int64 // of the last line
	}
	open, err := e.openRooms(ctx)
	if err != nil {
		return nil, err
	}
	var places []place
	for _, id := range open {
		v, err := e.liveView(ctx, id)
		switch {
		case errors.Is(err, ErrOut) || errors.Is(err, ErrNoRoom) || errors.Is(err, ErrRequest):
			continue
		case err != nil:
			return nil, err
		case !v.sayable(MaxOnlinePeople):
			continue
		}
		p := place{room: id}
		err = e.Store.View(ctx, func(tx Tx) error {
			lines, err := tx.Lines(LineQuery{Room: id, Last: true, Limit: 1})
			for _, l := range lines {
				p.time = l.TimeMS
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	slices.SortStableFunc(places, func(a, b place) int { return int(max(min(b.time-a.time, 1), -1)) })
	for _, p := range places[:min(len(places), MaxOnlineRooms)] {
		out = append(out, p.room)
	}
	return out, nil
}

// liveView is what frames of a room need; a room that was not used yet is loaded
// (ErrNoRoom, ErrRequest, ErrOut).
func (e *Engine) liveView(ctx context.Context, id delivery.RoomID) (epochView, error) {
	if l := e.liveOf(id); l != nil {
		if v, ok := l.view(); ok {
			return v, nil
		}
	}
	_, done, err := e.enter(ctx, id)
	if err != nil {
		return epochView{}, err
	}
	done() // publishes
	if l := e.liveOf(id); l != nil {
		if v, ok := l.view(); ok {
			return v, nil
		}
	}
	return epochView{}, ErrOut
}

// sayable reports whether something may be said in a room to at most so many
// people: to nobody else it is not, nor by a leaf that is about to be replaced.
func (v epochView) sayable(people int) bool {
	n := len(v.roster.Identities())
	return !v.silent && n > 1 && n <= people
}

// speak seals a frame of a kind for each room and sends them: over the connection
// of Follow, or over one of its own. A room that has closed meanwhile is left out.
func (e *Engine) speak(ctx context.Context, kind uint16, rooms ...delivery.RoomID) error {
	if len(rooms) == 0 {
		return nil
	}
	done, err := e.uplink.turn.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	e.uplink.mu.Lock()
	c := e.uplink.conn
	e.uplink.mu.Unlock()
	if c == nil {
		if c, err = e.dial(ctx); err != nil {
			return e.fail(ctx, err)
		}
		defer func() { _ = c.Close() }() // it is of no use any more
	}
	for _, id := range rooms {
		l := e.liveOf(id)
		if l == nil {
			continue
		}
		v, ok := l.keyed()
		if !ok || v.silent {
			v.secret.wipe()
			continue
		}
		done, err := e.life.step()
		if err != nil {
			v.secret.wipe()
			return err
		}
		payload, err := sealEphemeral(e.Random, v.secret, e.device, v.at, l.stamp(e.nowMS()), kind)
		done()
		v.secret.wipe()
		if err != nil {
			return fmt.Errorf("sdk: seal a frame: %w", err)
		}
		if err := c.SendEphemeral(ctx, delivery.Ephemeral{Room: id, Epoch: v.at.epoch, Leaf: v.at.leaf, Payload: payload}); err != nil {
			return err
		}
	}
	return nil
}

// dial opens a connection that rings for nothing. A session that ended is renewed.
func (e *Engine) dial(ctx context.Context) (*client.Connection, error) {
	c, err := e.client.Connect(ctx, nil)
	if delivery.CodeOf(err) == delivery.CodeLogIn {
		c, err = e.client.Connect(ctx, nil)
	}
	return c, err
}
