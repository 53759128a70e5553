#!/usr/bin/env bash
# mutants.sh [PKG…] takes out the validation checks of the packages (folders such
# as mls/tree; by default of everything that judges what comes from outside), one
# at a time, and lists those that no test misses. The table goes to bin/mutants.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
	for pkg in internal/strict25519 mls/wire mls/suite mls/tree mls/hpke mls/follower mls x509cred identity content delivery delivery/policy delivery/server; do
		[ ! -d "$pkg" ] || set -- "$@" "$pkg"
	done
fi
mkdir -p bin
(cd tools && go build -o ../bin/mutants ./mutants)
exec bin/mutants -root . "$@"
