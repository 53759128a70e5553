// Package appends measures how many entries a second a service acknowledges
// after fsync, through the whole HTTP API, beside what pgbench reaches on the
// same disk with a function that does the same sequence bump and insert.
//
// The service runs as a process of its own (the test binary, started again),
// with the default embedded store and without its limits against abuse; the load
// comes from this process over keep-alive connections, as cheaply as it can: each
// request is encoded once, only its ciphertext drawn anew, and of each answer the
// status and the seq are checked. Both share the machine's cores, so CPU-seconds
// are told apart. It tests nothing: read the numbers in
// docs/benchmarks.md, make them with make bench PKG=./bench/appends.
//
// It also measures a cold start to the first acknowledged message, and the memory
// of a service at rest, beside nats-server (module bench/tools/nats).
//
// With COMPAX_BENCH_PROFILE set to a path the service writes its CPU profile of the
// measured time there.
//
// Start reading at BenchmarkAppends and BenchmarkStart.
package appends
