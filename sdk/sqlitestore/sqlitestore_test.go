package sqlitestore_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/sdktest"
	"github.com/askucher/compax-core/sdk/sqlitestore"
)

func TestContract(t *testing.T) {
	sdktest.Run(t, func(t *testing.T) sdktest.Open {
		path := filepath.Join(t.TempDir(), "profile é?#.db")
		return func(t testing.TB) sdk.Store {
			s, err := sqlitestore.Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}

func TestOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profile.db")
	s, err := sqlitestore.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitestore.Open(t.Context(), path); !errors.Is(err, sqlitestore.ErrLocked) {
		t.Fatalf("a second one opens with %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = sqlitestore.Open(t.Context(), path); err != nil {
		t.Fatalf("after the first has closed: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyItsUserReadsIt(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "profile.db")
	s, err := sqlitestore.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Update(t.Context(), func(tx sdk.Tx) error { return tx.Put(sdk.TableSetting, "a", []byte("b")) }); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 2 {
		t.Fatalf("only %d files", len(files))
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", f.Name(), info.Mode().Perm())
		}
	}
}

func TestDamageIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profile.db")
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitestore.Open(t.Context(), path); err == nil {
		t.Fatal("a text file opens as a store")
	}
}

// TestFullDisk: what does not fit is refused as ENOSPC and changes nothing; with
// room again the store goes on.
func TestFullDisk(t *testing.T) {
	ctx := t.Context()
	s, err := sqlitestore.Open(ctx, filepath.Join(t.TempDir(), "profile.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Limit(ctx); err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("full"), 1<<18)
	write := func() error {
		return s.Update(ctx, func(tx sdk.Tx) error { return tx.Put(sdk.TableOutbox, "key", large) })
	}
	if err := write(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("a full disk gives %v", err)
	}
	if err := s.View(ctx, func(tx sdk.Tx) error {
		got, err := tx.Get(sdk.TableOutbox, "key")
		if len(got) != 0 {
			t.Errorf("%d bytes were kept of what was refused", len(got))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Unlimit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := write(); err != nil {
		t.Fatalf("with room again: %v", err)
	}
}

// TestCancelled: a call whose context ends says that it did, not what became of
// the transaction under it, and an update has then changed nothing. A view that
// had read everything may also succeed.
func TestCancelled(t *testing.T) {
	s, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "profile.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	cancelled := func(call func(context.Context, func(sdk.Tx) error) error, write bool) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		return call(ctx, func(tx sdk.Tx) error {
			if write {
				if err := tx.Put(sdk.TableOutbox, "key", []byte("lost")); err != nil {
					return err
				}
			}
			cancel()
			return nil
		})
	}
	for range 100 { // the rollback at the context's end races with the call's own
		if err := cancelled(s.View, false); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("view: %v", err)
		}
		if err := cancelled(s.Update, true); !errors.Is(err, context.Canceled) {
			t.Fatalf("update: %v", err)
		}
	}
	if err := s.View(t.Context(), func(tx sdk.Tx) error {
		got, err := tx.Get(sdk.TableOutbox, "key")
		if got != nil {
			t.Errorf("%q was kept", got)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
