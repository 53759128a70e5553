package scripts

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	soak     = flag.Duration("soak", 10*time.Second, "how long TestSoak kills processes")
	soakSeed = flag.Uint64("soak.seed", 0, "seed of TestSoak's choices; 0 is a new one")
)

// TestSoak is kill -9 at random of the server and of clients, while people say
// things, reply, edit, react, take back, send files and save them, while others are
// taken out and come back, and while further devices are linked and revoked. At the
// end nothing that was acknowledged is lost, nothing is shown twice, and who was out
// has read nothing of that time. soak_verdict_test.go holds that.
func TestSoak(t *testing.T) {
	seed := *soakSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again with: go test ./scripts -run TestSoak -soak %v -soak.seed %d", *soak, seed)
	w := &soaking{world: newWorld(t, "--config", configured(t, hurried)), seed: seed, done: map[string]int{}}
	stayers, floaters := []string{"ada", "bob", "carl"}, []string{"eve"}
	if *soak >= time.Minute {
		stayers, floaters = append(stayers, "dora"), append(floaters, "fred")
	}
	w.meet(slices.Concat(stayers, floaters)...)

	ctx, cancel := context.WithTimeout(t.Context(), *soak)
	defer cancel()
	for _, name := range stayers {
		r := w.reader(name)
		r.stays = true
		w.actors.Go(func() { w.live(ctx, r, w.choices(name)) })
		w.actors.Go(func() { w.listen(ctx, r) })
	}
	for _, name := range floaters {
		r := w.reader(name)
		r.tolerates = []string{notIn}
		w.actors.Go(func() { w.chatter(ctx, r, w.choices(name)) })
		w.actors.Go(func() { w.listen(ctx, r) })
		w.actors.Go(func() { w.comeAndGo(ctx, r, w.choices("out "+name)) })
	}
	w.actors.Go(func() { w.linkDevices(ctx, stayers, w.choices("devices")) })
	w.killAtRandom(ctx, w.choices("kills"))
	w.actors.Wait()
	w.verdict()
}

// soaking is a world whose processes are killed.
type soaking struct {
	*world
	seed   uint64
	actors sync.WaitGroup
	kills  int

	all     sync.Mutex // guards what follows
	readers []*reader
	acked   []*said
	done    map[string]int // how often each thing was acknowledged
}

// choices is a new source of an actor's choices.
func (w *soaking) choices(actor string) *rand.Rand {
	h := w.seed
	for _, c := range []byte(actor) {
		h = h*1099511628211 ^ uint64(c) // FNV
	}
	return rand.New(rand.NewPCG(w.seed, h))
}

// reader is a profile, with when it is in the chat and when it is out.
type reader struct {
	name      string
	stays     bool     // in from the beginning to the end
	tolerates []string // how it may be refused to say something

	// of its only listener at a time
	shown map[string]bool // rows that were printed, by kind and id

	spans []span // guarded by soaking.all
}

// span is a time in which a profile surely was in the chat, or surely was out.
// A zero end is the end of all.
type span struct {
	in       bool
	from, to time.Time
}

func (s span) holds(x *said) bool {
	return x.began.After(s.from) && (s.to.IsZero() || x.ended.Before(s.to))
}

// reader is in the chat from now on.
func (w *soaking) reader(name string) *reader {
	w.all.Lock()
	defer w.all.Unlock()
	r := &reader{name: name, shown: map[string]bool{}, spans: []span{{in: true, from: time.Now()}}}
	w.readers = append(w.readers, r)
	return r
}

// turns begins a span and ends the one before, if there is one, at ended.
func (w *soaking) turns(r *reader, in bool, ended time.Time) {
	w.all.Lock()
	defer w.all.Unlock()
	if n := len(r.spans); n > 0 {
		r.spans[n-1].to = ended
	}
	r.spans = append(r.spans, span{in: in, from: time.Now()})
}

// stops ends the span of a reader of whom it is not known where it is.
func (w *soaking) stops(r *reader, ended time.Time) {
	w.all.Lock()
	defer w.all.Unlock()
	r.spans[len(r.spans)-1].to = ended
}

// forgets promises nothing of what a reader has of the time until now.
func (w *soaking) forgets(r *reader) {
	w.all.Lock()
	defer w.all.Unlock()
	r.spans = nil
}

// said is something that was acknowledged.
type said struct {
	by, kind     string
	id           string
	seq          uint64
	began, ended time.Time // of the command
	target       *said
	file         string // path of what was sent

	// what it may say at the end: what it said when it was acknowledged, and edits
	// of which it is not known. Guarded by soaking.all.
	texts   []string
	touched map[string]bool // who may have reacted
	reacted []string        // emoji of acknowledged reactions
	doomed  bool            // it is there to be taken back: nobody refers to it
	gone    bool            // that was acknowledged
}

// outcome is how a command ended: "" acknowledged, "?" not known (it was killed, or
// the server was), else the code of a refusal.
func outcome(out string, err error) string {
	switch exitCode(err) {
	case 0:
		return ""
	case -1, 3:
		return "?"
	}
	for line := range strings.Lines(out) {
		var refusal struct{ Code string }
		if json.Unmarshal([]byte(line), &refusal) == nil && refusal.Code != "" {
			return refusal.Code
		}
	}
	return err.Error()
}

// do runs a command that says something, and notes it when it was acknowledged.
// Refusals beside the tolerated ones fail the test.
func (w *soaking) do(x *said, tolerated []string, args ...string) bool {
	x.began = time.Now()
	out, err := w.client(w.t.Context(), append(args, "--json")...)
	switch code := outcome(out, err); {
	case code == "?" || slices.Contains(tolerated, code):
		return false
	case code != "":
		w.t.Error(err)
		return false
	}
	x.ended = time.Now()
	var sent struct {
		Seq uint64
		ID  string
	}
	w.decode(out, &sent)
	x.seq, x.id = sent.Seq, sent.ID
	w.all.Lock()
	defer w.all.Unlock()
	w.acked = append(w.acked, x)
	w.done[x.kind]++
	return true
}

// some is a message of the chat that was acknowledged, of which wanted says yes;
// nil when there is none.
func (w *soaking) some(choices *rand.Rand, wanted func(*said) bool) *said {
	w.all.Lock()
	defer w.all.Unlock()
	for range 20 {
		if len(w.acked) == 0 {
			return nil
		}
		x := w.acked[choices.IntN(len(w.acked))]
		if (x.kind == "text" || x.kind == "file") && !x.doomed && wanted(x) {
			return x
		}
	}
	return nil
}

func anything(*said) bool { return true }

// live does what people do until ctx ends.
func (w *soaking) live(ctx context.Context, r *reader, choices *rand.Rand) {
	for n := 0; ctx.Err() == nil && !w.t.Failed(); n++ {
		switch p := choices.IntN(100); {
		case p < 40:
			w.say(r, n, choices)
		case p < 52:
			w.reply(r, n, choices)
		case p < 66:
			w.edit(r, n, choices)
		case p < 80:
			w.react(r, choices)
		case p < 88:
			w.sendFile(r, n, choices)
		case p < 94:
			w.save(r, n, choices)
		default:
			w.takeBack(r, n)
		}
	}
}

// chatter only says things; who is out is told so.
func (w *soaking) chatter(ctx context.Context, r *reader, choices *rand.Rand) {
	for n := 0; ctx.Err() == nil && !w.t.Failed(); n++ {
		w.say(r, n, choices)
	}
}

// What a command says about a message that this profile has not read yet, when it is
// out, and when it was revoked.
const (
	notHere = "no_message"
	notIn   = "not_member"
	revoked = "revoked"
)

func (r *reader) text(n int, what string) string { return fmt.Sprintf("%s %d %s", r.name, n, what) }

func (w *soaking) say(r *reader, n int, choices *rand.Rand) {
	text := r.text(n, strings.Repeat("x", choices.IntN(2000)))
	w.do(&said{by: r.name, kind: "text", texts: []string{text}}, r.tolerates, "send", "--profile", r.name, w.chat, text)
}

func (w *soaking) reply(r *reader, n int, choices *rand.Rand) {
	to := w.some(choices, anything)
	if to == nil {
		return
	}
	text := r.text(n, "answers ✉️")
	w.do(&said{by: r.name, kind: "text", texts: []string{text}, target: to}, []string{notHere},
		"send", "--profile", r.name, w.chat, text, "--reply", strconv.FormatUint(to.seq, 10))
}

func (w *soaking) edit(r *reader, n int, choices *rand.Rand) {
	x := w.some(choices, func(x *said) bool { return x.by == r.name && x.kind == "text" })
	if x == nil {
		return
	}
	text := r.text(n, "changed ✍️")
	w.all.Lock()
	x.texts = append(x.texts, text)
	w.all.Unlock()
	if w.do(&said{by: r.name, kind: "edit", target: x}, nil, "edit", "--profile", r.name, w.chat, strconv.FormatUint(x.seq, 10), text) {
		w.all.Lock()
		x.texts = []string{text}
		w.all.Unlock()
	}
}

func (w *soaking) react(r *reader, choices *rand.Rand) {
	x := w.some(choices, func(x *said) bool { return !x.touched[r.name] })
	if x == nil {
		return
	}
	w.all.Lock()
	if x.touched == nil {
		x.touched = map[string]bool{}
	}
	x.touched[r.name] = true
	w.all.Unlock()
	emoji := "👍 " + r.name // of each person their own
	if w.do(&said{by: r.name, kind: "reaction", target: x}, []string{notHere}, "react", "--profile", r.name, w.chat, strconv.FormatUint(x.seq, 10), emoji) {
		w.all.Lock()
		x.reacted = append(x.reacted, emoji)
		w.all.Unlock()
	}
}

func (w *soaking) sendFile(r *reader, n int, choices *rand.Rand) {
	path := filepath.Join(w.dir, fmt.Sprintf("%s-%d.bin", r.name, n))
	content := make([]byte, 1+choices.IntN(300_000))
	for i := range content {
		content[i] = byte(choices.Uint32())
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		w.t.Error(err)
		return
	}
	text := r.text(n, "sends a file")
	w.do(&said{by: r.name, kind: "file", texts: []string{text}, file: path}, nil, "send", "--profile", r.name, w.chat, text, "--file", path)
}

// save saves a file that somebody sent: it is that file, or the command fails.
func (w *soaking) save(r *reader, n int, choices *rand.Rand) {
	if x := w.some(choices, func(x *said) bool { return x.kind == "file" }); x != nil {
		w.saved(r, x, fmt.Sprintf("%s-saved-%d", r.name, n))
	}
}

func (w *soaking) saved(r *reader, x *said, as string) bool {
	path := filepath.Join(w.dir, as)
	out, err := w.client(w.t.Context(), "get", "--profile", r.name, w.chat, strconv.FormatUint(x.seq, 10), "-o", path, "--json")
	switch code := outcome(out, err); code {
	case "?", notHere:
		return false
	case "":
	default:
		w.t.Error(err)
		return false
	}
	got, err := os.ReadFile(path)
	if err != nil {
		w.t.Error(err)
		return false
	}
	want, err := os.ReadFile(x.file)
	if err != nil || string(got) != string(want) {
		w.t.Errorf("%s saved #%d of %s, and it is another file (%v)", r.name, x.seq, x.by, err)
	}
	w.all.Lock()
	defer w.all.Unlock()
	w.done["saved"]++
	return true
}

// takeBack says something and takes it back.
func (w *soaking) takeBack(r *reader, n int) {
	text := r.text(n, "a slip")
	x := &said{by: r.name, kind: "text", texts: []string{text}, doomed: true}
	if !w.do(x, nil, "send", "--profile", r.name, w.chat, text) {
		return
	}
	if w.do(&said{by: r.name, kind: "delete", target: x}, nil, "delete", "--profile", r.name, w.chat, strconv.FormatUint(x.seq, 10)) {
		w.all.Lock()
		x.gone = true
		w.all.Unlock()
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
