package batch

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
)

var (
	errOver   = errors.New("over")
	errMedium = errors.New("medium")
)

// fake is a store whose pieces are numbers. Together stops at a gate, so that a
// test decides what waits meanwhile.
type fake struct {
	gate    chan error // what Together returns
	begun   chan struct{}
	batches [][]int // what each Together was given
	alone   []int
}

func newFake() *fake { return &fake{gate: make(chan error), begun: make(chan struct{})} }

func (f *fake) Together(b *Batch[int]) error {
	first := b.Next() // as the first thing: the batch has one at least
	f.begun <- struct{}{}
	err := <-f.gate
	first.Err, first.Panic = errMedium, "of a run that came to nothing"
	if err == nil {
		first.Err, first.Panic = nil, nil
	}
	for b.Next() != nil {
		continue
	}
	var list []int
	for _, p := range b.Pieces() {
		list = append(list, p.Work)
	}
	f.batches = append(f.batches, list)
	return err
}

func (f *fake) Alone(p *Piece[int]) {
	f.alone = append(f.alone, p.Work)
	if p.Err != nil || p.Panic != nil {
		p.Err = errors.New("it remembers the run that came to nothing")
		return
	}
	switch {
	case p.Work < 0:
		p.Panic = p.Work
	case p.Work%2 == 1:
		p.Err = errMedium
	}
}

// lane is a lane under test and its callers.
type lane struct {
	*testing.T
	*Lane[int]
	wg sync.WaitGroup
}

func start(t *testing.T, f *fake, most int) *lane {
	l := &lane{T: t, Lane: Start[int](f, most, errOver)}
	t.Cleanup(l.wg.Wait)
	return l
}

// do lets a caller wait in the lane, and gives its answer.
func (l *lane) do(ctx context.Context, n int) chan error {
	before, answer := l.Waiting(), make(chan error, 1)
	l.wg.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				answer <- errors.New("panicked")
			}
		}()
		answer <- l.Do(ctx, n)
	})
	for l.Waiting() == before && len(answer) == 0 {
		select {
		case <-ctx.Done():
			return answer
		default:
			runtime.Gosched()
		}
	}
	return answer
}

// first lets a caller's batch begin and stop at the gate.
func (l *lane) first(f *fake, n int) chan error {
	answer := make(chan error, 1)
	l.wg.Go(func() { answer <- l.Do(l.Context(), n) })
	<-f.begun
	return answer
}

// TestWhatWaitsIsCommittedTogether: in the order in which it came, up to the bound.
func TestWhatWaitsIsCommittedTogether(t *testing.T) {
	f := newFake()
	l := start(t, f, 3)
	answers := []chan error{l.first(f, 0)}
	for n := 1; n <= 3; n++ {
		answers = append(answers, l.do(t.Context(), n))
	}
	f.gate <- nil
	<-f.begun
	f.gate <- nil
	for n, a := range answers {
		if err := <-a; err != nil {
			t.Errorf("piece %d: %v", n, err)
		}
	}
	l.Close()
	if !slices.EqualFunc(f.batches, [][]int{{0, 1, 2}, {3}}, slices.Equal) {
		t.Errorf("batches %v", f.batches)
	}
}

// TestABatchGathersWhatIsAboutToCome: callers that go on when their answers are
// given share the next batch, though its first is taken before the others have
// said what they want. On one processor they run only where the lane lets them, and
// each would be a batch alone. Now and then the scheduler resumes the lane before
// all of them, so what is asked for is half as many batches, not the two there are.
func TestABatchGathersWhatIsAboutToCome(t *testing.T) {
	const callers = 8
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	f := &together{}
	l := Start[int](f, callers, errOver)
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() {
			for range 2 {
				if err := l.Do(t.Context(), n); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	l.Close()
	if len(f.sizes) > callers {
		t.Errorf("batches of %v pieces for %d callers twice: nobody was waited for", f.sizes, callers)
	}
}

// together takes what there is, and stops nowhere.
type together struct{ sizes []int }

func (s *together) Together(b *Batch[int]) error {
	for b.Next() != nil {
		continue
	}
	s.sizes = append(s.sizes, len(b.Pieces()))
	return nil
}

func (s *together) Alone(*Piece[int]) {}

// TestEachAnswersForItself: after a failure each piece runs once more, without
// what the first run left on it.
func TestEachAnswersForItself(t *testing.T) {
	f := newFake()
	l := start(t, f, 8)
	answers := []chan error{l.first(f, 0), l.do(t.Context(), 1), l.do(t.Context(), -1), l.do(t.Context(), 2)}
	f.gate <- errMedium
	for i, want := range []string{"", "medium", "panicked", ""} {
		got := ""
		if err := <-answers[i]; err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("piece %d says %q, want %q", i, got, want)
		}
	}
	l.Close()
	if !slices.Equal(f.alone, []int{0, 1, -1, 2}) {
		t.Errorf("alone %v", f.alone)
	}
}

// TestWhatDidNotBeginIsTakenBack: a context that ends in the queue is answered
// at once, and its piece never runs; what has begun is waited for.
func TestWhatDidNotBeginIsTakenBack(t *testing.T) {
	f := newFake()
	l := start(t, f, 8)
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan error, 1)
	l.wg.Go(func() { begun <- l.Do(ctx, 0) })
	<-f.begun
	waits := l.do(ctx, 7)
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("the waiting one says %v", err)
	}
	if err := l.Do(ctx, 9); !errors.Is(err, context.Canceled) {
		t.Errorf("one that comes with an ended context says %v", err)
	}
	select {
	case err := <-begun:
		t.Errorf("what had begun was not waited for: %v", err)
	default:
	}
	f.gate <- nil
	if err := <-begun; err != nil {
		t.Errorf("what had begun says %v", err)
	}
	last := l.first(f, 8)
	f.gate <- nil
	if err := <-last; err != nil {
		t.Error(err)
	}
	l.Close()
	if !slices.EqualFunc(f.batches, [][]int{{0}, {8}}, slices.Equal) {
		t.Errorf("batches %v", f.batches)
	}
}

// TestCloseFinishesWhatWasAccepted: and refuses the rest, again and again.
func TestCloseFinishesWhatWasAccepted(t *testing.T) {
	f := newFake()
	l := start(t, f, 1)
	answers := []chan error{l.first(f, 0), l.do(t.Context(), 1)}
	l.wg.Go(l.Close)
	f.gate <- nil
	<-f.begun
	f.gate <- nil
	for n, a := range answers {
		if err := <-a; err != nil {
			t.Errorf("piece %d: %v", n, err)
		}
	}
	l.Close()
	if err := l.Do(t.Context(), 2); !errors.Is(err, errOver) {
		t.Errorf("after the end: %v", err)
	}
}
