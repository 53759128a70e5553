package scripts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/askucher/compax-core/internal/testport"
)

// long asks for the long forms: a file of 1 GiB, 5,000 messages of absence.
var long = flag.Bool("long", false, "a file of 1 GiB and an absence of 5,000 messages in place of the short forms")

// world is one server, which comes back at the same address, and people with their
// profiles, for tests that kill processes in the middle of their work.
type world struct {
	t      *testing.T
	dir    string
	args   []string // of the server
	url    string   // where people find it
	server *server
	chat   string // of everybody

	mu      sync.Mutex         // guards running
	running map[*exec.Cmd]bool // clients
}

// newWorld starts a server with more arguments than startServer gives it.
func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), args: args, running: map[*exec.Cmd]bool{}}
	listen, err := testport.Address()
	if err != nil {
		t.Fatal(err)
	}
	w.start(listen)
	w.url = "http://" + w.server.addr
	t.Cleanup(func() {
		w.server.kill()
		if t.Failed() {
			t.Logf("the server said:\n%s", w.server.output())
		}
	})
	return w
}

// meet makes accounts and a room with all of them.
func (w *world) meet(people ...string) {
	w.t.Helper()
	for _, name := range people {
		w.must("account", "new", "--profile", name, "--server", w.url, "--name", name, "--username", name)
	}
	var made struct{ Chat string }
	w.decode(w.must("room", "new", "--profile", people[0], "--title", "Everybody", "--json"), &made)
	w.chat = made.Chat
	for _, name := range people[1:] {
		w.must("room", "add", "--profile", people[0], w.chat, "@"+name)
		w.must("room", "accept", "--profile", name, w.chat)
	}
}

func (w *world) start(listen string) {
	w.t.Helper()
	s, err := startServer(filepath.Join(w.dir, "home"), listen, os.Environ(), w.args...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = s
}

// restart is kill -9 of the server, and another one in its place.
func (w *world) restart() {
	w.t.Helper()
	addr := w.server.addr
	w.server.kill()
	w.start(addr)
}

// command is a compax process that was not started.
func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(binary, "compax"), args...)
	cmd.Env = append(os.Environ(), "COMPAX_HOME="+filepath.Join(w.dir, "profiles"))
	cmd.WaitDelay = startup
	return cmd
}

// client runs a command, which others may end meanwhile: it is in running.
func (w *world) client(ctx context.Context, args ...string) (string, error) {
	out, _, err := w.talking(ctx, args...)
	return out, err
}

// talking is client with what the command said on standard error.
func (w *world) talking(ctx context.Context, args ...string) (out, said string, err error) {
	cmd := w.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	w.mu.Lock()
	err = cmd.Start()
	if err == nil {
		w.running[cmd] = true
	}
	w.mu.Unlock()
	if err == nil {
		err = cmd.Wait()
	}
	w.mu.Lock()
	delete(w.running, cmd)
	w.mu.Unlock()
	if err != nil {
		err = fmt.Errorf("compax %s: %w\n%s%s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String(), stderr.String(), err
}

// must runs a command that nobody kills.
func (w *world) must(args ...string) string {
	w.t.Helper()
	out, err := w.client(w.t.Context(), args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) decode(out string, into any) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(out), into); err != nil {
		w.t.Fatalf("%v: %q", err, out)
	}
}

// exitCode is how a command ended: 0 well, -1 when it was killed.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -2 // it could not be started
}

// row is what tests read of a line that listen and history print.
type row struct {
	Seq       uint64
	ID        string
	From      string
	Kind      string
	Text      string
	Cause     string
	ReplyToID string `json:"reply_to_id"`
	TargetID  string `json:"target_id"`
	Edited    bool
	Again     bool
	File      *struct {
		Name string
		Size int64
	}
	Reactions []struct {
		Emoji string
		From  []string
	}
}

// history is what stands in a person's chat. A row with a cause is one that cannot
// be shown, which fails the test.
func (w *world) history(name string, args ...string) []row {
	w.t.Helper()
	var rows []row
	for line := range strings.Lines(w.must(append([]string{"history", "--profile", name, w.chat, "--json"}, args...)...)) {
		var r row
		w.decode(line, &r)
		if r.Cause != "" {
			w.t.Errorf("%s has a gap: %s", name, line)
		}
		rows = append(rows, r)
	}
	return rows
}

var share = regexp.MustCompile(`(?m)^.*\s(\d+)%.*$`)

// percents are the shares that a progress on standard error showed.
func percents(said string) (out []int) {
	for _, m := range share.FindAllStringSubmatch(said, -1) {
		n, _ := strconv.Atoi(m[1]) // they are digits
		out = append(out, n)
	}
	return out
}
