package node

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// queue is a listener of connections that come from where a test says.
type queue chan net.Conn

func (q queue) Accept() (net.Conn, error) {
	c, ok := <-q
	if !ok || c == nil { // nil: nobody comes for now
		return nil, net.ErrClosed
	}
	return c, nil
}

func (q queue) Close() error   { return nil }
func (q queue) Addr() net.Addr { return &net.TCPAddr{} }

type comes struct {
	net.Conn
	from string
	said strings.Builder
}

func (c *comes) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from))
}
func (c *comes) SetWriteDeadline(time.Time) error { return nil }
func (c *comes) Write(p []byte) (int, error)      { return c.said.Write(p) }
func (c *comes) Close() error                     { return nil }

// TestAttackManyConnections: of one address, or of one network in IPv6, so many are
// let in and the next is told why not; a proxy and loopback stand for many; who goes
// makes room.
func TestAttackManyConnections(t *testing.T) {
	for name, c := range map[string]struct {
		from []string
		in   int
	}{
		"one address":                    {[]string{"203.0.113.5:1", "203.0.113.5:2", "203.0.113.5:3", "203.0.113.5:4"}, 3},
		"written as IPv6":                {[]string{"203.0.113.5:1", "[::ffff:203.0.113.5]:2", "203.0.113.5:3", "[::ffff:203.0.113.5]:4"}, 3},
		"one network":                    {[]string{"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::ffff]:1", "[2001:db8::4]:1"}, 3},
		"several networks":               {[]string{"[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1", "[2001:db8:0:3::1]:1", "[2001:db8:0:4::1]:1"}, 4},
		"a proxy":                        {[]string{"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3", "10.0.0.1:4"}, 4},
		"loopback":                       {[]string{"127.0.0.1:1", "127.0.0.1:2", "[::1]:3", "127.0.0.1:4"}, 4},
		"all together, whoever they are": {[]string{"127.0.0.1:1", "127.0.0.1:2", "10.0.0.1:3", "127.0.0.1:4", "192.0.2.1:1", "192.0.2.2:1"}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			q := make(queue, len(c.from)+2)
			crowd := newCrowd(q, 5, 3, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, prometheus.NewRegistry())
			var all []*comes
			for _, from := range c.from {
				all = append(all, &comes{from: from})
				q <- all[len(all)-1]
			}
			var in []net.Conn
			for range c.in {
				conn, err := crowd.Accept()
				check(t, err)
				in = append(in, conn)
			}
			q <- nil
			if conn, err := crowd.Accept(); !errors.Is(err, net.ErrClosed) { // turns the others away
				t.Errorf("%v is let in, %v", conn, err)
			}
			if c.in < len(c.from) {
				check(t, in[0].Close())
				check(t, in[0].Close()) // twice counts once
				last := &comes{from: c.from[0]}
				q <- last
				conn, err := crowd.Accept()
				check(t, err)
				if conn.RemoteAddr().String() != last.RemoteAddr().String() {
					t.Errorf("%s is let in", conn.RemoteAddr())
				}
			}
			for i, a := range all {
				if told := strings.Contains(a.said.String(), "429") && strings.Contains(a.said.String(), "slow_down"); told != (i >= c.in) {
					t.Errorf("%s, number %d: %q", a.from, i, a.said.String())
				}
			}
		})
	}
}

// TestAttackIdleConnections: as many as there may be, all silent: they cost little,
// the next is told so, and one that goes makes room.
func TestAttackIdleConnections(t *testing.T) {
	const many = 1000
	c := testConfig(t.TempDir())
	c.MaxConnections = many
	c.HeadTime = time.Hour // nobody is hung up on for being silent
	n, stop := run(t, c)
	defer stop()
	goroutines, before := runtime.NumGoroutine(), heap()
	var idle []net.Conn
	for range many {
		conn, err := net.Dial("tcp", n.api.Addr().String())
		check(t, err)
		defer conn.Close()
		idle = append(idle, conn)
	}
	ask := func() string {
		conn, err := net.Dial("tcp", n.api.Addr().String())
		check(t, err)
		defer conn.Close()
		check(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		_, _ = io.WriteString(conn, "GET /v1/info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") // it may be hung up on
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return "hung up"
		}
		defer resp.Body.Close()
		return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Content-Type"))
	}
	if got := ask(); got != "429 application/problem+json" && got != "hung up" {
		t.Errorf("one more gets %s", got)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 2*many {
		t.Errorf("%d goroutines for %d connections", more, many)
	}
	if grown := heap() - before; grown > many*16<<10 {
		t.Errorf("%d bytes for %d connections", grown, many)
	}
	check(t, idle[0].Close())
	for end := time.Now().Add(time.Minute); ask() != "200 application/json"; {
		if time.Now().After(end) {
			t.Fatal("who goes makes no room")
		}
	}
}

// heap is how many bytes are held now.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
