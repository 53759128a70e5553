package scripts

import (
	"net"
	"sync"
	"testing"
)

// gate stands between clients and a server, counts the bytes that pass in each
// direction, and holds a direction at a chosen byte until it is let go. With it a
// transfer is interrupted in its middle whatever the speed of the machine.
type gate struct {
	addr    string // where clients find it: host:port
	backend string // the server's

	listener net.Listener
	done     sync.WaitGroup

	mu    sync.Mutex // guards what follows
	up    flow       // from clients to the server
	down  flow
	conns map[net.Conn]bool
	shut  bool
}

// flow is one direction.
type flow struct {
	passed  int64
	until   int64         // where it is held; 0 = nowhere
	reached chan struct{} // closed when it is held
	open    chan struct{} // closed when it is let go
}

// pipe is the most that lies in a socket's buffer, and so the most that an
// interruption loses in each of them.
const pipe = 64 << 10

func newGate(t *testing.T, backend string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{addr: l.Addr().String(), backend: backend, listener: l, conns: map[net.Conn]bool{}}
	g.done.Go(g.accept)
	t.Cleanup(g.close)
	return g
}

func (g *gate) close() {
	_ = g.listener.Close()
	g.mu.Lock()
	g.shut = true
	g.up.letGo()
	g.down.letGo()
	for c := range g.conns {
		_ = c.Close()
	}
	g.mu.Unlock()
	g.done.Wait()
}

func (g *gate) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return // it was closed
		}
		server, err := net.Dial("tcp", g.backend)
		if err != nil {
			_ = client.Close() // as a service that is down
			continue
		}
		if !g.keep(client, server) {
			return
		}
		g.done.Go(func() { g.pass(server, client, &g.up) })
		g.done.Go(func() { g.pass(client, server, &g.down) })
	}
}

// keep remembers two connections, to close them with the gate.
func (g *gate) keep(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(pipe) // a larger buffer only weakens what the test can say
			_ = tcp.SetWriteBuffer(pipe)
		}
		g.conns[c] = true
		if g.shut {
			_ = c.Close()
		}
	}
	return !g.shut
}

// pass copies one direction of a connection until either end closes it; then both
// are closed, as a process that dies does.
func (g *gate) pass(to, from net.Conn, f *flow) {
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, c := range []net.Conn{to, from} {
			_ = c.Close()
			delete(g.conns, c)
		}
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		for part := buf[:n]; len(part) > 0; {
			may, held := g.take(f, len(part))
			if held != nil {
				<-held
				continue
			}
			if _, err := to.Write(part[:may]); err != nil {
				return
			}
			part = part[may:]
		}
		if err != nil {
			return
		}
	}
}

// take is how many of n bytes may pass now, or what to wait for.
func (g *gate) take(f *flow, n int) (int, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.until == 0 {
		f.passed += int64(n)
		return n, nil
	}
	n = int(min(int64(n), f.until-f.passed))
	f.passed += int64(n)
	if n > 0 {
		return n, nil
	}
	select {
	case <-f.reached:
	default:
		close(f.reached)
	}
	return 0, f.open
}

// holdAfter holds a direction when so many more bytes have passed, and says when.
func (g *gate) holdAfter(f *flow, bytes int64) (reached <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.until, f.reached, f.open = f.passed+bytes, make(chan struct{}), make(chan struct{})
	return f.reached
}

// letGo ends a hold; the gate's mutex is held.
func (f *flow) letGo() {
	if f.until != 0 {
		f.until = 0
		close(f.open)
	}
}

func (g *gate) free(f *flow) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.letGo()
}

func (g *gate) count(f *flow) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return f.passed
}
