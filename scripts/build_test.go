package scripts

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuildShowsItsProgress: what a long build says is seen while it builds. The go
// command of this test says something and goes on only when it was read.
func TestBuildShowsItsProgress(t *testing.T) {
	dir := t.TempDir()
	const slow = "#!/bin/bash\nseq -f 'a/b_%.0f' 50\nread -r seen\necho '# broken'\nexit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(slow), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "../tools/build.sh", filepath.Join(dir, "out"), "./x")
	cmd.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	seen, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	says, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(says); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "compiled 50 packages") {
			_ = seen.Close() // a second time, at the end, it is closed
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 3 || !strings.Contains(said.String(), "# broken") {
		t.Errorf("a build that fails ends with %v and says\n%s", err, said.String())
	}
}
