package sdk

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls/wire"
)

// Key makes the repetition of a call harmless: 16 random bytes, one for each
// thing that is meant. The zero key means a new thing each time.
type Key = [16]byte

// Once is an engine whose calls with one key happen once: who does not know
// whether a call was carried out, because the process that did it died, makes it
// again with the same key and gets the same answer.
type Once struct {
	engine *Engine
	key    Key
}

// Once gives calls that happen once for a key.
func (e *Engine) Once(key Key) Once { return Once{e, key} }

// Edit is [Engine.Edit], once.
func (o Once) Edit(ctx context.Context, id delivery.RoomID, seq uint64, text string) (Sent, error) {
	e := o.engine
	if text == "" || len(text) > content.MaxText {
		return Sent{}, ErrText
	}
	return o.write(ctx, id, func() (builder, error) {
		l, err := e.about(ctx, id, seq, true)
		if err != nil {
			return nil, err
		}
		items := []content.Item{content.Text{Text: text}}
		if l.File != nil {
			a, err := e.Attachment(ctx, id, seq)
			if err != nil {
				return nil, err
			}
			items = append([]content.Item{a}, items...)
		}
		return func(h content.Header) (content.Message, error) {
			h.ReplyTo = l.ReplyTo
			return content.Edit(h, l.ID, items...)
		}, nil
	})
}

// Delete is [Engine.Delete], once.
func (o Once) Delete(ctx context.Context, id delivery.RoomID, seq uint64) (Sent, error) {
	return o.write(ctx, id, func() (builder, error) {
		l, err := o.engine.about(ctx, id, seq, true)
		return func(h content.Header) (content.Message, error) { return content.Delete(h, l.ID) }, err
	})
}

// React is [Engine.React], once.
func (o Once) React(ctx context.Context, id delivery.RoomID, seq uint64, emoji string) (Sent, error) {
	if emoji == "" {
		return o.unreact(ctx, id, seq)
	}
	return o.write(ctx, id, func() (builder, error) {
		l, err := o.engine.about(ctx, id, seq, false)
		return func(h content.Header) (content.Message, error) { return content.React(h, l.ID, emoji) }, err
	})
}

// unreact takes back every reaction of this account to a message: one message
// each. The first has the call's key, the others keys made of it.
func (o Once) unreact(ctx context.Context, id delivery.RoomID, seq uint64) (Sent, error) {
	e := o.engine
	l, err := e.about(ctx, id, seq, false)
	if err != nil {
		return Sent{}, err
	}
	sent, again, err := o.before(ctx, id)
	if err != nil {
		return sent, err
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
		return sent, err
	}
	if len(given) == 0 && !again {
		return Sent{}, fmt.Errorf("%w: no reaction of this account to #%d", ErrNoMessage, seq)
	}
	for i, x := range given {
		one := o
		if (i > 0 || again) && o.key != (Key{}) {
			sum := sha256.Sum256(append(append([]byte("compax-unreact-v1"), o.key[:]...), x.ID[:]...))
			one.key = Key(sum[:16])
		}
		if sent, err = one.write(ctx, id, func() (builder, error) {
			return func(h content.Header) (content.Message, error) { return content.Unreact(h, x.ID, l.ID) }, nil
		}); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// NewRoomIn is [Engine.NewRoomIn], once. A room that was made at the service and not
// noted here, because the device lost its power in between, is nobody's.
func (o Once) NewRoomIn(ctx context.Context, suite wire.CipherSuite, title string) (delivery.RoomID, error) {
	e := o.engine
	if o.key != (Key{}) {
		var made []byte
		err := e.Store.View(ctx, func(tx Tx) (err error) {
			made, err = tx.Get(TableSetting, madeKey(o.key))
			return err
		})
		if err != nil {
			return delivery.RoomID{}, err
		}
		if made != nil {
			return delivery.ParseRoomID(string(made))
		}
	}
	return e.newGroup(ctx, suite, title, o.key)
}

func madeKey(key Key) string { return fmt.Sprintf("made.%x", key) }

// builder makes a message under a header.
type builder func(content.Header) (content.Message, error)

// before finds what was written with the key.
func (o Once) before(ctx context.Context, id delivery.RoomID) (sent Sent, found bool, err error) {
	if o.key == (Key{}) {
		return sent, false, nil
	}
	r, done, err := o.engine.writable(ctx, id)
	if err != nil {
		return sent, false, err
	}
	defer done()
	return o.engine.sentBefore(ctx, r, o.key)
}

// write writes what plan makes, unless it was written with the key before: then
// what it is about may be gone, and plan is not asked.
func (o Once) write(ctx context.Context, id delivery.RoomID, plan func() (builder, error)) (Sent, error) {
	if sent, found, err := o.before(ctx, id); err != nil || found {
		return sent, err
	}
	build, err := plan()
	if err != nil {
		return Sent{}, err
	}
	e := o.engine
	r, done, err := e.writable(ctx, id)
	if err != nil {
		return Sent{}, err
	}
	defer done()
	if sent, found, err := e.sentBefore(ctx, r, o.key); err != nil || found {
		return sent, err
	}
	return e.write(ctx, r, nil, func(h content.Header) (content.Message, error) {
		if o.key != (Key{}) {
			h.Salt = content.Salt(o.key)
		}
		return build(h)
	})
}
