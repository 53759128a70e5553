package phrase

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// FuzzParse: whatever is typed, it is a phrase that reads the same again, or the
// error says why and repeats no word of the list that it proposes.
func FuzzParse(f *testing.F) {
	words := known(f).Words()
	f.Add(words)
	f.Add(strings.ToUpper(strings.ReplaceAll(words, " ", "\n")))
	f.Add(strings.TrimSuffix(words, words[strings.LastIndex(words, " "):]) + " abandon")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		var word *WordError
		var sum *ChecksumError
		switch {
		case err == nil:
			again, err := Parse(p.Words())
			if err != nil || again.Words() != p.Words() || p.Words() != strings.Join(strings.Fields(strings.ToLower(text)), " ") {
				t.Errorf("%q reads as %q, %v", text, p.Words(), err)
			}
		case !errors.As(err, &word) && !errors.As(err, &sum):
			t.Errorf("error of another kind: %v", err)
		}
	})
}

// FuzzParseAccount: what was sealed at rest reads as it was, or not at all.
func FuzzParseAccount(f *testing.F) {
	a, err := known(f).Account()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(a.Bytes())
	f.Add(a.Bytes()[1:])
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseAccount(b)
		if (err == nil) != (len(b) == AccountSize) || err == nil && !bytes.Equal(a.Bytes(), b) {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	})
}
