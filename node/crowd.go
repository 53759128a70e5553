package node

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/askucher/compax-core/delivery"
)

// crowd is a listener that lets in a bounded number of connections, in all and from
// one address (in IPv6 one /64): each costs memory and a file descriptor before it
// has said anything. Who is too many is told so and hung up on.
type crowd struct {
	net.Listener
	all, each int
	many      func(netip.Addr) bool // whether an address stands for many: a proxy's, loopback
	refused   *prometheus.CounterVec

	mu   sync.Mutex // guards the fields below
	open int
	from map[netip.Addr]int
}

func newCrowd(l net.Listener, all, each int, proxies []netip.Prefix, registry prometheus.Registerer) *crowd {
	c := &crowd{Listener: l, all: all, each: each, from: map[netip.Addr]int{}}
	c.many = func(a netip.Addr) bool {
		for _, p := range proxies {
			if p.Contains(a) {
				return true
			}
		}
		return a.IsLoopback()
	}
	c.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chat_connections_refused_total", Help: "Connections over a bound, by the bound.",
	}, []string{"bound"})
	registry.MustRegister(c.refused)
	return c
}

// Accept implements [net.Listener].
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		addr := address(conn.RemoteAddr())
		if bound := c.enter(addr); bound != "" {
			c.refused.WithLabelValues(bound).Inc()
			turnAway(conn)
			continue
		}
		return &counted{Conn: conn, leave: sync.OnceFunc(func() { c.exit(addr) })}, nil
	}
}

// enter counts a connection in, or names the bound that it is over.
func (c *crowd) enter(a netip.Addr) (bound string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.open >= c.all:
		return "all"
	case c.from[a] >= c.each && !c.many(a):
		return "address"
	}
	c.open++
	c.from[a]++
	return ""
}

func (c *crowd) exit(a netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.from[a]--; c.from[a] == 0 {
		delete(c.from, a)
	}
}

// address is what connections are counted by.
func address(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if p, err := ip.Prefix(64); err == nil && ip.Is6() && !ip.IsLoopback() {
		return p.Addr()
	}
	return ip
}

// turnAway answers before anything was asked: it fits what the kernel holds for a
// new connection, so that nobody is waited for.
func turnAway(conn net.Conn) {
	const wait = 10 // seconds
	e := delivery.Error{Code: delivery.CodeSlowDown, Detail: "too many connections", RetryAfter: wait * time.Second}
	body, err := json.Marshal(e.Problem())
	if err == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nRetry-After: %d\r\nConnection: close\r\n\r\n%s",
			e.Code.Status(), http.StatusText(e.Code.Status()), delivery.ProblemType, len(body), wait, body)
	}
	_ = conn.Close() // who is turned away may be gone
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite lets net/http end an answer without losing what is under way.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
