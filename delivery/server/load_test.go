package server

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls/wire"
)

// The load of the appends that docs/benchmarks.md speaks of: 2,000 rooms, 64
// senders that each wait for their answer, entries of 512 bytes, through the
// whole HTTP API into a store that answers after its fsync. Sender and service
// share this process and its cores; the senders write requests by hand and read
// answers line by line, so that the service is what is measured.
const (
	loadRooms   = 2000
	loadSenders = 64
	loadEntry   = 512
)

func BenchmarkAppendHTTP(b *testing.B) {
	w := newWorld(b)
	w.config.Limits.Work.Off = true
	w.config.Limits.Buckets = map[string]Bucket{"room": {}}
	in := w.start()
	senders := make([]*sender, loadSenders)
	for i := range senders {
		m := in.member(newPerson(fmt.Sprint(i)).attest(b, fmt.Sprint(i)))
		s := &sender{token: m.token}
		for range loadRooms / loadSenders {
			s.rooms = append(s.rooms, m.create(delivery.RoomGroup))
		}
		conn, err := net.Dial("tcp", strings.TrimPrefix(in.http.URL, "http://"))
		check(b, err)
		b.Cleanup(func() { _ = conn.Close() })
		s.conn, s.in = conn, bufio.NewReaderSize(conn, 4096)
		senders[i] = s
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	start := time.Now()
	for _, s := range senders {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if err := s.append(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	b.StopTimer()
	var all []time.Duration
	for _, s := range senders {
		all = append(all, s.took...)
	}
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/took.Seconds(), "appends/s")
	if len(all) > 0 {
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	}
}

// sender is one device that appends over one connection.
type sender struct {
	token string
	rooms []delivery.RoomID
	conn  net.Conn
	in    *bufio.Reader
	n     int
	out   []byte
	took  []time.Duration
}

func (s *sender) append() error {
	room := s.rooms[s.n%len(s.rooms)]
	s.n++
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	ciphertext := make([]byte, loadEntry-80)
	copy(ciphertext, random[:])
	m := wire.MLSMessage{WireFormat: wire.WireFormatPrivateMessage, PrivateMessage: &wire.PrivateMessage{
		GroupID: room[:], ContentType: wire.ContentTypeApplication, EncryptedSenderData: random[:12], Ciphertext: ciphertext,
	}}
	binary.BigEndian.PutUint64(ciphertext[16:], uint64(s.n))
	body := (&delivery.AppendRequest{Entry: wire.Marshal(&m)}).AppendTo(nil)
	s.out = append(s.out[:0], "POST /v1/rooms/"...)
	s.out = append(s.out, room.String()...)
	s.out = append(s.out, "/append HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "...)
	s.out = append(s.out, s.token...)
	s.out = append(s.out, "\r\nContent-Length: "...)
	s.out = strconv.AppendInt(s.out, int64(len(body)), 10)
	s.out = append(append(s.out, "\r\n\r\n"...), body...)
	start := time.Now()
	if _, err := s.conn.Write(s.out); err != nil {
		return err
	}
	status, err := s.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	if string(status[9:12]) != "200" {
		rest, _ := s.in.Peek(s.in.Buffered())
		return fmt.Errorf("%s%s", status, rest)
	}
	length := 0
	for {
		line, err := s.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			break
		}
		if v, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			if length, err = strconv.Atoi(strings.TrimSpace(v)); err != nil {
				return err
			}
		}
	}
	if _, err := io.CopyN(io.Discard, s.in, int64(length)); err != nil {
		return err
	}
	s.took = append(s.took, time.Since(start))
	return nil
}
