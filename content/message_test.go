package content

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// original is the draft's first example (section 5.1).
const original = "87505eed9406c2545547ab6f09f20a18b003f640f6f6a20178206d696d693a2f2f6578616d706c652e636f6d2f752f616c6963652d736d69746802" +
	"78256d696d693a2f2f6578616d706c652e636f6d2f722f656e67696e656572696e675f7465616d85016001781e746578742f6d61726b646f776e3b7661726961" +
	"6e743d47464d2d4d494d49583948692065766572796f6e652c207765206a75737420736869707065642072656c6561736520322e302e205f5f476f6f64202077" +
	"6f726b5f5f21"

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMessageID(t *testing.T) {
	raw := unhex(t, original)
	m, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	const want = "017ce54837404c3696e0c747b985cb172716d0ed0a3d249ca63ace7d82a096f4"
	id, err := m.ID()
	if err != nil || id.String() != want {
		t.Errorf("id %s, %v", id, err)
	}
	// Another sender or room gives another id of the same bytes.
	for _, uris := range [][2]string{{"mimi://example.com/u/bob", m.RoomURI()}, {m.SenderURI(), "mimi://example.com/r/x"}} {
		if other, err := ComputeID(uris[0], uris[1], m.Salt, raw); err != nil || other == id {
			t.Errorf("%v: %s, %v", uris, other, err)
		}
	}
	if _, err := ComputeID("", "x", m.Salt, raw); !errors.Is(err, ErrNoURI) {
		t.Error(err)
	}
	if _, err := ComputeID(strings.Repeat("x", 1<<16), "x", m.Salt, raw); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	m.Extensions = nil
	if _, err := m.ID(); !errors.Is(err, ErrNoURI) {
		t.Error(err)
	}
	var back MessageID
	text, _ := id.MarshalText()
	if err := back.UnmarshalText(text); err != nil || back != id {
		t.Error(err)
	}
	for _, bad := range []string{"", want[1:], "zz" + want[2:]} {
		if err := back.UnmarshalText([]byte(bad)); !errors.Is(err, ErrEncoding) || back != id {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// frame is a message with the given extensions and body, in hex.
func frame(extensions, body string) string {
	return "87 50" + strings.Repeat("00", 16) + "f6 40 f6 f6" + extensions + body
}

const nullBody = "83 01 60 00"

func TestDecodeRefuses(t *testing.T) {
	if _, err := Decode(unhex(t, frame("a0", nullBody))); err != nil {
		t.Fatal(err)
	}
	id := "5820" + "01" + strings.Repeat("11", 31)
	for name, c := range map[string]struct {
		hex  string
		want error
	}{
		"empty":                        {"", ErrEncoding},
		"trailing byte":                {frame("a0", nullBody) + "00", ErrEncoding},
		"a map":                        {"a0", ErrEncoding},
		"six items":                    {"86 50" + strings.Repeat("00", 16) + "f6 40 f6 f6 a0", ErrEncoding},
		"indefinite array":             {"9f 50" + strings.Repeat("00", 16) + "f6 40 f6 f6 a0" + nullBody + "ff", ErrEncoding},
		"array length not shortest":    {"98 07 50" + strings.Repeat("00", 16) + "f6 40 f6 f6 a0" + nullBody, ErrEncoding},
		"salt of 15":                   {"87 4f" + strings.Repeat("00", 15) + "f6 40 f6 f6 a0" + nullBody, ErrEncoding},
		"salt length not shortest":     {"87 58 10" + strings.Repeat("00", 16) + "f6 40 f6 f6 a0" + nullBody, ErrEncoding},
		"replaces of 31":               {"87 50" + strings.Repeat("00", 16) + "581f" + strings.Repeat("01", 31) + "40 f6 f6 a0" + nullBody, ErrEncoding},
		"replaces by another hash":     {"87 50" + strings.Repeat("00", 16) + "5820" + strings.Repeat("02", 32) + "40 f6 f6 a0" + nullBody, ErrEncoding},
		"undefined for null":           {"87 50" + strings.Repeat("00", 16) + "f7 40 f6 f6 a0" + nullBody, ErrEncoding},
		"topic above the limit":        {"87 50" + strings.Repeat("00", 16) + "f6 591001" + strings.Repeat("00", 4097) + "f6 f6 a0" + nullBody, ErrLimit},
		"expires of one item":          {"87 50" + strings.Repeat("00", 16) + "f6 40 81f4 f6 a0" + nullBody, ErrEncoding},
		"expires above 32 bits":        {"87 50" + strings.Repeat("00", 16) + "f6 40 82f41b0000000100000000 f6 a0" + nullBody, ErrEncoding},
		"expires with a number":        {"87 50" + strings.Repeat("00", 16) + "f6 40 820005 f6 a0" + nullBody, ErrEncoding},
		"reply as text":                {"87 50" + strings.Repeat("00", 16) + "f6 40 f6 6101 a0" + nullBody, ErrEncoding},
		"extensions out of order":      {frame("a2 02 6161 01 6161", nullBody), ErrEncoding},
		"extension twice":              {frame("a2 01 6161 01 6162", nullBody), ErrEncoding},
		"length-first order":           {frame("a2 20 00 1901ff 00", nullBody), ErrEncoding}, // -1 before 511
		"sender URI as bytes":          {frame("a1 01 4161", nullBody), ErrEncoding},
		"extension key as bytes":       {frame("a1 4101 00", nullBody), ErrEncoding},
		"extension key empty":          {frame("a1 60 00", nullBody), ErrEncoding},
		"extension key of 256":         {frame("a1 790100"+strings.Repeat("61", 256)+"00", nullBody), ErrEncoding},
		"extension key above 2^53":     {frame("a1 1b0020000000000000 00", nullBody), ErrEncoding},
		"extension key below -2^53":    {frame("a1 3b001fffffffffffff 00", nullBody), ErrEncoding},
		"extension key not UTF-8":      {frame("a1 61ff 00", nullBody), ErrEncoding},
		"extension text not UTF-8":     {frame("a1 03 61ff", nullBody), ErrEncoding},
		"extension above the limit":    {frame("a1 03 590ffd"+strings.Repeat("00", 4093), nullBody), ErrLimit},
		"extension five levels deep":   {frame("a1 03 81818181 00", nullBody), ErrLimit},
		"extension with an odd NaN":    {frame("a1 03 f97e01", nullBody), ErrEncoding},
		"extension with a wide NaN":    {frame("a1 03 fa7fc00000", nullBody), ErrEncoding},
		"extension with a wide 1.5":    {frame("a1 03 fa3fc00000", nullBody), ErrEncoding},
		"extension with a wider 1.5":   {frame("a1 03 fb3ff8000000000000", nullBody), ErrEncoding},
		"extension with a long simple": {frame("a1 03 f810", nullBody), ErrEncoding},
		"extension with a long uint":   {frame("a1 03 1817", nullBody), ErrEncoding},
		"extension with a small big":   {frame("a1 03 c2480102030405060708", nullBody), ErrEncoding},
		"extension with a padded big":  {frame("a1 03 c249000102030405060708", nullBody), ErrEncoding},
		"extension with a text big":    {frame("a1 03 c26161", nullBody), ErrEncoding},
		"extension map out of order":   {frame("a1 03 a2 02 00 01 00", nullBody), ErrEncoding},
		"extension map with float key": {frame("a1 03 a1 f93e00 00", nullBody), ErrEncoding},
		"extension of huge array":      {frame("a1 03 9b00ffffffffffffff", nullBody), ErrEncoding},
		"reserved length":              {frame("a1 03 1c", nullBody), ErrEncoding},
		"part of two items":            {frame("a0", "82 01 60"), ErrEncoding},
		"null part of four":            {frame("a0", "84 01 60 00 00"), ErrEncoding},
		"single part of four":          {frame("a0", "84 01 60 01 60"), ErrEncoding},
		"single part with text":        {frame("a0", "85 01 60 01 60 60"), ErrEncoding},
		"disposition above 255":        {frame("a0", "83 190100 60 00"), ErrEncoding},
		"cardinality 4":                {frame("a0", "83 01 60 04"), ErrEncoding},
		"part semantics 3":             {frame("a0", "85 01 60 03 03 82 83016000 83016000"), ErrEncoding},
		"multipart of one":             {frame("a0", "85 01 60 03 00 81 83016000"), ErrEncoding},
		"five levels":                  {frame("a0", nested(5)), ErrLimit},
		"1025 parts":                   {frame("a0", "85 01 60 03 02 990400"+strings.Repeat("83016000", 1024)), ErrLimit},
		"external with text key":       {frame("a0", "8f 06 60 02 60 60 00 00 00 60 40 40 00 40 60 60"), ErrEncoding},
		"external algorithm 65536":     {frame("a0", "8f 06 60 02 60 60 00 00 1a00010000 40 40 40 00 40 60 60"), ErrEncoding},
		"external with a long key":     {frame("a0", "8f 06 60 02 60 60 00 00 00 590100"+strings.Repeat("00", 256)+"40 40 00 40 60 60"), ErrLimit},
		"language not UTF-8":           {frame("a0", "83 01 61ff 00"), ErrEncoding},
		"cut inside the id":            {"87 50" + strings.Repeat("00", 16) + id[:20], ErrEncoding},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(unhex(t, c.hex)); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	if _, err := Decode(make([]byte, MaxSize+1)); !errors.Is(err, ErrLimit) {
		t.Error("a message above the limit")
	}
	whole := unhex(t, original)
	for n := range whole {
		if _, err := Decode(whole[:n]); !errors.Is(err, ErrEncoding) {
			t.Fatalf("cut to %d: %v", n, err)
		}
	}
}

// nested is a body of so many levels.
func nested(levels int) string {
	if levels == 1 {
		return nullBody
	}
	return "85 01 60 03 02 82" + nullBody + nested(levels-1)
}

func TestDecodeTakes(t *testing.T) {
	for name, h := range map[string]string{
		"four levels":         frame("a0", nested(4)),
		"1024 parts":          frame("a0", "85 01 60 03 02 9903ff"+strings.Repeat("83016000", 1023)),
		"disposition 255":     frame("a0", "83 18ff 60 00"),
		"bytewise key order":  frame("a3 1901ff 00 20 00 6161 00", nullBody), // 511, -1, "a"
		"draft's four levels": frame("a1 190100 82 82 421234 d820 6161 82 423456 19168b", nullBody),
		"floats":              frame("a1 03 86 f97e00 f93e00 fa3dcccccd fb3fb999999999999a f97c00 f98000", nullBody),
		"bignum":              frame("a1 03 c249010000000000000000", nullBody),
		"simple values":       frame("a1 03 85 f4 f5 f6 f7 f8ff", nullBody),
		"integer bounds":      frame("a2 1b001fffffffffffff 1bffffffffffffffff 3b001ffffffffffffe 3bffffffffffffffff", nullBody),
	} {
		b := unhex(t, h)
		m, err := Decode(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if again, err := m.Encode(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%s: encodes as %x, %v", name, again, err)
		}
	}
}

func TestFitsHalf(t *testing.T) {
	for _, f := range []float64{0, 1, 1.5, -2, 65504, 0x1p-14, 0x1p-24, 0x1.ffcp15, 0x3p-24} {
		if !fitsHalf(f) {
			t.Errorf("%g fits 16 bits", f)
		}
	}
	for _, f := range []float64{65505, 65520, 0x1p-25, 0x1.002p0, 0x1.8p-24, 0.1} {
		if fitsHalf(f) {
			t.Errorf("%g does not fit 16 bits", f)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	good, err := Decode(unhex(t, original))
	if err != nil {
		t.Fatal(err)
	}
	deep := Part{Content: Null{}}
	for range 5 {
		deep = Part{Content: Multi{ProcessAll, []Part{deep, {Content: Null{}}}}}
	}
	for name, change := range map[string]func(*Message){
		"no content":          func(m *Message) { m.Body = Part{} },
		"too deep":            func(m *Message) { m.Body = deep },
		"multipart of none":   func(m *Message) { m.Body.Content = Multi{} },
		"semantics":           func(m *Message) { m.Body.Content = Multi{9, []Part{{Content: Null{}}, {Content: Null{}}}} },
		"topic":               func(m *Message) { m.TopicID = make([]byte, MaxTopic+1) },
		"extension not CBOR":  func(m *Message) { m.Extensions = m.Extensions.SetRaw(5, []byte{0x81}) },
		"extension two":       func(m *Message) { m.Extensions = m.Extensions.SetRaw(1<<40, []byte{0, 0}) },
		"extension nothing":   func(m *Message) { m.Extensions = m.Extensions.SetRaw(5, nil) },
		"sender no text":      func(m *Message) { m.Extensions = m.Extensions.SetRaw(ExtSenderURI, []byte{0}) },
		"content type":        func(m *Message) { m.Body.Content = Single{"\xff", nil} },
		"size":                func(m *Message) { m.Body.Content = Single{"x/y", make([]byte, MaxSize)} },
		"unknown hash in id":  func(m *Message) { m.InReplyTo = MessageID{3} },
		"long file name":      func(m *Message) { m.Body.Content = External{Filename: strings.Repeat("x", maxFilename+1)} },
		"language not UTF-8":  func(m *Message) { m.Body.Language = "\xff" },
		"too many parts here": func(m *Message) { m.Body.Content = Multi{ProcessAll, make([]Part, MaxParts)} },
	} {
		m := good
		change(&m)
		if _, err := m.Encode(); !errors.Is(err, ErrEncoding) && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDecodeAllocates holds the memory of hostile messages: what Decode
// allocates stays within a small multiple of what it was given.
func TestDecodeAllocates(t *testing.T) {
	bombs := map[string][]byte{
		"1024 null parts":    unhex(t, frame("a0", "85 01 60 03 02 9903ff"+strings.Repeat("83016000", 1023))),
		"1024 externals":     unhex(t, frame("a0", "85 01 60 03 02 9903ff"+strings.Repeat("8f0660026060000000404040004060 60", 1023))),
		"array that says so": unhex(t, frame("a1 03 9a00ffffff", "")),
		"parts that say so":  unhex(t, frame("a0", "85 01 60 03 02 9a00ffffff")),
		"text that says so":  unhex(t, frame("a0", "85 01 7affffffff")),
		"many extensions": unhex(t, frame("b903e8"+func() string {
			var b strings.Builder
			for i := range 1000 {
				fmt.Fprintf(&b, "19%04x00", i+256)
			}
			return b.String()
		}(), nullBody)),
	}
	for name, b := range bombs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		const rounds = 20
		for range rounds {
			_, _ = Decode(b)
		}
		runtime.ReadMemStats(&after)
		per := (after.TotalAlloc - before.TotalAlloc) / rounds
		// 64 bytes a byte as built, up to 72 under the race detector.
		if bound := uint64(4096 + 96*len(b)); per > bound {
			t.Errorf("%s: %d bytes of message allocate %d, bound %d", name, len(b), per, bound)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(unhex(f, original))
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txt"))
	if err != nil || len(files) == 0 {
		f.Fatal("no golden files")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(unhex(f, strings.Fields(string(text))[0]))
	}
	f.Add(unhex(f, frame("a1 190100 82 82 421234 d820 6161 82 423456 19168b", nested(4))))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrEncoding) && !errors.Is(err, ErrLimit) {
				t.Errorf("error of another kind: %v", err)
			}
			return
		}
		again, err := m.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x\nencodes as %x, %v", b, again, err)
		}
		_ = m.Kind()
		for _, i := range m.Items() {
			parts, err := i.parts()
			if err == nil && len(parts) == 0 {
				t.Errorf("%T has no parts", i)
			}
		}
	})
}
