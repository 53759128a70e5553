// Package mls is a Messaging Layer Security engine: RFC 9420 with the parts of
// draft-ietf-mls-extensions that Compax uses (SelfRemove, AppDataUpdate, the
// application data dictionary, last-resort key packages, the safe exporter).
//
// # Groups are values
//
// A [Group] is one client's view of one epoch and never changes. What would
// change it gives a result that embeds a [Step]: the group after it (Next),
// what to write to the store (Delta), and Forget, which wipes the secrets that
// only the old group still holds. The order that survives a crash at any point:
//
//	sealed, err := group.Seal(mls.SealParams{Random: rand.Reader, Content: text})
//	store.Write(sealed.Delta)       // durable, before the ciphertext leaves
//	sealed.Forget()                 // the old value must not be used any more
//	group = sealed.Next
//	send(sealed.Message)
//
// An error leaves no trace: the old group is as good as before.
//
// [Group.Process] takes every message of the group and gives a [Received]:
// *[Application], *[ProposalReceived] or *[StagedCommit]. A staged commit shows
// who comes and goes; taking its Step applies it, dropping it refuses it.
// [Group.Commit] gives a *[Commit]: the message to send, the Welcome, the new
// epoch's GroupInfo, the staged result to apply once the delivery service
// accepted it, and Keep, which stores it so that the echo is recognised even
// after a restart.
//
// # What it never does
//
// It opens no file or connection, keeps no goroutine, reads no clock and no
// randomness but what it is given. It decides nothing about who may be in a
// group: that is the credential validator of [Config] and the caller, who sees
// every staged change before it counts. No secret is in any error or printed
// form.
//
// # Where to begin reading
//
// group.go (the value), process.go and commit.go (epochs), seal.go (messages),
// join.go and external.go (entering), then keyschedule.go, secrettree.go and
// path.go for what carries them. Public state is validated by package follower,
// for members and servers alike.
package mls
