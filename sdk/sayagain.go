package sdk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
)

// A device says again what the service accepted from it and then lost: the same message,
// under the same id, in another entry. Its lines have what it said, and two things beside
// them: which message an entry carried whose line stands elsewhere, because it had been
// said again before, and what a message said before it was edited. Both are kept for as
// long as entries are.

const (
	settingSaid  = "said."  // + room and seq: the id of the message that an own entry there said again
	settingFirst = "first." // + room and message id: time ‖ content of an own message as it was before it was edited
)

// sayAgain puts messages of this device into the outbox that had been accepted and
// that the restored log lacks, or has only where nobody else is (see [Room.Apart]).
func (e *Engine) sayAgain(tx Tx, r *room) error {
	var said []delivery.KeptEntry
	before, back := map[[32]byte]bool{}, map[[32]byte]bool{}
	err := tx.Scan(TableRaw, roomKey(r.rec.ID, ""), seqKey(r.rec.ID, r.rec.Lost-1), func(_ string, value []byte) (bool, error) {
		entry, err := parseRaw(value)
		if err != nil {
			return false, err
		}
		hash := sha256.Sum256(entry.Bytes)
		switch {
		case entry.Seq < r.rec.anew():
			before[hash] = true
		case entry.Seq >= r.rec.Apart || before[hash]:
			back[hash] = true
			return true, nil
		}
		if entry.Kind == delivery.KindApplication {
			said = append(said, entry)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	waits := map[content.MessageID]bool{}
	queue, err := scan[waiting](tx, TableOutbox, roomKey(r.rec.ID, ""))
	if err != nil {
		return err
	}
	for _, w := range queue {
		waits[w.ID] = true
	}
	for _, entry := range said {
		if back[sha256.Sum256(entry.Bytes)] {
			continue
		}
		l, found, err := saidIn(tx, r.rec.ID, entry.Seq)
		if err != nil {
			return err
		}
		if !found || waits[l.ID] || l.Kind == LineTitle && l.Seq != r.rec.TitleSeq { // somebody has named the chat since
			continue
		}
		encoded, err := repeats(tx, l)
		if err != nil {
			return err
		}
		if encoded == nil {
			continue
		}
		waits[l.ID] = true
		w := waiting{Room: r.rec.ID, ID: l.ID, Content: encoded, Blobs: entry.Blobs, TimeMS: e.nowMS(), Again: true}
		if err := e.queue(tx, w); err != nil {
			return err
		}
	}
	return nil
}

// saidIn is the line of what an own entry said, wherever it stands.
func saidIn(tx Tx, id delivery.RoomID, seq uint64) (l Line, found bool, err error) {
	name, err := tx.Get(TableSetting, settingSaid+seqKey(id, seq))
	if err != nil {
		return l, false, err
	}
	if len(name) == len(l.ID) {
		return tx.Line(id, content.MessageID(name))
	}
	return tx.LineAt(id, seq)
}

// putSaidAgain notes which message an accepted entry said again: its line stands where it
// was said first.
func putSaidAgain(tx Tx, id delivery.RoomID, seq uint64, message content.MessageID) error {
	return tx.Put(TableSetting, settingSaid+seqKey(id, seq), message[:])
}

// repeats gives what this device said in a line, whole and as it said it; nil when that is
// gone, or was never this device's.
func repeats(tx Tx, l Line) (encoded []byte, err error) {
	if !l.Mine || l.Deleted {
		return nil, nil
	}
	if isNamed(l.ID, l.Content) {
		return l.Content, nil
	}
	first, err := tx.Get(TableSetting, firstKey(l))
	if err != nil || len(first) < 8 || !isNamed(l.ID, first[8:]) {
		return nil, err
	}
	return bytes.Clone(first[8:]), nil
}

// isNamed reports whether a content is the message of an id.
func isNamed(want content.MessageID, encoded []byte) bool {
	if len(encoded) == 0 {
		return false
	}
	m, err := content.Decode(encoded)
	if err != nil {
		return false
	}
	id, err := m.ID()
	return err == nil && id == want
}

func firstKey(l Line) string { return settingFirst + roomKey(l.Room, l.ID.String()) }

// putFirst keeps what an own message says before an edit takes its place: whoever lacks
// the message would have nothing to edit.
func putFirst(tx Tx, l Line) error {
	if !l.Mine || !isNamed(l.ID, l.Content) {
		return nil
	}
	return tx.Put(TableSetting, firstKey(l), append(binary.BigEndian.AppendUint64(nil, uint64(l.TimeMS)), l.Content...))
}

// forgetFirst takes it away with the message.
func forgetFirst(tx Tx, l Line) error { return tx.Delete(TableSetting, firstKey(l)) }

// trimSaid forgets both for entries up to a key of [seqKey], and for messages before a time.
func trimSaid(tx Tx, id delivery.RoomID, upto string, limitMS int64) error {
	var old []string
	err := tx.Scan(TableSetting, settingSaid+roomKey(id, ""), "", func(key string, _ []byte) (bool, error) {
		if key > settingSaid+upto {
			return false, nil
		}
		old = append(old, key)
		return true, nil
	})
	if err != nil {
		return err
	}
	err = tx.Scan(TableSetting, settingFirst+roomKey(id, ""), "", func(key string, value []byte) (bool, error) {
		if len(value) < 8 || int64(binary.BigEndian.Uint64(value)) < limitMS {
			old = append(old, key)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, key := range old {
		if err := tx.Delete(TableSetting, key); err != nil {
			return err
		}
	}
	return nil
}
