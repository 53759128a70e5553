package sdk

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity/phrase"
)

func TestSpans(t *testing.T) {
	s := spans{}.with(Span{5, 9}, Span{1, 3}, Span{4, 4}, Span{20, 30}, Span{8, 12}, Span{7, 6})
	for _, c := range []struct {
		what      string
		got, want spans
	}{
		{"with", s, spans{{1, 12}, {20, 30}}},
		{"without a middle", s.without(Span{3, 4}), spans{{1, 2}, {5, 12}, {20, 30}}},
		{"without ends", s.without(Span{0, 1}, Span{30, 99}), spans{{2, 12}, {20, 29}}},
		{"without all", s.without(Span{0, 99}), nil},
		{"within", s.within(10, 22), spans{{10, 12}, {20, 22}}},
		{"within nothing", s.within(13, 19), nil},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	if !s.has(12) || s.has(13) || !s.covers(Span{20, 30}) || s.covers(Span{12, 20}) {
		t.Errorf("%v has or covers what it does not", s)
	}
}

func TestPaddingTellsLittle(t *testing.T) {
	sizes := map[int]bool{}
	for n := 1; n <= maxSegmentText; n += 997 {
		p := padded(n)
		if p < n || p > minSegmentText && p > n+n/8+1 {
			t.Fatalf("%d bytes are padded to %d", n, p)
		}
		sizes[p] = true
	}
	if len(sizes) > 90 {
		t.Errorf("%d lengths can be told apart", len(sizes))
	}
	if p := padded(maxSegmentText); p+delivery.SealedHeaderSize+28 > delivery.MaxSegment {
		t.Errorf("a segment of %d bytes does not go into the archive", p)
	}
}

// said is a record of a message with a text, and who said it.
func saidRecord(t testing.TB, room delivery.RoomID, seq uint64, text string) (record, string) {
	t.Helper()
	key, err := phrase.KeyFromSeed(bytes.Repeat([]byte{9}, 32))
	if err != nil {
		t.Fatal(err)
	}
	uri := room.URI("example.org")
	m, err := content.New(content.Header{Salt: content.Salt{byte(seq)}, SenderURI: content.UserURI("example.org", key.PublicBytes()), RoomURI: uri}, content.Text{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	id, err := m.ID()
	if err != nil {
		t.Fatal(err)
	}
	return record{Seq: seq, Epoch: 1, ID: id, From: key.PublicBytes(), TimeMS: 1000, Kind: LineText, Content: raw}, uri
}

var testRoom = delivery.RoomID{1, 2, 3, 4, 5, 6, 0x80, 8, 0x80}

func TestSegmentHoldsItsBounds(t *testing.T) {
	one, uri := saidRecord(t, testRoom, 130, "one")
	two, _ := saidRecord(t, testRoom, 131, "two")
	s := &segment{Room: testRoom, Block: 1, Seen: 140, Spans: spans{{128, 140}}, Lines: []record{one, two}}
	b, err := s.encode()
	if err != nil || len(b) != minSegmentText {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	back, err := parseSegment(b)
	if err != nil || !reflect.DeepEqual(back, s) {
		t.Fatalf("round trip: %+v, %v", back, err)
	}
	for what, change := range map[string]func(*segment){
		"a seq of another block":   func(s *segment) { s.Lines[1].Seq = 256 },
		"a seq of the block below": func(s *segment) { s.Lines[0].Seq = 127 },
		"no order":                 func(s *segment) { s.Lines[0], s.Lines[1] = s.Lines[1], s.Lines[0] },
		"one seq twice":            func(s *segment) { s.Lines[1].Seq = 130 },
		"a span of another block":  func(s *segment) { s.Spans = spans{{100, 140}} },
		"spans that overlap":       func(s *segment) { s.Spans = spans{{128, 140}, {140, 141}} },
		"a span backwards":         func(s *segment) { s.Spans = spans{{140, 128}} },
		"a block beyond":           func(s *segment) { s.Block = 1 << 60 },
		"too many lines":           func(s *segment) { s.Lines = make([]record, segmentSeqs+1) },
		"too many spans":           func(s *segment) { s.Spans = make(spans, segmentSeqs+1) },
	} {
		bad, err := parseSegment(b)
		if err != nil {
			t.Fatal(err)
		}
		change(bad)
		raw, err := bad.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseSegment(raw); !errors.Is(err, errSegment) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := parseSegment(make([]byte, delivery.MaxSegment+1)); !errors.Is(err, errSegment) {
		t.Errorf("too long: %v", err)
	}
	for what, change := range map[string]func(*record){
		"another author":      func(r *record) { r.From[0] ^= 1 },
		"another name":        func(r *record) { r.ID[5] ^= 1 },
		"no content":          func(r *record) { r.Content = nil },
		"malformed content":   func(r *record) { r.Content = r.Content[:9] },
		"a kind of no person": func(r *record) { r.Kind = LineJoin },
		"an unreadable line":  func(r *record) { r.Kind = LineUnread },
		"no name":             func(r *record) { r.ID = content.MessageID{} },
	} {
		bad := one
		bad.Content = bytes.Clone(one.Content)
		change(&bad)
		if _, err := bad.line(testRoom, uri, [16]byte{}); !errors.Is(err, errSegment) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := one.line(testRoom, uri+"x", [16]byte{}); !errors.Is(err, errSegment) {
		t.Errorf("another room: %v", err)
	}
	l, err := one.line(testRoom, uri, [16]byte{})
	if err != nil || l.Text != "one" || l.Kind != LineText || l.Seq != 130 {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestLongSegments: a block with more than goes into a segment loses its longest
// messages, and says so.
func TestLongSegments(t *testing.T) {
	s := &segment{Room: testRoom, Block: 0, Spans: spans{{1, 127}}}
	var uri string
	for i := uint64(1); i < segmentSeqs; i++ {
		r, u := saidRecord(t, testRoom, i, strings.Repeat("x", int(i)*500))
		s.Lines, uri = append(s.Lines, r), u
	}
	b, err := s.encode()
	if err != nil || len(b) > delivery.MaxSegment-64 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	back, err := parseSegment(b)
	if err != nil || len(back.Lines) != segmentSeqs-1 {
		t.Fatalf("%d lines, %v", len(back.Lines), err)
	}
	first, err := back.Lines[0].line(testRoom, uri, [16]byte{})
	if err != nil || first.Kind != LineText {
		t.Errorf("the shortest: %+v, %v", first, err)
	}
	last, err := back.Lines[segmentSeqs-2].line(testRoom, uri, [16]byte{})
	if err != nil || last.Kind != LineUnread || last.Cause == "" {
		t.Errorf("the longest: %+v, %v", last, err)
	}
}

func TestMergedSegments(t *testing.T) {
	one, _ := saidRecord(t, testRoom, 1, "one")
	two, _ := saidRecord(t, testRoom, 2, "two")
	three, _ := saidRecord(t, testRoom, 3, "three")
	edited := two
	edited.Edited, edited.Content = true, three.Content
	gone := one
	gone.Deleted, gone.Content = true, nil
	a := &segment{Room: testRoom, From: 1, Seen: 9, Spans: spans{{1, 2}}, Lines: []record{one, edited}}
	b := &segment{Room: testRoom, Seen: 5, Spans: spans{{2, 3}}, Lines: []record{gone, two, three}}
	want := &segment{Room: testRoom, From: 1, Seen: 9, Spans: spans{{1, 3}}, Lines: []record{gone, edited, three}}
	for _, got := range []*segment{merged(a, b, 0), merged(b, a, 0)} {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v", got)
		}
	}
	if got := merged(a, b, 2000); len(got.Lines) != 0 {
		t.Errorf("what is too old stays: %+v", got.Lines)
	}
	later := merged(a, b, 0)
	later.Seen = 100
	if !later.same(want) || later.same(a) {
		t.Error("who read further alone makes a segment another one, or nothing does")
	}
}

func TestSegmentNames(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 32)
	seen := map[string]bool{}
	for block := range uint64(3) {
		for _, room := range []delivery.RoomID{testRoom, {9}} {
			name, err := segmentName(key, room, block)
			if err != nil || len(name) != 64 || seen[name] {
				t.Fatalf("%q, %v", name, err)
			}
			seen[name] = true
		}
	}
	name, err := segmentName(bytes.Repeat([]byte{2}, 32), testRoom, 0)
	if err != nil || seen[name] {
		t.Errorf("the name of another account: %v", err)
	}
}

func FuzzParseSegment(f *testing.F) {
	r, uri := saidRecord(f, testRoom, 1, "one")
	b, err := (&segment{Room: testRoom, Spans: spans{{1, 2}}, Lines: []record{r}}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.TrimSpace(b))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSegment(b)
		if err != nil {
			return
		}
		first, last := blockOf(s.Block)
		for _, r := range s.Lines {
			l, err := r.line(s.Room, uri, [16]byte{})
			if err == nil && (l.Seq < first || l.Seq > last || l.ExpireMS != 0 || !l.Kind.Said()) {
				t.Errorf("%+v", l)
			}
		}
	})
}
