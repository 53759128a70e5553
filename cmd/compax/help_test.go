package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
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

// TestHelpNamesWhatFlagsWant: a flag says what it takes and not of which type a program
// keeps it, and a usage line says that there are flags.
func TestHelpNamesWhatFlagsWant(t *testing.T) {
	for _, c := range all((&app{env: func(string) string { return "" }}).root()) {
		c.LocalFlags() // with its parents', as when it runs
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if want, _ := pflag.UnquoteUsage(f); want != strings.ToUpper(want) {
				t.Errorf("%s --%s %s", c.CommandPath(), f.Name, want)
			}
		})
		if !strings.HasSuffix(c.UseLine(), "[flags]") {
			t.Errorf("usage: %s", c.UseLine())
		}
	}
}

// TestArchiveHelp: who asks about the archive learns that nothing switches it off or
// deletes from it, and what a new device shows of it.
func TestArchiveHelp(t *testing.T) {
	w := newWorld(t)
	w.wants(exitOK, "account", "archive", "--help")
	said := strings.Join(strings.Fields(w.out.String()), " ")
	for _, part := range []string{"There is no switch", "deletes nothing", "archive_days", "as history, not as new messages"} {
		if !strings.Contains(said, part) {
			t.Errorf("nothing of %q in: %s", part, said)
		}
	}
}

func TestWrap(t *testing.T) {
	const text = "one two three four\nfive\n\n  compax send  CHAT\n  compax\n\nsix"
	if got := wrap(text, 9); got != "one two\nthree\nfour five\n\n  compax send  CHAT\n  compax\n\nsix" {
		t.Errorf("%q", got)
	}
}

// TestErrorsFitATerminal: a long error goes on in further lines on a terminal, and
// is one line for a script.
func TestErrorsFitATerminal(t *testing.T) {
	w := newWorld(t)
	w.makeProfile("bob")
	for _, name := range []string{"carl", "dora", "emil", "fay", "gus", "hana", "ivan", "jule"} {
		w.makeProfile(name)
	}
	w.run("chats", "--profile", "zed")
	if n := strings.Count(w.err.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, &w.err)
	}
	w.tty = true
	w.env["NO_COLOR"] = "1"
	w.run("chats", "--profile", "zed")
	for line := range strings.Lines(w.err.String()) {
		if n := columns(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(strings.Join(strings.Fields(w.err.String()), " "), "make it: compax account new --profile zed --server URL --name NAME") {
		t.Errorf("it says\n%s", &w.err)
	}
}

// TestNextStepsFitWhoStarts: who has profiles is not told to make the first.
func TestNextStepsFitWhoStarts(t *testing.T) {
	a := &app{home: t.TempDir(), env: func(string) string { return "" }}
	if got := a.nextSteps("http://x"); !strings.Contains(got, " account new --profile bob --server http://x") {
		t.Error(got)
	}
	w := newWorld(t)
	a.home = w.home
	if got := a.nextSteps("http://x"); !strings.Contains(got, " listen --profile ada\n") || strings.Contains(got, "--profile bob") {
		t.Error(got)
	}
}

// TestAStartNamesTheProgramAsAShellFindsIt: by path or by name, whatever is in it.
func TestAStartNamesTheProgramAsAShellFindsIt(t *testing.T) {
	for path, want := range map[string]string{
		"compax": "compax", "bin/compax": "bin/compax", "/opt/my tools/compax": "'/opt/my tools/compax'", "/it's/compax": `'/it'\''s/compax'`,
	} {
		if got := asStarted(path); got != want {
			t.Errorf("asStarted(%q) = %s, want %s", path, got, want)
		}
	}
}
