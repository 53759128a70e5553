# Sourced by */run: what they share.
#
# A run script builds one peer and runs the tests that need it. It exits 77 when
# it cannot, its last line saying why; with CI=true that is a failure.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# cannot ends a run script that lacks something.
cannot() {
	printf '%s\n' "$*"
	[ "${CI:-}" != true ] || exit 1
	exit 77
}

# interop_tests runs the tests of the package that match, with the named peers
# taking part. Groups of hundreds under the race detector are slow and show
# nothing that small ones do not, so it is left to the engine's own tests.
interop_tests() { # PEERS PATTERN
	COMPAX_INTEROP=$1 go test -count=1 -vet=off -timeout 10m -run "$2" ./interop
}
