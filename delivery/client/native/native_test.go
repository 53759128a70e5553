package native

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/askucher/compax-core/delivery/client"
)

// TestSteadyAnswers: an answer that begins and then stops, or trickles, is given
// up; one that is slow and steady, and one whose reader takes its time, is not.
func TestSteadyAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		pieces int           // 100 bytes each
		every  time.Duration // between two pieces
		pause  time.Duration // that the reader takes after each
		err    error
		least  time.Duration // that it goes on
	}{
		"comes at once":              {pieces: 1},
		"stops":                      {pieces: 5, every: 24 * time.Hour, err: errSlow},
		"trickles":                   {pieces: 1000, every: 5 * time.Second, err: errSlow},
		"comes slowly":               {pieces: 1000, every: 2 * time.Second, least: 1990 * time.Second},
		"is read slowly":             {pieces: 50, every: time.Millisecond, pause: time.Hour, least: 50 * time.Hour},
		"is read slowly and stops":   {pieces: 50, every: 24 * time.Hour, pause: time.Hour, err: errSlow},
		"is read slowly and is slow": {pieces: 100, every: 2 * time.Second, pause: time.Minute, least: 100 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, w := io.Pipe()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				context.AfterFunc(ctx, func() { _ = r.CloseWithError(context.Canceled) })
				go func() {
					for i := range c.pieces {
						if i > 0 {
							select {
							case <-time.After(c.every):
							case <-ctx.Done():
							}
						}
						if _, err := w.Write(make([]byte, 100)); err != nil {
							return // given up
						}
					}
					_ = w.Close()
				}()
				began, got := time.Now(), 0
				body := newSteady(r, progressWindow, cancel)
				var err error
				for buf := make([]byte, 512); err == nil; {
					var n int
					n, err = body.Read(buf)
					got += n
					time.Sleep(c.pause)
				}
				took := time.Since(began)
				if c.err != nil {
					if !errors.Is(err, c.err) || ctx.Err() == nil {
						t.Errorf("%d bytes and %v after %s", got, err, took)
					}
					return
				}
				if err != io.EOF || got != 100*c.pieces || took < c.least { //nolint:errorlint // Read's own EOF
					t.Errorf("%d bytes and %v after %s", got, err, took)
				}
				if err := body.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestAnAnswerThatStopsIsHungUpOn: the service sees that its reader has gone.
func TestAnAnswerThatStopsIsHungUpOn(t *testing.T) {
	gone := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.WriteString(w, "{"); err != nil {
			t.Error(err)
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
		close(gone)
	}))
	defer srv.Close()
	tr := New()
	tr.window = 50 * time.Millisecond
	r, err := tr.Do(t.Context(), client.Request{Method: "GET", URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); !errors.Is(err, errSlow) || string(b) != "{" {
		t.Errorf("%q and %v", b, err)
	}
	<-gone
}
