package scripts

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReadme runs what the README shows: make up, and then the first
// conversation, word for word but for the port.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	conversation := block(t, string(readme), "## A first conversation")
	const shown = "http://127.0.0.1:8080"
	if !strings.Contains(conversation, shown) {
		t.Fatalf("the conversation does not name %s", shown)
	}
	url := makeUp(t)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", strings.ReplaceAll(conversation, shown, url))
	cmd.Dir, err = filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "COMPAX_HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	for _, said := range []string{"Tea at five? 🫖", "Yes, and cake."} {
		if !strings.Contains(stdout.String(), said) {
			t.Errorf("nobody read %q:\n%s", said, stdout.String())
		}
	}
}

// makeUp runs "make up" on another port and another folder until the test ends,
// and returns where it listens.
func makeUp(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("make", "--no-print-directory", "up", "FLAGS=--listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 --dir "+t.TempDir())
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "CHAT_SERVER_CONFIG="+filepath.Join(binary, calmName))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		_ = cmd.Wait() // SIGTERM is no clean end for make
	})
	var said bytes.Buffer
	buf := make([]byte, 4096)
	for {
		n, err := out.Read(buf)
		said.Write(buf[:n])
		if m := address.FindString(said.String()); m != "" {
			return m
		}
		if err != nil {
			t.Fatalf("make up ended:\n%s", said.String())
		}
	}
}

// block returns the first fenced block after heading.
func block(t *testing.T, text, heading string) string {
	t.Helper()
	_, after, found := strings.Cut(text, "\n"+heading+"\n")
	if !found {
		t.Fatalf("README has no %q", heading)
	}
	parts := strings.SplitN(after, "```", 3)
	if len(parts) < 3 {
		t.Fatalf("no block after %q", heading)
	}
	_, code, _ := strings.Cut(parts[1], "\n")
	return code
}
