package sdk_test

import (
	"context"
	"testing"

	"github.com/askucher/compax-core/sdk"
)

// meter is a store that knows how many lines it was asked for at once.
type meter struct {
	sdk.Store
	most int
}

func (m *meter) View(ctx context.Context, do func(sdk.Tx) error) error {
	return m.Store.View(ctx, func(tx sdk.Tx) error { return do(metered{tx, m}) })
}

func (m *meter) Update(ctx context.Context, do func(sdk.Tx) error) error {
	return m.Store.Update(ctx, func(tx sdk.Tx) error { return do(metered{tx, m}) })
}

type metered struct {
	sdk.Tx
	of *meter
}

func (t metered) Lines(q sdk.LineQuery) ([]sdk.Line, error) {
	out, err := t.Tx.Lines(q)
	t.of.most = max(t.of.most, len(out))
	return out, err
}

// TestAWideRoomIsArchivedBlockByBlock: a room with more lines than one query gives is
// archived to its end, and again when the service has lost it, with no more of it in
// memory than a block.
func TestAWideRoomIsArchivedBlockByBlock(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Wide")
	must(t, err)
	const words = 10_500
	must(t, ada.Pretend(ctx, room, words, 0))
	must(t, ada.Close())
	config := ada.config()
	m := &meter{Store: config.Store}
	config.Store = m
	ada.Engine, err = sdk.Open(ctx, config)
	must(t, err)
	rec, err := ada.RoomOf(ctx, room)
	must(t, err)
	blocks := int(rec.Cursor/128 - (rec.Cursor-words+1)/128 + 1)
	if n, err := ada.Archive(ctx); err != nil || n != blocks {
		t.Fatalf("%d segments, %v; want %d", n, err, blocks)
	}
	h.loseArchive()
	if n, err := ada.Archive(ctx); err != nil || n != blocks {
		t.Fatalf("%d segments again, %v; want %d", n, err, blocks)
	}
	if m.most > sdk.LinePage {
		t.Errorf("%d lines were in memory at once, more than %d", m.most, sdk.LinePage)
	}
}

// TestEachLine: lines are found whole and in order where many share a seq, at the end
// of a page and in its middle.
func TestEachLine(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Crowd")
	must(t, err)
	lines, seqs, err := ada.LinesIn(ctx, room, 1, 1<<40)
	must(t, err)
	for _, more := range []struct{ n, crowd int }{{sdk.LinePage, 0}, {1, 5 * sdk.LinePage}, {sdk.LinePage / 2, 3}, {1, sdk.LinePage - 1}, {sdk.LinePage, sdk.LinePage}} {
		must(t, ada.Pretend(ctx, room, more.n, more.crowd))
		lines, seqs = lines+more.n+more.crowd, seqs+more.n
		if gotLines, gotSeqs, err := ada.LinesIn(ctx, room, 1, 1<<40); err != nil || gotLines != lines || gotSeqs != seqs {
			t.Fatalf("%d lines of %d seqs, %v; want %d of %d", gotLines, gotSeqs, err, lines, seqs)
		}
	}
	if n, _, err := ada.LinesIn(ctx, room, 5, 4); err != nil || n != 0 {
		t.Errorf("%d lines of nothing, %v", n, err)
	}
}
