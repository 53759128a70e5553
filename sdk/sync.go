package sdk

import (
	"cmp"
	"context"
	"errors"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
)

// Sync brings the profile up to date: mailbox, key packages, rooms of this account's other
// devices, every open room, then what waits in the outbox and the snapshot. It
// stops where the network does and goes on from there next time. What keeps it from
// one room alone is its error when all the rest is done.
func (e *Engine) Sync(ctx context.Context) error {
	if err := e.ReadMail(ctx); err != nil {
		return err
	}
	if err := e.offerSuites(ctx); err != nil {
		return err
	}
	if err := e.joinOwnRooms(ctx); err != nil {
		return err
	}
	rooms, err := e.openRooms(ctx)
	if err != nil {
		return err
	}
	var later error // what is about one room is told when the others were read
	for _, id := range rooms {
		if err := e.syncRoom(ctx, id); aboutRoom(err) {
			later = cmp.Or(later, err)
		} else if err != nil {
			return err
		}
	}
	if err := e.learnSelf(ctx); err != nil {
		return err
	}
	if err := e.moveLost(ctx); err != nil {
		return err
	}
	if err := e.joinSuccessors(ctx); err != nil {
		return err
	}
	if err := e.Flush(ctx); err != nil {
		return err
	}
	if err := e.trim(ctx); err != nil {
		return err
	}
	if err := e.settled(ctx); err != nil {
		return err
	}
	if err := e.archiveLater(ctx); err != nil {
		return err
	}
	if err := e.history(ctx); err != nil {
		return err
	}
	if err := e.flushSnapshot(ctx); err != nil {
		return err
	}
	return later
}

// aboutRoom reports whether an error says nothing of the service's other rooms: one is
// put together again, changes faster than this device follows, or is shown as none can be.
func aboutRoom(err error) bool {
	var fast *goesOnError
	return errors.As(err, &fast) || delivery.CodeOf(err) == delivery.CodeHealing || errors.Is(err, client.ErrGarbage)
}

func (e *Engine) openRooms(ctx context.Context) (out []delivery.RoomID, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		rooms, err := scan[Room](tx, TableRoom, "")
		for _, r := range rooms {
			if r.Status == StatusOpen {
				out = append(out, r.ID)
			}
		}
		return err
	})
	return out, err
}

// syncRoom catches up with one room. A room that is stuck or that this device is
// out of keeps nobody from the others.
func (e *Engine) syncRoom(ctx context.Context, id delivery.RoomID) error {
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if err = e.meet(ctx, r); err == nil { // before what they say is shown
		err = e.catchUp(ctx, r)
	}
	if err == nil {
		err = e.tidy(ctx, r)
	}
	if err == nil {
		err = e.followed(ctx, r)
	}
	if err == nil {
		err = e.meet(ctx, r)
	}
	if err == nil {
		err = e.announceChange(ctx, r)
	}
	switch {
	case err == nil, errors.Is(err, ErrOut):
		return nil
	case isNet(err), errors.Is(err, client.ErrGarbage), errors.Is(err, ErrRevoked), delivery.CodeOf(err) == delivery.CodeLogIn:
		return err
	}
	e.Warn("%s: %v", id, err)
	return nil
}
