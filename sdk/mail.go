package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls"
)

// ReadMail works through the mailbox: invitations become rooms or, from
// strangers, requests; key packages are filled up; removals are read.
func (e *Engine) ReadMail(ctx context.Context) error {
	done, err := e.mail.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.ensure(ctx); err != nil {
		return err
	}
	if err := e.settleBack(ctx); err != nil {
		return err
	}
	after := uint64(0)
	for {
		page, err := e.client.Mailbox(ctx, after)
		if delivery.CodeOf(err) == delivery.CodeNotFound {
			// The session ended, and the service does not know this device: it was restored.
			if err := e.ensure(ctx); err != nil {
				return err
			}
			page, err = e.client.Mailbox(ctx, after)
		}
		if err != nil {
			return e.fail(ctx, err)
		}
		var ack []uint64
		for _, item := range page.Items {
			after = max(after, item.ID)
			finished, err := e.readItem(ctx, item)
			if aboutRoom(err) { // it waits in the mailbox, and holds up no other mail
				e.Warn("%s: %v", item.Kind, err)
				continue
			}
			if err != nil {
				return err
			}
			if finished {
				ack = append(ack, item.ID)
			}
		}
		if len(ack) > 0 {
			if err := e.client.AckMail(ctx, ack...); err != nil {
				return e.fail(ctx, err)
			}
		}
		if !page.More || len(page.Items) == 0 {
			return nil
		}
	}
}

// readItem deals with one item; finished says that it may be acknowledged.
func (e *Engine) readItem(ctx context.Context, m delivery.MailView) (finished bool, err error) {
	switch m.Kind {
	case delivery.MailWelcome:
		if m.Room == nil || len(m.Welcome) == 0 {
			return true, nil
		}
		return e.invited(ctx, m)
	case delivery.MailLowKeys:
		return true, e.refillKeys(ctx)
	case delivery.MailRemoved:
		if m.Room == nil {
			return true, nil
		}
		return true, e.readRemoval(ctx, *m.Room)
	case delivery.MailAsk:
		return true, e.asked(ctx, m)
	case delivery.MailReissued:
		return true, e.readOwnDevices(ctx)
	}
	return true, nil
}

// readRemoval catches up with a room that this device was removed from. One that
// cannot be followed to there keeps nobody from the other mail.
func (e *Engine) readRemoval(ctx context.Context, id delivery.RoomID) error {
	r, done, err := e.enter(ctx, id)
	if errors.Is(err, ErrNoRoom) || errors.Is(err, ErrRequest) {
		return e.Store.Update(ctx, func(tx Tx) error { return tx.Delete(TableRequest, id.String()) })
	}
	if err != nil {
		return err
	}
	defer done()
	return e.quiet(id, e.catchUp(ctx, r))
}

// invited looks at an invitation. Of a stranger's room nothing is fetched, and nothing
// sent to it, until it is accepted.
func (e *Engine) invited(ctx context.Context, m delivery.MailView) (finished bool, err error) {
	id := *m.Room
	var rec Room
	known, waits := false, false
	err = e.Store.View(ctx, func(tx Tx) error {
		if known, err = get(tx, TableRoom, id.String(), &rec); err != nil {
			return err
		}
		b, err := tx.Get(TableRequest, id.String())
		var q Request
		if b != nil && json.Unmarshal(b, &q) == nil {
			waits = q.Mail == m.ID
		}
		return err
	})
	if err != nil || waits {
		return false, err
	}
	if known && rec.Status == StatusOpen && rec.Epoch >= m.Epoch {
		return true, nil // joined, and the acknowledgement was lost
	}
	inviter, to, err := e.peek(ctx, id, m.Epoch, m.Welcome)
	if useless(err) {
		e.Warn("an invitation cannot be used: %v", err)
		return true, nil
	}
	if err != nil {
		return false, err // it is there next time
	}
	if known && rec.Status == StatusOpen {
		if out, err := e.needsWelcome(ctx, id, inviter); err != nil || !out {
			return err == nil, err
		}
	}
	friend, err := e.Person(ctx, inviter.Identity)
	if err != nil {
		return false, err
	}
	succeeds, err := e.succeedsKnown(ctx, id, inviter, to)
	if err != nil {
		return false, err
	}
	asked, err := e.askedFor(ctx, id)
	if err != nil {
		return false, err
	}
	if friend.Contact || inviter.Identity == e.account.Identity || succeeds || asked {
		joined, s, err := e.tryWelcome(ctx, id, m.Epoch, m.Welcome, inviter)
		if useless(err) {
			e.Warn("an invitation cannot be used: %v", err)
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if err := e.join(ctx, id, m.StartSeq, m.CreatedMS, joined, s); err != nil || !succeeds {
			return true, err
		}
		return true, e.movedInto(ctx, id)
	}
	q := Request{
		Room: id, Kind: to.Kind, Mail: m.ID, Epoch: m.Epoch, StartSeq: m.StartSeq, Welcome: m.Welcome,
		From: inviter.Identity, People: to.People(), TimeMS: m.CreatedMS,
	}
	return false, e.Store.Update(ctx, func(tx Tx) error { return put(tx, TableRequest, id.String(), q) })
}

// peek reads in a Welcome alone who invites, by the signature over the room's state,
// and to what. Nothing is asked of the service for it.
func (e *Engine) peek(ctx context.Context, id delivery.RoomID, epoch uint64, welcome []byte) (policy.Member, *policy.Room, error) {
	bundles, err := e.bundles(ctx, welcome)
	if err != nil {
		return policy.Member{}, nil, err
	}
	defer func() {
		for _, b := range bundles {
			b.Wipe()
		}
	}()
	inviter, to, err := e.readWelcome(id, epoch, mls.JoinParams{Welcome: welcome, Bundles: bundles, Now: e.Now()})
	if err != nil {
		return inviter, to, &uselessError{err}
	}
	revoked, err := e.revoked(ctx, inviter.Identity, inviter.Device)
	if err == nil && (revoked || to.Revocations.Covers(inviter.Identity, inviter.Device)) {
		err = &uselessError{fmt.Errorf("%w: it invites", policy.ErrRevoked)}
	}
	return inviter, to, err
}

// readWelcome is peek, as far as nothing but the Welcome tells.
func (e *Engine) readWelcome(id delivery.RoomID, epoch uint64, p mls.JoinParams) (inviter policy.Member, to *policy.Room, err error) {
	i, err := e.mls.Peek(p)
	if err != nil {
		return inviter, nil, fmt.Errorf("sdk: open an invitation: %w", err)
	}
	if string(i.Context.GroupID) != string(id[:]) || i.Context.Epoch != epoch {
		return inviter, nil, fmt.Errorf("sdk: %w: the invitation is to another room or epoch", mls.ErrGroupInfo)
	}
	if inviter, err = policy.InviterOf(i.Extensions, i.Signer, i.SignedBy); err != nil {
		return policy.Member{}, nil, err
	}
	to, err = policy.CheckContext(&i.Context, nil)
	return inviter, to, err
}

// uselessError is what is wrong with an invitation itself: it can never be used, whatever
// the service and the store will answer.
type uselessError struct{ error }

func (u *uselessError) Unwrap() error { return u.error }

func useless(err error) bool {
	var u *uselessError
	return errors.As(err, &u)
}

// needsWelcome reports whether an invitation to a chat that this device is in may
// put another state in the place of its own: only when the log says that it is out
// or cannot be followed, and only from somebody whom it knew there. Otherwise
// anybody could replace a chat by one that they made under the same id.
func (e *Engine) needsWelcome(ctx context.Context, id delivery.RoomID, inviter policy.Member) (bool, error) {
	r, done, err := e.enterAny(ctx, id)
	if err != nil {
		return false, err
	}
	defer done()
	roster := r.state.roster
	err = e.catchUp(ctx, r)
	if err != nil && isNet(err) {
		return false, err
	}
	switch {
	case r.rec.Status != StatusOpen || roster == nil || roster.Has(inviter.Identity) > 0 && err != nil:
		return true, nil
	case err == nil && r.state.group.Active():
		return false, nil // it is in, and knows all there is
	}
	e.Warn("an invitation to a chat that this device is in is not from anybody there: it is passed over")
	return false, nil
}

// isNet reports whether an error may be gone at the next try.
func isNet(err error) bool {
	code := delivery.CodeOf(err)
	return offline(err) || code != "" && code.Temporary()
}

// tryWelcome opens a Welcome without storing anything. inviter is who says to have
// made it: the tree must have that device at the leaf that signed.
func (e *Engine) tryWelcome(ctx context.Context, id delivery.RoomID, epoch uint64, welcome []byte, inviter policy.Member) (*mls.Joined, state, error) {
	tree, err := e.client.Tree(ctx, id, epoch)
	if err != nil {
		err = e.fail(ctx, err)
		if code := delivery.CodeOf(err); code != "" && !code.Temporary() && !errors.Is(err, ErrRevoked) {
			err = &uselessError{err} // the room is gone, or does not let this device in
		}
		return nil, state{}, err
	}
	bundles, err := e.bundles(ctx, welcome)
	if err != nil {
		return nil, state{}, err
	}
	joined, s, err := e.openWelcome(id, epoch, mls.JoinParams{Welcome: welcome, Bundles: bundles, Tree: tree, Now: e.Now()}, inviter)
	if err != nil {
		return nil, state{}, &uselessError{err}
	}
	return joined, s, nil
}

// openWelcome is tryWelcome, as far as nothing but the Welcome and the tree tells.
func (e *Engine) openWelcome(id delivery.RoomID, epoch uint64, p mls.JoinParams, inviter policy.Member) (*mls.Joined, state, error) {
	joined, err := e.mls.Join(p)
	if err != nil {
		return nil, state{}, fmt.Errorf("sdk: open an invitation: %w", err)
	}
	if string(joined.Next.GroupID()) != string(id[:]) || joined.Next.Epoch() != epoch {
		return nil, state{}, fmt.Errorf("sdk: %w: the invitation is to another room or epoch", mls.ErrGroupInfo)
	}
	s, err := newState(joined.Next)
	if err != nil {
		return nil, state{}, fmt.Errorf("sdk: open an invitation: %w", err)
	}
	if by, in := s.roster.At(joined.Sender.Leaf); !in || !by.SameAttestation(inviter) {
		return nil, state{}, fmt.Errorf("sdk: %w: who invites is not at the leaf that signed", mls.ErrGroupInfo)
	}
	if me, in := s.roster.Device(e.account.Device); !in || me.Leaf != joined.Next.OwnLeaf() {
		return nil, state{}, fmt.Errorf("sdk: %w: this device is not in it", mls.ErrTree)
	}
	return joined, s, nil
}

// join stores a room that was entered by Welcome and uses the key package up. sentMS
// is when the service says that the Welcome was sent.
func (e *Engine) join(ctx context.Context, id delivery.RoomID, startSeq uint64, sentMS int64, j *mls.Joined, s state) error {
	r, done, err := e.enterAny(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	rec := e.newRecord(id, s, startSeq)
	if rec.Lost = r.rec.Lost; rec.Lost > 0 {
		rec.Anew, rec.Apart = min(r.rec.anew(), rec.Cursor), r.rec.Apart
	}
	rec.Caught = e.invitedAt(sentMS, r.rec.Caught, j.Bundle)
	rec.Title, rec.Heard, rec.Read = r.rec.Title, max(startSeq, r.rec.Heard), max(startSeq, r.rec.Read)
	if old := r.rec; old.ID == id {
		rec.First, rec.Past, rec.Gaps, rec.Away = old.First, old.Past, old.Gaps, old.Away
		if missed := (Span{old.Cursor + 1, startSeq}); startSeq > old.Cursor {
			rec.Gaps = rec.Gaps.with(missed)
			if old.Status == StatusOut || old.Status == StatusLeft {
				rec.Away = rec.Away.with(missed) // who goes, goes with all devices
			}
		}
	} else if inviter, ok := s.roster.At(j.Sender.Leaf); ok && inviter.Identity == e.account.Identity {
		rec.Past = startSeq
	}
	ref, err := j.Bundle.Ref()
	if err != nil {
		return fmt.Errorf("sdk: a key package: %w", err)
	}
	before := r.rec
	err = e.Store.Update(ctx, func(tx Tx) error {
		if err := forgetGroup(tx, id); err != nil {
			return err
		}
		if err := writeDelta(tx, id, j.Delta); err != nil {
			return err
		}
		if !j.Bundle.LastResort() {
			if err := tx.Delete(TableBundle, bundleKey(ref)); err != nil {
				return err
			}
		}
		if err := tx.Delete(TableRequest, id.String()); err != nil {
			return err
		}
		if err := tx.Delete(TableSetting, askedPrefix+id.String()); err != nil {
			return err
		}
		if err := tx.Delete(TableSetting, settingComing+id.String()); err != nil {
			return err
		}
		if err := tx.Put(TableSetting, settingDirty, []byte{1}); err != nil {
			return err
		}
		if before.Status == StatusOpen && before.Cursor > 0 && startSeq > before.Cursor+1 {
			r.rec = rec
			if err := e.gap(tx, r, before.Cursor+1, startSeq-1, "this device was added again"); err != nil {
				return err
			}
		}
		if rec.Past != before.Past || !slices.Equal(rec.lacks(), before.lacks()) {
			if err := wantHistory(tx); err != nil {
				return err
			}
		}
		return put(tx, TableRoom, id.String(), rec)
	})
	if err != nil {
		r.rec = before
		return err
	}
	j.Forget()
	r.rec, r.state, r.seen = rec, s, nil
	r.stale.Store(false)
	e.changed()
	return nil
}

// invitedAt is up to when a room that is entered by Welcome counts as read: opening
// an invitation that waited is not reading the chat to its end. The service says when
// it was sent, but nothing before this device made the key package that it is for, by
// its own clock, or before it last read the room to its end; and nothing to come.
func (e *Engine) invitedAt(sentMS, caught int64, b *mls.KeyPackageBundle) int64 {
	made := time.Unix(int64(b.KeyPackage.LeafNode.Lifetime.NotBefore), 0).Add(clockSkew).UnixMilli()
	return min(max(sentMS, made, caught), e.nowMS())
}

// enterAny takes the turn of a room that may not be known yet.
func (e *Engine) enterAny(ctx context.Context, id delivery.RoomID) (*room, func(), error) {
	r := e.roomFor(id)
	done, err := r.turn.take(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := e.load(ctx, r, id); err != nil && !errors.Is(err, ErrNoRoom) && !errors.Is(err, ErrRequest) {
		done()
		return nil, nil, err
	}
	return r, e.leaving(r, done), nil
}
