package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery/client"
)

// ErrClosed: the engine was closed. What the call had stored stays, and goes on when the
// profile is opened again: a message that was to be sent may lie in the outbox.
var ErrClosed = errors.New("the profile was closed")

// life is how an engine ends: what its calls do with the store, the network, the
// device's key and their waiting goes through it, so that Close can end it and wait for
// its end. Calls compute beside it, on copies, and fail with ErrClosed at their next step.
type life struct {
	ctx    context.Context // done when the engine is to end
	cancel context.CancelCauseFunc

	mu      sync.Mutex     // guards closed
	closed  bool           // no step begins any more
	running sync.WaitGroup // steps; added to under mu while closed is not set

	once  sync.Once
	ended error // what Close gives, each time
}

func newLife() *life {
	l := &life{}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// step begins a step (ErrClosed), which ends with done.
func (l *life) step() (done func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	l.running.Add(1)
	return l.running.Done, nil
}

// bound is a context that ends with the engine too. stop frees it.
func (l *life) bound(ctx context.Context) (bound context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	free := context.AfterFunc(l.ctx, func() { cancel(ErrClosed) })
	return ctx, func() { free(); cancel(nil) }
}

// because adds ErrClosed to what failed for it.
func (l *life) because(err error) error {
	if err != nil && l.ctx.Err() != nil && !errors.Is(err, ErrClosed) {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}

// end lets no step begin, ends those that wait for something, and waits for all.
func (l *life) end() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel(ErrClosed)
	l.running.Wait()
}

// livingStore is a store that an engine uses for as long as it lives.
type livingStore struct {
	Store
	life *life
}

func (s livingStore) Update(ctx context.Context, f func(Tx) error) error {
	done, err := s.life.step()
	if err != nil {
		return err
	}
	defer done()
	return s.Store.Update(ctx, f)
}

func (s livingStore) View(ctx context.Context, f func(Tx) error) error {
	done, err := s.life.step()
	if err != nil {
		return err
	}
	defer done()
	return s.Store.View(ctx, f)
}

// livingTransport is a network that an engine uses for as long as it lives.
type livingTransport struct {
	client.Transport
	life *life
}

func (t livingTransport) Do(ctx context.Context, r client.Request) (client.Response, error) {
	done, err := t.life.step()
	if err != nil {
		return client.Response{}, err
	}
	defer done()
	ctx, stop := t.life.bound(ctx)
	got, err := t.Transport.Do(ctx, r)
	if err != nil {
		stop()
		return got, t.life.because(err)
	}
	got.Body = &livingBody{got.Body, t.life, stop}
	return got, nil
}

func (t livingTransport) Dial(ctx context.Context, url string) (client.Socket, error) {
	done, err := t.life.step()
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, stop := t.life.bound(ctx)
	defer stop()
	s, err := t.Transport.Dial(ctx, url)
	if err != nil {
		return nil, t.life.because(err)
	}
	return &livingSocket{s, context.AfterFunc(t.life.ctx, func() { _ = s.Close() })}, nil
}

// livingBody is an answer that breaks off when the engine ends.
type livingBody struct {
	io.ReadCloser
	life *life
	stop func()
}

func (b *livingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.life.because(err)
	}
	return n, err
}

func (b *livingBody) Close() error {
	defer b.stop()
	return b.ReadCloser.Close()
}

// livingSocket is closed when the engine ends.
type livingSocket struct {
	client.Socket
	stop func() bool
}

func (s *livingSocket) Close() error {
	s.stop()
	return s.Socket.Close()
}

// living is how an engine waits for as long as it lives.
func (l *life) living(sleep func(context.Context, time.Duration) error) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		ctx, stop := l.bound(ctx)
		defer stop()
		return l.because(sleep(ctx, d))
	}
}

// Close ends the engine and closes the store. Calls that still run fail with ErrClosed
// and lose nothing that was stored; what they have begun in the store is done, and
// nothing of the store, the network or the device's key is touched when Close returns.
// It may be called again, and by several at once: each waits for the same end. It is not
// called from within a function that was given to the engine.
func (e *Engine) Close() error {
	e.life.once.Do(func() {
		e.life.end()
		e.device.Wipe()
		e.life.ended = e.Store.Close()
	})
	return e.life.ended
}
