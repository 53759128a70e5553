package scripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdExits is "exits CODE PROGRAM ARGS…": runs it, keeps its output like exec,
// and wants that exit code.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// cmdAccounts is "accounts URL NAME…": an account, a profile and a username for
// each name.
func cmdAccounts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: accounts URL NAME…")
	}
	for _, name := range args[1:] {
		ts.Check(ts.Exec("compax", "account", "new", "--profile", name, "--server", args[0], "--name", name, "--username", name))
	}
}

// cmdRepeat is "repeat FROM TO PROGRAM ARGS…": runs it for each number, with %d
// in the arguments replaced by it.
func cmdRepeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: repeat FROM TO PROGRAM ARGS…")
	}
	from, err := strconv.Atoi(args[0])
	ts.Check(err)
	to, err := strconv.Atoi(args[1])
	ts.Check(err)
	for n := from; n <= to; n++ {
		words := make([]string, len(args)-3)
		for i, word := range args[3:] {
			words[i] = strings.ReplaceAll(word, "%d", strconv.Itoa(n))
		}
		ts.Check(ts.Exec(args[2], words...))
	}
}

// cmdField is "field [-o FILE] NAME KEY": takes KEY from the last JSON line of
// standard output and sets $NAME to it; -o writes it to a file as well.
func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	file := ""
	if len(args) > 2 && args[0] == "-o" {
		file, args = args[1], args[2:]
	}
	if neg || len(args) != 2 {
		ts.Fatalf("usage: field [-o FILE] NAME KEY")
	}
	lines := jsonLines(ts)
	if len(lines) == 0 {
		ts.Fatalf("standard output has no JSON line")
	}
	value, ok := lines[len(lines)-1][args[1]]
	if !ok {
		ts.Fatalf("the last line has no %q: %v", args[1], lines[len(lines)-1])
	}
	ts.Setenv(args[0], text(value))
	if file != "" {
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text(value)+"\n"), 0o600))
	}
}

// cmdLine is "[!] line [-count=N] KEY=VALUE…": some JSON line of standard output
// (or none, or exactly N) has all the values. KEY=~PATTERN matches a regular
// expression, KEY= means absent or empty, KEY=* present and not empty.
func cmdLine(ts *testscript.TestScript, neg bool, args []string) {
	count := -1
	if len(args) > 0 && strings.HasPrefix(args[0], "-count=") {
		n, err := strconv.Atoi(strings.TrimPrefix(args[0], "-count="))
		ts.Check(err)
		count, args = n, args[1:]
	}
	if len(args) == 0 || (neg && count >= 0) {
		ts.Fatalf("usage: [!] line [-count=N] KEY=VALUE…")
	}
	lines := jsonLines(ts)
	found := 0
	for _, line := range lines {
		if hasAll(ts, line, args) {
			found++
		}
	}
	switch {
	case neg && found > 0:
		ts.Fatalf("%d lines have %q", found, args)
	case !neg && count < 0 && found == 0:
		ts.Fatalf("none of %d lines has %q", len(lines), args)
	case count >= 0 && found != count:
		ts.Fatalf("%d of %d lines have %q, want %d", found, len(lines), args, count)
	}
}

func hasAll(ts *testscript.TestScript, line map[string]any, wants []string) bool {
	for _, want := range wants {
		key, value, ok := strings.Cut(want, "=")
		if !ok {
			ts.Fatalf("%q is not KEY=VALUE", want)
		}
		got := text(line[key])
		pattern, isPattern := strings.CutPrefix(value, "~")
		switch {
		case isPattern:
			matched, err := regexp.MatchString(pattern, got)
			ts.Check(err)
			if !matched {
				return false
			}
		case value == "*":
			if got == "" {
				return false
			}
		case got != value:
			return false
		}
	}
	return true
}

// jsonLines are the lines of standard output that are JSON objects. A line that
// begins like one and is none fails the script.
func jsonLines(ts *testscript.TestScript) []map[string]any {
	var out []map[string]any
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var object map[string]any
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		if err := dec.Decode(&object); err != nil {
			ts.Fatalf("not JSON: %s (%v)", line, err)
		}
		out = append(out, object)
	}
	return out
}

// text is a JSON value as a script writes it.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	default:
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(data)
	}
}

// cmdRandom is "random FILE BYTES": a file that does not compress, the same at
// each run.
func cmdRandom(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: random FILE BYTES")
	}
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}

// cmdPhoto is "photo FILE WIDTH HEIGHT": a JPEG of so many pixels.
func cmdPhoto(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: photo FILE WIDTH HEIGHT")
	}
	width, err := strconv.Atoi(args[1])
	ts.Check(err)
	height, err := strconv.Atoi(args[2])
	ts.Check(err)
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			picture.SetRGBA(x, y, color.RGBA{R: uint8(x), G: uint8(y), B: uint8(x * y >> 6), A: 255})
		}
	}
	var out bytes.Buffer
	ts.Check(jpeg.Encode(&out, picture, nil))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), out.Bytes(), 0o600))
}

// cmdAgree is "agree CHAT PROFILE…": their histories of the chat are
// the same rows in the same order. Only what depends on who reads may differ: which
// rows are one's own, and how one calls people.
func cmdAgree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: agree CHAT PROFILE PROFILE…")
	}
	var first []string
	for _, profile := range args[1:] {
		ts.Check(ts.Exec("compax", "history", "--profile", profile, args[0], "--json"))
		var rows []string
		for _, line := range jsonLines(ts) {
			delete(line, "own")
			delete(line, "name")
			rows = append(rows, text(line))
		}
		if first == nil {
			first = rows
		}
		if len(rows) == 0 || !slices.Equal(rows, first) {
			ts.Fatalf("%s reads\n%s\n%s reads\n%s", args[1], strings.Join(first, "\n"), profile, strings.Join(rows, "\n"))
		}
	}
}
