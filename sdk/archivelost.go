package sdk

import (
	"context"

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
