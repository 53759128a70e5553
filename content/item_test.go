package content

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/askucher/compax-core/identity"
)

var update = flag.Bool("update", false, "write the golden files anew")

func testIdentity(n byte) identity.PublicKey {
	seed := bytes.Repeat([]byte{n}, 32)
	return identity.PublicKey(ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey))
}

func testHeader() Header {
	return Header{
		Salt:      Salt{1, 2, 3},
		SenderURI: UserURI("a.example", testIdentity(1)),
		RoomURI:   RoomURI("a.example", "01000001-0203-8405-8607-08090a0b0c0d"),
	}
}

var testID = MessageID{1, 7, 7, 7}

func ptr[T any](v T) *T { return &v }

func testExternal() External {
	return External{ContentType: "image/png", URL: "https://a.example/blob/1", Size: 5, EncAlg: AESGCM128, Key: bytes.Repeat([]byte{1}, 16),
		Nonce: bytes.Repeat([]byte{2}, 12), AAD: []byte{}, HashAlg: 1, ContentHash: bytes.Repeat([]byte{3}, 32), Description: "a cat", Filename: "cat.png"}
}

// everyItem holds messages of every item, by name. Golden files pin their
// bytes.
func everyItem() map[string][]Item {
	id := testIdentity(2)
	picture := Attachment{External: testExternal(), Disposition: DispositionIcon, Info: FileInfo{Width: 64, Height: 64, ThumbHash: []byte{1, 2}}}
	return map[string][]Item{
		"text":          {Text{Text: "Hello, wörld 🙂"}},
		"text-language": {Text{Text: "Hallo", Language: "de"}},
		"markdown":      {Text{Text: "**Hi**", Format: FormatMarkdown}},
		"entities": {Text{Text: "🙂 bold @bob", Entities: []Entity{
			{Type: "bold", Offset: 3, Length: 4}, {Type: "text_mention", Offset: 8, Length: 4, Identity: &id}}}},
		"file":  {Attachment{External: testExternal(), Disposition: DispositionAttachment}},
		"photo": {Attachment{External: testExternal(), Disposition: DispositionInline, Info: FileInfo{Kind: "photo", Width: 640, Height: 480, ThumbHash: []byte{9, 8, 7}}}},
		"album": {
			Attachment{External: testExternal(), Disposition: DispositionInline, Info: FileInfo{Kind: "photo"}},
			Attachment{External: testExternal(), Disposition: DispositionInline},
			Attachment{External: testExternal(), Disposition: DispositionInline, Info: FileInfo{Kind: "video", Duration: 5000}},
			Text{Text: "three of them", Entities: []Entity{{Type: "italic", Offset: 0, Length: 5}}},
		},
		"voice":        {Attachment{External: testExternal(), Disposition: DispositionInline, Info: FileInfo{Kind: "voice", Duration: 1500, Waveform: []byte{0, 128, 255}}}},
		"embedded":     {Embedded{"image/gif", DispositionInline, []byte("GIF89a")}},
		"session":      {Session{External{URL: "https://a.example/join/1", Description: "Join", Key: Secret{}, Nonce: []byte{}, AAD: []byte{}, ContentHash: []byte{}}}},
		"options":      {Options{Silent: true, Spoiler: true}, Text{Text: "quiet"}},
		"forwarded":    {Forwarded{Name: "Bob", Identity: &id, At: 1_764_000_000_000}, Text{Text: "he said"}},
		"reel":         {Reel{}, Text{Text: "today"}},
		"room":         {RoomInfo{Title: ptr("Ridge Trip"), Disappear: ptr(uint32(3600))}},
		"room-picture": {RoomInfo{Title: ptr(""), About: ptr("walks"), Picture: &picture}},
		"profile":      {Profile{Name: "Ada", About: "first", Username: "ada", Record: []byte{1, 2, 3}, Version: 4, Picture: &picture}},
		"verified":     {Verified{Identity: id, At: 1_764_000_000_000}},
		"receipt":      {Receipt{Delivered: []MessageID{testID}, Read: []MessageID{{1, 2}, {1, 3}}}},
		"read-mark":    {ReadMark{"01000001-0203-8405-8607-08090a0b0c0d", testID}},
		"pin":          {Pin{Message: testID}},
		"successor":    {Successor{"01000001-0203-8405-8607-08090a0b0c0e", "suite"}},
		"call":         {Call{ID: "c1", State: "started", Video: true, At: 1_764_000_000_000}},
		"poll":         {Poll{Question: "Where?", Options: []string{"Hills", "Sea"}, Multiple: true, ClosesAt: 1_764_000_000}},
		"quiz":         {Poll{Question: "2+2?", Options: []string{"3", "4"}, Correct: []int{1}, Explanation: "count"}},
		"vote":         {Vote{[]int{0, 1}}},
		"vote-none":    {Vote{[]int{}}},
		"poll-close":   {PollClose{}},
		"location":     {Location{Latitude: 59.437, Longitude: 24.7536, Title: "Tallinn"}},
		"contact":      {Contact{FirstName: "Bob", Phone: "+372 5555", Identity: &id}},
		"dice":         {Dice{"🎲", 6}},
		"keyboard":     {Text{Text: "Choose"}, Keyboard{`{ "inline_keyboard":[[{"text":"A","callback_data":"a"}]] }`}},
		"tap":          {Tap{"a"}},
		"tap-answer":   {TapAnswer{Tap: testID, Tapper: id, Text: "Done", Alert: true}},
		"widget":       {Widget{`{"v":1,"id":"x"}`}, Text{Text: "fallback"}},
		"widget-event": {WidgetEvent{`{"card":"x"}`}},
		"wallet":       {Wallet{`{"proposal":1}`}},
		"self":         {Self{`{"bots":[1]}`}},
		"reaction":     {Reaction{"👩🏽‍⚕️"}},
		"reactions":    {Reaction{"❤"}, Reaction{"🥳"}},
	}
}

func TestEveryItem(t *testing.T) {
	for name, items := range everyItem() {
		t.Run(name, func(t *testing.T) {
			h := testHeader()
			h.ReplyTo = testID
			m, err := New(h, items...)
			if err != nil {
				t.Fatal(err)
			}
			b, err := m.Encode()
			if err != nil {
				t.Fatal(err)
			}
			back, err := Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := back.Encode(); err != nil || !bytes.Equal(again, b) {
				t.Errorf("encodes again as %x, %v", again, err)
			}
			if got := back.Items(); !reflect.DeepEqual(got, items) {
				t.Errorf("items\n got %s\nwant %s", dump(got), dump(items))
			}
			id, err := back.ID()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "golden", name+".txt")
			got := hex.EncodeToString(b) + "\n" + id.String() + "\n"
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the bytes changed: stored histories and other programs rely on them\n got %s\nwant %s", got, want)
			}
		})
	}
}

func dump(items []Item) string {
	var b strings.Builder
	for _, i := range items {
		fmt.Fprintf(&b, "%T %+v; ", i, i)
	}
	return b.String()
}

// TestEveryReaderIsTested fails when a media type is added without an item in
// everyItem.
func TestEveryReaderIsTested(t *testing.T) {
	seen := map[string]bool{}
	var walk func(Part)
	walk = func(p Part) {
		switch c := p.Content.(type) {
		case Single:
			kind, _ := mediaTypeOf(c.ContentType)
			seen[kind] = true
		case Multi:
			for _, q := range c.Parts {
				walk(q)
			}
		}
	}
	for name, items := range everyItem() {
		m, err := New(testHeader(), items...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		walk(m.Body)
	}
	for kind := range readers {
		if !seen[kind] {
			t.Errorf("no test writes %s", kind)
		}
	}
}

func TestKinds(t *testing.T) {
	h := testHeader()
	must := func(m Message, err error) Message {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		return back
	}
	control := map[string]bool{"room": true, "room-picture": true, "profile": true, "verified": true, "receipt": true, "read-mark": true, "pin": true,
		"successor": true, "call": true, "vote": true, "vote-none": true, "poll-close": true, "tap": true, "tap-answer": true, "widget-event": true, "self": true}
	for name, items := range everyItem() {
		want := KindMessage
		switch {
		case control[name]:
			want = KindControl
		case strings.HasPrefix(name, "reaction"):
			want = KindReaction
		}
		if got := must(New(h, items...)).Kind(); got != want {
			t.Errorf("%s is a %s, not a %s", name, got, want)
		}
	}
	for want, m := range map[Kind]Message{
		KindEdit:     must(Edit(h, testID, Text{Text: "better"})),
		KindDelete:   must(Delete(h, testID)),
		KindReaction: must(React(h, testID, "👍", "❤")),
		KindUnreact:  must(Unreact(h, testID, testID)),
		KindEmpty:    must(h.message(MessageID{}, Part{Content: Null{}})),
	} {
		if got := m.Kind(); got != want {
			t.Errorf("%s is a %s", want, got)
		}
	}
	if m := must(React(h, testID, "👍")); m.InReplyTo != testID {
		t.Error("a reaction names no message")
	}
	for name, err := range map[string]error{
		"edit":     second(Edit(h, MessageID{}, Text{Text: "x"})),
		"delete":   second(Delete(h, MessageID{})),
		"react":    second(React(h, MessageID{}, "x")),
		"no emoji": second(React(h, testID)),
		"unreact":  second(Unreact(h, MessageID{}, testID)),
		"nothing":  second(New(h)),
		"bad id":   second(Delete(h, MessageID{2, 1})),
	} {
		if !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := second(New(Header{}, Text{Text: "x"})); !errors.Is(err, ErrNoURI) {
		t.Errorf("without URIs: %v", err)
	}
}

func second(_ Message, err error) error { return err }

// TestUnknownSurvives sends parts and extensions that nobody here knows through
// a round trip and shows that they are reported, not guessed at.
func TestUnknownSurvives(t *testing.T) {
	h := testHeader()
	foreign := Part{DispositionRender, "", Single{"application/vnd.other+cbor", []byte{0xff, 0, 1}}}
	broken := Part{DispositionUnspecified, "", Single{MediaPoll, []byte(`{"question":""}`)}}
	newer := Part{77, "et", Single{"Text/X-Newer; charset=UTF-8", []byte("?")}}
	latin := Part{DispositionRender, "", Single{"text/plain;charset=iso-8859-1", []byte{0xe4}}}
	notUTF8 := Part{DispositionRender, "", Single{MediaPlain, []byte{0xe4}}}
	text := Part{DispositionRender, "", Single{"text/plain", []byte("hi")}}
	for name, c := range map[string]struct {
		body Part
		want []string
	}{
		"foreign alone":      {foreign, []string{"?application/vnd.other+cbor"}},
		"own, broken":        {broken, []string{"?" + MediaPoll}},
		"newer text":         {newer, []string{"?text/x-newer"}},
		"another charset":    {latin, []string{"?text/plain"}},
		"text, not UTF-8":    {notUTF8, []string{"?text/plain"}},
		"both processed":     {Part{1, "", Multi{ProcessAll, []Part{foreign, text}}}, []string{"?application/vnd.other+cbor", "hi"}},
		"one chosen":         {Part{1, "", Multi{ChooseOne, []Part{foreign, text}}}, []string{"hi"}},
		"none to choose":     {Part{1, "", Multi{ChooseOne, []Part{foreign, newer}}}, []string{"?application/vnd.other+cbor"}},
		"a unit":             {Part{1, "", Multi{SingleUnit, []Part{text, foreign}}}, []string{"?application/vnd.other+cbor"}},
		"HTML or text":       {Part{1, "", Multi{ChooseOne, []Part{{1, "", Single{MediaHTML, []byte("<b>")}}, text}}}, []string{"hi"}},
		"formatting alone":   {Part{0, "", Single{MediaEntities, []byte(`{"entities":[{"type":"bold","offset":0,"length":1}]}`)}}, []string{"?" + MediaEntities}},
		"formatting too far": {Part{1, "", Multi{ProcessAll, []Part{text, {0, "", Single{MediaEntities, []byte(`{"entities":[{"type":"bold","offset":1,"length":2}]}`)}}}}}, []string{"hi", "?" + MediaEntities}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := h.message(MessageID{}, c.body)
			if err != nil {
				t.Fatal(err)
			}
			// 300: [h'00', {-1: 1.5}], "x": tag 1 of 0.
			m.Extensions = m.Extensions.SetRaw(300, []byte{0x82, 0x41, 0, 0xa1, 0x20, 0xf9, 0x3e, 0})
			m.Extensions = m.Extensions.SetRaw(-5, []byte{0xc1, 0})
			b, err := m.Encode()
			if err != nil {
				t.Fatal(err)
			}
			back, err := Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := back.Encode(); err != nil || !bytes.Equal(again, b) {
				t.Errorf("encodes again as %x, %v", again, err)
			}
			var got []string
			for _, i := range back.Items() {
				switch i := i.(type) {
				case Text:
					got = append(got, i.Text)
				case Unknown:
					got = append(got, "?"+i.MediaType)
				default:
					got = append(got, fmt.Sprintf("%T", i))
				}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if raw, ok := back.Extensions.Raw(300); !ok || len(raw) != 8 {
				t.Errorf("extension 300: %x", raw)
			}
			if _, ok := back.Extensions.Raw(301); ok {
				t.Error("an extension that is not there")
			}
		})
	}
}

func TestItemsRefused(t *testing.T) {
	big := strings.Repeat("x", MaxText+1)
	e := testExternal()
	e.URL = ""
	for name, item := range map[string]Item{
		"text too long":           Text{Text: big},
		"text not UTF-8":          Text{Text: "\xff"},
		"HTML":                    Text{Text: "<b>", Format: FormatHTML},
		"entity outside":          Text{Text: "🙂", Entities: []Entity{{Type: "bold", Offset: 1, Length: 2}}},
		"entity of nothing":       Text{Text: "ab", Entities: []Entity{{Type: "bold", Offset: 1}}},
		"entity in markdown":      Text{Text: "ab", Format: FormatMarkdown, Entities: []Entity{{Type: "bold", Length: 1}}},
		"reaction of nothing":     Reaction{},
		"reaction too long":       Reaction{strings.Repeat("x", MaxReaction+1)},
		"attachment nowhere":      Attachment{External: e},
		"session nowhere":         Session{},
		"thumbhash too long":      Attachment{External: testExternal(), Info: FileInfo{ThumbHash: make([]byte, MaxThumbHash+1)}},
		"title too long":          RoomInfo{Title: ptr(big)},
		"picture and none":        Profile{NoPicture: true, Picture: &Attachment{External: testExternal()}},
		"verified nobody":         Verified{},
		"receipt of nothing":      Receipt{},
		"receipt of too many":     Receipt{Read: make([]MessageID, MaxListed+1)},
		"read mark of nothing":    ReadMark{},
		"pin of nothing":          Pin{},
		"successor of nothing":    Successor{},
		"call of nothing":         Call{},
		"poll of nothing":         Poll{Question: "?"},
		"poll of too many":        Poll{Question: "?", Options: make([]string, MaxOptions+1)},
		"poll with empty option":  Poll{Question: "?", Options: []string{"a", ""}},
		"quiz with another":       Poll{Question: "?", Options: []string{"a"}, Correct: []int{1}},
		"vote twice":              Vote{[]int{1, 1}},
		"vote descending":         Vote{[]int{1, 0}},
		"vote below":              Vote{[]int{-1}},
		"location off the map":    Location{Latitude: 91},
		"contact of nothing":      Contact{FirstName: "x"},
		"dice of zero":            Dice{"🎲", 0},
		"keyboard not JSON":       Keyboard{"{"},
		"keyboard too long":       Keyboard{`"` + big + `"`},
		"tap of nothing":          Tap{},
		"answer to nothing":       TapAnswer{Tapper: testIdentity(1)},
		"answer to no identity":   TapAnswer{Tap: testID},
		"answer longer than that": TapAnswer{Tap: testID, Tapper: testIdentity(1), Text: big},
	} {
		if _, err := New(testHeader(), item); !errors.Is(err, ErrEncoding) && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMentions(t *testing.T) {
	a, b := testIdentity(1), testIdentity(2)
	text := fmt.Sprintf("Kudos to [@Ada](%s), [x](mimi://a.example/r/1) and [@Bob](%s)!", UserURI("a.example", a), UserURI("b.example", b))
	if got := (Text{Text: text, Format: FormatMarkdown}).Mentions(); !reflect.DeepEqual(got, []identity.PublicKey{a, b}) {
		t.Errorf("markdown: %v", got)
	}
	if got := (Text{Text: text}).Mentions(); got != nil {
		t.Errorf("plain text mentions %v", got)
	}
	if got := (Text{Text: "@Ada", Entities: []Entity{{Type: "text_mention", Length: 4, Identity: &a}}}).Mentions(); !reflect.DeepEqual(got, []identity.PublicKey{a}) {
		t.Errorf("entities: %v", got)
	}
}

func TestURIs(t *testing.T) {
	id := testIdentity(1)
	if got, err := ParseUserURI(UserURI("a.example:8080", id)); err != nil || got != id {
		t.Errorf("user: %v", err)
	}
	if got, err := ParseRoomURI(RoomURI("a.example", "x-y")); err != nil || got != "x-y" {
		t.Errorf("room: %q, %v", got, err)
	}
	for _, uri := range []string{"", "mimi://", "mimi:///u/" + id.String(), "mimi://a/r/" + id.String(), "https://a/u/" + id.String(), "mimi://a/u/zz",
		"mimi://a/u/" + id.String() + "/x", "mimi://a/u/" + id.String() + "?x", "mimi://a@b/u/" + id.String(), "mimi://a/x/u/" + id.String()} {
		if _, err := ParseUserURI(uri); !errors.Is(err, ErrEncoding) {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

func TestSecretDoesNotPrint(t *testing.T) {
	a := Attachment{External: testExternal()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%s"} {
		out := fmt.Sprintf(verb, a)
		if strings.Contains(out, strings.Repeat("01", 8)) || strings.Contains(out, "1 1 1 1") || strings.Contains(out, "0x1, 0x1, 0x1") {
			t.Errorf("%s prints the key: %s", verb, out)
		}
	}
}
