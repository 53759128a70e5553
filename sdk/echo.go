package sdk

import (
	"bytes"
	"slices"

	"github.com/askucher/compax-core/delivery"
)

// What comes back from this device's own leaf is in the outbox or was kept, because
// it was stored before it left. What is neither another copy of this profile has
// sent. Where its key is unused here it is read like any message (see
// [mls.Application.Own]) and proves that there is a copy. Where both have used one
// generation only its place can be told: its signature lies under a key that is
// gone, so a member could have made it up, and it proves nothing.

// maxBeside bounds the generations that are remembered in an epoch; more come only
// from a member who makes them up.
const maxBeside = 256

// ownEcho: an entry from this device's leaf came back in the log, under a key that
// is used up here.
func (e *Engine) ownEcho(tx Tx, r *room, base Line, o opened) error {
	beside := slices.Contains(r.rec.Beside, o.key)
	queue, err := scan[waiting](tx, TableOutbox, roomKey(r.rec.ID, ""))
	if err != nil {
		return err
	}
	// When its answer was lost, the outbox still has what was in it.
	for _, w := range queue {
		if bytes.Equal(w.Entry, o.entry.Bytes) {
			if err := e.accepted(tx, r, w, base); err != nil || !beside {
				return err
			}
			return e.sayUnread(tx, r, base.Seq, w.Blobs)
		}
	}
	known, err := tx.Lines(LineQuery{Room: base.Room, After: base.Seq - 1, Upto: base.Seq})
	if err != nil {
		return err
	}
	raw, err := tx.Get(TableRaw, seqKey(base.Room, base.Seq))
	if err != nil {
		return err
	}
	if len(known) > 0 || raw != nil {
		if !beside || raw == nil {
			return nil
		}
		kept, err := parseRaw(raw)
		if err != nil {
			return err
		}
		return e.sayUnread(tx, r, base.Seq, kept.Blobs)
	}
	// A member may send what this device said once more, see [room.read].
	if again, err := r.wasRead(tx, o.entry); err != nil || again {
		return err
	}
	if !beside && len(r.rec.Beside) < maxBeside {
		r.rec.Beside = append(r.rec.Beside, o.key)
	}
	return e.unread(tx, base, CauseCopy)
}

// CauseCopy is the [Line.Cause] of an entry from this device's leaf that it did not
// send, under a key that it has used.
const CauseCopy = "another copy of this profile sent it"

// sayUnread says a message of this device again that nobody else can read: another
// entry stands before it under the same key. It is the same message, with the same
// id, so that who reads both shows one.
func (e *Engine) sayUnread(tx Tx, r *room, seq uint64, blobs []delivery.BlobID) error {
	l, found, err := saidIn(tx, r.rec.ID, seq)
	if err != nil || !found {
		return err
	}
	encoded, err := repeats(tx, l)
	if err != nil || encoded == nil {
		return err
	}
	return e.queue(tx, waiting{Room: r.rec.ID, ID: l.ID, Content: encoded, Blobs: blobs, TimeMS: e.nowMS(), Again: true})
}
