package local

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
)

// row gives a line the form in which it crosses the socket.
func (e engine) row(ctx context.Context, l sdk.Line) (Row, error) {
	p, err := e.Person(ctx, l.From)
	if err != nil {
		return Row{}, err
	}
	r := Row{
		Chat: l.Room, Seq: l.Seq, Epoch: l.Epoch, From: l.From, Name: p.Name, Device: l.Device, Time: time.UnixMilli(l.TimeMS).UTC(),
		Kind: string(l.Kind), Text: l.Text, Cause: l.Cause, Edited: l.Edited, Own: l.From == e.Identity(),
	}
	if r.ID, _, err = e.named(ctx, l, l.ID); err != nil {
		return r, err
	}
	if r.ReplyToID, r.ReplyTo, err = e.named(ctx, l, l.ReplyTo); err != nil {
		return r, err
	}
	if r.TargetID, r.Target, err = e.named(ctx, l, l.Target); err != nil {
		return r, err
	}
	if l.File != nil {
		r.File = &File{Name: l.File.Name, Type: l.File.Type, Size: l.File.Size}
	}
	return r, nil
}

// named is the text of a message id, and the number of the message when it is
// here.
func (e engine) named(ctx context.Context, l sdk.Line, id content.MessageID) (string, uint64, error) {
	if id.IsZero() {
		return "", 0, nil
	}
	if id == l.ID {
		return id.String(), l.Seq, nil
	}
	seq, err := e.SeqOf(ctx, l.Room, id)
	return id.String(), seq, err
}

func (e engine) Listen(ctx context.Context, r ListenRequest, f func(Row) error) (None, error) {
	stopped := false
	give := func(row Row, err error) error {
		if err != nil {
			return err
		}
		if err = f(row); errors.Is(err, ErrStop) {
			stopped = true
			return sdk.ErrEnough
		}
		return err
	}
	l := sdk.Listening{Room: r.Chat, Since: r.Since, Events: r.Events}
	if r.Events {
		l.Told = r.told()
		l.Activity = func(a sdk.Activity, begins bool) error { return give(e.activityRow(ctx, a, begins)) }
	}
	err := e.Engine.Listen(ctx, l, func(l sdk.Line) error { return give(e.row(ctx, l)) })
	if err == nil && !stopped {
		err = ctx.Err() // it was ended, not satisfied: who waits elsewhere asks the next owner
	}
	return None{}, err
}

func (e engine) History(ctx context.Context, r HistoryRequest, f func(Row) error) (None, error) {
	wanted := func(k sdk.LineKind) bool { return k.Conversation() || r.Events && stands(k) }
	err := e.Stream(ctx, sdk.Streaming{Room: r.Chat, After: r.Since, Last: r.Limit, Kind: wanted}, func(l sdk.Line) error {
		row, err := e.row(ctx, l)
		if err != nil {
			return err
		}
		reactions, err := e.Reactions(ctx, l.Room, l.ID)
		if err != nil {
			return err
		}
		for _, reaction := range reactions {
			row.Reactions = react(row.Reactions, reaction)
		}
		return f(row)
	})
	return None{}, stopped(err)
}

// stands reports whether an event says something of its own: edits, deletions
// and marks are seen at the message that they are about.
func stands(k sdk.LineKind) bool {
	switch k {
	case sdk.LineTitle, sdk.LinePicture, sdk.LineProfile, sdk.LineJoin, sdk.LineLeave, sdk.LineControl:
		return true
	}
	return false
}

// react adds a reaction, once for each person.
func react(all []Reaction, l sdk.Line) []Reaction {
	for i := range all {
		if all[i].Emoji != l.Text {
			continue
		}
		if !slices.Contains(all[i].From, l.From) {
			all[i].From = append(all[i].From, l.From)
		}
		return all
	}
	return append(all, Reaction{Emoji: l.Text, From: []identity.PublicKey{l.From}})
}

func (e engine) Search(ctx context.Context, r SearchRequest, f func(Row) error) (None, error) {
	if r.Limit == 0 {
		r.Limit = 100
	}
	lines, err := e.Engine.Search(ctx, r.Text, r.Chat, r.Limit)
	if err != nil {
		return None{}, err
	}
	for _, l := range lines {
		row, err := e.row(ctx, l)
		if err != nil {
			return None{}, err
		}
		if err := f(row); err != nil {
			return None{}, stopped(err)
		}
	}
	return None{}, nil
}

// stopped takes the wish to end for an end.
func stopped(err error) error {
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}
