package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/store/postgres"
	"github.com/askucher/compax-core/store/storetest"
)

// server is the URL of a PostgreSQL that tests may fill.
func server(t testing.TB) string {
	t.Helper()
	u := os.Getenv("COMPAX_TEST_POSTGRES")
	if u == "" {
		const why = "COMPAX_TEST_POSTGRES names no PostgreSQL server (a URL); make test starts one"
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip("SKIPPED: " + why)
	}
	return u
}

// schema makes an empty schema that goes when the test ends, and a URL in
// which it is the only one.
func schema(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(server(t))
	if err != nil {
		t.Fatal(err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	admin(t, "CREATE SCHEMA "+name)
	t.Cleanup(func() { admin(t, "DROP SCHEMA "+name+" CASCADE") })
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// admin runs a statement on a connection of its own.
func admin(t testing.TB, sql string) {
	t.Helper()
	ctx := context.Background() // also after the test ended
	c, err := pgx.Connect(ctx, server(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(ctx, sql); err != nil {
		t.Error(err)
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

func open(ctx context.Context, place string) (delivery.Store, error) {
	return postgres.Open(ctx, place)
}

func TestMain(m *testing.M) {
	storetest.CrashMain(open)
	os.Exit(m.Run())
}

func kind() storetest.Kind {
	return storetest.Kind{Shared: true, Place: func(t testing.TB) storetest.Opener {
		u := schema(t)
		return func(ctx context.Context) (delivery.Store, error) { return postgres.OpenPooled(ctx, u) }
	}}
}

// TestContract runs the contract behind what a pooler in transaction mode is:
// each transaction finds a session that remembers nothing.
func TestContract(t *testing.T) {
	server(t)
	storetest.Run(t, kind())
}

func TestKilled(t *testing.T) {
	storetest.Crash(t, schema(t), open)
}

func BenchmarkAppend(b *testing.B) {
	u := schema(b)
	storetest.BenchmarkAppend(b, func(ctx context.Context) (delivery.Store, error) { return open(ctx, u) })
}

func BenchmarkHotRoom(b *testing.B) {
	u := schema(b)
	storetest.BenchmarkHotRoom(b, func(ctx context.Context) (delivery.Store, error) { return open(ctx, u) })
}

// must opens a store that the test closes.
func must(t testing.TB, u string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), u)
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

func TestInstancesMigrateTogether(t *testing.T) {
	u := schema(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), u)
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			if err := errors.Join(s.Ping(t.Context()), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestANewerSchema(t *testing.T) {
	u := schema(t)
	s := must(t, u)
	err := postgres.Sessions(t.Context(), s, func(c *pgx.Conn) error {
		_, err := c.Exec(t.Context(), "UPDATE schema_version SET version = 999")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(t.Context(), u); !errors.Is(err, postgres.ErrNewer) {
		t.Fatalf("open says %v", err)
	}
}

// TestNothingStaysInASession looks into the sessions after each kind of work.
func TestNothingStaysInASession(t *testing.T) {
	s := must(t, schema(t))
	if n := postgres.MaxPooled(s); n != postgres.MaxConns || n > 16 {
		t.Fatalf("%d connections", n)
	}
	id := delivery.RoomID{1}
	refused := errors.New("refused")
	work := []error{
		s.CreateRoom(t.Context(), delivery.NewRoom{ID: id, Kind: delivery.RoomGroup}),
		s.WithRoom(t.Context(), id, func(tx delivery.RoomTx) error {
			return errors.Join(tx.Hold(delivery.HeldProposal{Ref: []byte("a")}), tx.Unhold([]byte("a")))
		}),
		s.Enrol(t.Context(), delivery.Device{}, delivery.DeviceBound{Devices: 1, Revocations: 1}),
		s.Ping(t.Context()),
	}
	if err := errors.Join(work...); err != nil {
		t.Fatal(err)
	}
	if err := s.WithRoom(t.Context(), id, func(tx delivery.RoomTx) error {
		return errors.Join(tx.Hold(delivery.HeldProposal{Ref: []byte("a")}), refused)
	}); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	sessions := 0
	err := postgres.Sessions(t.Context(), s, func(c *pgx.Conn) error {
		sessions++
		var prepared, locks int
		var timeout string
		err := c.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_prepared_statements WHERE name <> ''),
			(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()), current_setting('lock_timeout')`).Scan(&prepared, &locks, &timeout)
		if prepared != 0 || locks != 0 || timeout != "0" {
			t.Errorf("a session keeps %d statements, %d locks, lock_timeout %s", prepared, locks, timeout)
		}
		return err
	})
	if err != nil || sessions == 0 {
		t.Fatalf("%d sessions: %v", sessions, err)
	}
}

func TestAMalformedURLKeepsItsPassword(t *testing.T) {
	for _, u := range []string{"postgres://u:hunter2@[::1", "postgres://u:hunter2@127.0.0.1:1/db?connect_timeout=1", "postgres://u:hunter2@127.0.0.1:99999/db"} {
		_, err := postgres.Open(t.Context(), u)
		if err == nil {
			t.Fatal("it opened")
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

// TestAppendsDoNotWaitBehindHousekeeping: while a sweep waits for a table that
// somebody holds, the rooms that it has trimmed take entries, and a room that
// somebody holds keeps nobody waiting.
func TestAppendsDoNotWaitBehindHousekeeping(t *testing.T) {
	u := schema(t)
	s := must(t, u)
	trimmed, held := delivery.RoomID{1}, delivery.RoomID{2}
	add := func(id delivery.RoomID, n byte) error {
		return s.WithRoom(t.Context(), id, func(tx delivery.RoomTx) error {
			_, err := tx.Append(delivery.NewEntry{Hash: [32]byte{n}, Kind: delivery.KindApplication, AcceptedMS: 1, Bytes: []byte{n}})
			return err
		})
	}
	for _, id := range []delivery.RoomID{trimmed, held} {
		if err := errors.Join(s.CreateRoom(t.Context(), delivery.NewRoom{ID: id, Kind: delivery.RoomGroup}), add(id, 1)); err != nil {
			t.Fatal(err)
		}
	}
	other, err := pgx.Connect(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := other.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	run := func(sql string, args ...any) {
		t.Helper()
		if _, err := other.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("BEGIN")
	run("SELECT 1 FROM rooms WHERE id = $1 FOR UPDATE", held[:])
	run("LOCK TABLE nonces IN ACCESS EXCLUSIVE MODE")
	type answer struct {
		counts delivery.SweepCounts
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		n, err := s.Sweep(t.Context(), delivery.SweepPlan{NowMS: 10, LogBefore: 10, Limit: 100})
		done <- answer{n, err}
	}()
	for first := uint64(1); first == 1; {
		r, err := s.Room(t.Context(), trimmed)
		if err != nil {
			t.Fatal(err)
		}
		first = r.FirstSeq
		select {
		case a := <-done:
			t.Fatalf("the sweep did not wait: %+v", a)
		default:
		}
	}
	if err := add(trimmed, 2); err != nil {
		t.Errorf("an append beside the sweep: %v", err)
	}
	run("ROLLBACK")
	if a := <-done; a.err != nil || a.counts.Entries != 1 {
		t.Errorf("the sweep says %+v", a)
	}
	if r, err := s.Room(t.Context(), held); err != nil || r.FirstSeq != 1 {
		t.Errorf("the held room: %+v, %v", r, err)
	}
}

// TestAConnectionThatDies ends every session of the store while it works: what
// was acknowledged is there, and the store goes on.
func TestAConnectionThatDies(t *testing.T) {
	s := must(t, schema(t))
	id := delivery.RoomID{1}
	if err := s.CreateRoom(t.Context(), delivery.NewRoom{ID: id, Kind: delivery.RoomGroup}); err != nil {
		t.Fatal(err)
	}
	failures := 0
	for n := range 60 {
		if n%20 == 10 {
			pids := ""
			err := postgres.Sessions(t.Context(), s, func(c *pgx.Conn) error {
				pids += fmt.Sprint(",", c.PgConn().PID())
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			admin(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN (0"+pids+")")
		}
		err := s.WithRoom(t.Context(), id, func(tx delivery.RoomTx) error {
			_, err := tx.Append(delivery.NewEntry{Hash: [32]byte{byte(n)}, Kind: delivery.KindApplication, AcceptedMS: 1, Bytes: []byte{byte(n)}})
			return err
		})
		if err != nil {
			failures++
		}
	}
	entries, err := s.Log(t.Context(), id, delivery.LogRange{})
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 60-failures {
		t.Fatalf("%d entries, %d of 60 appends failed", len(entries), failures)
	}
	for i, e := range entries {
		if e.Seq != uint64(i+1) {
			t.Fatalf("seq %d at %d", e.Seq, i)
		}
	}
}
