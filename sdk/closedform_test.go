package sdk

import (
	"encoding/json"
	"testing"

	"github.com/askucher/compax-core/delivery"
)

// FuzzSnapshotRooms: whatever a snapshot says of a closed room, the record of it is of a
// room in which nothing can be said, which begins where it ends.
func FuzzSnapshotRooms(f *testing.F) {
	id, err := delivery.ParseRoomID("01513d0e-0102-8304-8506-0708090a0b0c")
	if err != nil {
		f.Fatal(err)
	}
	kept := snapshotRoom{Title: "Left", Archived: 9, Closed: Room{Kind: delivery.RoomGroup, Status: StatusLeft, URI: "mimi://a.example/r/" + id.String(), Cursor: 7}.closed(nil)}
	if rec, found := kept.closedRecord(id.String()); !found || rec.Cursor != 9 || rec.Past != 10 {
		f.Fatalf("%+v", rec)
	}
	for _, status := range []Status{StatusLeft, StatusOpen, "?"} {
		kept.Closed.Status = status
		b, err := json.Marshal(snapshot{Rooms: map[string]snapshotRoom{id.String(): kept}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s snapshot
		if json.Unmarshal(b, &s) != nil {
			return
		}
		for name, k := range s.Rooms {
			rec, found := k.closedRecord(name)
			if !found {
				continue
			}
			if rec.Status == StatusOpen || rec.Status == StatusStuck || rec.Kind == delivery.RoomSelf || rec.First != rec.Cursor ||
				rec.Past != rec.Cursor+1 || rec.Cursor > delivery.MaxNumber || rec.ID.String() != name {
				t.Errorf("%+v", rec)
			}
		}
	})
}
