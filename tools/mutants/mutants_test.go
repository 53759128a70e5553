package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const sample = `package sample

import "errors"

var errBad = errors.New("bad")

// Tested and untested checks side by side.
func Parse(b []byte) (int, error) {
	if len(b) < 2 || b[0] == 7 {
		return 0, errBad
	}
	switch {
	case b[1] == 9:
		return 0, errBad
	case b[1] == 8:
		return 1, nil
	}
	if err := checkSum(b); err != nil {
		return 0, err
	}
	if err := parsed(b); err != nil && !errors.Is(err, errBad) {
		return 0, err
	}
	// mutants: equivalent: a byte is never above 255
	if int(b[0]) > 255 {
		return 0, errBad
	}
	return int(b[0]), nil
}

func parsed(b []byte) error { return nil }

func checkSum(b []byte) error {
	if b[0]+b[1] == 0 {
		return errBad
	}
	return nil
}

func Odd(b byte) bool {
	if b%2 == 0 {
		return false
	}
	return true
}
`

const sampleTest = `package sample

import "testing"

func TestShort(t *testing.T) {
	if _, err := Parse([]byte{1}); err == nil {
		t.Error("short accepted")
	}
}

func TestSeven(t *testing.T) {
	if _, err := Parse([]byte{7, 1}); err == nil {
		t.Error("7 accepted")
	}
}

func TestSum(t *testing.T) {
	if _, err := Parse([]byte{0, 0}); err == nil {
		t.Error("sum accepted")
	}
	if n, err := Parse([]byte{3, 1}); n != 3 || err != nil {
		t.Error(n, err)
	}
}
`

func TestFindChecks(t *testing.T) {
	found, err := findChecks("sample", "sample.go", []byte(sample), false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range found {
		got = append(got, c.function+": "+c.source)
	}
	want := []string{
		"Parse: len(b) < 2", "Parse: b[0] == 7", "Parse: b[1] == 9", "Parse: err != nil",
		"Parse: int(b[0]) > 255", "checkSum: b[0]+b[1] == 0", "Odd: b%2 == 0",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if found[4].equivalent == "" {
		t.Error("the equivalent check is not marked")
	}
}

// module writes a module with the sample, its tests and more files.
func module(t *testing.T, more map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	files := map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.26\n", "sample/sample.go": sample, "sample/sample_test.go": sampleTest,
	}
	maps.Copy(files, more)
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRunTellsNoticedFromSurviving(t *testing.T) {
	root := module(t, nil)
	opt := options{root: root, report: "out/table.txt", short: true, timeout: time.Minute, workers: 2}
	survivors, err := run(context.Background(), opt, []string{"sample"})
	if err != nil {
		t.Fatal(err)
	}
	if survivors != 2 { // b[1] == 9 is reached and untested, Odd is not reached
		t.Errorf("%d survivors, want 2", survivors)
	}
	table, err := os.ReadFile(filepath.Join(root, "out/table.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"len(b) < 2\n\tnoticed by sample.TestShort",
		"b[0] == 7\n\tnoticed by sample.TestSeven\n",
		"b[1] == 9\n\tSURVIVED: reached",
		"err != nil\n\tnoticed by sample.TestSum\n",
		"int(b[0]) > 255\n\tequivalent: a byte is never above 255\n",
		"b[0]+b[1] == 0\n\tnoticed by sample.TestSum\n",
		"b%2 == 0\n\tSURVIVED: no test reaches it",
	} {
		if !strings.Contains(string(table), want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	if source, err := os.ReadFile(filepath.Join(root, "sample/sample.go")); err != nil || string(source) != sample {
		t.Errorf("the source was touched (%v)", err)
	}
}

// TestListIsHeldToTheSources: what it lacks and what it has too much fails a run, and so
// does a check that a test notices though it is said to be equivalent.
func TestListIsHeldToTheSources(t *testing.T) {
	root := module(t, nil)
	opt := options{root: root, report: "out/table.txt", list: "list.md", short: true, timeout: time.Minute, workers: 2, write: true}
	if _, err := run(t.Context(), opt, []string{"sample"}); err != nil {
		t.Fatal(err)
	}
	opt.write = false
	page, err := os.ReadFile(filepath.Join(root, "list.md"))
	if err != nil {
		t.Fatal(err)
	}
	const entry = "- `sample/sample.go`, `Parse`: `int(b[0]) > 255`: a byte is never above 255\n"
	if !strings.HasSuffix(string(page), entry) {
		t.Fatalf("the list is\n%s", page)
	}
	for name, c := range map[string]struct{ page, want string }{
		"as written":         {string(page), ""},
		"of another package": {string(page) + "- `other/x.go`, `F`: `true`: why\n", ""},
		"empty":              {"", "does not list"},
		"another reason":     {strings.Replace(string(page), "never", "seldom", 1), "does not list"},
		"one more":           {string(page) + strings.Replace(entry, "255", "256", 1), "lists what is not there"},
	} {
		if err := os.WriteFile(filepath.Join(root, "list.md"), []byte(c.page), 0o600); err != nil {
			t.Fatal(err)
		}
		err := compareList(opt, []string{"sample"}, mustFind(t))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "list.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), opt, []string{"sample"}); err == nil || !strings.Contains(err.Error(), "does not list") {
		t.Errorf("a run with an empty list: %v", err)
	}

	lying := strings.Replace(sample, "\tif len(b) < 2", "\t// mutants: equivalent: nobody is that short\n\tif len(b) < 2", 1)
	root = module(t, map[string]string{"sample/sample.go": lying})
	opt.root = root
	survivors, err := run(t.Context(), opt, []string{"sample"})
	if survivors != 4 || err != nil { // two that survive, and both operands that the reason stands before
		t.Errorf("%d faults, want 4; %v", survivors, err)
	}
	table, err := os.ReadFile(filepath.Join(root, "out/table.txt"))
	if err != nil || !strings.Contains(string(table), "len(b) < 2\n\tNOT EQUIVALENT: noticed by sample.TestShort") {
		t.Errorf("%v, the table is\n%s", err, table)
	}
}

// TestTooSlow: only where nothing but the time ended the run.
func TestTooSlow(t *testing.T) {
	for _, c := range []struct {
		killers []string
		want    bool
	}{{nil, false}, {[]string{"mls: timeout"}, true}, {[]string{"mls.TestX", "mls: timeout"}, false}, {[]string{"mls: crash"}, false}} {
		if got := tooSlow(c.killers); got != c.want {
			t.Errorf("%q: %v", c.killers, got)
		}
	}
}

func mustFind(t *testing.T) []check {
	t.Helper()
	checks, err := findChecks("sample", "sample.go", []byte(sample), false)
	if err != nil {
		t.Fatal(err)
	}
	return checks
}

func TestRunGoesOnWithoutAPackageThatFails(t *testing.T) {
	root := module(t, map[string]string{
		"user/user_test.go": "package user\n\nimport (\n\t\"testing\"\n\n\t\"example.org/m/sample\"\n)\n\nfunc TestBroken(t *testing.T) {\n\tt.Error(sample.Odd(1))\n}\n",
	})
	opt := options{root: root, report: "out/table.txt", short: true, timeout: time.Minute, workers: 2}
	survivors, err := run(context.Background(), opt, []string{"sample"})
	if survivors != 2 || !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "user.TestBroken") {
		t.Errorf("%d survivors, %v; want 2 and the package that fails", survivors, err)
	}
	if _, err := os.Stat(filepath.Join(root, "out/table.txt")); err != nil {
		t.Errorf("no table: %v", err)
	}
}

// TestCutRunLeavesItsTable: what is known when a run is ended is written down, and
// nothing that was not run to its end counts as noticed.
func TestCutRunLeavesItsTable(t *testing.T) {
	root := module(t, map[string]string{
		"user/user_test.go": `package user

import (
	"os"
	"testing"

	"example.org/m/sample"
)

func TestBlocks(t *testing.T) {
	sample.Odd(1)
	if os.Getenv("MUTANT") == "" {
		return
	}
	if err := os.WriteFile(os.Getenv("STARTED"), []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	<-t.Context().Done()
}
`,
	})
	started := filepath.Join(t.TempDir(), "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STARTED", started)
	pipe, err := os.OpenFile(started, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	go func() {
		if _, err := pipe.Read(make([]byte, 1)); err == nil {
			interrupt()
		}
	}()
	opt := options{root: root, report: "out/table.txt", short: true, timeout: time.Minute, workers: 1}
	survivors, err := run(ctx, opt, []string{"sample"})
	if survivors != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d survivors, %v; want none yet and the interruption", survivors, err)
	}
	table, err := os.ReadFile(filepath.Join(root, "out/table.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"len(b) < 2\n\tnoticed by sample.TestShort",
		"b[1] == 9\n\tnot determined: survived so far, without the tests of user\n",
		"int(b[0]) > 255\n\tequivalent",
		"b%2 == 0\n\tnot determined: its run was cut short\n",
	} {
		if !strings.Contains(string(table), want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
}
