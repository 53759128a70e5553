#!/usr/bin/env bash
# bench.sh tables          the comparisons of docs/benchmarks.md, as its tables:
#                          the engine beside OpenMLS, appends beside pgbench,
#                          a cold start beside nats-server. About ten minutes.
# bench.sh mls             the first of them; SIZES=10,100 for less
# bench.sh go PATTERN PKG… the Go benchmarks that match
# Benchmarks of the Postgres store get a server with fsync on.
set -euo pipefail
cd "$(dirname "$0")/.."

measure() { PG_FSYNC=on tools/with-postgres.sh go test -run '^$' "$@"; }

beside_openmls() {
	printf '## MLS, beside OpenMLS\n'
	interop/openmls/bench
}

# rows turns the lines of Go benchmarks into rows of a table: every value with its
# unit, without the mean time, which the processes' starts and ends blur.
rows() {
	awk '/^Benchmark/ {
		sub(/^Benchmark/, "", $1); sub(/-[0-9]+$/, "", $1)
		row = "| " $1 " |"
		for (i = 3; i < NF; i += 2) if ($(i + 1) != "ns/op") row = row " " $i " " $(i + 1) " |"
		print row; next
	}
	/SKIPPED|FAIL|panic/ { print; bad += /FAIL|panic/ }
	END { exit bad > 0 }'
}

case ${1:-tables} in
tables)
	beside_openmls
	printf '\n## Appends, beside pgbench\n\n'
	measure -bench 'Appends|Pgbench' -benchtime 20000x -timeout 10m ./bench/appends | rows
	printf '\n## Cold start and idle memory, beside nats-server\n\n'
	measure -bench 'Start' -benchtime 20x -timeout 5m ./bench/appends | rows
	;;
mls) beside_openmls ;;
go)
	pattern=$2; shift 2
	measure -bench "$pattern" -benchmem -timeout 60m "$@"
	;;
*) printf 'usage: bench.sh tables|mls|go PATTERN PKG…\n' >&2; exit 2 ;;
esac
