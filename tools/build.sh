#!/usr/bin/env bash
# build.sh OUT PKG builds the program PKG into OUT. The first build compiles a
# few hundred packages, so it counts them aloud; a build with nothing to do
# says nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1 pkg=$2
command -v go >/dev/null || { echo "Go is not installed: go.mod names the version, https://go.dev/dl has it" >&2; exit 1; }

started=$SECONDS
[ -e "$out" ] || echo "  building $out: a few minutes the first time, an instant later" >&2
tty=0; [ -t 2 ] && tty=1
# go build -v prints one line per package it compiles, "go: downloading" per
# module it fetches; anything else is an error and passes through.
go build -v -o "$out" "$pkg" 2>&1 | awk -v tty="$tty" '
	/^go: downloading / { print "  fetching " $3 " " $4; fflush(); next }
	/^[a-z0-9.\/_-]+$/i {
		n++
		if (tty) { printf "\r  compiled %d packages: %-60.60s", n, $0; shown = 1 }
		else if (n % 50 == 0) print "  compiled " n " packages"
		fflush(); next
	}
	{ if (shown) { print ""; shown = 0 } print; fflush() }
	END { if (tty && shown) print ""; if (n) print "  compiled " n " packages" }
' >&2
took=$((SECONDS - started))
[ "$took" -lt 3 ] || echo "  built $out in ${took} s" >&2
