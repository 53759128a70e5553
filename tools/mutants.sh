#!/usr/bin/env bash
# mutants.sh [-list] [PKG…] takes out the validation checks of the packages (folders such
# as mls/tree; by default of everything that judges what comes from outside), one
# at a time, and lists those that no test misses. The table goes to bin/mutants.txt.
# -list writes docs/mutants.md, the checks of which no test can miss one and why.
set -euo pipefail
cd "$(dirname "$0")/.."
flags=()
[ "${1:-}" != -list ] || { flags=(-list); shift; }
if [ $# -eq 0 ]; then
	for pkg in internal/strict25519 mls/wire mls/suite mls/tree mls/hpke mls/follower mls x509cred identity identity/phrase content delivery delivery/policy delivery/client delivery/server; do
		[ ! -d "$pkg" ] || set -- "$@" "$pkg"
	done
fi
mkdir -p bin
(cd tools && go build -o ../bin/mutants ./mutants)
exec bin/mutants -root . "${flags[@]}" "$@"
