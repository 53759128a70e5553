// Package compax is the root of the Compax messenger. It holds no code: the
// product is the binary in cmd/compax, and the parts below.
//
// Where to start reading:
//
//   - arch_test.go says which package may import which, and why; it is the map.
//   - delivery holds the protocol: ids, routes, frames, codes and, in its
//     package comment, the conversation between a device and its service.
//   - mls is the RFC 9420 engine, sdk the client engine, delivery/server the
//     service that orders what it cannot read.
//   - docs/walkthrough.md follows one message from end to end.
package compax
