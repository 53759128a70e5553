//go:build linux

package scripts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// resent is how much of a transfer may cross the network a second time for one
// interruption: what lay in sockets and in the memory of whoever was killed.
const resent = 2 << 20

// TestLargeFile sends a file through processes that are killed in the middle: the
// client, and then the server, on the way up and on the way down. Each transfer goes
// on where it stopped, shows how far it is, and the file arrives as it left. Neither
// side's memory grows with it.
func TestLargeFile(t *testing.T) {
	size := int64(24 << 20)
	if *long {
		size = 1 << 30
	}
	w := newCarried(t)
	w.meet("ada", "bob")
	file := filepath.Join(w.dir, "film.bin")
	sent := writeRandom(t, file, size)

	up := w.interrupted(&w.gate.up, size, "send", "--profile", "ada", w.chat, "--file", file)
	var message struct{ Seq uint64 }
	w.decode(up, &message)
	got := filepath.Join(w.dir, "got.bin")
	w.interrupted(&w.gate.down, size, "get", "--profile", "bob", w.chat, strconv.FormatUint(message.Seq, 10), "-o", got)
	if hashOf(t, got) != sent {
		t.Fatal("the file that arrived is another")
	}
	w.memory.wants(t)
}

// carried is a world behind a gate, with an eye on the server's memory.
type carried struct {
	*world
	gate   *gate
	memory *peak
}

func newCarried(t *testing.T) *carried {
	t.Helper()
	w := &carried{world: newWorld(t)}
	w.gate = newGate(t, w.server.addr)
	w.url = "http://" + w.gate.addr
	w.memory = watch("the server", w.server.cmd.Process.Pid)
	return w
}

// interrupted runs a transfer of so many bytes in one direction of the gate. At
// a third of it the client is killed; at two thirds of it the server, and this
// client goes on by itself when the server is back.
func (w *carried) interrupted(f *flow, size int64, args ...string) (out string) {
	w.t.Helper()
	before := w.gate.count(f)
	third := w.gate.holdAfter(f, size/3)
	first := w.transfer(args...)
	w.reaches(third, first)
	_ = first.cmd.Process.Kill() // it cannot have ended: its bytes are held
	first.end(w.t)
	w.gate.free(f)

	third = w.gate.holdAfter(f, size/3)
	second := w.transfer(args...)
	w.reaches(third, second)
	w.memory.wants(w.t)
	w.restart()
	w.memory = watch("the server", w.server.cmd.Process.Pid)
	w.gate.free(f)
	if err := second.end(w.t); err != nil {
		w.t.Fatalf("compax %v: %v\n%s", args, err, second.said.String())
	}

	crossed := w.gate.count(f) - before
	w.t.Logf("%s of %d MiB, killed twice: %d MiB crossed the network", args[0], size>>20, crossed>>20)
	if most := size + size/100 + 2*resent; crossed > most {
		w.t.Errorf("%d bytes crossed the network for a file of %d: it began again instead of going on", crossed, size)
	}
	shown := percents(first.said.String())
	if len(shown) == 0 || shown[0] > 5 {
		w.t.Errorf("the first try shows as progress: %v\n%s", shown, first.said.String())
	}
	shown = percents(second.said.String())
	if len(shown) < 2 || shown[0] < 25 || shown[len(shown)-1] != 100 {
		w.t.Errorf("the second try shows as progress: %v\n%s", shown, second.said.String())
	}
	for i := 1; i < len(shown); i++ {
		if shown[i] < shown[i-1]-1 { // the server may have lost what lay in sockets
			w.t.Errorf("the progress goes back: %v", shown)
		}
	}
	return second.out.String()
}

// transfer is a command that shows its progress.
type transfer struct {
	cmd       *exec.Cmd
	out, said bytes.Buffer
	memory    *peak
	ended     chan struct{}
	err       error
}

func (w *carried) transfer(args ...string) *transfer {
	w.t.Helper()
	c := &transfer{cmd: w.command(context.WithoutCancel(w.t.Context()), append(args, "--json", "--progress")...), ended: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.said
	if err := c.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	c.memory = watch("compax "+args[0], c.cmd.Process.Pid)
	go func() { // ends with the process
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	w.t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it may have ended
		<-c.ended
	})
	return c
}

// reaches waits until a transfer is held, which must come before its end.
func (w *carried) reaches(held <-chan struct{}, c *transfer) {
	w.t.Helper()
	select {
	case <-held:
	case <-c.ended:
		w.t.Fatalf("%v ended before it was interrupted: %v\n%s", c.cmd.Args, c.err, c.said.String())
	}
}

func (c *transfer) end(t *testing.T) error {
	t.Helper()
	<-c.ended
	c.memory.wants(t)
	return c.err
}

// writeRandom writes a file that does not compress, and returns its hash.
func writeRandom(t *testing.T, path string, size int64) [32]byte {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(f, h), rand.NewChaCha8([32]byte{2}), size); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return [32]byte(h.Sum(nil))
}

func hashOf(t *testing.T, path string) [32]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return [32]byte(h.Sum(nil))
}
