// Package bustest is the contract of [delivery.Bus] and [delivery.Buckets]:
// each sentence of the ports is a test here, and every bus runs all of them. It
// is for tests only. Begin reading at [Bus] and [Buckets].
package bustest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// patience is how long a test waits for a hint, or for what is to become so. All
// of it takes milliseconds; only a fault waits that long, also on a loaded machine.
const patience = time.Minute

func device(n byte) identity.DeviceID { return identity.DeviceID{n, 1, 2, 3} }

// ear is a socket that keeps what it hears.
type ear struct {
	t     testing.TB
	hints chan delivery.Hint
}

func listen(t testing.TB, b delivery.Bus, d identity.DeviceID) (*ear, func()) {
	t.Helper()
	e := &ear{t: t, hints: make(chan delivery.Hint, 1000)}
	detach, err := b.Attach(d, func(h delivery.Hint) { e.hints <- h })
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	return e, detach
}

func (e *ear) hears(want delivery.Hint) {
	e.t.Helper()
	select {
	case got := <-e.hints:
		got.Entry = nil // rides along only inside one process
		if !reflect.DeepEqual(got, want) {
			e.t.Fatalf("heard %+v, want %+v", got, want)
		}
	case <-time.After(patience):
		e.t.Fatalf("did not hear %+v within %v", want, patience)
	}
}

// hearsNothingBefore publishes a marker and demands that it is the next.
func (e *ear) hearsNothingBefore(b delivery.Bus, d identity.DeviceID) {
	e.t.Helper()
	marker := delivery.Hint{Kind: delivery.HintMail, Seq: 424242}
	publish(e.t, b, marker, d)
	e.hears(marker)
}

func publish(t testing.TB, b delivery.Bus, h delivery.Hint, to ...identity.DeviceID) {
	t.Helper()
	if err := b.Publish(t.Context(), to, h); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

// Bus runs the contract. fleet makes the buses of a fleet's instances, at
// least one; all are closed by the test.
func Bus(t *testing.T, fleet func(t testing.TB) []delivery.Bus) {
	start := func(t testing.TB) (first, last delivery.Bus) {
		buses := fleet(t)
		t.Cleanup(func() {
			for _, b := range buses {
				if err := b.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
		})
		return buses[0], buses[len(buses)-1]
	}
	hints := []delivery.Hint{
		{Kind: delivery.HintEntry, Room: delivery.RoomID{1, 2}, Seq: 7},
		{Kind: delivery.HintMail},
		{Kind: delivery.HintEphemeral, Room: delivery.RoomID{1, 2}, Payload: []byte("typing")},
		{Kind: delivery.HintRevoked},
		{Kind: delivery.HintSessions},
	}
	t.Run("a hint of each kind reaches the devices it is for, on any instance", func(t *testing.T) {
		a, b := start(t)
		e1, _ := listen(t, a, device(1))
		e2, _ := listen(t, b, device(2))
		other, _ := listen(t, b, device(3))
		for _, h := range hints {
			for _, from := range []delivery.Bus{a, b} {
				publish(t, from, h, device(1), device(2), device(99))
				e1.hears(h)
				e2.hears(h)
			}
		}
		other.hearsNothingBefore(a, device(3))
	})
	t.Run("all sockets of a device", func(t *testing.T) {
		a, b := start(t)
		e1, detach := listen(t, a, device(1))
		e2, _ := listen(t, a, device(1))
		e3, _ := listen(t, b, device(1))
		publish(t, a, hints[0], device(1))
		for _, e := range []*ear{e1, e2, e3} {
			e.hears(hints[0])
		}
		detach()
		publish(t, a, hints[1], device(1))
		e2.hears(hints[1])
		e3.hears(hints[1])
		if len(e1.hints) != 0 {
			t.Fatal("a detached socket was woken")
		}
	})
	t.Run("detaching twice, and out of order", func(t *testing.T) {
		a, _ := start(t)
		_, detach1 := listen(t, a, device(1))
		e2, detach2 := listen(t, a, device(1))
		detach1()
		detach1()
		publish(t, a, hints[0], device(1))
		e2.hears(hints[0])
		detach2()
		publish(t, a, hints[0], device(1))
	})
	t.Run("nobody to wake", func(t *testing.T) {
		a, _ := start(t)
		publish(t, a, hints[0], device(1))
		publish(t, a, hints[0])
	})
	t.Run("presence", func(t *testing.T) {
		a, b := start(t)
		listen(t, a, device(1))
		_, detach := listen(t, b, device(2))
		ask := []identity.DeviceID{device(3), device(2), device(1)}
		online := func(want ...identity.DeviceID) {
			t.Helper()
			var got []identity.DeviceID
			for deadline := time.Now().Add(patience); ; {
				var err error
				if got, err = a.Online(t.Context(), ask); err != nil {
					t.Fatalf("online: %v", err)
				}
				if reflect.DeepEqual(got, want) {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("online are %v, want %v", got, want)
				}
			}
		}
		online(device(2), device(1))
		detach()
		online(device(1))
	})
	t.Run("sockets of one device are bounded", func(t *testing.T) {
		a, _ := start(t)
		var detach func()
		for n := 0; ; n++ {
			d, err := a.Attach(device(1), func(delivery.Hint) {})
			if errors.Is(err, delivery.ErrLimit) {
				break
			}
			if err != nil || n > 10_000 {
				t.Fatalf("socket %d: %v", n, err)
			}
			detach = d
		}
		detach()
		if _, err := a.Attach(device(1), func(delivery.Hint) {}); err != nil {
			t.Fatalf("after one left: %v", err)
		}
	})
	t.Run("a socket may attach and detach when woken", func(t *testing.T) {
		a, _ := start(t)
		done := make(chan struct{})
		var detach func()
		var ready sync.WaitGroup
		ready.Add(1)
		detach, err := a.Attach(device(1), func(delivery.Hint) {
			ready.Wait()
			detach()
			if _, err := a.Attach(device(1), func(delivery.Hint) {}); err != nil {
				t.Errorf("attach: %v", err)
			}
			close(done)
		})
		if err != nil {
			t.Fatal(err)
		}
		ready.Done()
		publish(t, a, hints[0], device(1))
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatal("it did not return")
		}
	})
	t.Run("attaching, ringing and detaching at once", func(t *testing.T) {
		a, b := start(t)
		var wg sync.WaitGroup
		var rung atomic.Int64
		for n := range byte(16) {
			wg.Go(func() {
				for range 100 {
					detach, err := a.Attach(device(n%4), func(delivery.Hint) { rung.Add(1) })
					if err != nil {
						t.Errorf("attach: %v", err)
						return
					}
					if err := b.Publish(t.Context(), []identity.DeviceID{device(n % 4)}, hints[0]); err != nil {
						t.Errorf("publish: %v", err)
					}
					detach()
				}
			})
		}
		wg.Wait()
		if online, err := a.Online(t.Context(), []identity.DeviceID{device(0), device(1)}); err != nil || len(online) != 0 {
			t.Fatalf("left behind: %v, %v", online, err)
		}
	})
	t.Run("a context that has ended rings nobody", func(t *testing.T) {
		a, _ := start(t)
		e, _ := listen(t, a, device(1))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Publish(ctx, []identity.DeviceID{device(1)}, hints[0]); !errors.Is(err, context.Canceled) {
			t.Fatalf("publish says %v", err)
		}
		e.hearsNothingBefore(a, device(1))
	})
	t.Run("a closed bus says so", func(t *testing.T) {
		a, _ := start(t)
		e, detach := listen(t, a, device(1))
		if err := a.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		if err := a.Publish(t.Context(), []identity.DeviceID{device(1)}, hints[0]); err == nil {
			t.Error("it published")
		}
		if _, err := a.Attach(device(2), func(delivery.Hint) {}); err == nil {
			t.Error("it attached")
		}
		detach()
		if len(e.hints) != 0 {
			t.Error("it rang")
		}
	})
}

// Buckets runs the contract over what fleet makes: the buckets of a fleet's
// instances, at least one.
func Buckets(t *testing.T, fleet func(t testing.TB) []delivery.Buckets) {
	now := time.UnixMilli(1_790_000_000_000)
	take := func(t testing.TB, b delivery.Buckets, subject string, cost float64, at time.Duration) (bool, time.Duration) {
		t.Helper()
		ok, after, err := b.Take(t.Context(), subject, cost, 2, 10, now.Add(at)) // holds 10, refills 2 a second
		if err != nil {
			t.Fatalf("take: %v", err)
		}
		return ok, after
	}
	t.Run("a full bucket, spent and refilled", func(t *testing.T) {
		buckets := fleet(t)
		a, b := buckets[0], buckets[len(buckets)-1]
		for i, c := range []struct {
			cost  float64
			at    time.Duration
			ok    bool
			after time.Duration
		}{
			{4, 0, true, 0},
			{6, 0, true, 0},
			{1, 0, false, 500 * time.Millisecond},
			{1, 499 * time.Millisecond, false, time.Millisecond},
			{1, 501 * time.Millisecond, true, 0}, // nothing was spent by the refusals
			{10, 501 * time.Millisecond, false, 4999 * time.Millisecond},
			{10, time.Hour, true, 0}, // never more than burst
			{0.5, time.Hour, false, 250 * time.Millisecond},
			{0, time.Hour, true, 0},
			{11, 2 * time.Hour, false, 0}, // never
		} {
			ok, after := take(t, []delivery.Buckets{a, b}[i%2], "s", c.cost, c.at)
			if ok != c.ok || (after-c.after).Abs() > 10*time.Millisecond || (after == 0) != (c.after == 0) {
				t.Fatalf("take %d of %v at %v is %v, %v; want %v, %v", i, c.cost, c.at, ok, after, c.ok, c.after)
			}
		}
	})
	t.Run("what was promised is there", func(t *testing.T) {
		b := fleet(t)[0]
		take(t, b, "s", 10, 0)
		for _, cost := range []float64{0.1, 1, 3, 7, 10} {
			at := time.Hour
			take(t, b, "s", 10, at)
			_, after := take(t, b, "s", cost, at)
			if ok, _ := take(t, b, "s", cost, at+after); !ok {
				t.Fatalf("%v was not there after %v", cost, after)
			}
			now = now.Add(time.Hour)
		}
	})
	t.Run("subjects are apart", func(t *testing.T) {
		b := fleet(t)[0]
		take(t, b, "one", 10, 0)
		if ok, _ := take(t, b, "two", 10, 0); !ok {
			t.Fatal("one subject spent another's budget")
		}
	})
	t.Run("a clock that goes back gives nothing", func(t *testing.T) {
		b := fleet(t)[0]
		take(t, b, "s", 10, time.Minute)
		if ok, _ := take(t, b, "s", 1, 0); ok {
			t.Fatal("it gave")
		}
		if ok, _ := take(t, b, "s", 1, time.Minute+time.Second); !ok {
			t.Fatal("it does not refill any more")
		}
	})
	t.Run("many at once spend no more than there is", func(t *testing.T) {
		buckets := fleet(t)
		var wg sync.WaitGroup
		var given atomic.Int64
		for i := range 100 {
			wg.Go(func() {
				if ok, _ := take(t, buckets[i%len(buckets)], "s", 1, 0); ok {
					given.Add(1)
				}
			})
		}
		wg.Wait()
		if given.Load() != 10 {
			t.Fatalf("gave %d of 10", given.Load())
		}
	})
	t.Run("a budget may change", func(t *testing.T) {
		b := fleet(t)[0]
		take(t, b, "s", 2, 0) // 8 are left
		ok, _, err := b.Take(t.Context(), "s", 5, 2, 4, now)
		if err != nil || ok {
			t.Fatalf("more than the new burst was there: %v, %v", ok, err)
		}
		ok, _, err = b.Take(t.Context(), "s", 4, 2, 4, now)
		if err != nil || !ok {
			t.Fatalf("the new burst was not there: %v, %v", ok, err)
		}
	})
	t.Run("without a refill it never comes back", func(t *testing.T) {
		b := fleet(t)[0]
		for i, want := range []bool{true, false} {
			ok, after, err := b.Take(t.Context(), "s", 3, 0, 5, now.Add(time.Duration(i)*time.Hour))
			if err != nil || ok != want || after != 0 {
				t.Fatalf("take %d is %v, %v, %v", i, ok, after, err)
			}
		}
	})
	t.Run("a subject that is held back stays so while others flood in", func(t *testing.T) {
		b := fleet(t)[0]
		take(t, b, "spent", 10, 0)
		for n := range 5000 {
			take(t, b, fmt.Sprint("flood ", n), 1, 0)
		}
		if ok, _ := take(t, b, "spent", 1, 0); ok {
			t.Fatal("the flood washed it away")
		}
	})
}
