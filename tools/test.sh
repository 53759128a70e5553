#!/usr/bin/env bash
# make test: what CI runs. As root on Debian it installs what it needs;
# elsewhere it names what is missing and, at the end, what it did not test.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh
. tools/postgres.sh

finish() {
	local rc=$?
	postgres_stop
	what_was_skipped
	if [ "$rc" = 0 ]; then rm -rf "$LOGS"; else note "FAILED (exit $rc); logs in $LOGS"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM

command -v go >/dev/null || { note "Go is not installed: go.mod names the version, https://go.dev/dl has it"; exit 1; }

# The race detector is C: it needs a compiler.
debian_packages gcc libc6-dev git ca-certificates || true
race=(-race)
if ! CGO_ENABLED=1 go test -race -run '^$' ./internal/testdata >"$LOGS/race.log" 2>&1; then
	race=()
	if [ "${CI:-}" = true ]; then cat "$LOGS/race.log" >&2; note "the race detector does not work here"; exit 1; fi
	skipped "data races (the race detector needs gcc: $(tail -n 1 "$LOGS/race.log"))"
fi

if ! postgres_start; then
	[ "${CI:-}" != true ] || exit 1
	skipped "the PostgreSQL store"
fi

export SKIPPED_FILE=$LOGS/skipped
: >"$SKIPPED_FILE"
tools/check.sh
while read -r line; do skipped "$line"; done <"$SKIPPED_FILE"

# go vet ran in check.sh. gotestsum runs go test, shows the output of failures
# only, and ends with the counts and every skipped test with its reason. The
# official vectors follow below, without the race detector: under it they take
# minutes, and what of the engine runs in parallel has tests of its own here.
CGO_ENABLED=1 go tool -modfile=tools/go.mod gotestsum --format pkgname -- \
	"${race[@]}" -vet=off -timeout 40m -skip '^TestVectors' ./... ./internal/testdata

# Every case of the official vectors ran: their number per file and suite is
# compared with what the files hold.
if tools/vectors.sh >"$LOGS/vectors.log" 2>&1; then
	note "official vectors: $(tail -n 1 "$LOGS/vectors.log")"
elif [ "${CI:-}" != true ] && grep -q 'no vectors in' "$LOGS/vectors.log"; then
	skipped "the official vectors: $(tail -n 1 "$LOGS/vectors.log")"
else
	cat "$LOGS/vectors.log" >&2
	exit 1
fi

# Other implementations, each behind one script: exit 0 passed, 77 cannot run
# here (its last line says why), anything else failed.
for run in interop/*/run; do
	[ -x "$run" ] || continue
	note "interop: $run"
	rc=0
	"$run" 2>&1 | tee "$LOGS/interop.log" || rc=${PIPESTATUS[0]}
	case $rc in
	0) ;;
	77) skipped "$run: $(tail -n 1 "$LOGS/interop.log")" ;;
	*) note "$run failed (exit $rc)"; exit 1 ;;
	esac
done
note "all tests passed"
