package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
)

// TestAReaderWithAnOpenTransactionIsNotLentAgain: one whose COMMIT failed, or whose
// user panicked, would show the next reader the state of that moment for ever.
func TestAReaderWithAnOpenTransactionIsNotLentAgain(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	idle := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.idle)
	}
	if err := s.snapshot(t.Context(), func(*conn) error { return errors.New("mine") }); err == nil || idle() != 1 {
		t.Fatalf("work that fails ends its transaction: %v, %d readers kept", err, idle())
	}
	ends := func(c *conn) error { // and so the snapshot's own COMMIT fails
		_, err := c.exec("COMMIT")
		return err
	}
	if err := s.snapshot(t.Context(), ends); err == nil || idle() != 0 {
		t.Errorf("after a COMMIT that failed: %v, %d readers kept", err, idle())
	}
	func() {
		defer func() {
			if got := recover(); got != "mine" {
				t.Errorf("recovered %v", got)
			}
		}()
		_ = s.snapshot(t.Context(), func(c *conn) error {
			if _, err := c.one("SELECT count(*) FROM settings"); err != nil {
				t.Error(err)
			}
			panic("mine")
		})
	}()
	if idle() != 0 {
		t.Errorf("after a panic: %d readers kept", idle())
	}
	if err := s.PutSetting(t.Context(), "a", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := s.snapshot(t.Context(), func(c *conn) error {
		r, err := c.one("SELECT value FROM settings WHERE key = 'a'")
		if err == nil && string(r.blob(0)) != "new" {
			t.Errorf("reads %q", r.blob(0))
		}
		return err
	}); err != nil {
		t.Errorf("the next snapshot: %v", err)
	}
}
