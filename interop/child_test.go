package interop

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// hexBytes are bytes that travel as hex in JSON.
type hexBytes []byte

func (h hexBytes) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h)), nil }

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

func hexList(list [][]byte) []hexBytes {
	out := make([]hexBytes, len(list))
	for i, b := range list {
		out[i] = b
	}
	return out
}

// child is a peer in a process of its own.
type child struct {
	kind string
	said info

	mu  sync.Mutex // one request at a time
	in  io.Writer
	out *bufio.Reader

	clients atomic.Int64
}

// serial numbers clients, so that worlds that share a process do not share names.
func (c *child) serial() int64 { return c.clients.Add(1) }

// errPeer is a refusal by the peer, as against a broken pipe.
var errPeer = errors.New("peer refused")

// commands tell how to start each peer, where its folder's run script built it.
var commands = map[string][]string{
	"OpenMLS": {"openmls", "COMPAX_OPENMLS_PEER", "target/release/peer"},
	"ts-mls":  {"ts-mls", "COMPAX_TSMLS_PEER", "peer.mjs"},
}

// start runs a peer for the time of a test. Without COMPAX_INTEROP naming it the
// test is skipped: its run script builds the peer first.
func start(t testing.TB, kind string) peer {
	t.Helper()
	command := commands[kind]
	if !wanted(kind) {
		t.Skipf("%s takes no part in this run: interop/%s/run builds it and runs the tests that need it", kind, command[0])
	}
	program := os.Getenv(command[1])
	if program == "" {
		program = filepath.Join(command[0], command[2])
	}
	args := []string{program}
	if filepath.Ext(program) == ".mjs" {
		args = []string{"node", program}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s does not start: %v; interop/%s/run builds it", kind, err, command[0])
	}
	t.Cleanup(func() {
		in.Close() // the peer ends with its input
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s ended with %v", kind, err)
		}
	})
	c := &child{kind: kind, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	if err := c.ask(map[string]any{"op": "info"}, &c.said); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends one request and reads its answer.
func (c *child) ask(request map[string]any, answer any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("%s: %w", c.kind, err)
	}
	line, err = c.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s: no answer to %v: %w", c.kind, request["op"], err)
	}
	var verdict struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(line, &verdict); err != nil {
		return fmt.Errorf("%s: answer to %v: %w", c.kind, request["op"], err)
	}
	if !verdict.OK {
		return fmt.Errorf("%w: %s, %v %v: %s", errPeer, c.kind, request["client"], request["op"], verdict.Error)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(line, answer)
}

func (c *child) name() string { return c.kind }
func (c *child) info() info   { return c.said }

func (c *child) client(t testing.TB, suite uint16, name string) client {
	return c.provided(t, suite, name, "")
}

// provided makes a client on one of the peer's crypto providers.
func (c *child) provided(t testing.TB, suite uint16, name, provider string) client {
	t.Helper()
	if err := c.ask(map[string]any{"op": "new", "client": name, "suite": suite, "provider": provider}, nil); err != nil {
		t.Fatal(err)
	}
	return &remote{peer: c, label: name}
}

// remote is a client of a child process.
type remote struct {
	peer  *child
	label string
}

func (r *remote) ask(op string, request map[string]any, answer any) error {
	if request == nil {
		request = map[string]any{}
	}
	request["op"], request["client"] = op, r.label
	return r.peer.ask(request, answer)
}

// one asks for one byte string.
func (r *remote) one(op, key string, request map[string]any) ([]byte, error) {
	var answer map[string]json.RawMessage
	if err := r.ask(op, request, &answer); err != nil {
		return nil, err
	}
	var b hexBytes
	if err := json.Unmarshal(answer[key], &b); err != nil {
		return nil, fmt.Errorf("%s: %s of the answer to %s: %w", r.peer.kind, key, op, err)
	}
	return b, nil
}

func (r *remote) commits(op string, request map[string]any) (committed, error) {
	var answer struct {
		Commit, Welcome, Tree hexBytes
		NS                    int64
	}
	if err := r.ask(op, request, &answer); err != nil {
		return committed{}, err
	}
	return committed{Commit: answer.Commit, Welcome: answer.Welcome, Tree: answer.Tree, NS: answer.NS}, nil
}

func (r *remote) keyPackage() ([]byte, error) { return r.one("key_package", "key_package", nil) }

func (r *remote) create(group []byte) error {
	return r.ask("create", map[string]any{"group": hexBytes(group)}, nil)
}

func (r *remote) commit(c commitRequest) (committed, error) {
	return r.commits("commit", map[string]any{
		"adds": hexList(c.Adds), "removes": append([]uint32{}, c.Removes...), "psks": hexList(c.PSKs),
		"private": c.Private, "update": true,
	})
}

func (r *remote) join(welcome []byte) error {
	return r.ask("join", map[string]any{"welcome": hexBytes(welcome)}, nil)
}

func (r *remote) handle(message []byte) (handled, error) {
	var answer struct {
		Kind string
		Data hexBytes
		NS   int64
	}
	if err := r.ask("handle", map[string]any{"message": hexBytes(message)}, &answer); err != nil {
		return handled{}, err
	}
	return handled{Kind: answer.Kind, Data: answer.Data, NS: answer.NS}, nil
}

func (r *remote) propose(p proposal) ([]byte, error) {
	return r.one("propose", "proposal", map[string]any{
		"type": p.Type, "key_package": hexBytes(p.KeyPackage), "leaf": p.Leaf, "id": hexBytes(p.PSK),
	})
}

func (r *remote) seal(data []byte) ([]byte, error) {
	return r.one("seal", "message", map[string]any{"data": hexBytes(data)})
}

func (r *remote) load() error { return r.ask("load", nil, nil) }

func (r *remote) groupInfo() ([]byte, error) { return r.one("group_info", "group_info", nil) }

func (r *remote) externalJoin(info []byte, resync bool) ([]byte, error) {
	return r.one("external_join", "commit", map[string]any{"group_info": hexBytes(info), "resync": resync})
}

func (r *remote) psk(id, secret []byte) error {
	return r.ask("psk", map[string]any{"id": hexBytes(id), "secret": hexBytes(secret)}, nil)
}

func (r *remote) reinit(group []byte, suite uint16) (committed, error) {
	return r.commits("reinit", map[string]any{"group": hexBytes(group), "suite": suite})
}

func (r *remote) reinitCreate(group []byte, suite uint16, packages [][]byte) (committed, error) {
	return r.commits("reinit_create", map[string]any{"group": hexBytes(group), "suite": suite, "adds": hexList(packages)})
}

func (r *remote) reinitJoin(welcome, tree []byte) error {
	return r.ask("reinit_join", map[string]any{"welcome": hexBytes(welcome), "tree": hexBytes(tree)}, nil)
}

func (r *remote) branch(group []byte, packages [][]byte) (committed, error) {
	return r.commits("branch", map[string]any{"group": hexBytes(group), "adds": hexList(packages)})
}

func (r *remote) branchJoin(welcome, tree []byte) error {
	return r.ask("branch_join", map[string]any{"welcome": hexBytes(welcome), "tree": hexBytes(tree)}, nil)
}

func (r *remote) successorPackage(suite uint16) ([]byte, error) {
	return r.one("successor_package", "key_package", map[string]any{"suite": suite})
}

func (r *remote) state() (state, error) {
	var answer struct {
		Epoch                   uint64
		Authenticator, Exported hexBytes
		Leaf                    uint32
		Active                  bool
		Members                 []struct {
			Leaf     uint32
			Identity hexBytes
		}
	}
	if err := r.ask("state", nil, &answer); err != nil {
		return state{}, err
	}
	s := state{
		Epoch: answer.Epoch, Authenticator: answer.Authenticator, Exported: answer.Exported,
		Leaf: answer.Leaf, Active: answer.Active,
	}
	for _, m := range answer.Members {
		s.Members = append(s.Members, member{Leaf: m.Leaf, Identity: m.Identity})
	}
	return s, nil
}
