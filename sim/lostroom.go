package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// orphan makes a room that is newer than the backup, with everybody in it, and ends the
// device that made it for good: after a restore nobody can bring the room back. It comes to
// nothing when the network does not let it.
func (w *World) orphan(ctx context.Context) error {
	d := w.people[len(w.people)-w.Bots-1].devices[0]
	if d.gone || d.busy || d.engine == nil || d.crash.died() {
		return nil
	}
	room, err := d.engine.NewRoom(ctx, "without its maker")
	if err == nil {
		w.rooms = append(w.rooms, room)
		for _, p := range w.people {
			if err == nil && p != d.owner {
				err = d.engine.Add(ctx, room, p.id)
			}
		}
	}
	if err == nil {
		err = w.service.chores(ctx)
	}
	for _, p := range w.people {
		for _, other := range p.devices {
			if err == nil && other != d && !other.gone && other.engine != nil && !other.crash.died() {
				err = w.welcomeIn(ctx, other)
			}
		}
	}
	w.tell("%s made a room and is gone: %v", d, err)
	d.gone = true
	if err == nil {
		w.tally.Orphans++
	} else if !w.tolerable(err) {
		return fmt.Errorf("%s makes a room: %w", d, err)
	}
	return nil
}

// places of a lost room: who has it, and where each of them goes on.
func (w *World) whereLost(ctx context.Context, room delivery.RoomID) (waits []*device, next []delivery.RoomID, err error) {
	if _, err := w.service.store.Room(ctx, room); !errors.Is(err, delivery.ErrNotFound) {
		return nil, nil, err
	}
	for _, p := range w.people {
		for _, d := range p.devices {
			if d.gone {
				continue
			}
			rec, err := d.engine.RoomOf(ctx, room)
			switch {
			case errors.Is(err, sdk.ErrNoRoom), errors.Is(err, sdk.ErrRequest):
			case err != nil:
				return nil, nil, fmt.Errorf("%s opens %s: %w", d, room, err)
			case rec.Status == sdk.StatusOpen:
				waits = append(waits, d)
			case rec.Successor != nil && !slices.Contains(next, *rec.Successor):
				next = append(next, *rec.Successor)
			}
		}
	}
	return waits, next, nil
}

// lostOnes notes where lost rooms go on, and reports whether somebody waits for that still.
func (w *World) lostOnes(ctx context.Context) (due bool, err error) {
	for _, room := range w.rooms {
		waits, next, err := w.whereLost(ctx, room)
		if err != nil {
			return false, err
		}
		due = due || len(waits) > 0
		for _, id := range next {
			if !slices.Contains(w.movedTo, id) {
				w.movedTo = append(w.movedTo, id)
				w.tally.Moved++
			}
		}
	}
	return due, nil
}

// judgeLost checks that of a lost room all go on in one.
func (w *World) judgeLost(ctx context.Context, room delivery.RoomID) error {
	waits, next, err := w.whereLost(ctx, room)
	if err != nil {
		return err
	}
	if len(waits) > 0 || len(next) > 1 {
		return fmt.Errorf("%s is lost: %v wait, the others go on in %v", room, waits, next)
	}
	return nil
}
