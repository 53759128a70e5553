package parallel

import (
	"runtime"
	"sync/atomic"
	"testing"
)

func TestEveryPartIsDoneOnce(t *testing.T) {
	done := func(all func(int, func(int))) func(int, func(int)) *Work {
		return func(parts int, do func(int)) *Work {
			all(parts, do)
			return start(0, 0, do)
		}
	}
	for _, begin := range []func(int, func(int)) *Work{Begin, done(Do), done(InTurn)} {
		for _, parts := range []int{0, 1, 2, 3, 100} {
			times := make([]atomic.Int32, parts)
			w := begin(parts, func(part int) { times[part].Add(1) })
			w.Finish()
			w.Cancel()
			for i := range times {
				if n := times[i].Load(); n != 1 {
					t.Errorf("part %d of %d was done %d times", i, parts, n)
				}
			}
		}
	}
}

func TestWorkBeginsBeforeFinish(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	began := make(chan struct{})
	w := Begin(1, func(int) { close(began) })
	<-began
	w.Finish()
}

func TestNothingRunsAfterCancel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for range 100 {
		var running, done atomic.Int32
		w := Begin(1000, func(int) {
			running.Add(1)
			runtime.Gosched()
			running.Add(-1)
			done.Add(1)
		})
		w.Cancel()
		if n := running.Load(); n != 0 {
			t.Fatalf("%d parts run after Cancel", n)
		}
		before := done.Load()
		w.Finish()
		if after := done.Load(); after != before {
			t.Fatalf("Finish did %d parts after Cancel", after-before)
		}
	}
}
