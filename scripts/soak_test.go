package scripts

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
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
	w := newSoaking(t, "ada", "bob", "carl", "dora")

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
		seen := w.texts(name)
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

// soaking is a world of people whose processes are killed.
type soaking struct {
	*world
	people []string
	kills  int

	mu    sync.Mutex                 // guards the following fields
	shown map[string]map[string]bool // what each person's listeners printed
	acked []string
}

func newSoaking(t *testing.T, people ...string) *soaking {
	t.Helper()
	w := &soaking{world: newWorld(t), people: people, shown: map[string]map[string]bool{}}
	w.meet(people...)
	return w
}

// talk sends numbered messages until ctx ends, and notes which were
// acknowledged. A command that was killed, or that found the server gone,
// promises nothing; any other failure ends the test.
func (w *soaking) talk(ctx context.Context, name string, choices *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		text := fmt.Sprintf("%s %d %s", name, n, strings.Repeat("x", choices.IntN(2000)))
		_, err := w.client(context.WithoutCancel(ctx), "send", "--profile", name, w.chat, text, "--json")
		switch exitCode(err) {
		case 0:
			w.mu.Lock()
			w.acked = append(w.acked, text)
			w.mu.Unlock()
		case -1, 3:
		default:
			w.t.Error(err)
			return
		}
	}
}

// listen keeps a listener running; each is killed sooner or later. What all of them
// printed together holds no row twice that does not say so.
func (w *soaking) listen(ctx context.Context, name string) {
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
func (w *soaking) print(name, out string, shown map[string]bool) {
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
func (w *soaking) killAtRandom(ctx context.Context, choices *rand.Rand) {
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
			w.restart()
			continue
		}
		w.world.mu.Lock()
		if n := len(w.running); n > 0 {
			at := choices.IntN(n)
			for cmd := range w.running {
				if at == 0 {
					_ = cmd.Process.Kill() // it may have ended by itself
				}
				at--
			}
		}
		w.world.mu.Unlock()
	}
}

// catchUp has a listener print what those that were killed did not. A slow
// machine may need several for it.
func (w *soaking) catchUp(name string, acked []string) {
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

func (w *soaking) acknowledged() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.acked)
}

// texts is how often a person's history shows each text.
func (w *soaking) texts(name string) map[string]int {
	seen := map[string]int{}
	for _, r := range w.history(name) {
		if r.Kind == "text" {
			seen[r.Text]++
		}
	}
	if len(seen) == 0 {
		w.t.Errorf("%s has no history", name)
	}
	return seen
}
