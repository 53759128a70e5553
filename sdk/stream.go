package sdk

import (
	"context"
	"slices"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
)

// Streaming says what of a room's conversation [Engine.Stream] gives.
type Streaming struct {
	Room  delivery.RoomID
	After uint64              // seqs above it
	Last  int                 // only the last so many; 0 = all
	Kind  func(LineKind) bool // only lines of these kinds
}

// streamPage is how many lines are read at once: a page of the longest texts has
// 16 MiB.
const streamPage = 256

// Stream gives the conversation of a room as it stands now, oldest first, edited and
// without what was taken back or has expired. However long it is, no more than a page
// and the last lines that were asked for are in memory. It sends nothing. An error of
// f ends it and is its error.
func (e *Engine) Stream(ctx context.Context, q Streaming, f func(Line) error) error {
	r, done, err := e.enter(ctx, q.Room)
	if err != nil {
		return err
	}
	upto := max(r.rec.Cursor, 1)
	done()
	wanted := func(l Line) bool { return q.Kind(l.Kind) && e.visible(l) }
	if q.Last > 0 {
		last, err := e.lastLines(ctx, q, upto, wanted)
		if err != nil {
			return err
		}
		for _, l := range last {
			if err := f(l); err != nil {
				return err
			}
		}
		return nil
	}
	for after, more := q.After, true; more; {
		var page []Line
		if page, more, err = e.page(ctx, LineQuery{Room: q.Room, After: after, Upto: upto}); err != nil {
			return err
		}
		for _, l := range page {
			if after = l.Seq; !wanted(l) {
				continue
			}
			if err := f(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastLines reads from the end until there are enough of those that are wanted.
func (e *Engine) lastLines(ctx context.Context, q Streaming, upto uint64, wanted func(Line) bool) ([]Line, error) {
	var newest []Line // newest first
	for more := true; more && len(newest) < q.Last; {
		var page []Line
		var err error
		if page, more, err = e.page(ctx, LineQuery{Room: q.Room, After: q.After, Upto: upto, Last: true}); err != nil {
			return nil, err
		}
		for i := len(page) - 1; i >= 0 && len(newest) < q.Last; i-- {
			if wanted(page[i]) {
				newest = append(newest, page[i])
			}
		}
		if len(page) > 0 {
			upto = page[0].Seq - 1
		}
		more = more && upto > q.After
	}
	slices.Reverse(newest)
	return newest, nil
}

// page reads lines with whole seqs: of one that several lines share, all or none. more
// says that there are others behind them.
func (e *Engine) page(ctx context.Context, q LineQuery) (page []Line, more bool, err error) {
	for q.Limit = streamPage; ; q.Limit *= 2 {
		err = e.Store.View(ctx, func(tx Tx) error {
			page, err = tx.Lines(q)
			return err
		})
		if err != nil || len(page) < q.Limit {
			return page, false, err
		}
		cut := page[len(page)-1].Seq
		if q.Last {
			cut = page[0].Seq
		}
		whole := slices.DeleteFunc(page, func(l Line) bool { return l.Seq == cut })
		if len(whole) > 0 {
			return whole, true, nil
		}
	}
}

// visible reports whether a line was neither taken back nor has expired.
func (e *Engine) visible(l Line) bool {
	return !l.Deleted && (l.ExpireMS == 0 || l.ExpireMS > e.nowMS())
}

// Reactions gives the reactions to a message of a room that stand.
func (e *Engine) Reactions(ctx context.Context, id delivery.RoomID, message content.MessageID) (out []Line, err error) {
	var about []Line
	err = e.Store.View(ctx, func(tx Tx) error {
		about, err = tx.Lines(LineQuery{Room: id, Target: &message})
		return err
	})
	for _, l := range about {
		if l.Kind == LineReaction && e.visible(l) {
			out = append(out, l)
		}
	}
	return out, err
}
