package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// hurried starts a service that waits less for others.
func hurried(t *testing.T, p Patience) *instance {
	t.Helper()
	w := newWorld(t)
	w.config.Patience = p
	return w.start()
}

// raw opens a connection to an instance and writes text on it.
func (in *instance) raw(t *testing.T, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(in.http.URL, "http://"))
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // it may be closed
	check(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, text)
	check(t, err)
	return conn
}

// ends reads what still comes on a connection until the service closes it.
func ends(t *testing.T, conn net.Conn) string {
	t.Helper()
	answer, err := io.ReadAll(conn)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatalf("the connection stays open; so far it answered %q", answer)
	}
	return string(answer) // a reset is an end too
}

// serves checks that an instance still answers others.
func (in *instance) serves(t *testing.T) {
	t.Helper()
	resp, err := http.Get(in.http.URL + "/v1/info")
	check(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	check(t, err)
	check(t, resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/v1/info answers %s", resp.Status)
	}
}

// TestAttackSlowBodies: bodies that are promised and do not come, also where no
// route would read them: to who is not logged in, to routes that do not exist, to
// routes without a body.
func TestAttackSlowBodies(t *testing.T) {
	in := hurried(t, Patience{Body: 50 * time.Millisecond})
	for _, line := range []string{
		"POST /v1/rooms", "PUT /v1/snapshot", "PATCH /v1/blobs/00000000000000000000000000000000", "GET /v1/info", "GET /v1/connect",
		"POST /v1/nothing", "POST /nothing", "POST //v1/rooms", "POST /v1/../rooms", "OPTIONS /v1/info", "CONNECT x:1", "DELETE /v1/info",
	} {
		for _, size := range []string{
			"Content-Length: 100", "Content-Length: 200000", "Content-Length: 1000000000", "Transfer-Encoding: chunked",
			"Content-Length: 100\r\nExpect: 100-continue",
		} {
			conn := in.raw(t, line+" HTTP/1.1\r\nHost: x\r\n"+size+"\r\n\r\n")
			answer := ends(t, conn)
			slow := strings.Contains(answer, "HTTP/1.1 503") && strings.Contains(answer, "too slowly")
			if !slow && !strings.Contains(answer, "HTTP/1.1 4") || !strings.Contains(answer, "application/problem+json") {
				t.Errorf("%s, %s: %q", line, size, answer)
			}
		}
	}
	in.serves(t)
}

// TestAttackUploadThatStalls: the body of an upload that stands still, before its first
// byte, in the midst, or behind a refusal, is answered in its time, and what came counts.
func TestAttackUploadThatStalls(t *testing.T) {
	in := hurried(t, Patience{Body: 50 * time.Millisecond, Piece: 50 * time.Millisecond})
	ada := in.enrolled("ada")
	for name, c := range map[string]struct {
		offset   int
		size     string
		sent     int
		received int64
		answer   delivery.Code
	}{
		"nothing comes":          {0, "Content-Length: 1000", 0, 0, delivery.CodeRetry},
		"one byte comes":         {0, "Content-Length: 1000", 1, 1, delivery.CodeRetry},
		"one chunk comes":        {0, "Transfer-Encoding: chunked", 0, 0, delivery.CodeRetry},
		"it has begun elsewhere": {7, "Content-Length: 1000", 1, 0, delivery.CodeConflict},
		"more is promised":       {0, "Content-Length: 100000", 20_000, 20_000, delivery.CodeRetry},
		"it is too long":         {0, "Content-Length: 200000", 100_001, 100_000, delivery.CodeTooLarge},
	} {
		var v delivery.BlobView
		check(t, ada.json(delivery.RouteUpload, delivery.BlobRequest{Size: 100_000}, &v))
		conn := in.raw(t, fmt.Sprintf("PATCH /v1/blobs/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nUpload-Offset: %d\r\n%s\r\n\r\n%s",
			v.ID, ada.token, c.offset, c.size, strings.Repeat("x", c.sent)))
		if answer := ends(t, conn); !strings.Contains(answer, `"code":"`+string(c.answer)+`"`) {
			t.Errorf("%s: %q", name, answer)
		}
		if s := ada.state(t, v.ID); s.Received != c.received {
			t.Errorf("%s: %d bytes count, want %d", name, s.Received, c.received)
		}
	}
	in.serves(t)
}

// TestAttackReaderThatTakesNothing: who asks and does not read the answer is hung
// up on, whatever the answer is.
func TestAttackReaderThatTakesNothing(t *testing.T) {
	in := hurried(t, Patience{Take: 50 * time.Millisecond})
	d := in.enrolled("ada")
	blob := d.blob(t, bytes.Repeat([]byte("x"), 3*takePiece))
	between := pipes{make(chan net.Conn, 1)}
	t.Cleanup(func() { close(between.conns) })
	go func() { _ = http.Serve(between, in.Handler()) }() // ends with the listener
	for _, target := range []string{"/openapi.json", "/v1/info", "/nothing", "/v1/blobs/" + blob.String()} {
		conn, err := between.dial(t.Context(), "", "")
		check(t, err)
		check(t, conn.SetDeadline(time.Now().Add(patience)))
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", target, d.token)
		check(t, err)
		// Nobody reads what is written here: it goes through when the other end closes.
		if _, err = conn.Write(make([]byte, 1<<20)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v", target, err)
		}
		check(t, conn.Close())
	}
}

// TestSlowReadersAreServed: who reads slowly, and reads, gets all of it.
func TestSlowReadersAreServed(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	data := bytes.Repeat([]byte("slow"), takePiece)
	blob := d.blob(t, data)
	conn := in.raw(t, fmt.Sprintf("GET /v1/blobs/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", blob, d.token))
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
	check(t, err)
	defer resp.Body.Close()
	var got bytes.Buffer
	for piece := make([]byte, 100); err == nil; {
		var n int
		n, err = resp.Body.Read(piece)
		got.Write(piece[:n])
	}
	if !errors.Is(err, io.EOF) || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("%d of %d bytes, %v", got.Len(), len(data), err)
	}
}

// TestAttackPaths: roundabout paths reach no route, and nobody is sent elsewhere.
func TestAttackPaths(t *testing.T) {
	in := newWorld(t).start()
	for _, target := range []string{
		"/v1//info", "//v1/info", "/v1/./info", "/v1/x/../info", "/v1/%2e%2e/v1/info", "/v1/info/", "/v1/info/.", "/v1/info%2f", "/v1/info%00",
		"/V1/info", "/v1\\info", "//evil.example/v1/info", "/\\evil.example", "/v1/rooms/..%2f..%2f..%2fetc%2fpasswd", "/v1/blobs/%2e%2e%2f%2e%2e",
		"/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/" + strings.Repeat("a/", 10_000), "/v1/" + strings.Repeat("%2e%2e%2f", 5_000), "*",
	} {
		conn := in.raw(t, "GET "+target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		answer := ends(t, conn)
		if !strings.HasPrefix(answer, "HTTP/1.1 4") || strings.Contains(answer, "\nLocation:") || !strings.Contains(answer, "application/problem+json") {
			t.Errorf("%.60s: %.300q", target, answer)
		}
	}
}

// TestAttackChunks: bodies in chunks that are none, and what is between two
// requests when their ends are not agreed on.
func TestAttackChunks(t *testing.T) {
	in := hurried(t, Patience{Body: time.Second})
	const head = "POST /v1/challenges HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
	const hidden = "GET /v1/info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for name, text := range map[string]string{
		"no number":          head + "\r\nzz\r\n{}\r\n0\r\n\r\n" + hidden,
		"negative":           head + "\r\n-1\r\n{}\r\n0\r\n\r\n" + hidden,
		"2^64":               head + "\r\n10000000000000000\r\n{}\r\n0\r\n\r\n" + hidden,
		"2^63":               head + "\r\n8000000000000000\r\n{}\r\n",
		"no line":            head + "\r\n" + strings.Repeat("0", 1<<20),
		"endless extension":  head + "\r\n2;" + strings.Repeat("x", 1<<20) + "\r\n{}\r\n0\r\n\r\n" + hidden,
		"many extensions":    head + "\r\n" + strings.Repeat("1;"+strings.Repeat("y", 4000)+"\r\n \r\n", 100) + "0\r\n\r\n" + hidden,
		"no end of a chunk":  head + "\r\n2\r\n{}x0\r\n\r\n" + hidden,
		"two lengths":        "POST /v1/challenges HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} " + hidden,
		"negative length":    "POST /v1/challenges HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n\r\n{}" + hidden,
		"signed length":      "POST /v1/challenges HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}" + hidden,
		"unknown coding":     "POST /v1/challenges HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + hidden,
		"coding twice":       head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + hidden,
		"a space in a name":  "POST /v1/challenges HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + hidden,
		"no host":            "GET /v1/info HTTP/1.1\r\n\r\n" + hidden,
		"two hosts":          "GET /v1/info HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + hidden,
		"no HTTP":            "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 500) + "\r\n\r\n" + hidden,
		"HTTP/2 unannounced": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hidden,
		"HTTP/9":             "GET /v1/info HTTP/9.1\r\nHost: x\r\n\r\n" + hidden,
	} {
		conn := in.raw(t, "")
		_, _ = io.WriteString(conn, text) // it may hang up before it has all
		if answer := ends(t, conn); strings.Contains(answer, "HTTP/1.1 200") {
			t.Errorf("%s: %.300q", name, answer)
		}
	}
	// Both at once: the chunks count (RFC 9112 §6.3), so that what is behind them is
	// the next request to everybody.
	conn := in.raw(t, head+"Content-Length: 12\r\n\r\n2\r\n[]\r\n0\r\n\r\n"+hidden)
	if answer := ends(t, conn); !strings.HasPrefix(answer, "HTTP/1.1 400") || strings.Count(answer, "HTTP/1.1 ") != 2 || strings.Count(answer, "HTTP/1.1 200") != 1 {
		t.Errorf("a length and chunks: %.500q", answer)
	}
	in.serves(t)
}
