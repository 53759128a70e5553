package delivery

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/askucher/compax-core/identity"
)

// TestIDsHaveOneForm: what is one character off is no id.
func TestIDsHaveOneForm(t *testing.T) {
	r, err := NewRoomID(identity.Home{1, 2, 3}, bytes.NewReader(make([]byte, 16)))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseRoomID(r.String()); err != nil || again != r {
		t.Fatal(again, err)
	}
	for _, at := range []int{8, 13, 18, 23} {
		for _, c := range []string{"0", " ", "_"} {
			if _, err := ParseRoomID(r.String()[:at] + c + r.String()[at+1:]); !errors.Is(err, ErrRoomID) {
				t.Errorf("%q for the dash at %d: %v", c, at, err)
			}
		}
	}
	for n := range 33 {
		if _, err := RoomIDFromBytes(append(r[:], r[:]...)[:n]); (err == nil) != (n == 16) {
			t.Errorf("a room id of %d bytes: %v", n, err)
		}
	}
	id := BlobID{0xab, 15: 0xcd}
	if again, err := ParseBlobID(id.String()); err != nil || again != id {
		t.Fatal(again, err)
	}
	for _, s := range []string{"", id.String()[2:], id.String() + "00", strings.Repeat("g", 32), id.String()[:31]} {
		if _, err := ParseBlobID(s); !errors.Is(err, ErrBlobID) {
			t.Errorf("blob id %q: %v", s, err)
		}
	}
}

// TestFrameBound: a frame that is too long is not read at all.
func TestFrameBound(t *testing.T) {
	if _, err := ParseFrame(bytes.Repeat([]byte{0xff}, MaxFrame)); err != nil {
		t.Errorf("a frame of a later version, as long as may be: %v", err)
	}
	if _, err := ParseFrame(bytes.Repeat([]byte{0xff}, MaxFrame+1)); err == nil {
		t.Error("a longer one is taken")
	}
}

// TestSealedGeneration: a header is whole, ours, and of a generation that a
// store can count.
func TestSealedGeneration(t *testing.T) {
	good := append(AppendSealedHeader(nil, 7), "sealed"...)
	if g, err := SealedGeneration(good); g != 7 || err != nil {
		t.Fatal(g, err)
	}
	if g, err := SealedGeneration(AppendSealedHeader(nil, MaxNumber)); g != MaxNumber || err != nil {
		t.Error("the last generation:", g, err)
	}
	bad := [][]byte{AppendSealedHeader(nil, 0), AppendSealedHeader(nil, MaxNumber+1), append([]byte("CXA2"), good[4:]...)}
	for n := range SealedHeaderSize {
		bad = append(bad, good[:n])
	}
	for _, b := range bad {
		if g, err := SealedGeneration(b); err == nil {
			t.Errorf("%x: generation %d", b, g)
		}
	}
}
