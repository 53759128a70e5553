package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// TestTrap01LengthPrefixes: a length has one form, never reaches beyond what
// encloses it, and nothing follows the value (RFC 9420 §2.1.2).
func TestTrap01LengthPrefixes(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		err  error
	}{
		{"empty input", nil, ErrTruncated},
		{"two bytes for 0", []byte{0x40, 0x00}, ErrVarint},
		{"two bytes for 63", append([]byte{0x40, 0x3f}, make([]byte, 63)...), ErrVarint},
		{"four bytes for 0", []byte{0x80, 0, 0, 0}, ErrVarint},
		{"four bytes for 63", append([]byte{0x80, 0, 0, 63}, make([]byte, 63)...), ErrVarint},
		{"four bytes for 64", append([]byte{0x80, 0, 0, 64}, make([]byte, 64)...), ErrVarint},
		{"four bytes for 0x3fff", append([]byte{0x80, 0, 0x3f, 0xff}, make([]byte, 0x3fff)...), ErrVarint},
		{"prefix 11", []byte{0xc0, 0, 0, 0, 0, 0, 0, 0}, ErrVarint},
		{"prefix 11, all ones", bytes.Repeat([]byte{0xff}, 8), ErrVarint},
		{"first byte of two", []byte{0x40}, ErrTruncated},
		{"three bytes of four", []byte{0x80, 0, 0x40}, ErrTruncated},
		{"one more than there is", []byte{2, 0}, ErrTruncated},
		{"a gibibyte declared", []byte{0xbf, 0xff, 0xff, 0xff, 1}, ErrTruncated},
		{"a byte after the value", []byte{1, 0, 0}, ErrTrailing},
	} {
		var v ApplicationID
		err := Unmarshal(c.data, &v)
		var where *DecodeError
		if !errors.Is(err, c.err) || !errors.As(err, &where) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
	for _, n := range []int{0, 1, 63, 64, 0x3ffe, 0x3fff, 0x4000, 0x4001} {
		want := ApplicationID{ApplicationID: bytes.Repeat([]byte{7}, n)}
		var got ApplicationID
		if err := Unmarshal(Marshal(&want), &got); err != nil || len(got.ApplicationID) != n {
			t.Errorf("%d bytes: %d came back (%v)", n, len(got.ApplicationID), err)
		}
	}
}

// TestTrap01VectorsAreFilledExactly: an element may not reach over the end of
// its vector into what follows, nor leave a rest.
func TestTrap01VectorsAreFilledExactly(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		err  error
		into Decoder
	}{
		{"odd length of two-byte values", []byte{3, 0, 1, 0}, ErrTruncated, new(ComponentsList)},
		{"length of four-byte values not divisible", []byte{1, 1, 0, 3, 0, 0, 0}, ErrTruncated, new(ParentNode)},
		{"extension reaches over its vector", []byte{3, 0, 1, 2, 9, 9}, ErrTruncated, new(Extensions)},
		{"half an extension", []byte{1, 0}, ErrTruncated, new(Extensions)},
		{"inner vector larger than outer", []byte{4, 0, 1, 9, 9}, ErrTruncated, new(Extensions)},
	} {
		if err := Unmarshal(c.data, c.into); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
	r := NewReader([]byte{3, 1, 2, 3, 4})
	if r.Err() != nil {
		t.Errorf("nothing read yet: %v", r.Err())
	}
	outer := r.EnterVector()
	r.Uint8()
	r.LeaveVector(outer)
	if !errors.Is(r.Err(), ErrTrailing) || !errors.Is(r.Finish(), ErrTrailing) {
		t.Errorf("a vector left half read: %v, want %v", r.Finish(), ErrTrailing)
	}
}

// hostile returns inputs of about size bytes that make decoders allocate as
// much as they can: vectors of the smallest elements there are, and lengths
// that promise a gibibyte.
func hostile(size int) map[string][]byte {
	vector := func(unit ...byte) []byte {
		body := bytes.Repeat(unit, size/len(unit))
		return append(AppendVarint(nil, len(body)), body...)
	}
	inside := func(head []byte, inner []byte) []byte {
		inner = append(head, inner...)
		return append(AppendVarint(nil, len(inner)), inner...)
	}
	path := func(nodes []byte) []byte { // a Commit with a path
		b := []byte{0, 1, 0, 0, 0, 1, 0} // no proposals; a leaf without keys, a basic credential
		b = append(b, 0, 0, 0, 0, 0, 2, 0, 0)
		return append(b, nodes...)
	}
	return map[string][]byte{
		"zeros":                  make([]byte, size),
		"promises":               bytes.Repeat([]byte{0xbf, 0xff, 0xff, 0xff}, size/4),
		"blank nodes":            vector(0),
		"smallest parents":       vector(1, 2, 0, 0, 0),
		"empty extensions":       vector(0, 1, 0),
		"certificates":           append([]byte{0, 2}, vector(0)...),
		"welcome secrets":        append(append([]byte{0, 1}, vector(0, 0, 0)...), 0),
		"commit of references":   append(vector(2, 0), 0),
		"commit of self removes": append(vector(1, 0, 10), 0),
		"path nodes":             path(vector(0, 0)),
		"path ciphertexts":       path(inside([]byte{0}, vector(0, 0))),
	}
}

// allocated returns how many bytes decoding data into v ever allocates.
func allocated(data []byte, v Decoder) (bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = Unmarshal(data, v)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// TestTrap02MemoryIsBoundedByInput: whatever the bytes, everything that
// decoding ever allocates, garbage included, is at most a constant times their
// number, also with a million elements.
func TestTrap02MemoryIsBoundedByInput(t *testing.T) {
	const factor, fixed = 140, 64 << 10
	check := func(what, name string, data []byte, v Decoder) error {
		got, err := allocated(data, v)
		if most := uint64(factor*len(data) + fixed); got > most {
			t.Errorf("%s as %s (%v): %d bytes allocated for %d, more than %d times", what, name, err, got, len(data), factor)
		}
		return err
	}
	for what, data := range hostile(64 << 10) {
		for name, fresh := range structures {
			_ = check(what, name, data, fresh()) // most of them are refused
		}
	}
	large := hostile(1 << 20)
	for what, v := range map[string]Decoder{
		"blank nodes": new(RatchetTree), "smallest parents": new(RatchetTree), "empty extensions": new(Extensions),
		"certificates": new(Credential), "welcome secrets": new(Welcome), "commit of references": new(Commit),
		"commit of self removes": new(Commit), "path nodes": new(Commit), "path ciphertexts": new(Commit),
	} {
		if err := check(what, "what it is", large[what], v); err != nil {
			t.Errorf("%s is meant to decode, or it measures nothing: %v", what, err)
		}
	}
}

// TestTrap02HugeLengthAllocatesNothing: a length that is not there costs only
// the copy of the input.
func TestTrap02HugeLengthAllocatesNothing(t *testing.T) {
	data := []byte{0xbf, 0xff, 0xff, 0xff, 1, 2, 3}
	if n := testing.AllocsPerRun(100, func() {
		var v Extensions
		_ = Unmarshal(data, &v)
	}); n > 4 {
		t.Errorf("%v allocations", n)
	}
}

// TestValuesThatNoStructureAllows: enumerations, presence bytes, versions,
// orders.
func TestValuesThatNoStructureAllows(t *testing.T) {
	for _, c := range []struct {
		name string
		data []byte
		err  error
		into Decoder
	}{
		{"version 0", []byte{0, 0, 0, 1}, ErrVersion, new(MLSMessage)},
		{"version 2", []byte{0, 2, 0, 1}, ErrVersion, new(MLSMessage)},
		{"GroupContext of version 2", []byte{0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, ErrVersion, new(GroupContext)},
		{"wire format 0", []byte{0, 1, 0, 0}, ErrValue, new(MLSMessage)},
		{"wire format 6", []byte{0, 1, 0, 6}, ErrValue, new(MLSMessage)},
		{"sender type 0", []byte{0}, ErrValue, new(Sender)},
		{"sender type 5", []byte{5}, ErrValue, new(Sender)},
		{"content type 0", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0}, ErrValue, new(FramedContent)},
		{"content type 4 in a PrivateMessage", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0}, ErrValue, new(PrivateMessage)},
		{"leaf source 0", []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, ErrValue, new(LeafNode)},
		{"leaf source 4", []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, 0, 0}, ErrValue, new(LeafNode)},
		{"node type 3", []byte{3}, ErrValue, new(Node)},
		{"presence 2", []byte{0, 2}, ErrValue, new(Commit)},
		{"presence 2 in a tree", []byte{1, 2}, ErrValue, new(RatchetTree)},
		{"proposal or reference 0", []byte{0, 0}, ErrValue, new(ProposalOrRef)},
		{"proposal or reference 3", []byte{3, 0}, ErrValue, new(ProposalOrRef)},
		{"PSK type 0", []byte{0, 0, 0}, ErrValue, new(PreSharedKeyID)},
		{"PSK type 4", []byte{4, 0, 0}, ErrValue, new(PreSharedKeyID)},
		{"PSK usage 0", []byte{2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, ErrValue, new(PreSharedKeyID)},
		{"PSK usage 4", []byte{2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, ErrValue, new(PreSharedKeyID)},
		{"AppDataUpdate invalid(0)", []byte{0, 1, 0}, ErrValue, new(AppDataUpdate)},
		{"AppDataUpdate op 3", []byte{0, 1, 3}, ErrValue, new(AppDataUpdate)},
		{"dictionary out of order", []byte{6, 0, 2, 0, 0, 1, 0}, ErrValue, new(AppDataDictionary)},
		{"dictionary with a component twice", []byte{6, 0, 2, 0, 0, 2, 0}, ErrValue, new(AppDataDictionary)},
		{"SafeAAD out of order", []byte{6, 0, 2, 0, 0, 1, 0}, ErrValue, new(SafeAAD)},
		{"SafeAAD with a component twice", []byte{6, 0, 2, 0, 0, 2, 0}, ErrValue, new(SafeAAD)},
		{"padding that is not zero", []byte{0, 0, 0, 0, 1, 0}, ErrValue, &PrivateMessageContent{ContentType: ContentTypeApplication}},
		{"plaintext of content type 0", []byte{0, 0}, ErrValue, new(PrivateMessageContent)},
	} {
		if err := Unmarshal(c.data, c.into); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
}

// TestErrorsNameThePlaceAndHideTheBytes: an error says in which structure and
// where, and never shows what was there.
func TestErrorsNameThePlaceAndHideTheBytes(t *testing.T) {
	data := append([]byte{0, 1, 0, 5, 0, 1, 0, 1, 32}, bytes.Repeat([]byte("s3cret--"), 4)...)
	err := Unmarshal(append(data, 63), new(MLSMessage))
	var where *DecodeError
	if !errors.As(err, &where) {
		t.Fatalf("%v is no DecodeError", err)
	}
	if where.Structure != "LeafNode" || where.Offset != len(data)+1 || !errors.Is(err, ErrTruncated) {
		t.Errorf("failed in %s at %d (%v), want LeafNode at %d", where.Structure, where.Offset, err, len(data)+1)
	}
	if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, "s3cret") {
		t.Errorf("the error shows the input: %s", text)
	}
}

// TestSecretsDoNotPrint: no verb shows what a Welcome tells a joiner.
func TestSecretsDoNotPrint(t *testing.T) {
	s := GroupSecrets{
		JoinerSecret: []byte("zqzqzqzq"),
		PathSecret:   &PathSecret{PathSecret: []byte("xwxwxwxw")},
	}
	var shown []string // in text, hexadecimal, decimal, octal
	for _, secret := range []string{"zqzq", "xwxw"} {
		shown = append(shown, secret, fmt.Sprintf("%x", secret),
			strings.Trim(fmt.Sprint([]byte(secret)), "[]"), strings.Trim(fmt.Sprintf("%o", []byte(secret)), "[]"))
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%X", "%q", "%d", "%o"} {
		for _, v := range []any{s, &s, s.PathSecret, *s.PathSecret, []GroupSecrets{s}, struct{ S GroupSecrets }{s}} {
			text := fmt.Sprintf(verb, v)
			for _, secret := range shown {
				if strings.Contains(strings.ToLower(text), strings.ToLower(secret)) {
					t.Errorf("%s of %T shows a secret: %s", verb, v, text)
				}
			}
		}
	}
}

// TestAllocations holds what the paths of every message cost.
func TestAllocations(t *testing.T) {
	m := MLSMessage{WireFormat: WireFormatPrivateMessage, PrivateMessage: &PrivateMessage{
		GroupID: make([]byte, 16), Epoch: 7, ContentType: ContentTypeApplication,
		EncryptedSenderData: make([]byte, 28), Ciphertext: make([]byte, 1100),
	}}
	buf := make([]byte, 0, 2048)
	if n := testing.AllocsPerRun(100, func() { buf = m.AppendTo(buf[:0]) }); n != 0 {
		t.Errorf("encoding into a buffer: %v allocations, want none", n)
	}
	// The message, the PrivateMessage, the copy of the input, the reader.
	if n := testing.AllocsPerRun(100, func() {
		var got MLSMessage
		if err := Unmarshal(buf, &got); err != nil {
			t.Fatal(err)
		}
	}); n > 4 {
		t.Errorf("decoding a PrivateMessage: %v allocations, want at most 4", n)
	}
	data := random(rand.New(rand.NewPCG(1, 1)), structures["Commit"])
	var c Commit
	if err := Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	buf = make([]byte, 0, 2*len(data))
	if n := testing.AllocsPerRun(100, func() { buf = c.AppendTo(buf[:0]) }); n != 0 {
		t.Errorf("encoding a Commit into a buffer: %v allocations, want none", n)
	}
}
