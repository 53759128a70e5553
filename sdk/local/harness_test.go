//go:build unix

package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// fake is a profile whose calls tell what the tests want to know. Methods that no
// test calls are those of a nil interface.
type fake struct {
	Profile
	name    string
	rows    int           // that Listen gives, from 1; then it waits for the context
	release chan struct{} // Add waits for it
	entered chan string   // the calls that began
	marked  atomic.Int64  // the last row that was taken
}

func (f *fake) enter(call string) {
	if f.entered != nil {
		f.entered <- call
	}
}

func (f *fake) Self(context.Context, None) (Self, error) { return Self{Profile: f.name}, nil }

func (f *fake) Add(ctx context.Context, r MemberRequest) (None, error) {
	f.enter("add")
	select {
	case <-f.release:
		return None{}, nil
	case <-ctx.Done():
		f.enter("add cancelled")
		return None{}, ctx.Err()
	}
}

func (f *fake) Edit(ctx context.Context, _ EditRequest) (Sent, error) {
	f.enter("edit")
	<-ctx.Done()
	return Sent{}, ctx.Err()
}

func (f *fake) Listen(ctx context.Context, r ListenRequest, give func(Row) error) (None, error) {
	f.enter("listen")
	first := 1
	if r.Since != nil {
		first = int(*r.Since) + 1
	}
	for seq := first; seq <= f.rows; seq++ {
		if err := give(Row{Chat: chat, Seq: uint64(seq), Text: f.name}); err != nil {
			if errors.Is(err, ErrStop) {
				f.marked.Store(int64(seq))
				return None{}, nil
			}
			return None{}, err
		}
		f.marked.Store(int64(seq))
	}
	<-ctx.Done()
	return None{}, ctx.Err()
}

func (f *fake) Leave(context.Context, RoomRequest) (None, error) {
	return None{}, fmt.Errorf("leave: %w", errFake)
}

func (f *fake) Chats(context.Context, None) ([]Chat, error) {
	return []Chat{{Title: strings.Repeat("x", maxAnswer)}}, nil
}

var errFake = errors.New("the fake refuses")

func explainFake(err error) *Error {
	if errors.Is(err, errFake) {
		return &Error{Code: "fake", Exit: 4, Detail: err.Error(), Hint: "do not"}
	}
	return &Error{Code: "other", Exit: 1, Detail: err.Error()}
}

var errTaken = errors.New("the lock is taken")

// config is a profile in dir whose lock is a file, as the real store's is.
func config(dir string, f *fake) Config {
	return Config{
		Dir: dir, Explain: explainFake, Patience: 30 * time.Second,
		Busy: func(err error) bool { return errors.Is(err, errTaken) },
		Own: func(context.Context) (Profile, io.Closer, error) {
			lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				return nil, nil, err
			}
			if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
				return nil, nil, errors.Join(errTaken, lock.Close())
			}
			return f, lock, nil
		},
	}
}

func open2(t *testing.T, dir string, f *fake) *Handle {
	t.Helper()
	h, err := Open(t.Context(), config(dir, f))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // most tests have closed it
	return h
}

// shortDir is a folder whose path is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "local")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

const ownerDir = "COMPAX_LOCAL_TEST_OWNER"

// TestMain is also the other process: it owns the profile in the folder that the
// environment names until it is killed, or its standard input ends.
func TestMain(m *testing.M) {
	dir := os.Getenv(ownerDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	f := &fake{name: "other process", rows: 3, entered: make(chan string, 8)}
	h, err := Open(context.Background(), config(dir, f))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	go func() {
		for call := range f.entered {
			fmt.Println(call)
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := h.Close(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process is the other process of a test.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Scanner
}

func startOwner(t *testing.T, dir string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), ownerDir+"="+dir)
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	p.says("open")
	return p
}

// says waits for a line.
func (p *process) says(want string) {
	p.t.Helper()
	if !p.out.Scan() || p.out.Text() != want {
		p.t.Fatalf("the other process says %q, want %q (%v)", p.out.Text(), want, p.out.Err())
	}
}

// kill is kill -9.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
}

var chat = delivery.RoomID{1, 1, 2, 3, 6: 0x80, 8: 0x80}
