#!/usr/bin/env bash
# The fast checks: format, vet, import rules, both build targets, staticcheck,
# known vulnerabilities. Fails on the first that finds something.
set -euo pipefail
cd "$(dirname "$0")/.."
PACKAGES=(./... ./internal/testdata) # the go command leaves folders named testdata out of ./...
step() { printf -- '-- %s\n' "$*" >&2; }

step "gofmt"
unformatted=$(git ls-files '*.go' | xargs -r gofmt -l)
[ -z "$unformatted" ] || { printf 'not gofmt-ed:\n%s\n' "$unformatted" >&2; exit 1; }

step "scripts parse"
for script in $(git ls-files '*.sh' .ci/run); do bash -n "$script"; done

step "go vet"
go vet "${PACKAGES[@]}"
(cd tools && go vet ./... && go test ./...) # a module of its own

step "lint: dropped and flattened errors, open rows, kept contexts"
mkdir -p bin
(cd tools && go build -o ../bin/lint ./lint)
go vet -vettool=bin/lint "${PACKAGES[@]}"

step "import rules, named paths, browser build"
go test .

step "staticcheck"
go tool -modfile=tools/go.mod staticcheck "${PACKAGES[@]}"

step "govulncheck"
rc=0
report=$(go tool -modfile=tools/go.mod govulncheck ./... 2>&1) || rc=$?
case $rc in
0) ;;
3) printf '%s\n' "$report" >&2; exit 1 ;; # 3: something was found
*)
	case $report in
	*"fetching vulnerabilities"*)
		cat >&2 <<-EOT
			!! govulncheck DID NOT RUN: its database could not be reached. Nothing is known about
			!! vulnerable dependencies. GOVULNDB names another copy of it. Its words:
			!! $report
		EOT
		[ -z "${SKIPPED_FILE:-}" ] || echo "known vulnerabilities (govulncheck could not reach its database)" >>"$SKIPPED_FILE"
		;;
	*) printf '%s\n' "$report" >&2; exit 1 ;;
	esac
	;;
esac
