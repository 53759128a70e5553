// Package sdk is the client engine: one account on one device, its rooms, its
// outbox and what it has read. The command line, the terminal and the web app
// stand on it.
//
// # What it holds on to
//
// Everything that must survive a crash goes through the [Store] port, in one
// transaction per step: the MLS state of a room is stored before the ciphertext
// that used it leaves, and together with the messages that it opened and the
// cursor behind them. A message waits in the outbox, as content, until it has a
// seq; its ciphertext is repeated byte for byte until the service answers, and
// only a definitive refusal makes a new one, of the same content and so with the
// same message id.
//
// # What it never does
//
// It opens no connection and no file: [client.Transport] and [Store] do. It
// reads no clock and no randomness but those of [Config]. It lets nothing of a
// stranger in before its user accepts: a room of somebody unknown is a request.
//
// # Numbers, times and errors
//
// A seq counts the entries of one room from 1, an epoch its changes (RFC 9420
// §8.1). Fields that end in MS are Unix milliseconds; sizes are bytes.
//
// What is about a room fails with [ErrNoRoom] or [ErrRequest] when this profile has
// none, and what changes it or writes to it with [ErrOut] or [ErrStuck] besides. What
// asks the service fails with client.ErrOffline when no answer came, with
// client.ErrGarbage when it was none, with a [*delivery.Error] whose code says what to
// do now, with [ErrRevoked] when the owner ended this device, and with [ErrClosed] when
// the engine was closed meanwhile. Methods name what else they fail with. An error of the
// [Store] comes through as it is.
//
// # What others do now
//
// Who types and who is there ([Engine.Typing], [Engine.Online], [Activity]) is no part
// of a room: it goes through the socket alone, is kept nowhere, and may be lost.
//
// # Where to begin reading
//
// engine.go (what an engine is made of), send.go and receive.go (one message out
// and in), commit.go (one change of a room), then account.go for how it starts,
// archive.go for what outlives a device, and activity.go and ephemeral.go for what is
// said beside the log.
package sdk
