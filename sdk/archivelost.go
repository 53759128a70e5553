package sdk

import (
	"context"
	"slices"

	"github.com/askucher/compax-core/delivery"
)

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
	blocks := map[delivery.RoomID][]uint64{}
	err = e.Store.View(ctx, func(tx Tx) error {
		if rooms, err = scan[Room](tx, TableRoom, ""); err != nil {
			return err
		}
		for _, rec := range rooms {
			if rec.Kind == delivery.RoomSelf {
				continue
			}
			lines, err := tx.Lines(LineQuery{Room: rec.ID, After: rec.First, Upto: rec.Cursor})
			if err != nil {
				return err
			}
			for _, l := range lines {
				if archived(l) && l.TimeMS >= info.oldestMS {
					blocks[rec.ID] = append(blocks[rec.ID], l.Seq/segmentSeqs)
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, rec := range rooms {
		for _, b := range slices.Compact(blocks[rec.ID]) {
			name, err := e.nameOf(ctx, rec.ID, b)
			if err != nil {
				return segments, err
			}
			if shown[name] {
				continue
			}
			wrote, err := e.archiveBlock(ctx, rec, b)
			if delivery.CodeOf(err) == delivery.CodeTooLarge {
				return segments, nil // which was told of, or is by the next pass
			}
			if err != nil {
				return segments, err
			}
			if wrote {
				segments++
			}
		}
	}
	return segments, nil
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
