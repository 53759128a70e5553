//go:build unix

package local

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// stop is Ctrl-Z, and waits until the process stands still.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || !status.Stopped() {
			p.t.Fatalf("the other process does not stop: %v, %v", status, err)
		}
		return
	}
}

// goOn is fg.
func (p *process) goOn() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		p.t.Fatal(err)
	}
}

// TestAStoppedOwnerIsNotWaitedForWithoutEnd: a process that was stopped (Ctrl-Z) takes
// connections by its backlog and answers nothing. Who asks is told so, and is answered
// when it goes on.
func TestAStoppedOwnerIsNotWaitedForWithoutEnd(t *testing.T) {
	dir := shortDir(t)
	other := startOwner(t, dir)
	c := config(dir, &fake{name: "this process"})
	c.Patience = 500 * time.Millisecond
	other.stop()
	h, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Self(t.Context(), None{}); !errors.Is(err, ErrBusy) {
		t.Fatalf("a call to a stopped process ends with %v, want ErrBusy", err)
	}
	other.goOn()
	h.config.Patience = 30 * time.Second
	if self, err := h.Self(t.Context(), None{}); err != nil || self.Profile != "other process" {
		t.Fatalf("after it went on: %+v, %v", self, err)
	}
}

// TestAnOwnerThatIsStoppedInACall: the same in the middle of a call. When it goes on
// nobody waits for the call any more, and it is cancelled.
func TestAnOwnerThatIsStoppedInACall(t *testing.T) {
	dir := shortDir(t)
	other := startOwner(t, dir)
	c := config(dir, &fake{name: "this process"})
	c.Patience = 3 * time.Second // enough for the call to arrive, on any machine
	h, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := h.Add(context.Background(), MemberRequest{Chat: chat})
		failed <- err
	}()
	other.says("add")
	other.stop()
	if err := <-failed; !errors.Is(err, ErrBusy) {
		t.Fatalf("the call ends with %v, want ErrBusy", err)
	}
	other.goOn()
	other.says("add cancelled")
}

// TestASlowCallIsWaitedFor: an owner that works says so all the time, for longer than
// anybody's patience.
func TestASlowCallIsWaitedFor(t *testing.T) {
	dir := shortDir(t)
	f := &fake{name: "first", release: make(chan struct{}), entered: make(chan string, 2)}
	open2(t, dir, f)
	c := config(dir, &fake{})
	c.Patience = 2 * time.Second
	second, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := second.Add(context.Background(), MemberRequest{Chat: chat})
		done <- err
	}()
	<-f.entered
	conn, err := net.Dial("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	request, err := json.Marshal(MemberRequest{Chat: chat})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(helloFrame(t, hello{protocol, "room/add", request, c.Patience.Milliseconds()})); err != nil {
		t.Fatal(err)
	}
	const quarters = 6 // of the patience: half as long again as it lasts
	for range quarters {
		kind, body, err := readFrame(conn, maxAnswer)
		if err != nil || kind != frameAlive || len(body) > 0 {
			t.Fatalf("type %d, %s, %v", kind, body, err)
		}
	}
	close(f.release)
	if err := <-done; err != nil {
		t.Fatalf("a slow call ends with %v", err)
	}
}
