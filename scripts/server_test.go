package scripts

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/askucher/compax-core/internal/testport"
)

type serversKey struct{}

// servers are the running servers of one script, by name.
type servers map[string]*server

// server is one "compax up".
type server struct {
	cmd  *exec.Cmd
	addr string        // host:port, kept over restarts
	done chan struct{} // closed when the process has ended and its output is read

	mu  sync.Mutex // guards log
	log bytes.Buffer
}

func (s *server) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

var address = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)`)

// startup is how long a server may take until it says where it listens. Under
// the race detector on a loaded machine a start takes seconds.
const startup = 60 * time.Second

// calmName is a configuration under which a server does not ask how loaded the
// machine is that tests run on.
const (
	calmName = "calm.toml"
	calm     = "[congestion]\noff = true\n"
)

// startServer starts "compax up" in dir at listen and waits until it says where
// it listens. Without --config among args it is always calm.
func startServer(dir, listen string, env []string, args ...string) (*server, error) {
	s := &server{done: make(chan struct{})}
	if !slices.Contains(args, "--config") {
		args = append(args, "--config", filepath.Join(binary, calmName))
	}
	s.cmd = exec.Command(filepath.Join(binary, "compax"),
		append([]string{"up", "--dir", dir, "--listen", listen, "--metrics-listen", "127.0.0.1:0"}, args...)...)
	s.cmd.Dir = filepath.Dir(dir)
	s.cmd.Env = env
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stdout, s.cmd.Stderr = in, in
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	in.Close()
	found := make(chan string, 1)
	go s.read(out, found) // ends with the process: its end closes the pipe
	select {
	case s.addr = <-found:
		return s, nil
	case <-s.done:
		return nil, fmt.Errorf("the server ended (%v):\n%s", s.cmd.ProcessState, s.output())
	case <-time.After(startup):
		s.kill()
		return nil, fmt.Errorf("the server does not say where it listens:\n%s", s.output())
	}
}

// read keeps the server's output, finds its address in it, and closes done when
// the process has ended.
func (s *server) read(out *os.File, found chan<- string) {
	defer close(s.done)
	defer out.Close()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		s.mu.Lock()
		s.log.WriteString(line)
		s.mu.Unlock()
		if m := address.FindStringSubmatch(line); m != nil {
			select {
			case found <- m[1]:
			default:
			}
		}
		if err != nil {
			break
		}
	}
	_ = s.cmd.Wait() // the exit code is in ProcessState
}

// kill is kill -9, and waits for the end.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.done
}

// cmdServe is "serve NAME [flags…]": it starts "compax up" with its data in
// $WORK/NAME, waits until it says where it listens, and sets $NAME to that URL.
// A server that was stopped or crashed comes back at the same address.
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve NAME [flags…]")
	}
	all := ts.Value(serversKey{}).(servers)
	name := args[0]
	listen, err := testport.Address()
	ts.Check(err)
	if old := all[name]; old != nil {
		select {
		case <-old.done:
		default:
			ts.Fatalf("%s is running", name)
		}
		listen = old.addr
	}
	env := []string{"HOME=" + ts.Getenv("HOME"), "PATH=" + ts.Getenv("PATH"), "TMPDIR=" + ts.Getenv("TMPDIR")}
	s, err := startServer(ts.MkAbs(name), listen, env, args[1:]...)
	ts.Check(err)
	ts.Defer(func() {
		s.kill()
		ts.Logf("[%s]\n%s", name, s.output())
	})
	all[name] = s
	ts.Setenv(name, "http://"+s.addr)
}

func running(ts *testscript.TestScript, usage string, neg bool, args []string) *server {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: %s NAME", usage)
	}
	s := ts.Value(serversKey{}).(servers)[args[0]]
	if s == nil {
		ts.Fatalf("no server %s", args[0])
	}
	return s
}

// cmdCrash is "crash NAME": kill -9.
func cmdCrash(ts *testscript.TestScript, neg bool, args []string) {
	s := running(ts, "crash", neg, args)
	s.kill()
}

// cmdStop is "stop NAME": SIGTERM; the server must end by itself, with 0.
func cmdStop(ts *testscript.TestScript, neg bool, args []string) {
	s := running(ts, "stop", neg, args)
	ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-s.done:
	case <-time.After(startup):
		ts.Fatalf("%s does not stop:\n%s", args[0], s.output())
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		ts.Fatalf("%s stopped with exit code %d:\n%s", args[0], code, s.output())
	}
}

// nonsense is what servers answer that are none, by its name.
var nonsense = map[string]func(http.ResponseWriter){
	"text": func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("\x00\xff nonsense ", 50)) },
	"json": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"home":7,"challenge":{"a":[[[[[]]]]]},"token":null`)
	},
	"html": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<html><body>Please log in to this Wi-Fi</body></html>")
	},
	"empty": func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) },
	"big": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"name":"`)
		_, _ = io.CopyN(w, zeros{}, 256<<20) // the reader hangs up long before
	},
	"hangup": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	"cut": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"challenge":"`) // and no more of it: the connection ends
	},
}

func answering(ts *testscript.TestScript, kind string) http.Handler {
	answer := nonsense[kind]
	if answer == nil {
		ts.Fatalf("no such nonsense: %s", kind)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) })
}

// cmdGarbage is "garbage NAME KIND": an actor that listens like a server and
// answers nonsense. It sets $NAME to its URL.
func cmdGarbage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: garbage NAME KIND")
	}
	srv := httptest.NewServer(answering(ts, args[1]))
	ts.Defer(srv.Close)
	ts.Setenv(args[0], srv.URL)
}

// cmdSpoiler is "spoiler NAME URL PATH KIND": an actor between clients and the server at
// URL that lets everything through and answers nonsense to what asks for PATH. It sets
// $NAME to its own URL.
func cmdSpoiler(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: spoiler NAME URL PATH KIND")
	}
	backend, err := url.Parse(args[1])
	ts.Check(err)
	through := httputil.NewSingleHostReverseProxy(backend)
	spoilt := answering(ts, args[3])
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == args[2] {
			spoilt.ServeHTTP(w, r)
			return
		}
		through.ServeHTTP(w, r)
	}))
	ts.Defer(srv.Close)
	ts.Setenv(args[0], srv.URL)
}

type impostorKey struct{}

// cmdImpostor is "impostor NAME [KIND]": in place of the server NAME, which was
// stopped, something answers nonsense at its address. Without KIND it goes away.
func cmdImpostor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) > 2 {
		ts.Fatalf("usage: impostor NAME [KIND]")
	}
	s := running(ts, "impostor", neg, args[:1])
	running := ts.Value(impostorKey{}).(map[string]*http.Server)
	if old := running[args[0]]; old != nil {
		ts.Check(old.Close())
		delete(running, args[0])
	}
	if len(args) == 1 {
		return
	}
	l, err := net.Listen("tcp", s.addr)
	ts.Check(err)
	srv := &http.Server{Handler: answering(ts, args[1]), ReadHeaderTimeout: startup, ErrorLog: log.New(io.Discard, "", 0)}
	running[args[0]] = srv
	ts.Defer(func() { _ = srv.Close() }) // it may be closed
	go func() { _ = srv.Serve(l) }()     // ends when it is closed
}

// zeros is an endless run of the digit 0.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
