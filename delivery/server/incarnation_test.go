package server

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// TestRestoredTwiceFromOneBackup: the entries of the second incarnation stand behind
// those of the first, though both begin with the same backup, and what the first took
// back is known in the second by its bytes.
func TestRestoredTwiceFromOneBackup(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	in, saved := w.save(t, in, p...)
	next := p[0].head(id).LastSeq + 1
	first := p[0].say(id, "lost").Seq
	kept := p[0].kept(id, 0)
	last := first
	for n := range 2 {
		w.clock.add(time.Minute)
		in = w.lose(t, in, saved, p...)
		marker := in.secrets.present.marker
		if got, want := p[0].head(id).LastSeq, marker.First(next); got != want || got <= last {
			t.Fatalf("restore %d: the marker is at %d, want %d behind %d", n, got, want, last)
		}
		for _, m := range p {
			got, err := m.offerAll(id, delivery.HealRequest{Entries: kept})
			check(t, err)
			if got.Taken != len(kept) || got.Dropped != 0 {
				t.Errorf("restore %d: %+v", n, got)
			}
		}
		page, err := p[0].log(id, marker.First(next))
		check(t, err)
		if len(page.Entries) != 1 || page.Entries[0].Seq != first+marker.Jump+1 {
			t.Fatalf("restore %d: %+v", n, page)
		}
		// Who was there offers it under both numbers in the next one.
		kept = append(kept, keeping(page.Entries)...)
		last = p[0].head(id).LastSeq
	}
	if r, err := incarnation(t.Context(), w.store); err != nil || r.n != 1 {
		t.Errorf("%+v %v", r, err) // the backup knows of no restore
	}
}

// TestTheIncarnationOfAnOlderService: it wrote down how many restores there were, and
// when; garbage is refused.
func TestTheIncarnationOfAnOlderService(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]restore{
		"0 0":              {0, time.UnixMilli(0), delivery.Marker{Jump: delivery.IncarnationJump}},
		"3 1700":           {3, time.UnixMilli(1700), delivery.Marker{Jump: delivery.IncarnationJump}},
		"3 1700 9999999":   {},
		"3 1700 9999999 5": {3, time.UnixMilli(1700), delivery.Marker{Jump: 9999999, BackupMS: 5}},
		"three":            {},
		"3":                {},
		"":                 {},
	} {
		check(t, w.store.PutSetting(t.Context(), settingIncarnation, []byte(text)))
		got, err := incarnation(t.Context(), w.store)
		if want == (restore{}) {
			if err == nil {
				t.Errorf("%q is read as %+v", text, got)
			}
		} else if err != nil || got != want {
			t.Errorf("%q: %+v %v, want %+v", text, got, err, want)
		}
	}
}

// silentSettings is a store that sets nothing by itself any more, as one whose service
// was killed after its rooms had jumped.
type silentSettings struct{ delivery.Store }

func (silentSettings) PutSetting(context.Context, string, []byte) error {
	return errors.New("killed")
}

// TestIncarnationIsWhole: rooms jump, and it stands that they have, and that no envelope
// from before counts, in one transaction.
func TestIncarnationIsWhole(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	ada := in.people("ada")[0]
	id := group(t, ada)
	in.stop()
	w.clock.add(time.Hour)
	err := StartIncarnation(t.Context(), silentSettings{w.store}, w.clock.Now())
	room, e := w.store.Room(t.Context(), id)
	check(t, e)
	r, e := incarnation(t.Context(), w.store)
	check(t, e)
	born, e := w.store.Setting(t.Context(), settingNonces)
	check(t, e)
	want := restore{1, w.clock.Now(), delivery.NewMarker(room.ChangedMS-time.Hour.Milliseconds(), w.clock.Now().UnixMilli())}
	if err != nil || room.Incarnation != 1 || r.n != 1 || !r.since.Equal(want.since) || r.marker != want.marker {
		t.Errorf("%v: the room is in incarnation %d, the service in %+v, want %+v", err, room.Incarnation, r, want)
	}
	if string(born) != fmt.Sprint(w.clock.Now().UnixMilli()) {
		t.Errorf("nonces count since %s", born)
	}
}
