// Command vectors runs the tests of the official RFC 9420 vectors and prints, for
// each file and suite, how many cases it holds and how many passed, by package.
// It fails when a package that runs a file leaves out a case of it, or when no
// package runs a file.
//
// The tests say which case they run through internal/testdata.Ran. What a file
// holds is counted here, from the file itself, without their code.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	dir := flag.String("dir", "../shared/mls-vectors", "folder of the vectors")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: vectors [-dir FOLDER] PACKAGE…")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	held, err := count(*dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(2)
	}
	ran := map[string]tally{}
	for _, pkg := range flag.Args() {
		t, err := runTests(pkg)
		if err != nil {
			fmt.Fprintf(os.Stderr, "vectors: %s: %v\n", pkg, err)
			os.Exit(1)
		}
		if len(t) > 0 {
			ran[pkg] = t
		}
	}
	if !report(os.Stdout, held, ran) {
		os.Exit(1)
	}
}

// key is one row: a file, and a suite or 0.
type key struct {
	file  string
	suite int
}

// tally counts cases.
type tally map[key]int

// count reads what the files in dir hold.
func count(dir string) (tally, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no vectors in %s: see CONTRIBUTING.md for where they come from", dir)
	}
	out := tally{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var cases []struct {
			Suite int `json:"cipher_suite"`
		}
		if err := json.Unmarshal(data, &cases); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, c := range cases {
			out[key{filepath.Base(path), c.Suite}]++
		}
	}
	return out, nil
}

// runTests runs the vector tests of one package and counts the cases that passed.
func runTests(pkg string) (tally, error) {
	dir, err := os.MkdirTemp("", "vectors")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	log := filepath.Join(dir, "log")
	cmd := exec.Command("go", "test", "-count=1", "-run", "^TestVectors", pkg)
	cmd.Env = append(os.Environ(), "COMPAX_VECTORS_LOG="+log, "CI=true")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out.Bytes())
	}
	data, err := os.ReadFile(log)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return parseLog(string(data))
}

func parseLog(text string) (tally, error) {
	out := tally{}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 4 {
			return nil, fmt.Errorf("not a line of the log: %q", line)
		}
		suite, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("not a line of the log: %q", line)
		}
		if fields[3] == "passed" {
			out[key{fields[0], suite}]++
		}
	}
	return out, nil
}

// report writes the table and says whether everything held was run, and passed.
func report(w io.Writer, held tally, ran map[string]tally) bool {
	ok := true
	total, passed := 0, 0
	rows := slices.SortedFunc(maps.Keys(held), func(a, b key) int {
		if c := strings.Compare(a.file, b.file); c != 0 {
			return c
		}
		return a.suite - b.suite
	})
	for _, row := range rows {
		var by []string
		least := -1
		for _, pkg := range slices.Sorted(maps.Keys(ran)) {
			if !runs(ran[pkg], row.file) {
				continue
			}
			n := ran[pkg][row]
			by = append(by, fmt.Sprintf("%s %d", pkg, n))
			if least < 0 || n < least {
				least = n
			}
		}
		mark := ""
		if least != held[row] {
			ok, mark = false, "  <- NOT ALL"
		}
		suite := "  -"
		if row.suite > 0 {
			suite = fmt.Sprintf("%3d", row.suite)
		}
		fmt.Fprintf(w, "%-36s suite %s  %4d cases  passed: %s%s\n", row.file, suite, held[row], strings.Join(by, ", "), mark)
		total += held[row]
		passed += max(0, min(least, held[row]))
	}
	for _, pkg := range slices.Sorted(maps.Keys(ran)) {
		for row, n := range ran[pkg] {
			if held[row] == 0 {
				ok = false
				fmt.Fprintf(w, "%s reports %d cases of %s suite %d, which the file does not hold\n", pkg, n, row.file, row.suite)
			}
		}
	}
	fmt.Fprintf(w, "%d cases, %d passed\n", total, passed)
	return ok
}

// runs reports whether t has a case of file.
func runs(t tally, file string) bool {
	for row := range t {
		if row.file == file {
			return true
		}
	}
	return false
}
