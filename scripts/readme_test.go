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
	url := address.FindString(makeUp(t, t.TempDir()))

	said := asTyped(t, strings.ReplaceAll(conversation, shown, url), t.TempDir())
	for _, line := range []string{"Tea at five? 🫖", "Yes, and cake."} {
		if !strings.Contains(said, line) {
			t.Errorf("nobody read %q:\n%s", line, said)
		}
	}
}

// TestStartSaysHowToBegin runs what a first start prints, word for word, in another
// shell in the same folder: nothing of it needs a word of explanation.
func TestStartSaysHowToBegin(t *testing.T) {
	home := t.TempDir()
	_, steps, _ := strings.Cut(makeUp(t, home), "In another terminal, ")
	_, steps, found := strings.Cut(steps, ":\n\n")
	if !found {
		t.Fatalf("the start does not say how to begin: %s", steps)
	}
	if said := asTyped(t, steps, home); !strings.Contains(said, "request") {
		t.Errorf("after\n%s\nbob is not asked whether he accepts:\n%s", steps, said)
	}
}

// asTyped runs commands in a shell in the repository's folder, with profiles in
// home, and returns what they print.
func asTyped(t *testing.T, commands, home string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "COMPAX_HOME="+home)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

// makeUp runs "make up" on another port and another folder until the test ends,
// with profiles in home, and returns what it says until it is up.
func makeUp(t *testing.T, home string) string {
	t.Helper()
	cmd := exec.Command("make", "--no-print-directory", "up", "FLAGS=--listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 --dir "+t.TempDir())
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "COMPAX_HOME="+home, "CHAT_SERVER_CONFIG="+filepath.Join(binary, calmName))
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
		// The last it says is how to begin: a paragraph that ends with an empty line.
		if _, steps, found := strings.Cut(said.String(), "In another terminal"); found && strings.Count(steps, "\n\n") == 2 {
			return said.String()
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
