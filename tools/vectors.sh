#!/usr/bin/env bash
# vectors.sh counts the official RFC 9420 vectors per file and suite, and the
# cases that pass, in every package that has a test named TestVectors….
set -euo pipefail
cd "$(dirname "$0")/.."
dir=${COMPAX_SHARED:-}
if [ -z "$dir" ]; then
	# In a linked worktree the folder stands beside the main checkout.
	main=$(dirname "$(git rev-parse --path-format=absolute --git-common-dir 2>/dev/null || echo "$PWD/.git")")
	for checkout in "$PWD" "$main"; do
		[ ! -d "$(dirname "$checkout")/shared" ] || { dir=$(dirname "$checkout")/shared; break; }
	done
fi
mapfile -t packages < <(git ls-files '*_test.go' | grep -v '^tools/' | xargs -r grep -l '^func TestVectors' | xargs -r -n1 dirname | sort -u | sed 's|^|./|')
mkdir -p bin
(cd tools && go build -o ../bin/vectors ./vectors)
exec bin/vectors -dir "${dir:-../shared}/mls-vectors" "${packages[@]}"
