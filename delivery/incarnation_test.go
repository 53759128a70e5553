package delivery

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

func TestMarkerRoundTrips(t *testing.T) {
	for _, m := range []Marker{NewMarker(0, 0), NewMarker(1790000000000, 1790000604800000), {IncarnationJump, math.MaxInt64}, {math.MaxUint64 - 1, 0}} {
		e := Entry{Seq: m.First(1), Kind: KindIncarnation, Bytes: m.Bytes()}
		if got := MarkerOf(e); got != m || len(e.Bytes) != 16 {
			t.Errorf("%+v is read as %+v from %x", m, got, e.Bytes)
		}
	}
	if got := NewMarker(5, 5+604_800_000); got.Jump != IncarnationJump+64*604_800_000 || got.BackupMS != 5 {
		t.Errorf("a backup of a week: %+v", got)
	}
	if got := NewMarker(9, 5); got.Jump != IncarnationJump { // by a clock that went back
		t.Errorf("a backup of tomorrow: %+v", got)
	}
}

// TestMarkerThatCannotBe: an entry without a marker, as an older service wrote it, or
// with one that leads to before the room's first entry, counts as one with the least jump
// of a backup of unknown age.
func TestMarkerThatCannotBe(t *testing.T) {
	long := Marker{IncarnationJump, 7}.Bytes()
	for name, c := range map[string]struct {
		seq   uint64
		bytes []byte
	}{
		"none":                  {IncarnationJump + 9, nil},
		"short":                 {IncarnationJump + 9, long[:15]},
		"long":                  {IncarnationJump + 9, append(bytes.Clone(long), 0)},
		"less than the least":   {IncarnationJump + 9, Marker{IncarnationJump - 1, 7}.Bytes()},
		"further than the room": {IncarnationJump + 9, Marker{IncarnationJump + 9, 7}.Bytes()},
		"before 1970":           {IncarnationJump + 9, Marker{IncarnationJump, -1}.Bytes()},
		"at no seq":             {0, long},
		"at a low seq":          {3, long},
	} {
		want := Marker{Jump: min(IncarnationJump, max(c.seq, 1)-1)}
		if got := MarkerOf(Entry{Seq: c.seq, Kind: KindIncarnation, Bytes: c.bytes}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestRestoresOfOneBackupGiveOtherSeqs: a millisecond after another restore, a room with
// fewer entries than it could take meanwhile goes on behind all of them.
func TestRestoresOfOneBackupGiveOtherSeqs(t *testing.T) {
	const backup, next = 1790000000000, 12
	for _, restored := range []int64{backup, backup + 1, backup + 60_000, backup + 400*86_400_000} {
		first := NewMarker(backup, restored).First(next)
		for _, later := range []int64{1, 1000, 86_400_000} {
			last := first + 64*uint64(later) - 1 // what it can have given until then
			if again := NewMarker(backup, restored+later).First(next); again <= last {
				t.Errorf("%d and %d ms later: %d, given up to %d", restored-backup, later, again, last)
			}
		}
	}
	// So does one of an earlier backup, which ends sooner.
	if a, b := NewMarker(backup, backup+5000).First(next), NewMarker(backup-1000, backup+5000).First(next-4); b <= a {
		t.Errorf("%d behind %d", b, a)
	}
}

func FuzzMarker(f *testing.F) {
	f.Add(uint64(IncarnationJump+2), Marker{IncarnationJump, 7}.Bytes())
	f.Add(uint64(1), []byte{})
	f.Add(uint64(0), NewMarker(1, 1<<40).Bytes())
	f.Fuzz(func(t *testing.T, seq uint64, data []byte) {
		m := MarkerOf(Entry{Seq: seq, Kind: KindIncarnation, Bytes: data})
		if m.BackupMS < 0 || seq > 0 && m.Jump >= seq || seq == 0 && m.Jump != 0 {
			t.Fatalf("%x at %d is %+v", data, seq, m)
		}
		if m.BackupMS > 0 && (m.Jump < IncarnationJump || !bytes.Equal(m.Bytes(), data)) {
			t.Fatalf("%x at %d is %+v, which is %x", data, seq, m, m.Bytes())
		}
		if len(data) == 16 && m.Jump >= IncarnationJump && m.Jump != binary.BigEndian.Uint64(data) && m.Jump != IncarnationJump {
			t.Fatalf("%x at %d jumps by %d", data, seq, m.Jump)
		}
	})
}
