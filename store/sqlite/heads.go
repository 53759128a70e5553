package sqlite

import "github.com/askucher/compax-core/delivery"

// maxHeads bounds the memory of heads: about 300 bytes for each room.
const maxHeads = 16384

// heads are the rows of the rooms that were written lately, as the writer's
// open transaction sees them. Only the writer's goroutine touches them, and
// nobody else changes the file, so a row is read once and not for each append.
//
// Whoever changes rooms outside of WithRoom forgets them all; a piece that
// fails forgets its room, and a transaction that fails forgets them all.
type heads map[delivery.RoomID]head

type head struct {
	n    int64 // rooms.n
	room delivery.Room
	idle bool // known to hold no proposal
}

// of is the head of a room, read when it is not known.
func (h heads) of(c *change, id delivery.RoomID) (head, error) {
	if known, ok := h[id]; ok {
		return known, nil
	}
	n, room, err := roomByID(c.conn, id)
	if last, ok := c.tail.newest(id); ok {
		last.extend(&room)
	}
	return head{n: n, room: room}, err
}

// put keeps a head, in the place of a random one when there are too many.
func (h heads) put(of head) {
	if _, known := h[of.room.ID]; !known && len(h) >= maxHeads {
		for id := range h {
			delete(h, id)
			break
		}
	}
	h[of.room.ID] = of
}
