#!/usr/bin/env bash
# bench.sh PATTERN PKG… runs the Go benchmarks that match, then the comparisons
# with other implementations (interop/*/bench). Benchmarks of the Postgres store
# get a server with fsync on.
set -euo pipefail
cd "$(dirname "$0")/.."
pattern=$1; shift
PG_FSYNC=on tools/with-postgres.sh go test -run '^$' -bench "$pattern" -benchmem -timeout 60m "$@"
for bench in interop/*/bench; do
	[ -x "$bench" ] || continue
	printf -- '-- %s\n' "$bench" >&2
	"$bench"
done
