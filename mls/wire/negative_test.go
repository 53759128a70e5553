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

// TestTrap02MemoryIsBoundedByInput: whatever the bytes, everything that
// decoding ever allocates is at most a constant times their number.
func TestTrap02MemoryIsBoundedByInput(t *testing.T) {
	const factor, fixed = 140, 16 << 10
	inputs := map[string][]byte{}
	// A vector of a million of the smallest elements of each kind, wherever
	// the decoder takes it for one; and lengths that promise a gibibyte.
	vector := func(unit ...byte) []byte {
		body := bytes.Repeat(unit, 1<<20/len(unit))
		return append(AppendVarint(nil, len(body)), body...)
	}
	inputs["blank nodes"] = vector(0)
	inputs["empty references"] = vector(2, 0)
	inputs["self removes"] = vector(1, 0, 10)
	inputs["empty extensions"] = vector(0, 1, 0)
	inputs["smallest parents"] = vector(1, 2, 0, 0, 0)
	inputs["commit of references"] = append(vector(2, 0), 0)
	inputs["commit of self removes"] = append(vector(1, 0, 10), 0)
	inputs["promises"] = bytes.Repeat([]byte{0xbf, 0xff, 0xff, 0xff}, 1<<18)
	inputs["zeros"] = make([]byte, 1<<20)
	path := func(tail []byte) []byte { // a Commit with a path that ends in tail
		b := append([]byte{0, 1}, 0, 0, 0, 1, 0) // keys, basic credential
		b = append(b, 0, 0, 0, 0, 0, 2, 0, 0)    // capabilities, source update, no extensions, no signature
		return append(b, tail...)
	}
	inputs["path nodes"] = path(vector(0, 0))
	inputs["path ciphertexts"] = path(func() []byte {
		inner := append([]byte{0}, vector(0, 0)...)
		return append(AppendVarint(nil, len(inner)), inner...)
	}())
	inputs["welcome secrets"] = append(append([]byte{0, 1}, vector(0, 0, 0)...), 0)
	inputs["certificates"] = append([]byte{0, 2}, vector(0)...)
	for what, data := range inputs {
		for name, fresh := range structures {
			var before, after runtime.MemStats
			v := fresh()
			runtime.ReadMemStats(&before)
			err := Unmarshal(data, v)
			runtime.ReadMemStats(&after)
			if got, most := after.TotalAlloc-before.TotalAlloc, uint64(factor*len(data)+fixed); got > most {
				t.Errorf("%s as %s (%v): %d bytes allocated for %d, more than %d times", what, name, err, got, len(data), factor)
			}
		}
	}
	for _, must := range []struct {
		what string
		into codec
	}{
		{"blank nodes", new(RatchetTree)}, {"smallest parents", new(RatchetTree)},
		{"commit of references", new(Commit)}, {"commit of self removes", new(Commit)}, {"empty extensions", new(Extensions)},
		{"path nodes", new(Commit)}, {"path ciphertexts", new(Commit)},
		{"welcome secrets", new(Welcome)}, {"certificates", new(Credential)},
	} {
		if err := Unmarshal(inputs[must.what], must.into); err != nil {
			t.Errorf("%s is meant to decode, or it measures nothing: %v", must.what, err)
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
