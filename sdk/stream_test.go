package sdk_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

// counted counts the lines and the kept entries that are read from a store.
type counted struct {
	sdk.Store
	all, most int // lines; of one query
	kept      int // entries
}

type countedTx struct {
	sdk.Tx
	of *counted
}

func (c *counted) View(ctx context.Context, f func(sdk.Tx) error) error {
	return c.Store.View(ctx, func(tx sdk.Tx) error { return f(countedTx{tx, c}) })
}

func (c countedTx) Lines(q sdk.LineQuery) ([]sdk.Line, error) {
	lines, err := c.Tx.Lines(q)
	c.of.all += len(lines)
	c.of.most = max(c.of.most, len(lines))
	return lines, err
}

func (c countedTx) Scan(table sdk.Table, prefix, after string, f func(string, []byte) (bool, error)) error {
	return c.Tx.Scan(table, prefix, after, func(key string, value []byte) (bool, error) {
		if table == sdk.TableRaw {
			c.of.kept++
		}
		return f(key, value)
	})
}

// TestHistoryReadsNoMoreThanItShows: the last ten of many messages are read without the
// others, and all of them page by page. Reactions stand with their message.
func TestHistoryReadsNoMoreThanItShows(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(ctx, "Long")
	must(t, err)
	const count = 700
	var said []string
	var last sdk.Sent
	for n := range count {
		said = append(said, fmt.Sprintf("message %d", n))
		last = ada.say(room, said[n])
	}
	_, err = ada.React(ctx, room, last.Seq, "👍")
	must(t, err)
	must(t, ada.Close())
	c := ada.config()
	store := &counted{Store: c.Store}
	c.Store = store
	ada.Engine, err = sdk.Open(ctx, c)
	must(t, err)
	profile := local.OverEngine(ada.Engine, "ada")
	history := func(r local.HistoryRequest) (texts []string, rows []local.Row) {
		t.Helper()
		store.all, store.most = 0, 0
		_, err := profile.History(ctx, r, func(row local.Row) error {
			texts, rows = append(texts, row.Text), append(rows, row)
			return nil
		})
		must(t, err)
		return texts, rows
	}
	got, rows := history(local.HistoryRequest{Chat: room, Limit: 10})
	if !slices.Equal(got, said[count-10:]) {
		t.Errorf("the last ten are %q", got)
	}
	if len(rows) == 10 && len(rows[9].Reactions) != 1 {
		t.Errorf("the last one has the reactions %v", rows[9].Reactions)
	}
	if store.all > count/2 {
		t.Errorf("for ten messages %d lines were read", store.all)
	}
	if got, _ = history(local.HistoryRequest{Chat: room}); !slices.Equal(got, said) {
		t.Errorf("all are %d: %q", len(got), got)
	}
	if store.most > count/2 {
		t.Errorf("of all messages %d lines were read at once", store.most)
	}
	if got, _ = history(local.HistoryRequest{Chat: room, Limit: 600}); !slices.Equal(got, said[count-600:]) {
		t.Errorf("the last 600 are %d: %q", len(got), got)
	}
	if got, _ = history(local.HistoryRequest{Chat: room, Since: last.Seq - 2}); !slices.Equal(got, said[count-2:]) {
		t.Errorf("since the last but two: %q", got)
	}
	if got, _ = history(local.HistoryRequest{Chat: room, Since: last.Seq - 2, Limit: 10}); !slices.Equal(got, said[count-2:]) {
		t.Errorf("since the last but two, at most ten: %q", got)
	}
}
