package native

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// An answer that has begun must bring minProgress bytes, or end, for each
// progressWindow that its reader waits for it: slower than 34 bytes a second it is
// not meant to arrive.
const (
	progressWindow = 30 * time.Second
	minProgress    = 1024 // bytes
)

// errSlow ends an answer that comes too slowly to be meant.
var errSlow = errors.New("the answer stopped coming")

// steady is an answer's body that must go on coming while somebody reads it. Only
// the time spent waiting in Read counts: a reader may take as long as it wants.
type steady struct {
	body   io.ReadCloser
	cancel context.CancelFunc // ends a Read that waits

	mu      sync.Mutex // guards the following fields
	timer   *time.Timer
	window  time.Duration
	left    time.Duration // of this window
	began   time.Time     // when the waiting Read did
	waiting bool
	got     int // bytes in this window
	slow    bool
}

func newSteady(body io.ReadCloser, window time.Duration, cancel context.CancelFunc) *steady {
	s := &steady{body: body, cancel: cancel, window: window, left: window}
	s.timer = time.AfterFunc(window, s.over)
	s.timer.Stop()
	return s
}

// over is called when this window has been waited through.
func (s *steady) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waiting || time.Since(s.began) < s.left {
		return // the Read of this window came back meanwhile
	}
	if s.got < minProgress {
		s.slow = true
		s.cancel()
		return
	}
	s.got, s.left, s.began = 0, s.window, time.Now()
	s.timer.Reset(s.left)
}

// Read implements [io.Reader]. It fails with errSlow when the answer stops coming.
func (s *steady) Read(p []byte) (int, error) {
	s.mu.Lock()
	s.waiting, s.began = true, time.Now()
	s.timer.Reset(s.left)
	s.mu.Unlock()

	n, err := s.body.Read(p)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer.Stop()
	s.waiting = false
	s.got += n
	s.left -= time.Since(s.began)
	if s.left <= 0 && s.got >= minProgress {
		s.got, s.left = 0, s.window
	}
	s.left = max(s.left, time.Millisecond)
	if err != nil && s.slow {
		err = errSlow
	}
	return n, err
}

// Close implements [io.Closer].
func (s *steady) Close() error {
	defer s.cancel()
	return s.body.Close()
}
