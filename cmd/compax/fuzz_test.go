package main

import (
	"bytes"
	"testing"
)

// FuzzNote: a note of what was shown reads as it was written, and one that is
// damaged is none.
func FuzzNote(f *testing.F) {
	good := note{seq: 7, row: [16]byte{1}, printed: true, place: place{1, 2, 3}, length: 9, line: [16]byte{2}}.bytes()
	f.Add(good)
	f.Add(good[:noteSize-1])
	f.Add(bytes.Repeat([]byte{0xff}, noteSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := parseNote(b); n != (note{}) && !bytes.Equal(n.bytes(), b) {
			t.Errorf("%x is written as %x", b, n.bytes())
		}
	})
}
