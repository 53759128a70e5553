package appends

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// schema is a log with one row a room, and a function that compares the epoch,
// takes the next number under the room's row lock and inserts: what an append
// comes to in the end, without anything that makes it one.
const schema = `
drop schema if exists bench cascade;
create schema bench;
create table bench.rooms (id int primary key, epoch bigint not null, next_seq bigint not null);
create table bench.log (room int not null, seq bigint not null, epoch bigint not null, kind smallint not null,
	accepted_ms bigint not null, bytes bytea not null, primary key (room, seq));
insert into bench.rooms select n, 0, 1 from generate_series(1, %d) n;
create function bench.append(r int, e bigint, b bytea) returns bigint language plpgsql as $$
declare s bigint;
begin
	update bench.rooms set next_seq = next_seq + 1 where id = r and epoch = e returning next_seq - 1 into s;
	if s is null then raise exception 'stale epoch'; end if;
	insert into bench.log values (r, s, e, 1, (extract(epoch from clock_timestamp()) * 1000)::bigint, b);
	return s;
end $$;
`

// BenchmarkPgbench is the same sequence bump and insert by pgbench, with 1, 8
// and 32 clients, in the PostgreSQL of COMPAX_TEST_POSTGRES with fsync on.
func BenchmarkPgbench(b *testing.B) {
	url := os.Getenv("COMPAX_TEST_POSTGRES")
	if url == "" {
		b.Skip("SKIPPED, NOT MEASURED: COMPAX_TEST_POSTGRES names no PostgreSQL (make bench starts one)")
	}
	if fsync := strings.TrimSpace(run(b, "psql", "-Atc", "show fsync", url)); fsync != "on" {
		b.Fatalf("fsync is %s: the comparison would be false", fsync)
	}
	script := filepath.Join(b.TempDir(), "append.sql")
	text := fmt.Sprintf("\\set r random(1, %d)\nselect bench.append(:r, 0, '\\x%s');\n", rooms, strings.Repeat("5a", size))
	check(b, os.WriteFile(script, []byte(text), 0o600))
	for _, clients := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			run(b, "psql", "-qc", fmt.Sprintf(schema, rooms), url)
			each := max(1, b.N/clients)
			b.ResetTimer()
			out := run(b, "pgbench", "-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-j", strconv.Itoa(min(clients, 2)),
				"-t", strconv.Itoa(each), "-f", script, url)
			b.StopTimer()
			b.ReportMetric(number(b, out, `tps = ([0-9.]+)`), "appends/s")
			b.ReportMetric(number(b, out, `latency average = ([0-9.]+) ms`), "mean-ms")
		})
	}
}

// run runs a program of PostgreSQL and returns its output.
func run(b *testing.B, name string, args ...string) string {
	b.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
		if len(found) == 0 {
			b.Skipf("SKIPPED, NOT MEASURED: %v", err)
		}
		path = found[len(found)-1]
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		b.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func number(b *testing.B, text, pattern string) float64 {
	b.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		b.Fatalf("no %q in:\n%s", pattern, text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	check(b, err)
	return n
}
