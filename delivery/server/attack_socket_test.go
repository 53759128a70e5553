package server

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// upgraded opens a socket by hand; what comes after the upgrade is in the reader.
func (in *instance) upgraded(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := in.raw(t, "GET /v1/connect HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := bufio.NewReaderSize(conn, 512)
	resp, err := http.ReadResponse(r, nil)
	check(t, err)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp.Status)
	}
	return conn, r
}

// wsFrame is a WebSocket frame (RFC 6455 §5.2): its first byte (FIN, reserved bits,
// opcode), and a payload masked with zeros.
func wsFrame(first byte, payload []byte) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

// First bytes of frames.
const (
	fin       = 0x80
	rsv1      = 0x40
	more      = 0x00
	textFrame = 0x01
	binFrame  = 0x02
	closing   = 0x08
	pinging   = 0x09
)

// wsHead is the head of a frame that announces length bytes.
func wsHead(first byte, length uint64) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{first, 0x80 | 127}, length), 0, 0, 0, 0)
}

// helloOf is the first frame of a device's socket.
func helloOf(d *device) []byte {
	return wsFrame(fin|binFrame, delivery.AppendFrame(nil, &delivery.Hello{Token: d.token}))
}

// TestAttackFrames: what is no WebSocket frame, no frame of the protocol, or too
// large, before and after a device has authenticated: the socket ends, without
// waiting for what was announced, and others do not notice.
func TestAttackFrames(t *testing.T) {
	in := newWorld(t).start()
	bystander := in.enrolled("bob").connect(t)
	open := map[string]io.Reader{}
	unmasked := append([]byte{fin | binFrame, byte(len("abc"))}, "abc"...)
	for name, sent := range map[string][]byte{
		"not masked":                unmasked,
		"a reserved bit":            wsFrame(fin|rsv1|binFrame, []byte("abc")),
		"reserved opcode 3":         wsFrame(fin|3, []byte("abc")),
		"reserved opcode 11":        wsFrame(fin|11, nil),
		"a text message":            wsFrame(fin|textFrame, []byte("hello")),
		"a ping of 126 bytes":       wsFrame(fin|pinging, make([]byte, 126)),
		"a ping in pieces":          wsFrame(pinging, []byte("x")),
		"a continuation of nothing": wsFrame(fin|more, []byte("abc")),
		"a message in a message":    append(wsFrame(binFrame, []byte("a")), wsFrame(fin|binFrame, []byte("b"))...),
		"a close of one byte":       wsFrame(fin|closing, []byte{1}),
		"a close code of 999":       wsFrame(fin|closing, []byte{3, 0xe7}),
		"2^64 - 1 announced":        wsHead(fin|binFrame, 1<<64-1),
		"an empty message":          wsFrame(fin|binFrame, nil),
		"no frame of the protocol":  wsFrame(fin|binFrame, []byte("\x01\xff\xff\xff\xff")),
		"too large a message":       wsFrame(fin|binFrame, make([]byte, maxHello+1)),
		"too many pieces":           append(wsFrame(binFrame, nil), strings.Repeat(string(wsFrame(more, []byte("xxxx"))), maxHello/4+1)...),
		"HTTP":                      []byte("GET /v1/info HTTP/1.1\r\nHost: x\r\n\r\n"),
	} {
		for when, before := range map[string][]byte{"before Hello": nil, "after Hello": helloOf(in.enrolled(name))} {
			conn, r := in.upgraded(t)
			_, err := conn.Write(before)
			check(t, err)
			_, _ = conn.Write(sent) // it may be hung up on meanwhile
			open[name+" "+when] = r
		}
	}
	for name, r := range open { // they end side by side
		var timeout net.Error
		if _, err := io.Copy(io.Discard, r); errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("%s: the socket stays open", name)
		}
	}
	in.serves(t)
	check(t, bystander.conn.Ping(t.Context()))
}

// TestAttackUnfinishedMessages: a message that begins and never ends, in as many
// pieces as one likes, takes no more than its bound, and a ping flood takes nothing.
func TestAttackUnfinishedMessages(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	hello := helloOf(d)
	before := heap()
	var conns []net.Conn
	for _, announced := range []uint64{1 << 30, 1<<63 - 1} { // and nothing sent of it
		conn, _ := in.upgraded(t)
		_, err := conn.Write(slices.Concat(hello, wsHead(fin|binFrame, announced)))
		check(t, err)
		conns = append(conns, conn)
	}
	for len(conns) < maxSockets {
		conn, r := in.upgraded(t)
		_, err := conn.Write(hello)
		check(t, err)
		go func() { _, _ = io.Copy(io.Discard, r) }() // ends with the connection
		_, err = conn.Write(wsFrame(binFrame, make([]byte, maxUp-1)))
		check(t, err)
		_, err = conn.Write([]byte(strings.Repeat(string(wsFrame(more, nil)), 10_000)))
		check(t, err)
		_, err = conn.Write([]byte(strings.Repeat(string(wsFrame(fin|pinging, []byte("ping"))), 10_000)))
		check(t, err)
		conns = append(conns, conn)
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("%d sockets take %d bytes", len(conns), grown)
	}
	in.serves(t)
}

// heap is how many bytes are held now.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestAttackIdleSockets: sockets that say nothing cost little, and are hung up on.
func TestAttackIdleSockets(t *testing.T) {
	in := hurried(t, Patience{Hello: 2 * time.Second})
	const many = 1000
	before, goroutines := heap(), runtime.NumGoroutine()
	var conns []net.Conn
	for range many {
		conn, _ := in.upgraded(t)
		conns = append(conns, conn)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 5*many {
		t.Errorf("%d goroutines for %d sockets", more, many)
	}
	if grown := heap() - before; grown > many*48<<10 {
		t.Errorf("%d bytes for %d sockets", grown, many)
	}
	in.serves(t)
	for _, conn := range conns {
		ends(t, conn)
	}
}

// TestAttackManySocketsOfADevice: one device holds a few sockets; the oldest go,
// the newest stays, also when the old ones do not read that they end.
func TestAttackManySocketsOfADevice(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	var all []*connected
	for range maxSockets + 3 {
		all = append(all, d.connect(t))
	}
	for i, k := range all[:3] {
		if end, ok := k.next().(*delivery.End); !ok || end.Code != delivery.CodeSlowDown {
			t.Errorf("socket %d of %d: %+v", i, len(all), end)
		}
	}
	for _, k := range all[3:] {
		check(t, k.conn.Ping(t.Context()))
	}
	// More at once than can end: the service holds at most twice as many.
	for range 4 * maxSockets {
		conn, r := in.upgraded(t)
		_, err := conn.Write(helloOf(d))
		check(t, err)
		_, err = r.ReadByte() // Ready, or End
		check(t, err)
		in.sockets.mu.Lock()
		open := len(in.sockets.of[d.id()])
		in.sockets.mu.Unlock()
		if open > 2*maxSockets {
			t.Fatalf("%d sockets of one device are open", open)
		}
	}
	in.serves(t)
}
