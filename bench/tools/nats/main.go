// Command nats is what package appends measures beside Compax: nats-server with
// JetStream on a directory, every message synced to the disk before it is
// acknowledged. It is a module of its own, so that Compax does not depend on it.
//
//	nats DIR
//
// It prints its address when it listens, and runs until it is told to end.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: nats DIR")
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: args[0], SyncAlways: true,
	})
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		return fmt.Errorf("it does not listen after 30 s")
	}
	fmt.Println(s.Addr())
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, os.Interrupt)
	<-end
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}
