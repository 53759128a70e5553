package appends

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// idleFor is how long a started service is left alone before its memory is read.
const idleFor = 5 * time.Second

// BenchmarkStart measures a cold start on a directory that is in use already:
// from starting the process until its first message of 512 bytes is acknowledged,
// which is after its fsync, and what the process holds when nothing happens.
// nats-server keeps a JetStream stream on the same disk, synced at every message.
func BenchmarkStart(b *testing.B) {
	b.Run("compax", func(b *testing.B) {
		dir := b.TempDir()
		start := func() *service { return startProcess(b, exec.Command(os.Args[0]), serveDir+"="+dir) }
		s := start()
		ada := s.people(b, 1, 1)[0]
		s.stop()
		random := rand.NewChaCha8([32]byte{})
		measureStart(b, start, func(s *service) error {
			c, err := ada.connect(s.url)
			if err != nil {
				return err
			}
			return errors.Join(c.append(0, random), c.conn.Close())
		})
	})
	b.Run("nats-server", func(b *testing.B) {
		dir, binary := b.TempDir(), filepath.Join(b.TempDir(), "nats")
		build := exec.Command("go", "build", "-o", binary, ".")
		build.Dir = "../tools/nats"
		if out, err := build.CombinedOutput(); err != nil {
			b.Fatalf("building ../tools/nats: %v\n%s", err, out)
		}
		start := func() *service { return startProcess(b, exec.Command(binary, dir)) }
		s := start()
		check(b, natsRequest(s.url, "$JS.API.STREAM.CREATE.rooms",
			[]byte(`{"name":"rooms","subjects":["room.*"],"retention":"limits","discard":"old","storage":"file","num_replicas":1}`)))
		s.stop()
		entry := make([]byte, size)
		measureStart(b, start, func(s *service) error { return natsRequest(s.url, "room.1", entry) })
	})
}

// measureStart starts and stops a service, and says what the last one holds.
func measureStart(b *testing.B, start func() *service, first func(*service) error) {
	b.Helper()
	var took []time.Duration
	var resident float64
	b.ResetTimer()
	for i := range b.N {
		began := time.Now()
		s := start()
		err := first(s)
		took = append(took, time.Since(began))
		b.StopTimer()
		check(b, err)
		if i == b.N-1 {
			<-time.After(idleFor) // idle is what is measured
			resident = residentMiB(b, s.pid)
		}
		s.stop()
		b.StartTimer()
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(ms(took, 0.50), "median-ms")
	b.ReportMetric(ms(took, 0), "best-ms")
	b.ReportMetric(resident, "idle-MiB")
}

// residentMiB is VmRSS of a process.
func residentMiB(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	check(b, err)
	_, after, found := strings.Cut(string(status), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(after, &kib); !found || err != nil {
		b.Fatalf("no VmRSS of process %d: %v", pid, err)
	}
	return kib / 1024
}

// natsRequest sends one message and waits for its answer, which for a message of
// a stream says that it is stored.
func natsRequest(address, subject string, body []byte) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "CONNECT {\"verbose\":false}\r\nSUB answer 1\r\nPUB %s answer %d\r\n%s\r\n", subject, len(body), body); err != nil {
		return err
	}
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(line, "-ERR"):
			return fmt.Errorf("nats-server: %s", line)
		case strings.HasPrefix(line, "MSG "):
			answer, err := r.ReadString('\n')
			if err == nil && strings.Contains(answer, `"error"`) {
				err = fmt.Errorf("nats-server: %s", answer)
			}
			return err
		}
	}
}
