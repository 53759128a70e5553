package appends

import (
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
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
	all := connectAll(b, s.url, s.people(b, senders, rooms))
	s.profile(b)
	before, own := s.cpu(b), ownCPU(b)
	took := make([][]time.Duration, senders)
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() {
			source := rand.NewChaCha8([32]byte{byte(i)})
			random := rand.New(source)
			for n := i; n < b.N; n += senders {
				start := time.Now()
				if err := p.append(random.IntN(len(p.rooms)), source); err != nil {
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

func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
