// Command compax is the whole of Compax: the service that one person or an
// operator runs (up, server), and the scriptable client (account, room, send,
// listen, …).
//
// It holds commands and how they look; the work is done in packages node, sdk
// and what they stand on. Data goes to standard output, one JSON object a line
// with --json, and talk to standard error; the exit codes are those of exit.go.
// A recovery phrase is read from standard input and printed once, when its
// account is made; it is never an argument.
//
// Begin reading at [run] in app.go, then send.go as an example of a command.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// The first signal asks to end well; a second one ends at once, as it does
	// where nobody listens. Nobody does by the time that anybody sees the first.
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	code := run(ctx, newApp(), os.Args[1:])
	cancel()
	os.Exit(code)
}
