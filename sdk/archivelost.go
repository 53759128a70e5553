package sdk

import (
	"context"

	"github.com/askucher/compax-core/delivery"
)

// incarnation is a service between two restores from a backup.
type incarnation struct {
	Number     uint32 `json:"number"`
	RestoredMS int64  `json:"restored_ms"`
}

// archiveRestored begins every room anew when the service was restored: segments are
// gone, or stand there as they were when the backup was made. Blocks that the service
// has as they should be are read and not written.
func (e *Engine) archiveRestored(ctx context.Context) error {
	info, err := e.home(ctx)
	if err != nil {
		return err
	}
	now := incarnation{info.Incarnation, info.RestoredMS}
	var before incarnation
	err = e.Store.View(ctx, func(tx Tx) error {
		_, err := get(tx, TableSetting, settingSince, &before)
		return err
	})
	if err != nil || before == now {
		return err
	}
	return e.Store.Update(ctx, func(tx Tx) error {
		rooms, err := scan[Room](tx, TableRoom, "")
		if err != nil {
			return err
		}
		for _, rec := range rooms {
			var state archiveState
			found, err := get(tx, TableSetting, settingTo+rec.ID.String(), &state)
			if err != nil {
				return err
			}
			if !found || state.To <= rec.First {
				continue
			}
			state.To = rec.First
			if err := put(tx, TableSetting, settingTo+rec.ID.String(), state); err != nil {
				return err
			}
		}
		if err := tx.Put(TableSetting, settingDirty, []byte{1}); err != nil {
			return err
		}
		return put(tx, TableSetting, settingSince, now)
	})
}

// archiveLost writes blocks again of which the service shows no segment, as long as
// it takes them.
func (e *Engine) archiveLost(ctx context.Context) (segments int, err error) {
	shown, err := e.shownSegments(ctx)
	if err != nil {
		return 0, err
	}
	info, err := e.archiveInfo(ctx)
	if err != nil {
		return 0, err
	}
	var rooms []Room
	err = e.Store.View(ctx, func(tx Tx) error {
		rooms, err = scan[Room](tx, TableRoom, "")
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, rec := range rooms {
		if rec.Kind == delivery.RoomSelf {
			continue
		}
		n, err := e.archiveLostOf(ctx, rec, shown, info.oldestMS)
		segments += n
		if delivery.CodeOf(err) == delivery.CodeTooLarge {
			return segments, nil // which was told of, or is by the next pass
		}
		if err != nil {
			return segments, err
		}
	}
	return segments, nil
}

// archiveLostOf is archiveLost for one room, block by block.
func (e *Engine) archiveLostOf(ctx context.Context, rec Room, shown map[string]bool, oldestMS int64) (segments int, err error) {
	for after := rec.First; ; {
		block, found, err := e.blockAfter(ctx, rec, after, oldestMS)
		if err != nil || !found {
			return segments, err
		}
		_, after = blockOf(block)
		name, err := e.nameOf(ctx, rec.ID, block)
		if err != nil {
			return segments, err
		}
		if shown[name] {
			continue
		}
		wrote, err := e.archiveBlock(ctx, rec, block)
		if err != nil {
			return segments, err
		}
		if wrote {
			segments++
		}
	}
}

// blockAfter is the first block with something behind a seq that belongs into the
// archive.
func (e *Engine) blockAfter(ctx context.Context, rec Room, after uint64, oldestMS int64) (block uint64, found bool, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		for l, err := range eachLine(tx, rec.ID, after+1, rec.Cursor) {
			if err != nil {
				return err
			}
			if found = archived(l) && l.TimeMS >= oldestMS; found {
				block = l.Seq / segmentSeqs
				return nil
			}
		}
		return nil
	})
	return block, found, err
}

// shownSegments are the names that the service lists, as far as its list has an
// order and an end.
func (e *Engine) shownSegments(ctx context.Context) (map[string]bool, error) {
	shown, after := map[string]bool{}, ""
	for {
		page, err := e.client.Archive(ctx, after)
		if err != nil {
			return nil, e.fail(ctx, err)
		}
		for _, v := range page.Segments {
			if v.Name <= after || len(shown) >= maxSegments {
				return shown, nil
			}
			shown[v.Name], after = true, v.Name
		}
		if !page.More || len(page.Segments) == 0 {
			return shown, nil
		}
	}
}
