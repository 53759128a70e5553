// Package batch is group commit: callers wait in a lane, and its one goroutine
// takes what waits and has the store commit it as one transaction, with one
// flush. Nobody is answered before that commit. When it fails, each piece runs
// once more by itself and gets its own answer.
//
// It knows neither databases nor what a piece of work is: the store says how a
// batch and a single piece are committed. It never drops work that began, and
// never runs two pieces of one lane at once. Begin reading at [Lane.Do].
package batch

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Piece is the work of one caller.
type Piece[W any] struct {
	Work  W
	Err   error // what came of it
	Panic any   // what it panicked with; goes on in the caller's goroutine

	state atomic.Int32 // waiting, then taken or withdrawn
	done  chan struct{}
}

const (
	waiting int32 = iota
	taken
	withdrawn
)

// take claims a piece unless its caller has withdrawn it.
func (p *Piece[W]) take() bool { return p.state.CompareAndSwap(waiting, taken) }

// Committer is what a store does with pieces. It sets their Err and Panic; both
// methods are called from the lane's goroutine alone.
type Committer[W any] interface {
	// Together commits a batch in one transaction. It gets the pieces by Next, one
	// at least; what it does not ask for waits for the next batch. An error means
	// that nothing of the batch is durable.
	Together(b *Batch[W]) error
	// Alone commits one piece of a batch for which Together failed. The piece's
	// Err and Panic are nil again.
	Alone(p *Piece[W])
}

// Lane is a goroutine and its queue.
type Lane[W any] struct {
	store Committer[W]
	most  int
	over  error
	queue chan *Piece[W]

	closing sync.RWMutex // held shared while sending to queue
	closed  bool         // guarded by closing
	ended   chan struct{}
}

// Start begins a lane whose batches have at most most pieces, which bounds the
// wait of a batch's first; as many may wait behind it before Do does. over is
// what Do returns after Close.
func Start[W any](store Committer[W], most int, over error) *Lane[W] {
	l := &Lane[W]{store: store, most: most, over: over, queue: make(chan *Piece[W], most), ended: make(chan struct{})}
	go l.loop()
	return l
}

// Do runs a piece of work and returns once it is durable, or has changed
// nothing. A context that ends takes back what has not begun; what has begun
// is waited for, because its outcome matters.
func (l *Lane[W]) Do(ctx context.Context, work W) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := &Piece[W]{Work: work, done: make(chan struct{})}
	if err := l.send(ctx, p); err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		if p.state.CompareAndSwap(waiting, withdrawn) {
			return ctx.Err()
		}
		<-p.done
	}
	if p.Panic != nil {
		panic(p.Panic)
	}
	return p.Err
}

func (l *Lane[W]) send(ctx context.Context, p *Piece[W]) error {
	l.closing.RLock()
	defer l.closing.RUnlock()
	if l.closed {
		return l.over
	}
	select {
	case l.queue <- p:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Waiting is how many pieces wait now, withdrawn ones included.
func (l *Lane[W]) Waiting() int { return len(l.queue) }

// Close refuses new work, finishes what was accepted, and ends the goroutine.
func (l *Lane[W]) Close() {
	l.closing.Lock()
	if !l.closed {
		l.closed = true
		close(l.queue)
	}
	l.closing.Unlock()
	<-l.ended
}

func (l *Lane[W]) loop() {
	defer close(l.ended)
	b := &Batch[W]{lane: l}
	for p := range l.queue {
		if !p.take() {
			continue
		}
		b.pieces, b.given = append(b.pieces[:0], p), 0
		err := l.store.Together(b)
		for _, p := range b.pieces {
			if err != nil {
				p.Err, p.Panic = nil, nil
				l.store.Alone(p)
			}
		}
		for _, p := range b.pieces {
			close(p.done)
		}
		clear(b.pieces)
	}
}

// Batch is the pieces that one transaction commits.
type Batch[W any] struct {
	lane   *Lane[W]
	pieces []*Piece[W] // the first, and those that Next took
	given  int         // how many of them Next returned
}

// Next is the next piece of the batch, nil when nothing waits or the batch is
// full. A batch grows while it runs: before Next says that nothing waits it lets
// every goroutine run that can, once, for what they bring shares the flush. That
// takes no time when there are none; Next never waits for a clock.
func (b *Batch[W]) Next() *Piece[W] {
	for yielded := false; b.given == len(b.pieces); {
		if len(b.pieces) == b.lane.most {
			return nil
		}
		select {
		case p := <-b.lane.queue: // nil once closed and empty
			if p == nil {
				return nil
			}
			if p.take() {
				b.pieces = append(b.pieces, p)
			}
		default:
			if yielded {
				return nil
			}
			runtime.Gosched()
			yielded = true
		}
	}
	b.given++
	return b.pieces[b.given-1]
}

// Pieces are those that Next gave.
func (b *Batch[W]) Pieces() []*Piece[W] { return b.pieces[:b.given] }
