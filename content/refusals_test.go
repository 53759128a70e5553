package content

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

// TestEachBound breaks one bound of one item at a time.
func TestEachBound(t *testing.T) {
	id := testIdentity(2)
	x := func(n int) string { return strings.Repeat("x", n) }
	noType := testExternal()
	noType.ContentType = ""
	options := func(n int) []string { return strings.Split(x(n), "") }
	many := make([]Entity, MaxEntities+1)
	for i := range many {
		many[i] = Entity{Type: "bold", Length: 1}
	}
	for name, item := range map[string]Item{
		"waveform":               FileInfo{Waveform: make([]byte, MaxWaveform+1)},
		"kind of file":           FileInfo{Kind: x(maxShort + 1)},
		"attachment of no type":  Attachment{External: noType},
		"raw part not UTF-8":     Keyboard{"\"\xff\""},
		"answer":                 TapAnswer{Tap: testID, Tapper: id, Text: x(maxTapAnswer + 1)},
		"answer's URL":           TapAnswer{Tap: testID, Tapper: id, URL: x(maxTapAddress + 1)},
		"tap data":               Tap{x(maxTapData + 1)},
		"room title":             RoomInfo{Title: ptr(x(MaxTitle + 1))},
		"room about":             RoomInfo{About: ptr(x(MaxAbout + 1))},
		"room picture and none":  RoomInfo{NoPicture: true, Picture: &Attachment{External: testExternal()}},
		"profile record":         Profile{Record: make([]byte, maxRecord+1)},
		"profile name":           Profile{Name: x(MaxName + 1)},
		"profile about":          Profile{About: x(MaxAbout + 1)},
		"profile username":       Profile{Username: x(33)},
		"read mark of no room":   ReadMark{UpTo: testID},
		"read mark of nothing":   ReadMark{Room: "r"},
		"read mark, long room":   ReadMark{x(maxShort + 1), testID},
		"successor, long room":   Successor{Room: x(maxShort + 1)},
		"successor, long reason": Successor{"r", x(maxShort + 1)},
		"call without id":        Call{State: "started"},
		"call without state":     Call{ID: "c"},
		"call, long id":          Call{ID: x(maxShort + 1), State: "started"},
		"call, long state":       Call{ID: "c", State: x(maxShort + 1)},
		"forwarded name":         Forwarded{Name: x(MaxName + 1)},
		"longitude":              Location{Longitude: -180.5},
		"latitude of nothing":    Location{Latitude: math.NaN()},
		"accuracy":               Location{Accuracy: -1},
		"heading below":          Location{Heading: -1},
		"heading above":          Location{Heading: 361},
		"location title":         Location{Title: x(MaxTitle + 1)},
		"location address":       Location{Address: x(maxAddress + 1)},
		"contact of no name":     Contact{Phone: "1"},
		"contact phone":          Contact{FirstName: "x", Phone: x(maxShort + 1)},
		"dice of no emoji":       Dice{Value: 1},
		"dice of 65":             Dice{"🎲", 65},
		"dice emoji":             Dice{x(MaxReaction + 1), 1},
		"poll of no question":    Poll{Options: options(2)},
		"poll of 33 options":     Poll{Question: "?", Options: options(MaxOptions + 1)},
		"poll question":          Poll{Question: x(MaxQuestion + 1), Options: options(2)},
		"poll option":            Poll{Question: "?", Options: []string{x(MaxOption + 1)}},
		"poll explanation":       Poll{Question: "?", Options: options(2), Explanation: x(MaxExplanation + 1)},
		"quiz of three of two":   Poll{Question: "?", Options: options(2), Correct: []int{0, 1, 1}},
		"no entities":            entities{},
		"too many entities":      entities{many},
		"entity of no type":      entities{[]Entity{{Length: 1}}},
		"entity below":           entities{[]Entity{{Type: "bold", Offset: -1, Length: 1}}},
		"entity of nothing":      entities{[]Entity{{Type: "bold"}}},
		"entity too far":         entities{[]Entity{{Type: "bold", Offset: MaxText + 1, Length: 1}}},
		"entity too long":        entities{[]Entity{{Type: "bold", Length: MaxText + 1}}},
		"own part":               Text{Text: "x", Entities: []Entity{{Type: "pre", Length: 1, Language: x(MaxOwnPart)}}},
	} {
		if _, err := New(testHeader(), item); !errors.Is(err, ErrEncoding) && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, e := range []Entity{{Offset: -1, Length: 1}, {Offset: 0, Length: 0}, {Offset: 0, Length: -1}, {Offset: 3, Length: math.MinInt}, {Offset: 3, Length: 1}, {Offset: 1, Length: math.MaxInt}} {
		if (entities{[]Entity{e}}).fit("🙂") {
			t.Errorf("%+v fits two units", e)
		}
	}
	for i, h := range []Header{{SenderURI: "x"}, {RoomURI: "x"}} {
		if _, err := New(h, Text{Text: "x"}); !errors.Is(err, ErrNoURI) {
			t.Errorf("header %d: %v", i, err)
		}
	}
}

// TestReadRefuses gives what New would not write to the reading side: it is
// Unknown with a cause.
func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		mediaType string
		content   []byte
		want      error
	}{
		"above the limit":  {MediaReel, []byte(`{"x":"` + strings.Repeat("x", MaxOwnPart) + `"}`), ErrLimit},
		"not UTF-8":        {MediaReel, []byte("{\"x\":\"\xff\"}"), ErrEncoding},
		"not JSON":         {MediaReel, []byte("{"), ErrEncoding},
		"another type":     {MediaVote, []byte(`{"options":"all"}`), ErrEncoding},
		"breaks its check": {MediaVote, []byte(`{"options":[2,1]}`), ErrEncoding},
		"raw, not JSON":    {MediaWidget, []byte("<card>"), ErrEncoding},
	} {
		p := Part{DispositionRender, "", Single{c.mediaType, c.content}}
		u, ok := leaf(p).(Unknown)
		if !ok || !errors.Is(u.Cause, c.want) || u.MediaType != c.mediaType {
			t.Errorf("%s: %+v", name, u.Cause)
		}
	}
}

// TestReaderBounds asks the reader itself: it must refuse before anything is
// built, whatever later checks would say.
func TestReaderBounds(t *testing.T) {
	for name, c := range map[string]struct {
		hex  string
		read func(*reader) error
		want error
	}{
		"depth":                   {nullBody, func(r *reader) error { n := 0; _, err := r.part(MaxDepth+1, &n); return err }, ErrLimit},
		"parts":                   {nullBody, func(r *reader) error { n := MaxParts; _, err := r.part(1, &n); return err }, ErrLimit},
		"multipart of one":        {"00 81" + nullBody, func(r *reader) error { n := 0; _, err := r.multi(1, &n); return err }, ErrEncoding},
		"more parts than allowed": {fmt.Sprintf("00 99%04x", MaxParts+1) + strings.Repeat(nullBody, MaxParts+1), func(r *reader) error { n := 0; _, err := r.multi(1, &n); return err }, ErrLimit},
		"more parts than bytes":   {"00 83 00 00", func(r *reader) error { n := 0; _, err := r.multi(1, &n); return err }, ErrEncoding},
		"more values than bytes":  {"84 00 00 00", func(r *reader) error { _, err := r.value(3); return err }, ErrEncoding},
		"more keys than bytes":    {"a2 00 00 01", func(r *reader) error { _, err := r.value(3); return err }, ErrEncoding},
		"more extensions":         {"a3 03", func(r *reader) error { _, err := r.extensions(); return err }, ErrEncoding},
		"another hash":            {"5820 02" + strings.Repeat("00", 31), func(r *reader) error { _, err := r.id("id"); return err }, ErrEncoding},
		"head cut":                {"19 01", func(r *reader) error { _, _, err := r.head(); return err }, ErrEncoding},
		"head of nothing":         {"", func(r *reader) error { _, _, err := r.head(); return err }, ErrEncoding},
		"16 bits for 8":           {"19 00ff", func(r *reader) error { _, _, err := r.head(); return err }, ErrEncoding},
		"32 bits for 16":          {"1a 0000ffff", func(r *reader) error { _, _, err := r.head(); return err }, ErrEncoding},
		"64 bits for 32":          {"1b 00000000ffffffff", func(r *reader) error { _, _, err := r.head(); return err }, ErrEncoding},
		"break":                   {"ff" + strings.Repeat("01", 128), func(r *reader) error { _, _, err := r.head(); return err }, ErrEncoding},
		"reserved":                {"fc" + strings.Repeat("01", 16), func(r *reader) error { _, _, err := r.head(); return err }, ErrEncoding},
		"indefinite":              {"5f", func(r *reader) error { _, _, err := r.head(); return err }, ErrEncoding},
		"NaN of 64 bits":          {"fb7ff8000000000001", func(r *reader) error { _, err := r.value(3); return err }, ErrEncoding},
		"key not UTF-8":           {"a1 61ff 00", func(r *reader) error { _, err := r.value(3); return err }, ErrEncoding},
		"array of another size":   {"86", func(r *reader) error { return r.array("x", 7) }, ErrEncoding},
		"null part of four":       {"84 01 60 00", func(r *reader) error { n := 0; _, err := r.part(1, &n); return err }, ErrEncoding},
	} {
		r := &reader{b: unhex(t, c.hex)}
		if err := c.read(r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if fitsHalf(0x1p16) {
		t.Error("65536 fits 16 bits")
	}
	d := Derived{ID: testID}
	if _, err := DecodeDerived(append(d.Encode(), 0)); !errors.Is(err, ErrEncoding) {
		t.Errorf("derived values with a byte more: %v", err)
	}
	m := Message{Body: Part{Content: Null{}}}
	for _, uri := range []int64{ExtSenderURI, ExtRoomURI} {
		m.Extensions = Extensions(nil).SetText(uri, "x")
		if _, err := m.ID(); !errors.Is(err, ErrNoURI) {
			t.Errorf("only extension %d: %v", uri, err)
		}
	}
	if _, err := ComputeID("x", "", Salt{}, nil); !errors.Is(err, ErrNoURI) {
		t.Error(err)
	}
	if _, err := ComputeID("x", strings.Repeat("x", 1<<16), Salt{}, nil); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	parts := MaxParts
	if err := (Part{Content: Null{}}).check(1, &parts); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
}

func TestURIBounds(t *testing.T) {
	for _, uri := range []string{"x/r/1", "mimi://a.example", "mimi://" + strings.Repeat("x", maxDomain+1) + "/r/1", "mimi://a/r/",
		"mimi://a/r/" + strings.Repeat("x", maxURIPart+1), "mimi://a/r/x/y", "mimi://a/r/x?y", "mimi://a/r/x#y", "mimi:///r/x"} {
		if got, err := ParseRoomURI(uri); !errors.Is(err, ErrEncoding) {
			t.Errorf("%q names %q", uri, got)
		}
	}
}

var errBroken = errors.New("the connection broke")

// brokenAfter fails once it gave n bytes.
type brokenAfter struct{ n int }

func (b *brokenAfter) Read(p []byte) (int, error) {
	if b.n == 0 {
		return 0, errBroken
	}
	n := min(b.n, len(p))
	clear(p[:n])
	b.n -= n
	return n, nil
}

// TestFileSourceBreaks breaks the source at each kind of place: never is what
// came so far taken for the whole.
func TestFileSourceBreaks(t *testing.T) {
	for _, size := range []int64{MaxWhole, -1} {
		e, err := NewFileKey(size, bytes.NewReader(make([]byte, 64)))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 100, ChunkSize, ChunkSize + 1, 2*ChunkSize + 5} {
			if _, err := e.Seal(io.Discard, &brokenAfter{n}, NewAESGCM); !errors.Is(err, errBroken) {
				t.Errorf("seal, broken after %d: %v", n, err)
			}
		}
	}
	plain := pattern(3*ChunkSize, 1)
	e, sealed := seal(t, plain, false)
	for _, n := range []int{0, 100, sealedChunk, sealedChunk + 1, len(sealed)} {
		src := io.MultiReader(bytes.NewReader(sealed[:n]), &brokenAfter{})
		if err := e.Open(io.Discard, src, 1<<30, NewAESGCM); !errors.Is(err, errBroken) {
			t.Errorf("open, broken after %d: %v", n, err)
		}
	}
	if _, err := NewFileKey(1, bytes.NewReader(nil)); err == nil {
		t.Error("a key of no randomness")
	}
	if _, err := NewSalt(bytes.NewReader(make([]byte, 15))); err == nil {
		t.Error("a salt of 15 random bytes")
	}

	// A whole file that grows while it is read, and one that lies about its size.
	whole, err := NewFileKey(MaxWhole, bytes.NewReader(make([]byte, 64)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := whole.Seal(io.Discard, io.LimitReader(zeros{}, MaxWhole+1), NewAESGCM); !errors.Is(err, ErrLimit) {
		t.Errorf("a file above MaxWhole, sealed as a whole: %v", err)
	}
	// Told to be above the limit: nothing is even read.
	told := e
	told.Size = 11
	if err := told.Open(io.Discard, &brokenAfter{}, 10, NewAESGCM); !errors.Is(err, ErrLimit) {
		t.Errorf("above the limit: %v", err)
	}
	for _, size := range []uint64{0, 1<<50 + 1} {
		told.Size = size
		if _, err := told.NewStreamReader(bytes.NewReader(sealed), NewAESGCM); !errors.Is(err, ErrFile) {
			t.Errorf("a player on %d bytes: %v", size, err)
		}
	}
	r, err := e.NewStreamReader(brokenAt{}, NewAESGCM)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.ReadAt(make([]byte, 1), 0); n != 0 || !errors.Is(err, errBroken) {
		t.Errorf("a player on a broken source: %d, %v", n, err)
	}
	if _, err := r.ReadAt(make([]byte, 1), -1); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a player before the file's begin: %v", err)
	}
	unknown := e
	unknown.EncAlg, unknown.Nonce = 9, nil
	if err := unknown.Open(io.Discard, bytes.NewReader(sealed), 1<<30, NewAESGCM); !errors.Is(err, ErrAlgorithm) {
		t.Errorf("an algorithm without a nonce: %v", err)
	}
}

type brokenAt struct{}

func (brokenAt) ReadAt([]byte, int64) (int, error) { return 0, errBroken }
