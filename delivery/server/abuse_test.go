package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/identity"
)

// TestBodiesThatNeverComeAreGivenUp: a head that promises a body, small or large,
// and then silence: the connection is let go of, also before anybody logged in.
func TestBodiesThatNeverComeAreGivenUp(t *testing.T) {
	whole := bodyTime
	t.Cleanup(func() { bodyTime = whole }) // after the service has ended
	bodyTime = 50 * time.Millisecond
	in := newWorld(t).start()
	for _, size := range []string{"Content-Length: 100", "Content-Length: 60000", "Transfer-Encoding: chunked"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(in.http.URL, "http://"))
		check(t, err)
		_, err = fmt.Fprintf(conn, "POST /v1/challenges HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", size)
		check(t, err)
		check(t, conn.SetReadDeadline(time.Now().Add(20*time.Second)))
		answer, err := io.ReadAll(conn)
		if err != nil || !bytes.Contains(answer, []byte("bad_request")) {
			t.Errorf("%s: %q, %v", size, answer, err)
		}
		check(t, conn.Close())
	}
}

// TestEntriesAtTheSameMomentPayForEachOther: an entry counts from when its price
// is asked, so that a burst in parallel is not free; what is not paid does not
// count.
func TestEntriesAtTheSameMomentPayForEachOther(t *testing.T) {
	var u usages
	u.init()
	at := time.Unix(3600, 0)
	refused := errors.New("not paid")
	var inner, outer int
	err := u.take(identity.DeviceID{1}, 100, at, func(messages, bytes int) error {
		outer = messages
		return u.take(identity.DeviceID{1}, 100, at, func(messages, bytes int) error {
			inner = messages
			if bytes != 200 {
				t.Errorf("the second of two counts %d bytes", bytes)
			}
			return refused
		})
	})
	if !errors.Is(err, refused) || outer != 1 || inner != 2 {
		t.Errorf("%v, %d, %d", err, outer, inner)
	}
	check(t, u.take(identity.DeviceID{1}, 1, at, func(messages, bytes int) error {
		if messages != 1 || bytes != 1 {
			t.Errorf("what was not paid counts: %d messages, %d bytes", messages, bytes)
		}
		return nil
	}))
}
