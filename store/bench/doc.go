// Package bench compares the stores with the plain database on the same disk,
// in one run: pgbench calling a function that does what an append must do (the
// next seq of a room, the entry, its dedupe row) and nothing else, against the
// same through [delivery.Store]. All of them acknowledge after the flush to the
// medium.
//
// It holds benchmarks only: make bench PKG=./store/bench. Begin reading at
// BenchmarkAppends in its test file; pgbench.sql is the function, append.pgbench
// the script.
package bench
