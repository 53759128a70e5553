package sim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// maxRooms bounds a world's rooms, so that they stay crowded.
const maxRooms = 4

func (w *World) say(ctx context.Context, d *device, room delivery.RoomID) error {
	w.words++
	text := fmt.Sprintf("word %d of %s", w.words, d)
	sent, err := d.engine.Send(ctx, room, sdk.Draft{Text: text})
	if err == nil {
		if d.pair != nil {
			d.pair.said[d.pair.of(d)][room] = true
		}
		return w.noteSaid(ctx, said{room: room, id: sent.ID, text: text, by: d, seq: sent.Seq})
	}
	return err
}

// noteSaid keeps a message that the service has acknowledged just now.
func (w *World) noteSaid(ctx context.Context, s said) error {
	list, err := w.service.store.Log(ctx, s.room, delivery.LogRange{After: s.seq - 1, Upto: s.seq, Limit: 1})
	if err != nil || len(list) == 0 {
		return fmt.Errorf("sim: %q was acknowledged as %d, and is not in the log: %w", s.text, s.seq, err)
	}
	w.said = append(w.said, s)
	return nil
}

// notePlaces keeps where entries stand, before the service forgets it: a restored one
// gives them other seqs.
func (w *World) notePlaces(ctx context.Context) error {
	if !w.service.running() {
		return nil
	}
	for _, room := range w.rooms {
		for after, more := uint64(0), true; more; {
			list, err := w.service.store.Log(ctx, room, delivery.LogRange{After: after, Limit: 1000})
			if errors.Is(err, delivery.ErrNotFound) {
				break // lost by a restore, so far
			}
			if err != nil {
				return fmt.Errorf("sim: read the log: %w", err)
			}
			for _, e := range list {
				hash := sha256.Sum256(e.Bytes)
				if !slices.Contains(w.places[hash], e.Seq) {
					w.places[hash] = append(w.places[hash], e.Seq)
				}
				after = e.Seq
			}
			more = len(list) > 0
		}
	}
	return nil
}

// latest chooses among the latest messages of a room one, with own one of this device's
// owner, and fails when there is none.
func (w *World) latest(ctx context.Context, d *device, room delivery.RoomID, own bool) (sdk.Line, error) {
	lines, err := d.engine.History(ctx, room, 0, 50, false)
	if err != nil {
		return sdk.Line{}, err
	}
	var found []sdk.Line
	for _, l := range lines {
		if l.Kind == sdk.LineText && (!own || l.From == d.owner.id) {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return sdk.Line{}, sdk.ErrNoMessage
	}
	return pick(w.random, found), nil
}

func (w *World) edit(ctx context.Context, d *device, room delivery.RoomID) error {
	l, err := w.latest(ctx, d, room, true)
	if err != nil {
		return err
	}
	_, err = d.engine.Edit(ctx, room, l.Seq, l.Text+", edited")
	return err
}

func (w *World) react(ctx context.Context, d *device, room delivery.RoomID) error {
	l, err := w.latest(ctx, d, room, false)
	if err != nil {
		return err
	}
	_, err = d.engine.React(ctx, room, l.Seq, "👍")
	return err
}

func (w *World) makeRoom(ctx context.Context, d *device) error {
	if len(w.rooms) >= maxRooms {
		return nil
	}
	room, err := d.engine.NewRoom(ctx, fmt.Sprintf("room of %s", d))
	if err == nil {
		w.rooms = append(w.rooms, room)
	}
	return err
}

// lose takes a device away from its owner, who revokes it from this one.
func (w *World) lose(ctx context.Context, d *device) error {
	for _, other := range d.owner.devices {
		if other.id == d.id || other.gone || other.busy {
			continue
		}
		w.tell("  %s is lost", other)
		err := d.engine.Revoke(ctx, other.id, &d.owner.words)
		if err == nil || errors.Is(err, sdk.ErrRevoked) {
			for _, x := range d.owner.devices {
				x.gone = x.gone || x.id == other.id // with a copy of its profile
			}
			w.tally.Lost++
		}
		return err
	}
	return nil
}
