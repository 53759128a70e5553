# Everything a person or CI runs. `make help` lists it.
#
# Needs Go (go.mod names the version), Node and make. What else the tests use
# (gcc for the race detector, PostgreSQL) `make test` installs on Debian as
# root, and names elsewhere.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help up build test check race fuzz soak bench bench-mls vectors mutants clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: build ## build what is needed, then start Compax on this machine
	@exec bin/compax up $(FLAGS)

build: ## build bin/compax, with progress
	@tools/build.sh bin/compax ./cmd/compax

test: ## everything CI runs: check, all tests with the race detector and Postgres, interop
	@tools/test.sh

check: ## format, vet, import rules, linters, known vulnerabilities: fast, before each commit
	@tools/check.sh

race: ## the tests of PKG with the race detector, e.g. make race PKG=./delivery/...
	@tools/with-postgres.sh go test -race $(or $(PKG),./... ./internal/testdata)

fuzz: ## run every fuzz target for FUZZTIME (default 60s); PKG narrows it
	@tools/fuzz.sh $(or $(FUZZTIME),60s) $(or $(PKG),./...)

soak: ## kill -9 at random for SOAK (default 10m; SEED repeats one), 1 GiB sent, 5,000 messages missed
	@go test ./scripts -run 'TestSoak|TestLargeFile|TestLongAbsence' -v -timeout 2h -long -soak $(or $(SOAK),10m) $(if $(SEED),-soak.seed $(SEED))

bench: ## the tables of docs/benchmarks.md, in one run; or the benchmarks of PKG that match BENCH
	@tools/bench.sh $(if $(PKG)$(BENCH),go '$(or $(BENCH),.)' $(or $(PKG),./...),tables)

bench-mls: ## of these tables the engine beside OpenMLS alone; SIZES=10,100 for less
	@tools/bench.sh mls

vectors: ## the official RFC 9420 vectors, counted per file and suite
	@tools/vectors.sh

mutants: ## take out each validation check in turn and see its tests fail; lists survivors
	@tools/mutants.sh $(PKG)

clean: ## remove what was built
	@rm -rf bin
