package sqlite

import "encoding/binary"

// known holds what the table seen has of rooms that were written lately, so that the
// usual answer, "not seen", needs no look into the file. A room is read once, and what
// is placed is added. More than the file has does no harm (a transaction that came to
// nothing, housekeeping): a key that is found here is looked up there. Only the
// writer's goroutine touches it.
type known struct {
	rooms map[int64][]uint64 // the first 8 bytes of each key; nil = too many
	keys  int
}

const (
	// maxKnownRoom bounds the keys of one room: looking through them takes as long as
	// a tenth of a look into the file.
	maxKnownRoom = 1024
	// maxKnown bounds them all, of 8 bytes each.
	maxKnown = 1 << 21
)

func newKnown() known { return known{rooms: map[int64][]uint64{}} }

func prefix(key []byte) uint64 { return binary.BigEndian.Uint64(key) }

// mayHave reports whether a key may be in seen.
func (k *known) mayHave(c *conn, room int64, key []byte) (bool, error) {
	keys, ok := k.rooms[room]
	if !ok {
		var err error
		if keys, err = k.load(c, room); err != nil {
			return false, err
		}
	}
	if keys == nil {
		return true, nil
	}
	p := prefix(key)
	for _, have := range keys {
		if have == p {
			return true, nil
		}
	}
	return false, nil
}

func (k *known) load(c *conn, room int64) ([]uint64, error) {
	keys := []uint64{}
	err := c.query("SELECT key FROM seen WHERE room = ? LIMIT ?", func(r row) error {
		keys = append(keys, prefix(r.blob(0)))
		return nil
	}, room, maxKnownRoom)
	if err != nil {
		return nil, err
	}
	if len(keys) == maxKnownRoom {
		keys = nil
	}
	k.put(room, keys)
	return keys, nil
}

// put keeps a room, in the place of random ones when there is too much.
func (k *known) put(room int64, keys []uint64) {
	k.keys += len(keys) - len(k.rooms[room])
	k.rooms[room] = keys
	for other, old := range k.rooms {
		if k.keys <= maxKnown && len(k.rooms) <= maxHeads {
			return
		}
		if other != room {
			delete(k.rooms, other)
			k.keys -= len(old)
		}
	}
}

// add notes a key that is being placed.
func (k *known) add(room int64, key []byte) {
	keys, ok := k.rooms[room]
	switch {
	case !ok || keys == nil:
		return
	case len(keys) == maxKnownRoom:
		k.put(room, nil)
	default:
		k.put(room, append(keys, prefix(key)))
	}
}
