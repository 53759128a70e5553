// Package follower is the public side of an MLS group (RFC 9420): the state that
// anybody can follow who reads the group's handshake messages as PublicMessages,
// and the one validator of that state. A delivery service uses it alone; members
// (package mls) use the same code and add what only secrets can check.
//
// A [Group] is an immutable value: the GroupContext, the ratchet tree, the
// transcript and the proposals that wait in one epoch. [Group.HoldProposal]
// verifies a proposal, [Group.StageCommit] a commit, with every rule of Sections
// 12.2 to 12.4 that public state can decide, and gives a [Staged] value: the
// roster's change and the next GroupContext byte for byte. [Staged.Next] swaps it
// in. No error leaves anything changed. [Staged.CheckGroupInfo] and
// [Staged.CheckWelcome] hold what travels beside a commit against it.
//
// What nobody can see without secrets, and this package therefore does not
// check: membership tags, the value of confirmation tags, whether path secrets
// decrypt, pre-shared keys, external_pub.
//
// What the package never does: it holds no private key and no secret, reads no
// clock (time is in [Options]) and knows no identities (credentials are judged
// by an injected [tree.CredentialValidator]).
//
// Begin reading at group.go, then draft.go (what a list of proposals does),
// list.go (whether it may) and commit.go; state.go is how a Group is stored.
package follower
