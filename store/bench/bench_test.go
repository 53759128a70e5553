package bench

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/store/postgres"
	"github.com/askucher/compax-core/store/sqlite"
	"github.com/askucher/compax-core/store/storetest"
)

//go:embed pgbench.sql
var schemaSQL string

// BenchmarkAppends: 2,000 rooms, 512 bytes. pgbench's clients are its own
// processes' threads and cost less than ours; that is in its favour. "bump" is
// the sequence bump and the insert alone, "append" has the dedupe row that an
// append here has too.
func BenchmarkAppends(b *testing.B) {
	for _, script := range []string{"bump", "append"} {
		for _, clients := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("pgbench/%s/clients=%d", script, clients), func(b *testing.B) { pgbench(b, script, clients) })
		}
	}
	b.Run("sqlite/writers=64", func(b *testing.B) { storetest.BenchmarkAppend(b, sqliteAt(b)) })
	b.Run("postgres/writers=64", func(b *testing.B) { storetest.BenchmarkAppend(b, postgresAt(b)) })
}

// BenchmarkHotRoom: 32 committers race for each epoch of one room.
func BenchmarkHotRoom(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { storetest.BenchmarkHotRoom(b, sqliteAt(b)) })
	b.Run("postgres", func(b *testing.B) { storetest.BenchmarkHotRoom(b, postgresAt(b)) })
}

func sqliteAt(b *testing.B) storetest.Opener {
	path := filepath.Join(b.TempDir(), "store.db")
	return func(ctx context.Context) (delivery.Store, error) { return sqlite.Open(ctx, path) }
}

func postgresAt(b *testing.B) storetest.Opener {
	u := schema(b)
	return func(ctx context.Context) (delivery.Store, error) { return postgres.Open(ctx, u) }
}

// schema makes an empty schema that goes when the benchmark ends.
func schema(b *testing.B) string {
	b.Helper()
	server := os.Getenv("COMPAX_TEST_POSTGRES")
	if server == "" {
		b.Skip("SKIPPED: COMPAX_TEST_POSTGRES names no PostgreSQL server; make bench starts one")
	}
	u, err := url.Parse(server)
	if err != nil {
		b.Fatal(err)
	}
	name := "bench_" + strings.ToLower(rand.Text())
	run(b, server, "CREATE SCHEMA "+name)
	b.Cleanup(func() { run(b, server, "DROP SCHEMA "+name+" CASCADE") })
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func run(b *testing.B, u, sql string) {
	b.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, u)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.Exec(ctx, sql); err != nil {
		b.Fatal(err)
	}
	if err := c.Close(ctx); err != nil {
		b.Error(err)
	}
}

// transactions matches pgbench's result line, the rate without connecting.
var transactions = regexp.MustCompile(`tps = ([0-9.]+) \(without`)

func pgbench(b *testing.B, script string, clients int) {
	program := programOf(b)
	u := schema(b)
	run(b, u, schemaSQL)
	parsed, err := url.Parse(u)
	if err != nil {
		b.Fatal(err)
	}
	q := parsed.Query()
	path := q.Get("search_path")
	q.Del("search_path") // libpq has another name for it
	parsed.RawQuery = q.Encode()
	each := max(1, b.N/clients)
	cmd := exec.CommandContext(b.Context(), program, "-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-j", "1",
		"-t", strconv.Itoa(each), "-f", script+".pgbench", parsed.String())
	cmd.Env = append(os.Environ(), "PGOPTIONS=-c search_path="+path)
	b.ResetTimer()
	out, err := cmd.CombinedOutput()
	b.StopTimer()
	if err != nil {
		b.Fatalf("pgbench: %v\n%s", err, out)
	}
	m := transactions.FindSubmatch(out)
	if m == nil {
		b.Fatalf("pgbench says no rate:\n%s", out)
	}
	rate, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(rate, "appends/s")
}

// programOf finds pgbench, which Debian keeps beside the server.
func programOf(b *testing.B) string {
	if p, err := exec.LookPath("pgbench"); err == nil {
		return p
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if err != nil || len(found) == 0 {
		b.Skip("SKIPPED: pgbench is not installed (Debian: postgresql)")
	}
	return found[len(found)-1]
}
