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
// # Where to begin reading
//
// engine.go (what an engine is made of), send.go and receive.go (one message out
// and in), commit.go (one change of a room), then account.go for how it starts and
// archive.go for what outlives a device.
package sdk
