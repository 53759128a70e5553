package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/store/sqlite"
	"github.com/askucher/compax-core/store/storetest"
)

func open(ctx context.Context, path string) (delivery.Store, error) { return sqlite.Open(ctx, path) }

func TestMain(m *testing.M) {
	storetest.CrashMain(open)
	os.Exit(m.Run())
}

func kind() storetest.Kind {
	return storetest.Kind{Place: func(t testing.TB) storetest.Opener {
		path := filepath.Join(t.TempDir(), "store.db")
		return func(ctx context.Context) (delivery.Store, error) { return open(ctx, path) }
	}}
}

func TestContract(t *testing.T) { storetest.Run(t, kind()) }

func TestKilled(t *testing.T) {
	storetest.Crash(t, filepath.Join(t.TempDir(), "store.db"), open)
}

func BenchmarkAppend(b *testing.B)  { storetest.BenchmarkAppend(b, kind().Place(b)) }
func BenchmarkHotRoom(b *testing.B) { storetest.BenchmarkHotRoom(b, kind().Place(b)) }

// must opens a store that the test closes.
func must(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestOneProcessAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	first := must(t, path)
	if _, err := sqlite.Open(t.Context(), path); !errors.Is(err, sqlite.ErrInUse) {
		t.Fatalf("the second open says %v", err)
	}
	if err := first.Ping(t.Context()); err != nil {
		t.Fatalf("the first is disturbed: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	must(t, path)
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	dir := t.TempDir()
	s := must(t, filepath.Join(dir, "store.db"))
	if err := s.PutSetting(t.Context(), "a", []byte("b")); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 4 {
		t.Fatalf("files: %v, %v", files, err) // database, WAL, its index, the lock
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f.Name(), info.Mode())
		}
	}
}

func TestStrangePaths(t *testing.T) {
	for _, name := range []string{"a b.db", "100%.db", "q?x=1.db", "#hash.db", "ünï.db"} {
		path := filepath.Join(t.TempDir(), name)
		s := must(t, path)
		if err := s.PutSetting(t.Context(), "a", []byte("b")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(path + "-wal"); err != nil {
			t.Errorf("%s: the database is elsewhere: %v", name, err)
		}
	}
}

func TestADirectoryThatIsNotThere(t *testing.T) {
	if _, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "no", "store.db")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("open says %v", err)
	}
}

func TestAFileThatIsNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	garbage := bytes.Repeat([]byte("not a database. "), 1000)
	if err := os.WriteFile(path, garbage, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), path); !errors.Is(err, sqlite.ErrCorrupt) {
		t.Fatalf("open says %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, garbage) {
		t.Fatalf("it was changed, %v", err)
	}
}

func TestADamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := must(t, path)
	for n := range 300 {
		if err := s.PutSetting(t.Context(), fmt.Sprint("key ", n), bytes.Repeat([]byte{byte(n)}, 500)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 2 * 4096; i < len(b); i++ { // all but the schema
		b[i] = 0xff
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = sqlite.Open(t.Context(), path)
	if err == nil {
		_, err = s.Setting(t.Context(), "key 7")
		if e := s.Close(); e != nil {
			t.Logf("close: %v", e)
		}
	}
	if !errors.Is(err, sqlite.ErrCorrupt) {
		t.Fatalf("it says %v", err)
	}
}

// raw opens a file as another program would.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, q := range statements {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func TestAnotherProgramsDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	exec(t, raw(t, path), "CREATE TABLE recipes (name TEXT)")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), path); !errors.Is(err, sqlite.ErrForeign) {
		t.Fatalf("open says %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Fatalf("it was changed, %v", err)
	}
}

func TestANewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	if err := must(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	exec(t, raw(t, path), "PRAGMA user_version = 999")
	if _, err := sqlite.Open(t.Context(), path); !errors.Is(err, sqlite.ErrNewer) {
		t.Fatalf("open says %v", err)
	}
}

func TestALockedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := must(t, path)
	if err := sqlite.SetPatience(t.Context(), s, 50); err != nil {
		t.Fatal(err)
	}
	if err := s.PutSetting(t.Context(), "a", []byte("before")); err != nil {
		t.Fatal(err)
	}
	other := raw(t, path)
	exec(t, other, "BEGIN IMMEDIATE")
	if err := s.PutSetting(t.Context(), "a", []byte("locked")); !errors.Is(err, sqlite.ErrLocked) {
		t.Fatalf("a write says %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, sqlite.ErrLocked) {
		t.Fatalf("ping says %v", err)
	}
	if b, err := s.Setting(t.Context(), "a"); err != nil || string(b) != "before" {
		t.Fatalf("a read gives %q, %v", b, err)
	}
	exec(t, other, "ROLLBACK")
	if err := s.PutSetting(t.Context(), "a", []byte("after")); err != nil {
		t.Fatalf("after the lock: %v", err)
	}
}

// TestAFullDisk fills the file to a limit with many writers at once: each is
// told what became of its own work, nothing acknowledged is lost, and the store
// goes on when there is room again.
func TestAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := must(t, path)
	pages, err := sqlite.Pages(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlite.LimitPages(t.Context(), s, pages+100); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	kept := map[string]bool{}
	var full atomic.Int64
	for w := range 16 {
		wg.Go(func() {
			for n := range 1000 {
				key := fmt.Sprint(w, " ", n)
				err := s.PutSetting(t.Context(), key, bytes.Repeat([]byte{byte(n)}, 1000))
				switch {
				case err == nil:
					mu.Lock()
					kept[key] = true
					mu.Unlock()
				case errors.Is(err, delivery.ErrFull):
					full.Add(1)
					return
				default:
					t.Errorf("it says %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	if full.Load() != 16 || len(kept) == 0 {
		t.Fatalf("%d of 16 writers were told that it is full; %d writes were acknowledged", full.Load(), len(kept))
	}
	look := func() {
		t.Helper()
		for key := range kept {
			if _, err := s.Setting(t.Context(), key); err != nil {
				t.Fatalf("%s was acknowledged: %v", key, err)
			}
		}
	}
	look()
	if err := sqlite.LimitPages(t.Context(), s, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.PutSetting(t.Context(), "again", nil); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = must(t, path)
	look()
}
