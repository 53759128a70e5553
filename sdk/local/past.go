package local

import (
	"context"
	"slices"

	"github.com/askucher/compax-core/sdk"
)

// Archived is what was written into the account's archive.
type Archived struct {
	Segments int `json:"segments"`
}

// Past is what a chat's history has of the time before this device came in.
type Past struct {
	Before  uint64     `json:"before"`            // with which seq it came in; 0 = it was there first
	Read    []sdk.Span `json:"read,omitempty"`    // what the archive had
	Missing []sdk.Span `json:"missing,omitempty"` // what cannot be shown
	// Withheld: a part of what is missing had been archived by another device.
	Withheld bool `json:"withheld,omitempty"`
	Going    bool `json:"going,omitempty"` // the archive is still being read
	Days     int  `json:"days,omitempty"`  // how long the service keeps it
}

func (e engine) Archive(ctx context.Context, _ None) (Archived, error) {
	n, err := e.Engine.Archive(ctx)
	return Archived{Segments: n}, err
}

func (e engine) Past(ctx context.Context, r RoomRequest) (Past, error) {
	p, err := e.PastOf(ctx, r.Chat)
	return Past{
		Before: p.Before, Read: p.Read, Missing: p.Missing, Going: p.Going, Days: p.Days,
		Withheld: slices.ContainsFunc(p.Missing, func(s sdk.Span) bool { return s.From <= p.Archived }),
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
