package appends

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls/wire"
)

// The load: 64 devices send entries of 512 bytes to 2,000 rooms.
const (
	rooms   = 2000
	senders = 64
	size    = 512
)

// BenchmarkAppends measures POST /v1/rooms/{room}/append. An operation is one
// acknowledged entry; each sender waits for its answer before it sends again.
func BenchmarkAppends(b *testing.B) {
	s := startService(b)
	all := s.people(b, senders, rooms)
	before, own := s.cpu(b), ownCPU(b)
	took := make([][]time.Duration, senders)
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() {
			for n := i; n < b.N; n += senders {
				start := time.Now()
				if err := p.append(s.url, p.rooms[n/senders%len(p.rooms)]); err != nil {
					b.Error(err)
					return
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	every := slices.Sorted(slices.Values(slices.Concat(took...)))
	n := float64(len(every))
	b.ReportMetric(n/b.Elapsed().Seconds(), "appends/s")
	b.ReportMetric(ms(every, 0.50), "p50-ms")
	b.ReportMetric(ms(every, 0.99), "p99-ms")
	b.ReportMetric((s.cpu(b)-before).Seconds()/n*1e4, "server-cpu-s/10k")
	b.ReportMetric((ownCPU(b)-own).Seconds()/n*1e4, "load-cpu-s/10k")
}

// ms is a quantile of sorted durations in milliseconds.
func ms(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Microseconds()) / 1000
}

// append sends one entry that the service has not seen. It is a PrivateMessage
// of the room's first epoch whose ciphertext is random: the service cannot open
// it and does not have to.
func (p *person) append(base string, room delivery.RoomID) error {
	ciphertext := make([]byte, size)
	if _, err := rand.Read(ciphertext); err != nil {
		return err
	}
	entry := wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatPrivateMessage, PrivateMessage: &wire.PrivateMessage{
		GroupID: room[:], ContentType: wire.ContentTypeApplication, EncryptedSenderData: ciphertext[:28], Ciphertext: ciphertext[:size-80],
	}})
	body := (&delivery.AppendRequest{Entry: entry}).AppendTo(nil)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, base+"/v1/rooms/"+room.String()+"/append", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", delivery.BinaryType)
	req.Header.Set("Authorization", "Bearer "+p.token)
	res, err := load.Do(req)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(res.Body)
	if closed := res.Body.Close(); err == nil {
		err = closed
	}
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", res.StatusCode, answer)
	}
	return err
}

// load keeps one connection for each sender.
var load = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders, MaxConnsPerHost: senders}}

func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
