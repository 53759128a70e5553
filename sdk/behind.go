package sdk

import (
	"cmp"
	"context"

	"github.com/askucher/compax-core/delivery"
)

// CatchUp is how far this device is with reading the log of a room.
type CatchUp struct {
	Room  delivery.RoomID
	Title string // what to show; empty for the account's own room
	Done  uint64 // entries that were read since it began
	// Left is how many there are still. It is 0 at the end, and there alone. Where the
	// service was restored meanwhile it is 1 until that was read: nobody knows more.
	Left uint64
}

// absence tells [Config.CatchingUp] how far a catch-up is, after each page. One that
// takes a single page is not worth a word.
type absence struct {
	told bool
	done uint64
	name string
}

func (e *Engine) tellAbsence(ctx context.Context, r *room, n *absence, page delivery.LogPage) error {
	n.done += uint64(len(page.Entries))
	left := behind(r.rec.Cursor, page.Head)
	if r.rec.Status != StatusOpen {
		left = 0 // what follows is not for this device
	}
	if left == 0 && !n.told {
		return nil
	}
	if !n.told {
		err := e.Store.View(ctx, func(tx Tx) (err error) {
			n.name, err = titleOf(tx, r.rec)
			return err
		})
		if err != nil {
			return err
		}
	}
	n.told = left > 0
	e.CatchingUp(CatchUp{Room: r.rec.ID, Title: n.name, Done: n.done, Left: left})
	return nil
}

// behind is how many entries lie behind a cursor, 0 only when there are none. The
// numbers say it, unless a restore lies between: it moves them on by IncarnationJump or
// more, and only its own entry says how far.
func behind(cursor, head uint64) uint64 {
	if head <= cursor {
		return 0
	}
	if n := head - cursor; n < delivery.IncarnationJump/2 {
		return n
	}
	return 1
}

// titleOf is what a room is called here: by its title, or by whom it is with.
func titleOf(tx Tx, r Room) (string, error) {
	if r.Other == nil || r.Title != "" {
		return r.Title, nil
	}
	var p Person
	if _, err := get(tx, TablePerson, r.Other.String(), &p); err != nil {
		return "", err
	}
	return cmp.Or(p.Name, p.Username, r.Other.String()[:12]), nil
}
