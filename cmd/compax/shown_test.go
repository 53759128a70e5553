//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/sdk/local"
)

// The other process of the tests below: a listener that kills itself at one of its
// steps. A step is a moment before or after something that a kill could part: a
// note in the notebook, a line of output, the profile's place.
const (
	killHome = "COMPAX_TEST_KILL_HOME" // folder of its profiles; it is the other process when this is set
	killAt   = "COMPAX_TEST_KILL_AT"   // number of the step; 0 = never
	killTorn = "COMPAX_TEST_KILL_TORN" // it dies in the middle of a line
)

func TestMain(m *testing.M) {
	if home := os.Getenv(killHome); home != "" {
		os.Exit(listenAndDie(home))
	}
	os.Exit(m.Run())
}

type steps struct{ left int }

func (s *steps) step() {
	if s.left--; s.left == 0 {
		die()
	}
}

// die is kill -9 of this process, by itself.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	panic(fmt.Sprint("not killed: ", err))
}

func (s *steps) around(write func() (int, error)) (int, error) {
	s.step()
	n, err := write()
	s.step()
	return n, err
}

// dyingOut is standard output that may be killed around each write, or in it.
type dyingOut struct {
	*steps
	torn bool
}

func (d dyingOut) Write(p []byte) (int, error) {
	return d.around(func() (int, error) {
		if !d.torn {
			return os.Stdout.Write(p)
		}
		if _, err := os.Stdout.Write(p[:len(p)/2]); err != nil {
			return 0, err
		}
		d.step()
		n, err := os.Stdout.Write(p[len(p)/2:])
		return n + len(p)/2, err
	})
}

type dyingSlot struct {
	slot
	*steps
}

func (d dyingSlot) WriteAt(p []byte, at int64) (int, error) {
	return d.around(func() (int, error) { return d.slot.WriteAt(p, at) })
}

// kept is a profile of killRows rows whose place lies in a file.
type kept struct {
	local.Profile
	place string
	*steps
}

const killRows = 5

func (k kept) Listen(_ context.Context, _ local.ListenRequest, give func(local.Row) error) (local.None, error) {
	at := 0
	if b, err := os.ReadFile(k.place); err == nil {
		at, _ = strconv.Atoi(string(b)) // written below
	}
	for seq := at + 1; seq <= killRows; seq++ {
		// Rows two and three are of one seq, as when a commit brings two people in.
		row := local.Row{Chat: teaRoom, Seq: uint64(seq), ID: fmt.Sprint("id", seq), Kind: "text", Text: fmt.Sprint("row ", seq), Time: fakeNoon}
		if seq == 3 {
			row.Seq = 2
		}
		if err := give(row); err != nil && !errors.Is(err, local.ErrStop) {
			return local.None{}, err
		}
		if seq == 2 {
			continue
		}
		k.step()
		if err := os.WriteFile(k.place+".new", []byte(strconv.Itoa(seq)), 0o600); err != nil {
			return local.None{}, err
		}
		if err := os.Rename(k.place+".new", k.place); err != nil {
			return local.None{}, err
		}
		k.step()
	}
	return local.None{}, nil
}

func (k kept) Chats(context.Context, local.None) ([]local.Chat, error) { return nil, nil }

func listenAndDie(home string) int {
	at, _ := strconv.Atoi(os.Getenv(killAt)) // set by the test
	s := &steps{left: at}
	a := &app{
		in: strings.NewReader(""), out: dyingOut{s, os.Getenv(killTorn) != ""}, err: os.Stderr, outFile: os.Stdout, width: 80,
		now: func() time.Time { return fakeNoon },
		env: func(name string) string { return map[string]string{envHome: home}[name] },
		slot: func(path string) (slot, error) {
			f, err := openSlot(path)
			return dyingSlot{f, s}, err
		},
	}
	a.engines.own = func(context.Context, *app, string, string) (local.Profile, io.Closer, error) {
		return kept{place: filepath.Join(home, "place"), steps: s}, io.NopCloser(nil), nil
	}
	return run(context.Background(), a, []string{"listen", "--json"})
}

// listener runs the other process until it dies at a step, or ends.
func listener(t *testing.T, home string, out *os.File, at int, torn bool) (ended bool) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.Env = append(os.Environ(), killHome+"="+home, killAt+"="+strconv.Itoa(at))
	if torn {
		cmd.Env = append(cmd.Env, killTorn+"=1")
	}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true
	case errors.As(err, &exit) && exit.ExitCode() == -1:
		return false
	}
	t.Fatalf("step %d: %v", at, err)
	return false
}

// rows are the rows of an output, and which of them came again.
func rows(t *testing.T, text string) (ids []string, again map[string]bool) {
	t.Helper()
	again = map[string]bool{}
	for line := range strings.Lines(text) {
		var r struct {
			ID    string
			Again bool
		}
		if json.Unmarshal([]byte(line), &r) != nil || r.ID == "" {
			continue // torn by a kill
		}
		ids = append(ids, r.ID)
		again[r.ID] = again[r.ID] || r.Again
	}
	return ids, again
}

// TestListenerKilledAtEveryStep kills a listener at each step of its work in turn,
// within a line as well, and starts it again. Into a file every row is printed
// once. Into a pipe none is lost, and none comes twice without saying so; one comes
// again only when the kill fell between the notes around its line.
func TestListenerKilledAtEveryStep(t *testing.T) {
	want := []string{"id1", "id2", "id3", "id4", "id5"}
	for _, torn := range []bool{false, true} {
		for at := 1; ; at++ {
			home := filepath.Join(t.TempDir(), "home")
			(&world{t: t, home: home}).makeProfile("ada")
			path := filepath.Join(t.TempDir(), "out")
			ended := false
			for _, step := range []int{at, at, 0} { // killed, killed in what is left, then not
				f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
				if err != nil {
					t.Fatal(err)
				}
				over := listener(t, home, f, step, torn)
				ended = ended || over && step == at
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			ids, again := rows(t, string(text))
			if !slices.Equal(ids, want) || slices.Contains([]bool{again["id1"], again["id2"], again["id3"], again["id4"], again["id5"]}, true) {
				t.Errorf("file, torn %v, killed at step %d: rows %q, again %v\n%s", torn, at, ids, again, text)
			}
			pipe(t, at, torn, want)
			if ended {
				t.Logf("torn %v: %d steps", torn, at)
				break
			}
		}
	}
}

// pipe is the same with a pipe that somebody reads.
func pipe(t *testing.T, at int, torn bool, want []string) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	(&world{t: t, home: home}).makeProfile("ada")
	var text bytes.Buffer
	for _, step := range []int{at, 0} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan []byte, 1)
		go func() { // ends with the pipe's last writer
			b, _ := io.ReadAll(r)
			read <- b
		}()
		listener(t, home, w, step, torn)
		_ = w.Close() // nothing was written to it here
		text.Write(append(<-read, '\n'))
		_ = r.Close()
	}
	ids, again := rows(t, text.String())
	seen := map[string]int{}
	for _, id := range ids {
		seen[id]++
	}
	repeated := 0
	for _, id := range want {
		switch {
		case seen[id] == 0:
			t.Errorf("pipe, torn %v, killed at step %d: %s is lost\n%s", torn, at, id, &text)
		case seen[id] > 2, seen[id] == 2 && !again[id]:
			t.Errorf("pipe, torn %v, killed at step %d: %s came %d times\n%s", torn, at, id, seen[id], &text)
		case again[id]:
			repeated++
		}
	}
	if repeated > 1 {
		t.Errorf("pipe, killed at step %d: %d rows came again", at, repeated)
	}
}

func TestDamagedNotesAreNone(t *testing.T) {
	n := note{seq: 7, row: [16]byte{1}, printed: true, place: place{1, 2, 3}, length: 9, line: [16]byte{4}}
	b := n.bytes()
	if len(b) != noteSize || parseNote(b) != n {
		t.Fatalf("%d bytes, %+v", len(b), parseNote(b))
	}
	for i := range b {
		b[i] ^= 1
		if got := parseNote(b); got != (note{}) {
			t.Errorf("byte %d flipped: %+v", i, got)
		}
		b[i] ^= 1
	}
	if parseNote(b[:len(b)-1]) != (note{}) || parseNote(append(b, 0)) != (note{}) {
		t.Error("a note of another length")
	}
}
