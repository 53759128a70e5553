package sdk

import (
	"context"
	"errors"
	"fmt"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
)

// LineAt gives the line with a number, whatever it is; one that is not here yet is
// fetched (ErrNoRoom, ErrNoMessage).
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
		err = fmt.Errorf("%w: #%d", ErrNoMessage, seq)
	}
	return l, err
}

// Message gives the message of a person with a number, which can be answered,
// edited, taken back and commented. A title, a join, a gap, an edit and whatever
// else has a number is none (ErrNoRoom, ErrNoMessage, ErrNotMessage).
func (e *Engine) Message(ctx context.Context, id delivery.RoomID, seq uint64) (Line, error) {
	l, err := e.LineAt(ctx, id, seq)
	if err != nil {
		return l, err
	}
	return l, l.message()
}

// message reports by ErrNotMessage what a line is that is no message of a person.
func (l Line) message() error {
	what := "something that is shown to nobody"
	switch l.Kind {
	case LineText, LineFile, LinePoll, LineOther:
		if !l.Deleted {
			return nil
		}
		what = "a message that was taken back"
	case LineEdit:
		what = "an edit"
	case LineDelete:
		what = "a deletion"
	case LineReaction, LineUnreact:
		what = "a reaction"
	case LineTitle, LinePicture:
		what = "a change of the chat's title or picture"
	case LineProfile:
		what = "somebody's name"
	case LineJoin, LineLeave:
		what = "somebody who came or went"
	case LineGap:
		what = "a gap"
	case LineUnread:
		what = "something that cannot be read here"
	}
	return fmt.Errorf("%w: #%d is %s", ErrNotMessage, l.Seq, what)
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
	l, err := e.Message(ctx, id, seq)
	if err != nil {
		return l, err
	}
	if mine && l.From != e.account.Identity {
		return l, ErrAuthor
	}
	return l, nil
}

// Edit replaces the text of a message of this account, 1 to content.MaxText bytes
// (ErrAuthor, ErrNoMessage, ErrNotMessage, ErrText).
func (e *Engine) Edit(ctx context.Context, id delivery.RoomID, seq uint64, text string) (Sent, error) {
	return Once{e, Key{}}.Edit(ctx, id, seq, text)
}

// Delete takes a message of this account back (ErrAuthor, ErrNoMessage,
// ErrNotMessage).
func (e *Engine) Delete(ctx context.Context, id delivery.RoomID, seq uint64) (Sent, error) {
	return Once{e, Key{}}.Delete(ctx, id, seq)
}

// React reacts to a message, with at most content.MaxReaction bytes; an empty emoji
// takes this account's reactions to it back (ErrNoMessage, ErrNotMessage).
func (e *Engine) React(ctx context.Context, id delivery.RoomID, seq uint64, emoji string) (Sent, error) {
	return Once{e, Key{}}.React(ctx, id, seq, emoji)
}

// Ask sends a poll.
func (e *Engine) Ask(ctx context.Context, id delivery.RoomID, p content.Poll) (Sent, error) {
	return e.Write(ctx, id, func(h content.Header) (content.Message, error) { return content.New(h, p) })
}

// Vote chooses options of a poll by index, from 0; none takes the vote back
// (ErrNoMessage, ErrNotMessage).
func (e *Engine) Vote(ctx context.Context, id delivery.RoomID, seq uint64, options ...int) (Sent, error) {
	return e.answerTo(ctx, id, seq, content.Vote{Options: options})
}

// Tap taps a button of a bot's message: data is what the button carries
// (ErrNoMessage, ErrNotMessage).
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
		err = e.rewrite(ctx, r, func(rec *Room) { rec.Read = seq })
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
