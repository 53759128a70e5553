package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const faults = `package p

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
)

var errOne = errors.New("one")

type kept struct{ ctx context.Context }

func dropped()                 { os.Remove("x") }
func compared(err error) bool  { return err == errOne }
func flattened(err error) error { return fmt.Errorf("doing: %v", err) }
func nowhere() { _, _ = http.Get("http://127.0.0.1") }
func deferred(f *os.File) { defer f.Close() }
`

// TestPlantedFaultsAreFound runs the tool the way check.sh does.
func TestPlantedFaultsAreFound(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "lint")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, content := range map[string]string{"go.mod": "module example.org/p\n\ngo 1.26\n", "p.go": faults, "p_test.go": "package p\n\nfunc again() { dropped2() }\n\nfunc dropped2() { compared(flattened(nil)) }\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "vet", "-vettool="+tool, ".")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("nothing found:\n%s", out)
	}
	lines := strings.Split(faults, "\n")
	for _, fault := range []string{"type kept", "func dropped", "func compared", "func flattened", "func nowhere"} {
		found := false
		for i, line := range lines {
			if strings.HasPrefix(line, fault) {
				found = strings.Contains(string(out), "p.go:"+strconv.Itoa(i+1)+":")
			}
		}
		if !found {
			t.Errorf("the fault in %q is not found:\n%s", fault, out)
		}
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "func deferred") && strings.Contains(string(out), "p.go:"+strconv.Itoa(i+1)+":") {
			t.Errorf("a deferred Close counts as a fault:\n%s", out)
		}
	}
	if strings.Contains(string(out), "_test.go") {
		t.Errorf("tests are judged:\n%s", out)
	}
}
