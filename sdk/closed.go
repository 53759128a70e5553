package sdk

import (
	"strings"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// closedRoom is a room that the account is not in any more, as a device knew it that
// was. A device that is linked later, or comes from the phrase, cannot enter it: it shows
// what the archive has of it, and nothing can be said there.
type closedRoom struct {
	Kind      delivery.RoomKind   `json:"kind"`
	URI       string              `json:"uri"`
	Status    Status              `json:"status"`
	Successor *delivery.RoomID    `json:"successor,omitempty"`
	Named     bool                `json:"successor_named,omitempty"`
	Other     *identity.PublicKey `json:"other,omitempty"`
	Cursor    uint64              `json:"cursor"` // up to it the account has read the room
}

// closed is what the snapshot says of a room, of which it said before so far. Who has
// read further is right: a room that was left may be entered again.
func (r Room) closed(before *closedRoom) *closedRoom {
	switch r.Status {
	case StatusLeft, StatusSucceeded, StatusOut:
		if r.Kind == delivery.RoomSelf || before != nil && r.Cursor < before.Cursor {
			return before
		}
		return &closedRoom{r.Kind, r.URI, r.Status, r.Successor, r.Named, r.Other, r.Cursor}
	case StatusOpen:
		if before != nil && r.Cursor > before.Cursor {
			return nil
		}
	}
	return before
}

// closedRecord is the record of a room that this device was never in; found is false when
// the snapshot says of none, or nothing that can be.
func (k snapshotRoom) closedRecord(name string) (rec Room, found bool) {
	c := k.Closed
	id, err := delivery.ParseRoomID(name)
	if c == nil || err != nil || c.Kind != delivery.RoomGroup && c.Kind != delivery.RoomDirect {
		return rec, false
	}
	switch c.Status {
	case StatusLeft, StatusSucceeded, StatusOut:
	default:
		return rec, false
	}
	read := max(c.Cursor, k.Archived)
	if read >= delivery.MaxNumber || !strings.HasPrefix(c.URI, "mimi://") || !strings.HasSuffix(c.URI, "/r/"+name) ||
		c.Other != nil && c.Other.Check() != nil {
		return rec, false
	}
	return Room{
		ID: id, Kind: c.Kind, URI: c.URI, Status: c.Status, Successor: c.Successor, Named: c.Named, Other: c.Other,
		Title: k.Title, TitleSeq: k.TitleSeq, Disappear: k.Disappear,
		First: read, Past: read + 1, Cursor: read, Heard: read, Read: read,
	}, true
}

// showClosed puts a closed room into the store of a device that has nothing of it, and
// wants its history.
func (e *Engine) showClosed(tx Tx, name string, k snapshotRoom) error {
	rec, found := k.closedRecord(name)
	if !found {
		return nil
	}
	there, err := tx.Get(TableRoom, name)
	if err != nil || there != nil {
		return err
	}
	if err := put(tx, TableRoom, name, rec); err != nil {
		return err
	}
	if rec.Status != StatusSucceeded { // what is missing behind it is so because the account was away
		l := Line{
			Room: rec.ID, Seq: rec.Cursor, From: e.account.Identity, TimeMS: e.nowMS(),
			Kind: LineLeave, ID: eventID(rec.ID, rec.Cursor, "left", 0),
		}
		if err := tx.PutLine(l); err != nil {
			return err
		}
	}
	return wantHistory(tx)
}
