package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/askucher/compax-core/delivery"
)

// TestAPanicBesideAFullDisk: work that panics in a group which the medium fails runs
// once more by itself, panics again, and is not told that it was done.
func TestAPanicBesideAFullDisk(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	pages, err := Pages(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := LimitPages(t.Context(), s, pages+1); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	begun, hold := make(chan struct{}), make(chan struct{})
	first, full := make(chan error, 1), make(chan error, 1)
	panicked := make(chan any, 1)
	do := func(run func(*change) error) error { return s.write(context.Background(), run) }
	queued := func(n int) {
		for s.writer.lane.Waiting() < n {
			runtime.Gosched()
		}
	}
	go func() {
		first <- do(func(*change) error {
			once.Do(func() { close(begun) })
			<-hold
			return nil
		})
	}()
	<-begun
	go func() {
		defer func() { panicked <- recover() }()
		_ = do(func(*change) error { panic("mine") })
	}()
	queued(1)
	go func() {
		full <- do(func(c *change) error {
			_, err := c.exec("INSERT INTO settings(key, value) VALUES('much', ?)", make([]byte, 1<<20))
			return err
		})
	}()
	queued(2)
	close(hold)
	if got := <-panicked; got != "mine" {
		t.Errorf("recovered %v", got)
	}
	if err := <-full; !errors.Is(err, delivery.ErrFull) {
		t.Errorf("the full disk says %v", err)
	}
	if err := <-first; err != nil {
		t.Errorf("the first says %v", err)
	}
}

// TestSessionsAreFoundOnAFullDisk: where nothing can be written, people still read.
func TestSessionsAreFoundOnAFullDisk(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	d := delivery.Device{ID: [16]byte{1}, Credential: []byte("x")}
	if err := s.Enrol(t.Context(), d, delivery.DeviceBound{Devices: 1, Revocations: 1}); err != nil {
		t.Fatal(err)
	}
	token := [32]byte{1}
	if _, err := s.OpenSession(t.Context(), delivery.NewSession{Token: token, Device: d.ID, ExpiresMS: 1 << 40, NowMS: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.write(t.Context(), func(c *change) error {
		_, err := c.exec("CREATE TRIGGER full BEFORE UPDATE OF seen_ms ON devices BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Session(t.Context(), token, 10*seenEvery)
	if err != nil || got.Device.ID != d.ID {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestWhoFailsHalfwayDisturbsNobody: a piece that fails, or panics, after it changed
// something leaves nothing; what its batch did before and does after it stays.
func TestWhoFailsHalfwayDisturbsNobody(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	put := func(key string, then error) func(*change) error {
		return func(c *change) error {
			if _, err := c.exec("INSERT INTO settings(key, value) VALUES(?, x'')", key); err != nil {
				return err
			}
			if then == errPanic {
				panic(key)
			}
			return then
		}
	}
	begun, hold := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(begun) })
	pieces := []func(*change) error{
		func(c *change) error { once(); <-hold; return put("first", nil)(c) },
		put("second", nil),
		put("fails", delivery.ErrChanged),
		put("third", nil),
		put("third", nil), // a statement that fails by itself
		put("panics", errPanic),
		put("last", nil),
	}
	answers := make([]error, len(pieces))
	var wg sync.WaitGroup
	for i, run := range pieces {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					answers[i] = errPanic
				}
			}()
			answers[i] = s.write(context.Background(), run)
		})
		if i == 0 {
			<-begun
		}
		for s.writer.lane.Waiting() < i {
			runtime.Gosched()
		}
	}
	close(hold)
	wg.Wait()
	for i, want := range []error{nil, nil, delivery.ErrChanged, nil, delivery.ErrExists, errPanic, nil} {
		if err := answers[i]; want == delivery.ErrExists && err == nil || want != delivery.ErrExists && !errors.Is(err, want) {
			t.Errorf("piece %d says %v, want %v", i, err, want)
		}
	}
	for key, want := range map[string]error{"first": nil, "second": nil, "third": nil, "last": nil, "fails": delivery.ErrNotFound, "panics": delivery.ErrNotFound} {
		if _, err := s.Setting(t.Context(), key); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", key, err, want)
		}
	}
}

var errPanic = errors.New("panicked")
