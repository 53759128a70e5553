package sdk

import (
	"context"
	"errors"
	"fmt"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
)

// LineAt gives the message with a number (ErrNoRoom, ErrNoMessage).
func (e *Engine) LineAt(ctx context.Context, id delivery.RoomID, seq uint64) (Line, error) {
	r, done, err := e.find(ctx, id)
	if err != nil {
		return Line{}, err
	}
	defer done()
	l, found, err := e.lineAt(ctx, id, seq)
	if err != nil || found {
		return l, err
	}
	// It may not have been read yet.
	if err := e.catchUp(ctx, r); err != nil && !errors.Is(err, ErrOut) {
		return l, err
	}
	if l, found, err = e.lineAt(ctx, id, seq); err == nil && !found {
		err = fmt.Errorf("%w: %d", ErrNoMessage, seq)
	}
	return l, err
}

func (e *Engine) lineAt(ctx context.Context, id delivery.RoomID, seq uint64) (l Line, found bool, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		l, found, err = tx.LineAt(id, seq)
		return err
	})
	return l, found, err
}

// about finds what an edit, a reaction or a deletion is about.
func (e *Engine) about(ctx context.Context, id delivery.RoomID, seq uint64, mine bool) (Line, error) {
	l, err := e.LineAt(ctx, id, seq)
	if err != nil {
		return l, err
	}
	if !l.Kind.Conversation() || l.Kind == LineGap || l.Kind == LineUnread {
		return l, fmt.Errorf("%w: %d is no message of a person", ErrNoMessage, seq)
	}
	if mine && l.From != e.account.Identity {
		return l, ErrAuthor
	}
	return l, nil
}

// Edit replaces the text of a message of this account (ErrAuthor).
func (e *Engine) Edit(ctx context.Context, id delivery.RoomID, seq uint64, text string) (Sent, error) {
	if text == "" || len(text) > content.MaxText {
		return Sent{}, ErrText
	}
	l, err := e.about(ctx, id, seq, true)
	if err != nil {
		return Sent{}, err
	}
	items := []content.Item{content.Text{Text: text}}
	if l.File != nil {
		a, err := e.Attachment(ctx, id, seq)
		if err != nil {
			return Sent{}, err
		}
		items = append([]content.Item{a}, items...)
	}
	return e.Write(ctx, id, func(h content.Header) (content.Message, error) {
		h.ReplyTo = l.ReplyTo
		return content.Edit(h, l.ID, items...)
	})
}

// Delete takes a message of this account back (ErrAuthor).
func (e *Engine) Delete(ctx context.Context, id delivery.RoomID, seq uint64) (Sent, error) {
	l, err := e.about(ctx, id, seq, true)
	if err != nil {
		return Sent{}, err
	}
	return e.Write(ctx, id, func(h content.Header) (content.Message, error) { return content.Delete(h, l.ID) })
}

// React reacts to a message; an empty emoji takes this account's reactions to it
// back.
func (e *Engine) React(ctx context.Context, id delivery.RoomID, seq uint64, emoji string) (Sent, error) {
	l, err := e.about(ctx, id, seq, false)
	if err != nil {
		return Sent{}, err
	}
	if emoji != "" {
		return e.Write(ctx, id, func(h content.Header) (content.Message, error) { return content.React(h, l.ID, emoji) })
	}
	var given []Line
	err = e.Store.View(ctx, func(tx Tx) error {
		about, err := tx.Lines(LineQuery{Room: id, Target: &l.ID})
		for _, x := range about {
			if x.Kind == LineReaction && !x.Deleted && x.From == e.account.Identity {
				given = append(given, x)
			}
		}
		return err
	})
	if err != nil {
		return Sent{}, err
	}
	if len(given) == 0 {
		return Sent{}, fmt.Errorf("%w: no reaction of this account to %d", ErrNoMessage, seq)
	}
	var sent Sent
	for _, x := range given {
		if sent, err = e.Write(ctx, id, func(h content.Header) (content.Message, error) { return content.Unreact(h, x.ID, l.ID) }); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// Ask sends a poll.
func (e *Engine) Ask(ctx context.Context, id delivery.RoomID, p content.Poll) (Sent, error) {
	return e.Write(ctx, id, func(h content.Header) (content.Message, error) { return content.New(h, p) })
}

// Vote chooses options of a poll by index; none takes the vote back.
func (e *Engine) Vote(ctx context.Context, id delivery.RoomID, seq uint64, options ...int) (Sent, error) {
	return e.answerTo(ctx, id, seq, content.Vote{Options: options})
}

// Tap taps a button of a bot's message.
func (e *Engine) Tap(ctx context.Context, id delivery.RoomID, seq uint64, data string) (Sent, error) {
	return e.answerTo(ctx, id, seq, content.Tap{Data: data})
}

func (e *Engine) answerTo(ctx context.Context, id delivery.RoomID, seq uint64, item content.Item) (Sent, error) {
	l, err := e.about(ctx, id, seq, false)
	if err != nil {
		return Sent{}, err
	}
	return e.Write(ctx, id, func(h content.Header) (content.Message, error) {
		h.ReplyTo = l.ID
		return content.New(h, item)
	})
}

// MarkRead notes that a person has seen a room up to a message, tells the other
// devices of the account, and the room when receipts is set.
func (e *Engine) MarkRead(ctx context.Context, id delivery.RoomID, seq uint64, receipts bool) error {
	l, err := e.LineAt(ctx, id, seq)
	if err != nil {
		return err
	}
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return err
	}
	moved := seq > r.rec.Read
	if moved {
		r.rec.Read = seq
		err = e.Store.Update(ctx, r.save)
	}
	done()
	if err != nil || !moved {
		return err
	}
	if self := e.account.SelfRoom; self != nil && *self != id {
		mark := content.ReadMark{Room: id.String(), UpTo: l.ID}
		if _, err := e.Write(ctx, *self, func(h content.Header) (content.Message, error) { return content.New(h, mark) }); err != nil {
			return err
		}
	}
	if !receipts {
		return nil
	}
	_, err = e.Write(ctx, id, func(h content.Header) (content.Message, error) {
		return content.New(h, content.Receipt{Read: []content.MessageID{l.ID}})
	})
	return err
}
