package main

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// What a terminal shows in one place may be several characters: a letter with its
// accents, a flag of two letters, a family of people that zero-width joiners hold
// together. Unicode Standard Annex #29 calls it a grapheme cluster; of its rules these
// are those that change a width.

// columns is how many columns of a terminal a text takes.
func columns(text string) int {
	n := 0
	for _, w := range clusters(text) {
		n += w
	}
	return n
}

// short cuts a text to so many columns, between what is shown in one place.
func short(text string, limit int) string {
	if columns(text) <= limit {
		return text
	}
	var b strings.Builder
	used := 0
	for cluster, w := range clusters(text) {
		if used+w > limit-1 {
			break
		}
		b.WriteString(cluster)
		used += w
	}
	return b.String() + "…"
}

// clusters gives what a text shows in one place each, with its columns.
func clusters(text string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for len(text) > 0 {
			size, w := cluster(text)
			if !yield(text[:size], w) {
				return
			}
			text = text[size:]
		}
	}
}

const (
	joiner      = 0x200d // ZERO WIDTH JOINER
	emojiShape  = 0xfe0f // VARIATION SELECTOR-16: shown as an emoji
	firstSymbol = 0x203c // no character below it is shown as an emoji but digits and signs
)

// cluster is the size of the first cluster of a text, bytes, and its columns.
func cluster(text string) (size, w int) {
	first, size := utf8.DecodeRuneInString(text)
	w = runeColumns(first)
	for last := first; size < len(text); {
		r, n := utf8.DecodeRuneInString(text[size:])
		switch {
		case last == joiner && isPicture(first) && isPicture(r):
			w = 2
		case isRegional(first) && isRegional(r) && last == first && size == utf8.RuneLen(first): // a flag
			w = 2
		case r == emojiShape && first >= firstSymbol:
			w = 2
		case r >= 0x1f3fb && r <= 0x1f3ff && isPicture(first): // a skin's tone
			w = 2
		case r >= 0x1160 && r <= 0x11ff && first >= 0x1100 && first <= 0x115f: // the rest of a Hangul syllable
		case runeColumns(r) > 0:
			return size, w
		}
		last = r
		size += n
	}
	return size, w
}

func isRegional(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// isPicture reports whether a character may be an emoji, or a part of one.
func isPicture(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff && !isRegional(r) || r >= firstSymbol && r <= 0x2bff || r >= 0x3030 && r <= 0x303d || r == 0x3297 || r == 0x3299
}

// runeColumns is 2 for wide characters and emoji, 0 for marks that combine.
func runeColumns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
