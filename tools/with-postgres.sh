#!/usr/bin/env bash
# with-postgres.sh COMMAND… runs COMMAND with a PostgreSQL of its own in
# COMPAX_TEST_POSTGRES, and stops it after, also on failure.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/lib.sh
. tools/postgres.sh
trap 'postgres_stop; rm -rf "$LOGS"' EXIT
trap 'exit 130' INT TERM
postgres_start || skipped "what needs PostgreSQL"
rc=0
"$@" || rc=$?
what_was_skipped
exit "$rc"
