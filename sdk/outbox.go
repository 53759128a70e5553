package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
)

// Unsent is a message that has no number yet: it waits for the service, or was
// refused for good and waits for a person to say what becomes of it.
type Unsent struct {
	Line
	Failed bool   // refused for good: it is sent again only when a person says so
	Cause  string // of Failed
}

// refused is a message that can never be sent as things stand, kept with why.
type refused struct {
	waiting
	Cause    string `json:"cause"`
	FailedMS int64  `json:"failed_ms"`
}

func failedKey(id delivery.RoomID, message content.MessageID) string {
	return roomKey(id, message.String())
}

// failedError: the message was refused for good, and lies among the failed ones.
type failedError struct {
	id content.MessageID
	error
}

func (f *failedError) Unwrap() []error { return []error{f.error, ErrFailed} }

// setAside takes a message that can never be sent out of the outbox, and keeps it
// with the cause for a person to see. What no person wrote is forgotten. One that
// catching up has found in the log was sent: that is no error.
func (e *Engine) setAside(ctx context.Context, w waiting, cause error) error {
	arrived := false
	err := e.Store.Update(ctx, func(tx Tx) error {
		still, err := w.waits(tx)
		if err != nil {
			return err
		}
		if still {
			return e.aside(tx, w, cause)
		}
		already, err := tx.Get(TableFailed, failedKey(w.Room, w.ID))
		arrived = already == nil
		return err
	})
	if arrived && err == nil {
		return nil
	}
	return &failedError{w.ID, errors.Join(cause, err)}
}

// aside moves a message from the outbox to those that were refused for good.
func (e *Engine) aside(tx Tx, w waiting, cause error) error {
	if err := tx.Delete(TableOutbox, w.key()); err != nil {
		return err
	}
	if _, shown := w.line(); !shown {
		return nil
	}
	w.Entry, w.Epoch = nil, 0
	why := strings.SplitN(cause.Error(), "\n", 2)[0]
	return put(tx, TableFailed, failedKey(w.Room, w.ID), refused{w, why, e.nowMS()})
}

// asideAll is aside for everything that waits: nothing of it can be sent any more.
func (e *Engine) asideAll(tx Tx, cause error) error {
	queue, err := scan[waiting](tx, TableOutbox, "")
	if err != nil {
		return err
	}
	for _, w := range queue {
		if err := e.aside(tx, w, cause); err != nil {
			return err
		}
	}
	return nil
}

// maySend refuses what this device can never send: its owner has revoked it.
func (e *Engine) maySend(ctx context.Context) error {
	return e.Store.View(ctx, func(tx Tx) error {
		revoked, err := tx.Get(TableSetting, settingRevoked)
		if err == nil && revoked != nil {
			err = ErrRevoked
		}
		return err
	})
}

// waits reports whether a message is in the outbox still: catching up may have found
// it in the log.
func (w waiting) waits(tx Tx) (bool, error) {
	var kept waiting
	found, err := get(tx, TableOutbox, w.key(), &kept)
	return found && kept.ID == w.ID, err
}

// line is what a waiting message says, and whether a person wrote it.
func (w waiting) line() (l Line, shown bool) {
	l = Line{Room: w.Room, ID: w.ID, TimeMS: w.TimeMS, Mine: true}
	m, err := content.Decode(w.Content)
	if err != nil {
		return l, false
	}
	l.ReplyTo = m.InReplyTo
	switch m.Kind() {
	case content.KindControl, content.KindEmpty:
		return l, false
	case content.KindDelete:
		l.Kind, l.Target = LineDelete, m.Replaces
	case content.KindUnreact:
		l.Kind, l.Target = LineUnreact, m.Replaces
	case content.KindReaction:
		l.Kind, l.Target, l.ReplyTo, l.Text = LineReaction, m.InReplyTo, content.MessageID{}, emoji(m.Items())
	case content.KindEdit:
		show(&l, m.Items())
		l.Kind, l.Target = LineEdit, m.Replaces
	default:
		show(&l, m.Items())
	}
	return l, true
}

// Outbox lists what has no number yet, in the order in which it was written.
func (e *Engine) Outbox(ctx context.Context) (out []Unsent, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		queue, err := scan[waiting](tx, TableOutbox, "")
		if err != nil {
			return err
		}
		for _, w := range queue {
			if l, shown := w.line(); shown {
				out = append(out, Unsent{Line: l})
			}
		}
		failed, err := scan[refused](tx, TableFailed, "")
		for _, f := range failed {
			if l, shown := f.line(); shown {
				out = append(out, Unsent{Line: l, Failed: true, Cause: f.Cause})
			}
		}
		return err
	})
	slices.SortStableFunc(out, func(a, b Unsent) int { return cmp.Compare(a.TimeMS, b.TimeMS) })
	return out, err
}

// Resend sends a failed message again: the same message, so that nobody reads it
// twice. One that waits is tried now (ErrNotWaiting).
func (e *Engine) Resend(ctx context.Context, id delivery.RoomID, message content.MessageID) (Sent, error) {
	r, done, err := e.writable(ctx, id)
	if err != nil {
		return Sent{}, err
	}
	defer done()
	if err := e.maySend(ctx); err != nil {
		return Sent{}, err
	}
	sent := Sent{Chat: id, ID: message}
	err = e.Store.Update(ctx, func(tx Tx) error {
		var f refused
		found, err := get(tx, TableFailed, failedKey(id, message), &f)
		if err != nil {
			return err
		}
		if found {
			return e.queue(tx, f.waiting)
		}
		queue, err := scan[waiting](tx, TableOutbox, roomKey(id, ""))
		if err == nil && !slices.ContainsFunc(queue, func(w waiting) bool { return w.ID == message }) {
			err = ErrNotWaiting
		}
		return err
	})
	if err != nil {
		return sent, err
	}
	if err := e.flushed(ctx, r, message); err != nil {
		return sent, err
	}
	return e.sentLine(ctx, r, message)
}

// queue puts a message at the end of its room's outbox.
func (e *Engine) queue(tx Tx, w waiting) error {
	queue, err := scan[waiting](tx, TableOutbox, roomKey(w.Room, ""))
	if err != nil {
		return err
	}
	w.Number = 1
	if n := len(queue); n > 0 {
		w.Number = queue[n-1].Number + 1
	}
	if err := tx.Delete(TableFailed, failedKey(w.Room, w.ID)); err != nil {
		return err
	}
	return put(tx, TableOutbox, w.key(), w)
}

// sentLine is where a message stands that was sent.
func (e *Engine) sentLine(ctx context.Context, r *room, id content.MessageID) (Sent, error) {
	var line Line
	var found bool
	err := e.Store.View(ctx, func(tx Tx) (err error) {
		line, found, err = tx.Line(r.rec.ID, id)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("sdk: %s was sent and left no line", id)
	}
	return Sent{Chat: r.rec.ID, Seq: line.Seq, Epoch: line.Epoch, ID: id}, err
}

// Discard forgets a message that failed, or that waits and never left this device.
// Of one whose ciphertext may have left nobody knows whether it has arrived
// (ErrSending). ErrNotWaiting when there is no such message.
func (e *Engine) Discard(ctx context.Context, id delivery.RoomID, message content.MessageID) error {
	r, done, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	return e.Store.Update(ctx, func(tx Tx) error {
		failed, err := tx.Get(TableFailed, failedKey(r.rec.ID, message))
		if err != nil {
			return err
		}
		if failed != nil {
			return tx.Delete(TableFailed, failedKey(id, message))
		}
		queue, err := scan[waiting](tx, TableOutbox, roomKey(id, ""))
		if err != nil {
			return err
		}
		for _, w := range queue {
			switch {
			case w.ID == message && w.Entry != nil:
				return ErrSending
			case w.ID == message:
				return tx.Delete(TableOutbox, w.key())
			}
		}
		return ErrNotWaiting
	})
}
