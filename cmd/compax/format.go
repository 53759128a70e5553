package main

import (
	"hash/fnv"
	"strings"
	"time"
	"unicode"
)

// Colours, as SGR codes.
const (
	bold = "1"
	dim  = "2"
	red  = "31"
)

// paint colours text for a stream that is a terminal, unless NO_COLOR says not to.
func (a *app) paint(tty bool, code, text string) string {
	if !tty || text == "" || a.env("NO_COLOR") != "" || a.env("TERM") == "dumb" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// personColours are the SGR codes that people get, by their identity.
var personColours = []string{"36", "32", "33", "35", "34", "96", "92", "95"}

func personColour(identity string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(identity)) // never fails
	return personColours[h.Sum32()%uint32(len(personColours))]
}

// when shows a time in the terminal's zone, shorter the nearer it is.
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	now := a.now()
	t = t.In(now.Location())
	switch {
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	default:
		return t.Format("2006-01-02 15:04")
	}
}

// clean makes a text of somebody else safe to print: control characters, which
// could drive the terminal, become visible, and characters that turn the
// direction of what follows are taken out. Lines and tabs stay.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r // the control pictures
		case r == 0x7f:
			return 0x2421
		case unicode.Is(unicode.Cc, r), r == 0x2028, r == 0x2029:
			return unicode.ReplacementChar
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return -1 // embeddings, overrides, isolates
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
}

// visible reports whether a text can stand on one line as it is.
func visible(text string) bool { return clean(text) == text && !strings.ContainsAny(text, "\n\t") }

// line is a text on one line, clean.
func line(text string) string {
	return strings.Join(strings.Fields(clean(text)), " ")
}

// helpColumns is how wide a help may be: it fits every terminal.
const helpColumns = 80

// wrap breaks a text's paragraphs anew at so many columns. Paragraphs that are
// indented, as examples are, stay as they are.
func wrap(text string, limit int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, " ") {
			continue
		}
		var b strings.Builder
		used := 0
		for _, word := range strings.Fields(p) {
			n := columns(word)
			switch {
			case used == 0:
			case used+1+n > limit:
				b.WriteByte('\n')
				used = 0
			default:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += n
		}
		paragraphs[i] = b.String()
	}
	return strings.Join(paragraphs, "\n\n")
}
