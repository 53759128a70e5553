package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// Two instances that keep their bytes in different places would each miss half
// of the blobs. So a store remembers where its blobs are, and who is alive says
// so again and again: an instance that finds another place alive does not start.

const (
	settingLocation = "blob-location"
	locationBeat    = 20 * time.Second
	locationAlive   = 3 * locationBeat
)

type location struct {
	Location string `json:"location"`
	SeenMS   int64  `json:"seen_ms"`
}

// claimLocation notes where this instance keeps its bytes.
func claimLocation(ctx context.Context, store delivery.Store, at string, now time.Time) error {
	mine, err := json.Marshal(location{at, now.UnixMilli()})
	if err != nil {
		return err
	}
	raw, err := store.InitSetting(ctx, settingLocation, mine)
	if err != nil {
		return fmt.Errorf("note where blobs are kept: %w", err)
	}
	var kept location
	if err := json.Unmarshal(raw, &kept); err != nil {
		return fmt.Errorf("where blobs are kept cannot be read: %w", err)
	}
	if kept.Location != at && now.Sub(time.UnixMilli(kept.SeenMS)) < locationAlive {
		return fmt.Errorf("a live instance of this store keeps its blobs at %s, this one at %s: give them one place, or wait a minute when it has just stopped", kept.Location, at)
	}
	return store.PutSetting(ctx, settingLocation, mine)
}

// keepLocation says again that this place is in use, until ctx ends.
func (n *Node) keepLocation(ctx context.Context) error {
	t := time.NewTicker(locationBeat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if err := claimLocation(ctx, n.store, n.blobs.Location(), n.config.Now()); err != nil && !errors.Is(err, context.Canceled) {
			n.config.Log.Error("node: noting where blobs are kept failed", "error", err)
		}
	}
}
