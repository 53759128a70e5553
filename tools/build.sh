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
# module it fetches; anything else is an error and passes through. (Not awk:
# Debian's own reads a pipe in blocks, and would show nothing for minutes.)
shows() {
	local n=0 shown= line
	while IFS= read -r line || [ -n "$line" ]; do
		case $line in
		'go: downloading '*) line=${line#go: downloading }; printf '  fetching %s\n' "$line" ;;
		*[!A-Za-z0-9._/-]* | '')
			[ -z "$shown" ] || printf '\n'
			shown=
			printf '%s\n' "$line"
			;;
		*)
			n=$((n + 1))
			if [ "$tty" = 1 ]; then
				printf '\r  compiled %d packages: %-60.60s' "$n" "$line"
				shown=1
			elif [ $((n % 50)) = 0 ]; then
				printf '  compiled %d packages\n' "$n"
			fi
			;;
		esac
	done
	[ -z "$shown" ] || printf '\n'
	[ "$n" = 0 ] || printf '  compiled %d packages\n' "$n"
}
go build -v -o "$out" "$pkg" 2>&1 | shows >&2
took=$((SECONDS - started))
[ "$took" -lt 3 ] || echo "  built $out in ${took} s" >&2
