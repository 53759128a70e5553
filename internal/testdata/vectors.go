package testdata

import (
	"encoding/hex"
	"encoding/json"
	"testing"
)

// Hex is a byte string that the vectors write as hexadecimal digits.
type Hex []byte

// UnmarshalText implements [encoding.TextUnmarshaler].
func (h *Hex) UnmarshalText(text []byte) (err error) {
	*h, err = hex.AppendDecode(nil, text)
	return err
}

// Vectors reads a file of the official MLS vectors, an array of cases. It is
// found as [Path] says; one without a case fails the test.
func Vectors[T any](t testing.TB, file string) []T {
	t.Helper()
	var cases []T
	if err := json.Unmarshal(Shared(t, "mls-vectors/"+file), &cases); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(cases) == 0 {
		t.Fatalf("%s holds no case", file)
	}
	return cases
}
