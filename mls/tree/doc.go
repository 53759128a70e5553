// Package tree is the public half of an MLS ratchet tree (RFC 9420 Sections 4,
// 7 and Appendices C, D): who is in a group, under which public keys, and what
// each member supports.
//
// A [Tree] is an immutable value. [Tree.Edit] gives an [Editor] that copies only
// the nodes it touches; [Editor.Freeze] makes the next Tree of them, and both
// trees share everything else. Every node carries its tree hash and a summary
// of what the leaves below it support, so a commit in a tree of 1,000 leaves
// hashes one path of 11 nodes, and asking whether all members support a type
// costs one comparison.
//
// Trees from outside are [Unverified]; [Unverified.Verify] checks every rule
// that a joiner has to check (Section 12.4.3.1: leaves, parent hashes, unmerged
// leaves, unique keys) and is the way to a Tree.
//
// What the package never does: it holds no private key and no secret, knows no
// epochs, messages or proposals (package follower does), judges no identity
// (the caller does, through [CredentialValidator]), reads no clock and leaves no
// goroutine behind.
//
// Begin reading at tree.go, then edit.go; math.go is the index arithmetic,
// verify.go the rules for trees, leaf.go those for leaves.
package tree
