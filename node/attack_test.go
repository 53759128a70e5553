package node

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestAttackHeads: heads of requests that never end, come byte by byte, or are too
// large, on both listeners; and what net/http would answer by itself.
func TestAttackHeads(t *testing.T) {
	config := testConfig(t.TempDir())
	config.HeadTime = 200 * time.Millisecond
	hurried, stopHurried := run(t, config) // for heads that never end
	defer stopHurried()
	n, stop := run(t, testConfig(t.TempDir()))
	defer stop()
	for _, listeners := range [][2]net.Listener{{n.api, hurried.api}, {n.metrics, hurried.metrics}} {
		for name, c := range map[string]struct {
			sent string
			want string // what the answer begins with
		}{
			"nothing":                  {"", ""},
			"half a line":              {"GET /v1/in", ""},
			"half a head":              {"GET /v1/info HTTP/1.1\r\nHost: x\r\nA: b\r\n", ""},
			"one header of a megabyte": {"GET /v1/info HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("b", 1<<20), "HTTP/1.1 431"},
			"a million headers":        {"GET /v1/info HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A:\r\n", 1<<20), "HTTP/1.1 431"},
			"a target of a megabyte":   {"GET /" + strings.Repeat("a", 1<<20), "HTTP/1.1 431"},
			"no HTTP":                  {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", "HTTP/1.1 400"},
			"HTTP/2 unannounced":       {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 4"},
		} {
			listener := listeners[0]
			if c.want == "" {
				listener = listeners[1]
			}
			conn, err := net.Dial("tcp", listener.Addr().String())
			check(t, err)
			check(t, conn.SetDeadline(time.Now().Add(time.Minute)))
			_, _ = io.WriteString(conn, c.sent) // it may be hung up on meanwhile
			b, err := io.ReadAll(conn)
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Errorf("%s: the connection stays open", name)
			}
			if !strings.HasPrefix(string(b), c.want) && err == nil { // a reset may take the answer with it
				t.Errorf("%s: %.200q", name, b)
			}
			check(t, conn.Close())
		}
	}
	if status, _ := get(t, n.URL()+"/v1/info"); status != 200 {
		t.Errorf("/v1/info: %d", status)
	}
	// The metrics give a body no time, whoever asks.
	conn, err := net.Dial("tcp", n.metrics.Addr().String())
	check(t, err)
	check(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
	check(t, err)
	if b, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 401") {
		t.Errorf("a body for the metrics: %q, %v", b, err)
	}
	check(t, conn.Close())
	// To all of the server itself, and not to a route.
	conn, err = net.Dial("tcp", n.api.Addr().String())
	check(t, err)
	_, err = io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	check(t, err)
	if b, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 404") {
		t.Errorf("OPTIONS *: %q, %v", b, err)
	}
	check(t, conn.Close())
}
