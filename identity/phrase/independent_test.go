package phrase

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
)

// TestIndependent derives the known account in a program that shares nothing
// with this package but the word list.
func TestIndependent(t *testing.T) {
	node := testdata.Program(t, "node", "install Node.js 18 or newer")
	out, err := exec.Command(node, filepath.Join("testdata", "independent.mjs")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got != golden {
		t.Errorf("independent %s\nhere        %s", got, golden)
	}
}
