# Sourced after lib.sh: a PostgreSQL of our own, on its own port and in its own
# directory, for the length of one run. Sets COMPAX_TEST_POSTGRES to its URL.

# postgres_start returns 1 and says why when there is no PostgreSQL to start.
postgres_start() {
	if [ -n "${COMPAX_TEST_POSTGRES:-}" ]; then
		note "PostgreSQL: the one that COMPAX_TEST_POSTGRES names"
		return 0
	fi
	debian_packages postgresql || return 1
	PG_BIN=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
	[ -n "$PG_BIN" ] || PG_BIN=$(dirname "$(command -v initdb 2>/dev/null || echo /nowhere/initdb)")
	if [ ! -x "$PG_BIN/initdb" ]; then
		note "PostgreSQL is not installed (Debian: postgresql; macOS: brew install postgresql)"
		return 1
	fi
	PG_DIR=$LOGS/postgres
	mkdir -p "$PG_DIR"
	AS_PG=()
	if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses to run as root
		chown postgres "$PG_DIR"
		AS_PG=(setpriv --reuid=postgres --regid=postgres --clear-groups env HOME="$PG_DIR")
	fi
	"${AS_PG[@]}" "$PG_BIN/initdb" -D "$PG_DIR/data" -U postgres -A trust -E UTF8 --locale=C >"$LOGS/initdb.log" 2>&1 ||
		{ tail -n 20 "$LOGS/initdb.log" >&2; note "initdb failed"; return 1; }
	local try port
	for try in 1 2 3 4 5; do
		port=$((20000 + RANDOM % 20000))
		# fsync=off: these tests crash programs, never the machine. Durability
		# is measured by the benchmarks, with fsync on.
		if "${AS_PG[@]}" "$PG_BIN/pg_ctl" -D "$PG_DIR/data" -w -t 30 -l "$PG_DIR/log" start -o \
			"-p $port -k $PG_DIR -c listen_addresses=127.0.0.1 -c fsync=${PG_FSYNC:-off} -c max_connections=200" >/dev/null 2>&1; then
			export COMPAX_TEST_POSTGRES="postgres://postgres@127.0.0.1:$port/postgres?sslmode=disable"
			note "PostgreSQL: $("$PG_BIN/postgres" --version), port $port, in $PG_DIR"
			PG_STARTED=1
			return 0
		fi
	done
	tail -n 20 "$PG_DIR/log" >&2
	note "PostgreSQL did not start"
	return 1
}

postgres_stop() {
	[ -n "${PG_STARTED:-}" ] || return 0
	"${AS_PG[@]}" "$PG_BIN/pg_ctl" -D "$PG_DIR/data" -m immediate -w stop >/dev/null 2>&1 || note "PostgreSQL did not stop: $PG_DIR"
	PG_STARTED=
}
