# Sourced by the scripts beside it: saying things, and what the machine lacks.

# note says a line on standard error, so that it stands out between test output.
note() { printf '== %s\n' "$*" >&2; }

# skipped records a thing that was not tested; what_was_skipped repeats all of
# them at the end, where they are read.
SKIPPED=()
skipped() { SKIPPED+=("$*"); note "SKIPPED: $*"; }
what_was_skipped() {
	[ ${#SKIPPED[@]} -gt 0 ] || return 0
	note "NOT TESTED in this run:"
	printf '==   - %s\n' "${SKIPPED[@]}" >&2
}

root_on_debian() { [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ] && command -v apt-get >/dev/null; }

# debian_packages installs the named packages that are missing, as root on
# Debian; elsewhere it does nothing and the caller finds out what lacks.
debian_packages() {
	root_on_debian || return 0
	local missing=() name
	for name in "$@"; do
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	note "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	# RUNLEVEL=1: services that come with a package are not started.
	{ apt-get update && RUNLEVEL=1 apt-get install -y --no-install-recommends "${missing[@]}"; } >"$LOGS/apt.log" 2>&1 ||
		{ tail -n 20 "$LOGS/apt.log" >&2; note "apt-get could not install ${missing[*]}"; return 1; }
}

LOGS=${LOGS:-$(mktemp -d "${TMPDIR:-/tmp}/compax-test.XXXXXX")}
chmod 755 "$LOGS"
