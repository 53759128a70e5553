package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// The load of the benchmarks: what a busy service of a few thousand people sees.
const (
	BenchRooms   = 2000
	BenchWriters = 64
	BenchBytes   = 512
)

// BenchmarkAppend measures durable appends: BenchWriters goroutines, each
// choosing one of BenchRooms rooms at random for each entry of BenchBytes bytes,
// with the look-ups that a service makes inside the transaction. It reports
// appends a second, the 99th percentile of one append, and the allocations of
// each, those of the load itself included (three).
func BenchmarkAppend(b *testing.B, open Opener) {
	s, err := open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}()
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for n := w; n < BenchRooms; n += 16 {
				if err := s.CreateRoom(b.Context(), newRoom(n, 10)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	times, err := load(b.Context(), s, b.N)
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	slices.Sort(times)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}

// load makes n appends and says how long each took.
func load(ctx context.Context, s delivery.Store, n int) ([]time.Duration, error) {
	var next atomic.Int64
	times := make([]time.Duration, n)
	errs := make([]error, BenchWriters)
	var wg sync.WaitGroup
	for w := range BenchWriters {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), uint64(n)))
			body := make([]byte, BenchBytes)
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				binary.BigEndian.PutUint64(body, uint64(i))
				binary.BigEndian.PutUint64(body[8:], r.Uint64())
				e := delivery.NewEntry{
					Device: deviceID(10), Hash: sha256.Sum256(body), Kind: delivery.KindApplication, AcceptedMS: now + int64(i), Bytes: body,
				}
				began := time.Now()
				if errs[w] = s.WithRoom(ctx, roomID(r.IntN(BenchRooms)), func(tx delivery.RoomTx) error { return lookAndAppend(tx, e) }); errs[w] != nil {
					return
				}
				times[i] = time.Since(began)
			}
		})
	}
	wg.Wait()
	return times, errors.Join(errs...)
}

func lookAndAppend(tx delivery.RoomTx, e delivery.NewEntry) error {
	if _, dup, err := tx.Duplicate(e.Device, e.Hash); dup || err != nil {
		return fmt.Errorf("duplicate: %v, %w", dup, err)
	}
	if r := tx.Room(); r.Epoch != e.Epoch || r.Status != delivery.RoomOpen {
		return fmt.Errorf("room is %+v", r)
	}
	_, err := tx.Append(e)
	return err
}

// BenchmarkHotRoom measures commits of one room: 32 committers race for each
// epoch, one wins it and 31 are refused. It reports epochs a second and the 99th
// percentile of a refusal.
func BenchmarkHotRoom(b *testing.B, open Opener) {
	s, err := open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}()
	if err := s.CreateRoom(b.Context(), newRoom(1, 10)); err != nil {
		b.Fatal(err)
	}
	const committers = 32
	refusals := make([]time.Duration, 0, b.N*committers)
	var mu sync.Mutex // guards refusals
	b.ResetTimer()
	for at := range uint64(b.N) {
		var wg sync.WaitGroup
		var won atomic.Int64
		for w := range committers {
			wg.Go(func() {
				e := message(10, int(at)*committers+w, at)
				e.Kind = delivery.KindCommit
				began := time.Now()
				err := s.WithRoom(b.Context(), roomID(1), func(tx delivery.RoomTx) error {
					if tx.Room().Epoch != at {
						return delivery.ErrChanged
					}
					if _, err := tx.Append(e); err != nil {
						return err
					}
					return tx.Advance(delivery.Advance{Epoch: at + 1, Delta: make([]byte, 2048), GroupInfo: make([]byte, 1024)})
				})
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, delivery.ErrChanged):
					took := time.Since(began)
					mu.Lock()
					refusals = append(refusals, took)
					mu.Unlock()
				default:
					b.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			b.Fatalf("epoch %d has %d winners", at, won.Load())
		}
	}
	b.StopTimer()
	slices.Sort(refusals)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "epochs/s")
	b.ReportMetric(float64(refusals[len(refusals)*99/100].Microseconds())/1000, "refusal-p99-ms")
}
