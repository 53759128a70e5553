// Package mlstest is what tests of MLS stand on: clients with stores, a world in
// which many of them share a group over an ordered log, and a naive ratchet
// tree that computes everything anew from the words of RFC 9420, to compare the
// engine with.
//
// It is for tests alone: it fails a testing.TB instead of returning errors, and
// its randomness comes from a seed, so that a failure can be run again. Begin
// reading at client.go, then world.go and naive.go.
package mlstest
