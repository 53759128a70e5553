package node

import (
	"context"
	"log/slog"
)

// discardAddresses passes records on without their text, which an HTTP server
// fills with the addresses of clients.
type discardAddresses struct{ slog.Handler }

func (d discardAddresses) Handle(ctx context.Context, r slog.Record) error {
	return d.Handler.Handle(ctx, slog.NewRecord(r.Time, r.Level, "a connection failed", r.PC))
}
