// Package local lets several processes work on one profile. The first process
// opens the profile's store and listens on a Unix socket beside it, mode 0600; a
// second one finds the store locked, talks to the first and behaves the same.
// When the first ends, the next call of the second opens the store itself.
//
// [Profile] is everything that a program does with an open profile: the engine's
// adapter implements it in the process that owns the store, [Handle] implements
// it over the socket. Requests and answers are plain values, so that a call is
// the same in both.
//
// It never opens a network connection, reads no message store and keeps no key.
// A recovery phrase crosses the socket only in [RevokeRequest], [ApproveRequest] and
// [EditAccountRequest], between two processes of one user, and is kept nowhere.
//
// Begin reading at [Profile], then [Open].
package local
