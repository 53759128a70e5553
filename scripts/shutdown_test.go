package scripts

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestASecondSignalEndsAtOnce: the first lets requests finish, here one that
// never does; the second waits for nothing.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	s, err := startServer(filepath.Join(t.TempDir(), "home"), "127.0.0.1:0", os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	idle := asks(t, s.addr, "GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n")
	// A body that is announced and does not come: its handler reads when it says
	// Continue.
	asks(t, s.addr, "POST /v1/devices HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, idle); err != nil { // it is hung up when the service lets nobody in any more
		t.Fatal(err)
	}
	select {
	case <-s.done:
		t.Fatalf("it did not wait for the request:\n%s", s.output())
	default:
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.done:
	case <-time.After(startup):
		t.Fatal("a second signal did not end it")
	}
	if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
		t.Errorf("the second signal did not end it: %v", s.cmd.ProcessState)
	}
}

// asks sends bytes over a connection of its own, and returns it when the first
// line of an answer has come. It is closed when the test ends.
func asks(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	for one := make([]byte, 1); one[0] != '\n'; {
		if _, err := io.ReadFull(c, one); err != nil {
			t.Fatal(err)
		}
	}
	return c
}
