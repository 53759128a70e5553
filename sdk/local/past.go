package local

import (
	"context"

	"github.com/askucher/compax-core/sdk"
)

// Archived is what was written into the account's archive.
type Archived struct {
	Segments int `json:"segments"`
}

// Past is what a chat's history has of the time before this device came in.
type Past struct {
	Before  uint64     `json:"before"`            // with which seq it came in; 0 = it was there first
	Never   bool       `json:"never,omitempty"`   // this device was not in the chat at all
	Read    []sdk.Span `json:"read,omitempty"`    // what the archive had
	Missing []sdk.Span `json:"missing,omitempty"` // what no device has archived
	// Withheld is what cannot be shown though another device had archived it.
	Withheld []sdk.Span `json:"withheld,omitempty"`
	Going    bool       `json:"going,omitempty"` // the archive was not read to its end yet
	Days     int        `json:"days,omitempty"`  // how long the service keeps it
}

func (e engine) Archive(ctx context.Context, _ None) (Archived, error) {
	n, err := e.Engine.Archive(ctx)
	return Archived{Segments: n}, err
}

func (e engine) Past(ctx context.Context, r RoomRequest) (Past, error) {
	p, err := e.PastOf(ctx, r.Chat)
	return Past{
		Before: p.Before, Never: p.Never, Read: p.Read, Missing: p.Missing, Withheld: p.Withheld, Going: p.Going, Days: p.Days,
	}, err
}

// Archive implements [Profile].
func (h *Handle) Archive(ctx context.Context, r None) (Archived, error) {
	return do(ctx, h, callArchive, r, nothing)
}

// Past implements [Profile].
func (h *Handle) Past(ctx context.Context, r RoomRequest) (Past, error) {
	return do(ctx, h, callPast, r, nothing)
}
