package main

import (
	"strings"
	"testing"
)

// TestHelpFits: no line of any help is wider than a terminal.
func TestHelpFits(t *testing.T) {
	w := newWorld(t)
	for _, c := range all((&app{env: func(string) string { return "" }}).root()) {
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if code := w.run(args...); code != exitOK {
			t.Errorf("%q: exit code %d", args, code)
		}
		for line := range strings.Lines(w.out.String()) {
			if n := columns(strings.TrimRight(line, "\n")); n > helpColumns {
				t.Errorf("%q: %d columns: %s", args, n, line)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	const text = "one two three four\nfive\n\n  compax send  CHAT\n  compax\n\nsix"
	if got := wrap(text, 9); got != "one two\nthree\nfour five\n\n  compax send  CHAT\n  compax\n\nsix" {
		t.Errorf("%q", got)
	}
}
