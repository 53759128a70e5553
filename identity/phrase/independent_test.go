package phrase

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestIndependent derives the known account in a program that shares nothing
// with this package but the word list.
func TestIndependent(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: node is not installed, so the account is not derived by an independent program; install Node.js 18 or newer")
	}
	out, err := exec.Command(node, filepath.Join("testdata", "independent.mjs")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != golden {
		t.Errorf("independent %s\nhere        %s", got, golden)
	}
}
