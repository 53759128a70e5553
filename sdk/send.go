package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/mls"
)

// Sent is where a message stands.
type Sent struct {
	Chat  delivery.RoomID   `json:"chat"`
	Seq   uint64            `json:"seq"`   // its place in the room; 0 = it waits in the outbox
	Epoch uint64            `json:"epoch"` // that its ciphertext is of
	ID    content.MessageID `json:"id"`
}

// Draft is what a person writes.
type Draft struct {
	Text    string            // UTF-8, at most content.MaxText bytes; with a file, its caption
	File    *File             // nil = none
	ReplyTo content.MessageID // zero = none
	Silent  bool              // receivers make no sound
	// Key makes two calls one message: the same key with the same text gives the
	// same message id, and what is in the outbox or sent already is not sent again.
	// Zero = a new message each time.
	Key Key
}

// Send writes a message to a room. It is durable before anything leaves: when
// the service cannot be reached the error is client.ErrOffline and ErrKept, and
// the message goes out with the next call that reaches it. A file is uploaded
// first: without the service its message is not kept, and the error says so by
// not being ErrKept (ErrText, ErrFailed). docs/walkthrough.md follows a message from
// here.
func (e *Engine) Send(ctx context.Context, id delivery.RoomID, d Draft) (Sent, error) {
	if d.File == nil && d.Text == "" || len(d.Text) > content.MaxText {
		return Sent{}, ErrText
	}
	if d.File != nil {
		free, err := e.roomFor(id).files.take(ctx)
		if err != nil {
			return Sent{}, err
		}
		defer free()
	}
	r, done, err := e.writable(ctx, id)
	if err != nil {
		return Sent{}, err
	}
	defer func() { done() }()
	if sent, found, err := e.sentBefore(ctx, r, d.Key); err != nil || found {
		return sent, err
	}
	var items []content.Item
	var blobs []delivery.BlobID
	if d.File != nil {
		done() // a large file takes long: the room is read and written meanwhile
		done = func() {}
		a, blob, err := e.upload(ctx, d.File)
		if err != nil {
			return Sent{}, err
		}
		again, leave, err := e.writable(ctx, id)
		if err != nil {
			return Sent{}, err
		}
		r, done = again, leave
		items, blobs = append(items, a), append(blobs, blob)
	}
	if d.Text != "" {
		items = append(items, content.Text{Text: d.Text})
	}
	if d.Silent {
		items = append(items, content.Options{Silent: true})
	}
	return e.write(ctx, r, blobs, func(h content.Header) (content.Message, error) {
		if d.Key != (Key{}) {
			h.Salt = content.Salt(d.Key)
		}
		h.ReplyTo = d.ReplyTo
		return content.New(h, items...)
	})
}

// sentBefore finds the message of a key. One that waits in the outbox is delivered
// first; a key that is new here asks for nothing of the service, so that what is
// written offline is kept, however much waits before it.
func (e *Engine) sentBefore(ctx context.Context, r *room, key Key) (sent Sent, found bool, err error) {
	if key == (Key{}) {
		return sent, false, nil
	}
	sent, found, err = e.sentWith(ctx, r, key)
	if err != nil || found || sent.ID == (content.MessageID{}) {
		return sent, found, err
	}
	if err := e.flushed(ctx, r, sent.ID); err != nil {
		return sent, false, err
	}
	return e.sentWith(ctx, r, key)
}

// sentWith looks a key up: a zero ID when no message was written with it, found
// when that message has its place in the room.
func (e *Engine) sentWith(ctx context.Context, r *room, key Key) (sent Sent, found bool, err error) {
	sent.Chat = r.rec.ID
	err = e.Store.View(ctx, func(tx Tx) error {
		raw, err := tx.Get(TableSent, sentKey(r.rec.ID, key))
		if err != nil || len(raw) != len(sent.ID) {
			return err
		}
		sent.ID = content.MessageID(raw)
		var l Line
		l, found, err = tx.Line(r.rec.ID, sent.ID)
		sent.Seq, sent.Epoch = l.Seq, l.Epoch
		return err
	})
	return sent, found, err
}

func sentKey(id delivery.RoomID, key Key) string { return fmt.Sprintf("%s/%x", id, key) }

// Write sends any message: build gets a header with salt, sender and room. It is
// durable before anything leaves, as with [Engine.Send].
func (e *Engine) Write(ctx context.Context, id delivery.RoomID, build func(content.Header) (content.Message, error)) (Sent, error) {
	r, done, err := e.writable(ctx, id)
	if err != nil {
		return Sent{}, err
	}
	defer done()
	return e.write(ctx, r, nil, build)
}

// writable takes the turn of a room that this device may write to. A room that is
// not known yet may have a Welcome in the mailbox.
func (e *Engine) writable(ctx context.Context, id delivery.RoomID) (*room, func(), error) {
	r, done, err := e.find(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if err := e.mayWrite(r); err != nil {
		done()
		return nil, nil, err
	}
	return r, done, nil
}

// find takes a room's turn; when it is unknown here the mailbox is read first.
func (e *Engine) find(ctx context.Context, id delivery.RoomID) (*room, func(), error) {
	r, done, err := e.enter(ctx, id)
	if !errors.Is(err, ErrNoRoom) {
		return r, done, err
	}
	if err := e.ReadMail(ctx); err != nil {
		return nil, nil, err
	}
	if r, done, err = e.enter(ctx, id); !errors.Is(err, ErrNoRoom) {
		return r, done, err
	}
	if err := e.joinOwnRooms(ctx); err != nil {
		return nil, nil, err
	}
	return e.enter(ctx, id)
}

func (e *Engine) header(r *room) (content.Header, error) {
	salt, err := content.NewSalt(e.Random)
	h := content.Header{Salt: salt, SenderURI: content.UserURI(e.account.Domain, e.account.Identity), RoomURI: r.rec.URI}
	if s := r.rec.Disappear; s > 0 {
		h.Expires = &content.Expiration{Relative: true, Seconds: s}
	}
	return h, err
}

// write puts a message into the outbox and delivers everything that waits in the
// room, in order.
func (e *Engine) write(ctx context.Context, r *room, blobs []delivery.BlobID, build func(content.Header) (content.Message, error)) (Sent, error) {
	if err := e.mayWrite(r); err != nil {
		return Sent{}, err
	}
	if err := e.maySend(ctx); err != nil {
		return Sent{}, err
	}
	h, err := e.header(r)
	if err != nil {
		return Sent{}, err
	}
	m, err := build(h)
	if err != nil {
		return Sent{}, err
	}
	encoded, err := m.Encode()
	if err != nil {
		return Sent{}, err
	}
	id, err := m.ID()
	if err != nil {
		return Sent{}, err
	}
	w := waiting{Room: r.rec.ID, ID: id, Content: encoded, Blobs: blobs, TimeMS: e.nowMS()}
	if err := e.Store.Update(ctx, func(tx Tx) error {
		if err := tx.Put(TableSent, sentKey(r.rec.ID, m.Salt), id[:]); err != nil {
			return err
		}
		return e.queue(tx, w)
	}); err != nil {
		return Sent{}, err
	}
	if err := e.flushed(ctx, r, id); err != nil {
		return Sent{Chat: r.rec.ID, ID: id}, err
	}
	return e.sentLine(ctx, r, id)
}

// keptError is why a message did not go out that is in the outbox still.
type keptError struct{ error }

func (k keptError) Unwrap() []error { return []error{k.error, ErrKept} }

// flushed is flush, for who waits for one message: an error is ErrKept as well
// while that message is in the outbox, and ErrFailed when it was set aside.
func (e *Engine) flushed(ctx context.Context, r *room, id content.MessageID) error {
	failed := e.flush(ctx, r, id)
	if failed == nil {
		return nil
	}
	var kept, aside bool
	err := e.Store.View(context.WithoutCancel(ctx), func(tx Tx) error {
		queue, err := scan[waiting](tx, TableOutbox, roomKey(r.rec.ID, ""))
		if err != nil {
			return err
		}
		kept = slices.ContainsFunc(queue, func(w waiting) bool { return w.ID == id })
		refused, err := tx.Get(TableFailed, failedKey(r.rec.ID, id))
		aside = refused != nil
		return err
	})
	switch {
	case err != nil:
		return errors.Join(failed, err)
	case kept:
		return keptError{failed}
	case aside && !errors.Is(failed, ErrFailed):
		return &failedError{id, failed}
	}
	return failed
}

// flush delivers what waits in a room's outbox. One that is refused for good keeps
// no other back: it is told of, or returned when it is the wanted one.
func (e *Engine) flush(ctx context.Context, r *room, wanted content.MessageID) (refusal error) {
	for {
		var queue []waiting
		err := e.Store.View(ctx, func(tx Tx) (err error) {
			queue, err = scan[waiting](tx, TableOutbox, roomKey(r.rec.ID, ""))
			return err
		})
		if err != nil {
			return err
		}
		if len(queue) == 0 {
			return refusal
		}
		err = e.deliver(ctx, r, queue[0])
		var failed *failedError
		switch {
		case err == nil:
		case !errors.As(err, &failed):
			return err
		case failed.id == wanted:
			refusal = err
		default:
			e.Warn("a message could not be sent, and lies in the outbox: %v", failed.error)
		}
	}
}

// maxTries bounds how often a message is encrypted anew because the room went on.
const maxTries = 12

// deliver brings one message into the room's log: seal, store, send, and what the
// service's answer demands. It returns without an error only when the message has
// a seq.
func (e *Engine) deliver(ctx context.Context, r *room, w waiting) error {
	for try := range maxTries {
		if err := e.renew(ctx, r); err != nil {
			return err
		}
		if err := e.mayAct(r); err != nil {
			return e.setAside(ctx, w, err)
		}
		if w.Entry == nil {
			err := e.seal(ctx, r, &w)
			if errors.Is(err, mls.ErrPendingProposals) {
				if err := e.commitHeld(ctx, r); err != nil {
					return err
				}
				continue
			}
			if err != nil {
				return err
			}
		}
		got, err := e.client.Append(ctx, r.rec.ID, delivery.AppendRequest{Entry: w.Entry, Blobs: w.Blobs})
		if err == nil {
			return e.arrived(ctx, r, w, got)
		}
		if again, fatal := e.answer(ctx, r, &w, err, try); !again {
			return fatal
		}
	}
	return goesOn("the chat changes faster than this device can send: try again")
}

// seal encrypts a message of the outbox and stores ciphertext and ratchet before
// either leaves.
func (e *Engine) seal(ctx context.Context, r *room, w *waiting) error {
	sealed, err := r.state.group.Seal(mls.SealParams{Random: e.Random, Content: w.Content, PadTo: 256})
	if err != nil {
		return err
	}
	w.Entry, w.Epoch = sealed.Message, r.state.group.Epoch()
	return e.advance(ctx, r, sealed.Step, func(tx Tx) error { return put(tx, TableOutbox, w.key(), w) })
}

// arrived notes an accepted message. When nothing lies between the cursor and it
// the cursor moves on past it.
func (e *Engine) arrived(ctx context.Context, r *room, w waiting, got delivery.Accepted) error {
	before := r.rec
	base := Line{Room: r.rec.ID, Seq: got.Seq, Epoch: w.Epoch, TimeMS: got.AcceptedMS}
	err := e.Store.Update(ctx, func(tx Tx) error {
		if got.Seq == r.rec.Cursor+1 && len(r.rec.Beside) == 0 { // else it is read in the log
			r.rec.Cursor = got.Seq
		}
		entry := delivery.Entry{Seq: got.Seq, Epoch: w.Epoch, Kind: delivery.KindApplication, AcceptedMS: got.AcceptedMS, Bytes: w.Entry}
		if err := putRaw(tx, r.rec.ID, delivery.KeptEntry{Entry: entry, Blobs: w.Blobs}); err != nil {
			return err
		}
		return e.accepted(tx, r, w, base)
	})
	if err != nil {
		r.rec = before
		return err
	}
	e.typed(r.rec.ID)
	e.changed()
	return nil
}

// accepted turns a message of the outbox into a line of the room.
func (e *Engine) accepted(tx Tx, r *room, w waiting, base Line) error {
	base.From, base.Device, base.Mine, base.Epoch = e.account.Identity, e.account.Device, true, w.Epoch
	if w.Again {
		if err := putSaidAgain(tx, r.rec.ID, base.Seq, w.ID); err != nil {
			return err
		}
	}
	if err := e.said(tx, r, base, w.Content); err != nil {
		return err
	}
	if _, found, err := tx.Line(r.rec.ID, w.ID); err != nil {
		return err
	} else if !found { // it changed nothing that is shown; what was sent is known all the same
		if err := tx.PutLine(Line{
			Room: r.rec.ID, Seq: base.Seq, Epoch: base.Epoch, ID: w.ID, From: base.From, Device: base.Device,
			TimeMS: base.TimeMS, Kind: LineControl, Mine: true,
		}); err != nil {
			return err
		}
	}
	if err := r.save(tx); err != nil {
		return err
	}
	return tx.Delete(TableOutbox, w.key())
}

// answer does what a refusal of the service asks for. again says that the message
// may be tried again, with new ciphertext when the old one was refused for good.
func (e *Engine) answer(ctx context.Context, r *room, w *waiting, err error, try int) (again bool, fatal error) {
	switch delivery.CodeOf(err) {
	case delivery.CodeStaleEpoch:
		if err := e.catchUp(ctx, r); err != nil {
			return false, err
		}
		if r.state.group != nil && w.Epoch == r.state.group.Epoch() && r.rec.Status == StatusOpen {
			if err := e.behindUs(ctx, r, err); err != nil {
				return false, err
			}
		}
	case delivery.CodeCommitFirst:
		if err := e.catchUp(ctx, r); err != nil {
			return false, err
		}
		if err := e.commitHeld(ctx, r); err != nil {
			return false, err
		}
	case delivery.CodeHealing:
		if err := e.heal(ctx, r, try, err); err != nil {
			return false, err
		}
		return e.waits(ctx, *w) // with the same bytes
	case delivery.CodeSucceeded:
		return false, errors.Join(err, e.succeeded(ctx, r))
	case delivery.CodeNotFound, delivery.CodeRevoked, delivery.CodeRefused, delivery.CodeBadRequest, delivery.CodeTooLarge:
		c := e.catchUp(ctx, r)
		if errors.Is(c, ErrRevoked) { // it is this device that the service does not know
			return false, c
		}
		if delivery.CodeOf(err) == delivery.CodeNotFound && r.rec.Lapse.SinceMS > 0 {
			return false, delivery.Refuse(delivery.CodeHealing, waitsForLost)
		}
		if c != nil {
			return false, e.setAside(ctx, *w, errors.Join(err, c))
		}
		if w.Again && len(w.Blobs) > 0 && r.rec.Status == StatusOpen {
			w.Blobs = nil // the service has lost their bytes; what was said beside them goes out
			return e.again(ctx, r, w)
		}
		if delivery.CodeOf(err) == delivery.CodeNotFound && r.rec.Status != StatusOpen {
			err = errors.Join(ErrOut, err)
		}
		return false, e.setAside(ctx, *w, e.fail(ctx, err))
	default:
		return false, err
	}
	return e.again(ctx, r, w)
}

// waitsForLost is why a message waits whose room a restored service does not know.
const waitsForLost = "the service was restored from a backup that lacks this chat: it comes back with its members, or goes on in a new one within two days"

// again forgets the ciphertext of a message that was definitively refused, unless
// catching up found it in the log after all.
func (e *Engine) again(ctx context.Context, r *room, w *waiting) (bool, error) {
	gone := false
	err := e.Store.Update(ctx, func(tx Tx) error {
		still, err := w.waits(tx)
		if gone = !still; err != nil || gone {
			return err
		}
		w.Entry, w.Epoch = nil, 0
		return put(tx, TableOutbox, w.key(), w)
	})
	return err == nil && !gone, err
}

// waits is [waiting.waits].
func (e *Engine) waits(ctx context.Context, w waiting) (still bool, err error) {
	err = e.Store.View(ctx, func(tx Tx) (err error) {
		still, err = w.waits(tx)
		return err
	})
	return still, err
}

// Flush delivers what waits in all rooms. A room that cannot take its messages
// keeps nobody else's back.
func (e *Engine) Flush(ctx context.Context) error {
	rooms := map[delivery.RoomID]bool{}
	err := e.Store.View(ctx, func(tx Tx) error {
		queue, err := scan[waiting](tx, TableOutbox, "")
		for _, w := range queue {
			rooms[w.Room] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	for id := range rooms {
		r, done, err := e.enter(ctx, id)
		if err != nil {
			return err
		}
		err = e.flush(ctx, r, content.MessageID{})
		done()
		if errors.Is(err, client.ErrOffline) {
			return err
		}
		if err != nil {
			e.Warn("a message could not be sent: %v", err)
		}
	}
	return nil
}

// pause waits between tries of the same thing.
func (e *Engine) pause(ctx context.Context, try int, err error) error {
	return e.pauseAtMost(ctx, try, err, time.Minute)
}

// pauseAtMost is pause, whatever longer time the service asks for.
func (e *Engine) pauseAtMost(ctx context.Context, try int, err error, longest time.Duration) error {
	d := min(100*time.Millisecond<<min(try, 6), 5*time.Second)
	var refusal *delivery.Error
	if errors.As(err, &refusal) && refusal.RetryAfter > 0 {
		d = min(refusal.RetryAfter, longest)
	}
	if err := e.Sleep(ctx, d+time.Duration(e.jitter()*float64(d)/2)); err != nil {
		return fmt.Errorf("%w: %w", client.ErrOffline, err)
	}
	return nil
}
