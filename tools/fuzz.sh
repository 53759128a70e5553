#!/usr/bin/env bash
# fuzz.sh TIME PKG… runs every fuzz target of the packages for TIME each. A
# finding is written below the package's testdata/fuzz, where every later test
# run replays it: commit it with the fix. Minimising is bounded: by default the
# go command spends up to a minute on each input of some size that covers more,
# and tries nothing else meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
time=$1; shift
failed=0 ran=0
while read -r pkg; do
	while read -r target; do
		printf -- '-- %s %s\n' "$pkg" "$target" >&2
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 20x "$pkg" || failed=$((failed + 1))
		ran=$((ran + 1))
	done < <(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true)
done < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "$@")
echo "$ran fuzz targets, $failed with findings"
[ "$failed" = 0 ]
