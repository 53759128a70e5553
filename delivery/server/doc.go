// Package server is the delivery service: it orders ciphertext for rooms and
// hands it out, and cannot read it. It holds no key that opens anything; of an
// MLS group it follows the public half (mls/follower) and judges it by the
// rules that members apply too (delivery/policy).
//
// Nothing decisive lives in the process. Rooms, sessions and mailboxes are the
// store's; what is cached here is keyed by what never changes (a room's epoch)
// or forgotten within a second (a session). Any number of instances may run
// over one store, and each may die at any moment.
//
// It never lists who talks to whom: no log line, metric or refusal names a
// person, a device, a room or a token.
//
// The way of one message is append.go (authenticate, decode), room.go (the
// rules, inside the room's transaction), fanout.go (who is woken), socket.go
// (the frame goes out). Begin reading at [Server] in server.go; routes.go lists
// what is served by which file.
package server
