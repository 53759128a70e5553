package scripts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// hurried is a configuration for people who say more in a minute than anybody does,
// all from one address.
const hurried = calm + `
[pow]
off = true
[buckets]
challenge = { burst = 1000000, per_hour = 1000000 }
login = { burst = 1000000, per_hour = 1000000 }
claim = { burst = 1000000, per_hour = 1000000 }
drain = { burst = 1000000, per_hour = 1000000 }
`

// configured is the path of a configuration.
func configured(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLongAbsence: Bob is away while three others talk. When he is back he reads all
// of it in the order of the others, and a listener prints each message once. Of the
// long form, which comes in several pages, he sees how far catching up is.
func TestLongAbsence(t *testing.T) {
	each := 8
	if *long {
		each = 1667
	}
	w := newWorld(t, "--config", configured(t, hurried))
	talkers := []string{"ada", "carl", "dora"}
	w.meet(append(talkers, "bob")...)

	began := time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	var ears, mouths sync.WaitGroup
	for _, name := range talkers {
		// A listener holds the profile open: the commands beside it need no login.
		ears.Go(func() { _, _ = w.client(ctx, "listen", "--profile", name, "--json") }) // it ends by being killed
		mouths.Go(func() {
			for n := range each {
				if _, err := w.client(ctx, "send", "--profile", name, w.chat, fmt.Sprintf("%s %d", name, n)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	mouths.Wait()
	cancel()
	ears.Wait()
	if t.Failed() {
		return
	}
	said := each * len(talkers)
	t.Logf("%d messages were said in %v", said, time.Since(began).Round(time.Second))

	began = time.Now()
	_, talk, err := w.talking(t.Context(), "chats", "--profile", "bob", "--progress", "--json")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("catching up took %v:\n%s", time.Since(began).Round(10*time.Millisecond), talk)
	if shown := percents(talk); *long && (len(shown) < 2 || !strings.Contains(talk, "catching up") || shown[0] == 0) {
		t.Errorf("catching up shows no progress: %q", talk)
	}

	theirs, his := w.history("ada"), w.history("bob")
	if len(his) != said {
		t.Errorf("bob reads %d of %d messages", len(his), said)
	}
	next := map[string]int{}
	for i, r := range his {
		if i >= len(theirs) || theirs[i].ID != r.ID || theirs[i].Seq != r.Seq {
			t.Fatalf("message %d of bob is not that of ada: #%d %.20q", i, r.Seq, r.Text)
		}
		var name string
		var n int
		if _, err := fmt.Sscanf(r.Text, "%s %d", &name, &n); err != nil || n != next[name] {
			t.Fatalf("%.20q comes where number %d of %s belongs", r.Text, next[name], name)
		}
		next[name]++
	}

	began = time.Now()
	heard := map[string]bool{}
	for line := range strings.Lines(w.must("listen", "--profile", "bob", "--chat", w.chat, "--count", strconv.Itoa(said), "--timeout", "10m", "--json")) {
		var r row
		w.decode(line, &r)
		if heard[r.ID] || r.Cause != "" {
			t.Errorf("bob hears #%d twice, or not what it says: %.200s", r.Seq, line)
		}
		heard[r.ID] = true
	}
	t.Logf("a listener printed %d messages in %v", len(heard), time.Since(began).Round(10*time.Millisecond))
	if len(heard) != said {
		t.Errorf("a listener prints %d of %d messages", len(heard), said)
	}
	out, err := w.client(t.Context(), "listen", "--profile", "bob", "--chat", w.chat, "--count", "1", "--timeout", "1s")
	if exitCode(err) != 3 || out != "" {
		t.Errorf("a listener who has heard everything ends with %v and prints %q", err, out)
	}
}
