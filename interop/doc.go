// Package interop runs the engine beside other implementations of RFC 9420, live
// and in one group: OpenMLS (Rust) and ts-mls (TypeScript).
//
// Each of them is a child process of its folder that answers one JSON request a
// line; the engine answers the same requests in this process, behind the same
// interface (peer_test.go). A world (world_test.go) holds one group with members
// of any of them and compares all members after every step: epoch, epoch
// authenticator, an exported secret and the member list must be the same
// everywhere. What a peer does not offer is in the table of docs/interop.md, which
// is compared with what the peers themselves say.
//
// The scripts openmls/run and ts-mls/run build a peer and run the tests that need
// it; without them the tests here skip. COMPAX_INTEROP_SEED repeats the choices
// and the keys of the engine's side; the peers draw their own keys.
//
// With -record DIR the runs of record_test.go are written down as the cases that
// package mls replays without the peers.
package interop
