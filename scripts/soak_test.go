package scripts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askucher/compax-core/internal/testport"
)

var (
	soak     = flag.Duration("soak", 15*time.Second, "how long TestSoak kills processes")
	soakSeed = flag.Uint64("soak.seed", 0, "seed of TestSoak's choices; 0 is a new one")
)

// TestSoak is kill -9 at random: of the server, of clients that listen and of
// clients that send, while four people talk. At the end everybody's history
// holds each acknowledged message once, no message twice, and no gap.
func TestSoak(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again with: go test ./scripts -run TestSoak -soak %v -soak.seed %d", *soak, seed)
	w := newWorld(t, "ada", "bob", "carl", "dora")

	ctx, cancel := context.WithTimeout(t.Context(), *soak)
	defer cancel()
	var wg sync.WaitGroup
	for i, name := range w.people {
		choices := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() { w.talk(ctx, name, choices) })
		wg.Go(func() { w.listen(ctx, name) })
	}
	w.killAtRandom(ctx, rand.New(rand.NewPCG(seed, 99)))
	wg.Wait()

	acked := w.acknowledged()
	t.Logf("%d messages acknowledged, %d kills", len(acked), w.kills)
	if len(acked) == 0 || w.kills == 0 {
		t.Fatal("nothing happened")
	}
	for _, name := range w.people {
		w.catchUp(name, acked)
		seen := w.history(name)
		for _, text := range acked {
			if seen[text] == 0 {
				t.Errorf("%s lost %.40q, which was acknowledged", name, text)
			}
		}
		for text, times := range seen {
			if times > 1 {
				t.Errorf("%s sees %.40q %d times", name, text, times)
			}
		}
	}
}

// world is one server and a room of people whose processes may be killed.
type world struct {
	t      *testing.T
	dir    string
	people []string
	chat   string
	server *server
	kills  int

	mu      sync.Mutex                 // guards the following fields
	shown   map[string]map[string]bool // what each person's listeners printed
	acked   []string
	running map[*exec.Cmd]bool // clients
}

func newWorld(t *testing.T, people ...string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), people: people, running: map[*exec.Cmd]bool{}, shown: map[string]map[string]bool{}}
	listen, err := testport.Address()
	if err != nil {
		t.Fatal(err)
	}
	w.start(listen)
	t.Cleanup(func() {
		w.server.kill()
		if t.Failed() {
			t.Logf("the server said:\n%s", w.server.output())
		}
	})
	for _, name := range people {
		w.must("account", "new", "--profile", name, "--server", "http://"+w.server.addr, "--name", name, "--username", name)
	}
	var made struct{ Chat string }
	w.decode(w.must("room", "new", "--profile", people[0], "--title", "Soak", "--json"), &made)
	w.chat = made.Chat
	for _, name := range people[1:] {
		w.must("room", "add", "--profile", people[0], w.chat, "@"+name)
		w.must("room", "accept", "--profile", name, w.chat)
	}
	return w
}

func (w *world) start(listen string) {
	s, err := startServer(filepath.Join(w.dir, "home"), listen, os.Environ())
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = s
}

// client is a compax process that killAtRandom may end.
func (w *world) client(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(binary, "compax"), args...)
	cmd.Env = append(os.Environ(), "COMPAX_HOME="+filepath.Join(w.dir, "profiles"))
	cmd.WaitDelay = startup
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	w.mu.Lock()
	err := cmd.Start()
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
		err = fmt.Errorf("compax %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.String(), err
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

// talk sends numbered messages until ctx ends, and notes which were
// acknowledged. A command that was killed, or that found the server gone,
// promises nothing; any other failure ends the test.
func (w *world) talk(ctx context.Context, name string, choices *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		text := fmt.Sprintf("%s %d %s", name, n, strings.Repeat("x", choices.IntN(2000)))
		_, err := w.client(context.WithoutCancel(ctx), "send", "--profile", name, w.chat, text, "--json")
		var exit *exec.ExitError
		switch {
		case err == nil:
			w.mu.Lock()
			w.acked = append(w.acked, text)
			w.mu.Unlock()
		case errors.As(err, &exit) && (exit.ExitCode() == -1 || exit.ExitCode() == 3):
		default:
			w.t.Error(err)
			return
		}
	}
}

// listen keeps a listener running; each is killed sooner or later. What all of them
// printed together holds no row twice that does not say so.
func (w *world) listen(ctx context.Context, name string) {
	shown := map[string]bool{}
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.shown[name] = shown
	}()
	for ctx.Err() == nil {
		out, _ := w.client(ctx, "listen", "--profile", name, "--chat", w.chat, "--json") // it ends by being killed
		w.print(name, out, shown)
	}
}

// print notes what a listener printed.
func (w *world) print(name, out string, shown map[string]bool) {
	for line := range strings.Lines(out) {
		var row struct {
			ID, Kind, Text string
			Again          bool
		}
		if json.Unmarshal([]byte(line), &row) != nil || row.Kind != "text" {
			continue // the last line may be cut
		}
		if shown[row.Text] && !row.Again {
			w.t.Errorf("%s was shown %s twice", name, row.ID)
		}
		shown[row.Text] = true
	}
}

// killAtRandom ends the server, or one of the clients, every now and then.
func (w *world) killAtRandom(ctx context.Context, choices *rand.Rand) {
	for {
		timer := time.NewTimer(time.Duration(100+choices.IntN(1400)) * time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		w.kills++
		if choices.IntN(3) == 0 {
			addr := w.server.addr
			w.server.kill()
			w.start(addr)
			continue
		}
		w.mu.Lock()
		if n := len(w.running); n > 0 {
			at := choices.IntN(n)
			for cmd := range w.running {
				if at == 0 {
					_ = cmd.Process.Kill() // it may have ended by itself
				}
				at--
			}
		}
		w.mu.Unlock()
	}
}

// catchUp has a listener print what those that were killed did not. A slow
// machine may need several for it.
func (w *world) catchUp(name string, acked []string) {
	var missing []string
	for end := time.Now().Add(startup); ; {
		w.print(name, w.must("listen", "--profile", name, "--chat", w.chat, "--json", "--timeout", "3s"), w.shown[name])
		missing = slices.DeleteFunc(slices.Clone(acked), func(text string) bool {
			return w.shown[name][text] || strings.HasPrefix(text, name+" ")
		})
		if len(missing) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, text := range missing {
		w.t.Errorf("%s was never shown %.40q", name, text)
	}
}

func (w *world) acknowledged() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.acked)
}

// history is how often a person's history shows each text.
func (w *world) history(name string) map[string]int {
	seen := map[string]int{}
	for line := range strings.Lines(w.must("history", "--profile", name, w.chat, "--json")) {
		var entry struct{ Kind, Text, Cause string }
		w.decode(line, &entry)
		if entry.Cause != "" {
			w.t.Errorf("%s has a gap: %s", name, line)
		}
		if entry.Kind == "text" {
			seen[entry.Text]++
		}
	}
	if len(seen) == 0 {
		w.t.Errorf("%s has no history", name)
	}
	return seen
}
