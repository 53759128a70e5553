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
