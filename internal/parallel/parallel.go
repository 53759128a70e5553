// Package parallel spreads the parts of one piece of work over the processors. It
// keeps no goroutine: all that it starts have ended when [Do], [Work.Finish] or
// [Work.Cancel] returns.
//
// Start reading at Do; Begin is for work that can begin before its results are
// wanted.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Do calls do once for each of the parts, which are numbered from 0, on up to
// GOMAXPROCS processors, the caller's among them, and returns when all are done.
// Calls for different parts run side by side.
func Do(parts int, do func(part int)) { start(parts, parts-1, do).Finish() }

// InTurn is [Do] by the caller alone, in the parts' order.
func InTurn(parts int, do func(part int)) { start(parts, 0, do).Finish() }

// Work is a number of parts that do not depend on one another. Whoever is free
// takes the next one: nobody waits for a processor that is slow to wake up while
// there is something to do. A Work is for one goroutine.
type Work struct {
	parts int64
	do    func(part int)

	next    atomic.Int64 // the part that is to be taken next
	helpers sync.WaitGroup
}

// Begin has the other processors begin what [Work.Finish] finishes.
func Begin(parts int, do func(part int)) *Work { return start(parts, parts, do) }

func start(parts, helpers int, do func(part int)) *Work {
	w := &Work{parts: int64(parts), do: do}
	for range min(runtime.GOMAXPROCS(0)-1, helpers) {
		w.helpers.Go(w.work)
	}
	return w
}

// work does parts that nobody has taken until there are none.
func (w *Work) work() {
	for part := w.next.Add(1) - 1; part < w.parts; part = w.next.Add(1) - 1 {
		w.do(int(part))
	}
}

// Finish does the parts that are left, together with the others, and returns when
// all are done: what they wrote can be read then.
func (w *Work) Finish() {
	w.work()
	w.helpers.Wait()
}

// Cancel lets nobody take another part, and returns when those that were taken
// are done. After Finish it does nothing.
func (w *Work) Cancel() {
	w.next.Store(w.parts)
	w.helpers.Wait()
}
