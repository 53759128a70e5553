package delivery

import (
	"bytes"
	"crypto/rand"
	"errors"
	"reflect"
	"runtime"
	"testing"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

func sampleEntries() []Entry {
	return []Entry{
		{Seq: 1, Epoch: 0, Kind: KindCommit, AcceptedMS: 1, Bytes: []byte("commit")},
		{Seq: 2, Epoch: 1, Kind: KindApplication, AcceptedMS: -1, Bytes: bytes.Repeat([]byte{7}, 1<<14)},
		{Seq: 3 + IncarnationJump, Epoch: 1, Kind: KindIncarnation, AcceptedMS: 3},
	}
}

func sampleKept() []KeptEntry {
	var out []KeptEntry
	for i, e := range sampleEntries() {
		out = append(out, KeptEntry{Entry: e, Blobs: [][]BlobID{nil, {{1}}, {{2}, {3}}}[i]})
	}
	return out
}

func TestBodiesRoundTrip(t *testing.T) {
	create := CreateRoomRequest{GroupInfo: []byte("gi"), Tree: []byte("tree")}
	if got, err := ParseCreateRoom(create.AppendTo(nil)); err != nil || !reflect.DeepEqual(got, create) {
		t.Errorf("CreateRoomRequest: %+v, %v", got, err)
	}
	add := AppendRequest{Entry: []byte("e"), Welcome: []byte("w"), GroupInfo: []byte("g"), Blobs: []BlobID{{1}, {2}}}
	if got, err := ParseAppend(add.AppendTo(nil)); err != nil || !reflect.DeepEqual(got, add) {
		t.Errorf("AppendRequest: %+v, %v", got, err)
	}
	page := LogPage{Head: 9, First: 1, Entries: sampleEntries()}
	if got, err := ParseLogPage(page.AppendTo(nil)); err != nil || !reflect.DeepEqual(got, page) {
		t.Errorf("LogPage: %+v, %v", got, err)
	}
	heal := HealRequest{Entries: sampleKept(), GroupInfo: []byte("g"), Founding: []byte("f"), More: true}
	if got, err := ParseHeal(heal.AppendTo(nil)); err != nil || !reflect.DeepEqual(got, heal) {
		t.Errorf("HealRequest: %+v, %v", got, err)
	}
}

func frames() []any {
	room := RoomID{1, 2, 3}
	return []any{
		&Hello{Token: "t", Cursors: []Cursor{{Room: room, After: 4}, {After: 1 << 40}}}, &Hello{Token: ""},
		&Ready{TimeMS: 5, PingSeconds: 30}, &EntryFrame{Room: room, Entry: sampleEntries()[0]},
		&Gap{Room: room, From: 7}, &MailFrame{}, &Ephemeral{Room: room, Epoch: 1, Leaf: 2, Payload: []byte("x")},
		&Drain{WithinMS: 3}, &End{Code: CodeLogIn, Detail: "ended"},
	}
}

func TestFramesRoundTrip(t *testing.T) {
	for _, f := range frames() {
		got, err := ParseFrame(AppendFrame(nil, f))
		if err != nil || !reflect.DeepEqual(got, f) {
			t.Errorf("%T: %+v, %v", f, got, err)
		}
	}
	if f, err := ParseFrame([]byte{200, 1, 2}); f != nil || err != nil {
		t.Errorf("a frame type of a later version: %v, %v; want to be passed over", f, err)
	}
}

// Every truncation and every trailing byte of every body is refused.
func TestBodiesRefuseTruncationAndTrailingBytes(t *testing.T) {
	page := LogPage{Entries: sampleEntries()[:1]}
	add := AppendRequest{Entry: []byte("e"), Blobs: []BlobID{{1}}}
	heal := HealRequest{Entries: sampleKept()[:2]}
	create := CreateRoomRequest{GroupInfo: []byte("gi"), Tree: []byte("tree")}
	for name, c := range map[string]struct {
		data  []byte
		parse func([]byte) error
	}{
		"page":   {page.AppendTo(nil), func(b []byte) error { _, err := ParseLogPage(b); return err }},
		"append": {add.AppendTo(nil), func(b []byte) error { _, err := ParseAppend(b); return err }},
		"heal":   {heal.AppendTo(nil), func(b []byte) error { _, err := ParseHeal(b); return err }},
		"create": {create.AppendTo(nil), func(b []byte) error { _, err := ParseCreateRoom(b); return err }},
	} {
		for n := range c.data {
			if c.parse(c.data[:n]) == nil {
				t.Errorf("%s cut to %d of %d bytes was accepted", name, n, len(c.data))
			}
		}
		if err := c.parse(append(c.data[:len(c.data):len(c.data)], 0)); !errors.Is(err, wire.ErrTrailing) {
			t.Errorf("%s with a trailing byte: %v", name, err)
		}
	}
}

// A declared length of a gibibyte must cost nothing.
func TestHugeLengthAllocatesNothing(t *testing.T) {
	data := []byte{0xbf, 0xff, 0xff, 0xff, 1, 2, 3}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		if _, err := ParseAppend(data); err == nil {
			t.Fatal("accepted")
		}
	}
	runtime.ReadMemStats(&after)
	if per := (after.TotalAlloc - before.TotalAlloc) / 1000; per > 4096 {
		t.Errorf("%d bytes allocated for a 7-byte input", per)
	}
}

func TestRoomIDForms(t *testing.T) {
	home := identity.Home{0xa1, 0xb2, 0xc3}
	id, err := NewRoomID(home, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if id.Home() != home || id.Rules() != RulesVersion {
		t.Errorf("%s does not carry its home and rules", id)
	}
	back, err := ParseRoomID(id.String())
	if err != nil || back != id {
		t.Errorf("%s: %v", id, err)
	}
	for _, bad := range []string{"", "x", id.String()[:35], id.String() + "0", "01A1B2C3" + id.String()[8:], "01a1b2c3-0000-4000-8000-000000000000", "01a1b2c3-0000-8000-0000-000000000000"} {
		if _, err := ParseRoomID(bad); !errors.Is(err, ErrRoomID) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A refusal that crossed the wire tells the far end the same.
func TestProblemKeepsTheError(t *testing.T) {
	home := identity.Home{1, 2, 3}
	for code := range Codes() {
		e := &Error{Code: code, Detail: "why", Epoch: 1 << 60, Seq: 7, Home: &home, RetryAfter: 1_500_000_000, Work: &Work{Seed: []byte("s"), Bits: 3}}
		if got := e.Problem().Err(); !reflect.DeepEqual(got, e) {
			t.Errorf("%s: %+v", code, got)
		}
	}
	if got := (Problem{Code: "from_the_future", Status: 503}).Err().Code; got != CodeRetry {
		t.Errorf("unknown 503 is %s", got)
	}
	if got := (Problem{Code: "from_the_future", Status: 418}).Err().Code; got != CodeRefused {
		t.Errorf("unknown 418 is %s", got)
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, fr := range frames() {
		f.Add(AppendFrame(nil, fr))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, err := ParseFrame(data)
		if err != nil || frame == nil {
			return
		}
		if again := AppendFrame(nil, frame); !bytes.Equal(again, data) {
			t.Fatalf("%x decodes and encodes as %x", data, again)
		}
	})
}

func FuzzParseBodies(f *testing.F) {
	page := LogPage{Entries: sampleEntries()[:2]}
	add := AppendRequest{Entry: []byte("e"), Blobs: []BlobID{{1}}}
	f.Add(page.AppendTo(nil))
	f.Add(add.AppendTo(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := ParseLogPage(data); err == nil && !bytes.Equal(p.AppendTo(nil), data) {
			t.Fatal("LogPage is not canonical")
		}
		if a, err := ParseAppend(data); err == nil && !bytes.Equal(a.AppendTo(nil), data) {
			t.Fatal("AppendRequest is not canonical")
		}
		if h, err := ParseHeal(data); err == nil && !bytes.Equal(h.AppendTo(nil), data) {
			t.Fatal("HealRequest is not canonical")
		}
		if c, err := ParseCreateRoom(data); err == nil && !bytes.Equal(c.AppendTo(nil), data) {
			t.Fatal("CreateRoomRequest is not canonical")
		}
	})
}
