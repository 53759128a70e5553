package sdk

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// catchUp reads the room's log from the cursor to its end. The caller holds the
// room's turn. It can stop anywhere and goes on from what is stored.
func (e *Engine) catchUp(ctx context.Context, r *room) error {
	var away absence
	for r.rec.Status == StatusOpen {
		session := e.logins.Load()
		page, err := e.client.Log(ctx, r.rec.ID, r.rec.Cursor, 0)
		switch {
		case delivery.CodeOf(err) == delivery.CodeTrimmed:
			r.upto = 0 // nothing is sent before the log was read to its end again
			err := e.comeIn(ctx, r, r.rec.ID, "this device was away for longer than messages are kept", groundTrimmed)
			if delivery.CodeOf(err) == delivery.CodeNotFound && r.rec.Lost == 0 {
				return e.wentUnseen(ctx, r)
			}
			return err
		case (delivery.CodeOf(err) == delivery.CodeNotFound || err == nil && page.Head < r.rec.Cursor) && r.state.group != nil && r.state.group.Active():
			// Who was removed reads in the log that it was, and nobody's log ends before
			// what was read. So the service has lost the room or this device's entry into
			// it: it comes back when somebody heals the room.
			back, failed := e.unknown(ctx, r)
			if failed != nil {
				return failed
			}
			if !back {
				return fmt.Errorf("%w: the service does not know it there: %w", ErrOut, cmp.Or(err, errShort))
			}
			continue
		case err != nil:
			return e.fail(ctx, err)
		}
		if len(page.Entries) == 0 {
			if err := e.pastRestore(ctx, r, page.Head); err != nil {
				return err
			}
			more, err := e.regain(ctx, r, page.Head)
			if err != nil {
				return err
			}
			if !more {
				return e.readToEnd(ctx, r, session)
			}
			continue
		}
		restored := page.Entries[0].Seq > r.rec.Cursor+delivery.IncarnationJump/2 ||
			slices.ContainsFunc(page.Entries, func(x delivery.Entry) bool { return x.Kind == delivery.KindIncarnation })
		if err := e.take(ctx, r, page.Entries); err != nil {
			return err
		}
		if err := e.tellAbsence(ctx, r, &away, page); err != nil {
			return err
		}
		if r.replaced() {
			return e.takeBack(ctx, r)
		}
		if restored {
			if err := e.settleBack(ctx); err != nil {
				return err
			}
			continue
		}
		if r.rec.Cursor < page.Head {
			continue
		}
		more, err := e.regain(ctx, r, page.Head)
		if err != nil {
			return err
		}
		if !more {
			return e.readToEnd(ctx, r, session)
		}
	}
	return nil
}

// replaced reports whether another copy of this profile took this device's place: it
// is in the room, and not by this leaf.
func (r *room) replaced() bool {
	return r.rec.Status == StatusOpen && r.rec.Renew != "" && r.state.group != nil && !r.state.group.Active()
}

// readToEnd is caughtUp, for a device whose place another copy took also when an
// earlier try to come back was in vain.
func (e *Engine) readToEnd(ctx context.Context, r *room, session uint64) error {
	if r.replaced() {
		return e.takeBack(ctx, r)
	}
	return e.caughtUp(ctx, r, session)
}

// errLeaves: this account is on its way out of the room, because another device of it or a
// copy of this profile has left it.
var errLeaves = fmt.Errorf("%w: it is being removed", ErrOut)

// takeBack comes in again where another copy took this device's place. Whom the service
// shows the log and not the room was removed since: the commit that says so is for the
// place of the copy. Where the copy has left, this device has.
func (e *Engine) takeBack(ctx context.Context, r *room) error {
	err := e.rejoin(ctx, r, r.rec.Renew)
	if delivery.CodeOf(err) == delivery.CodeNotFound && r.rec.Lost == 0 || errors.Is(err, errLeaves) {
		return e.wentUnseen(ctx, r)
	}
	return err
}

// errShort is what a log says that ends before what was read of it.
var errShort = errors.New("its log ends before what this device has read of it")

// caughtUp notes that the log was read to its end in a session, and when, once an
// hour at most.
func (e *Engine) caughtUp(ctx context.Context, r *room, session uint64) error {
	r.upto = session
	if e.nowMS()-r.rec.Caught < time.Hour.Milliseconds() && r.rec.Lapse.SinceMS == 0 {
		return nil
	}
	return e.rewrite(ctx, r, func(rec *Room) { rec.Caught, rec.Lapse.SinceMS = e.nowMS(), 0 })
}

// wentUnseen notes that this device was removed by a commit that the service no
// longer has: it may read what was before and nothing of the present.
func (e *Engine) wentUnseen(ctx context.Context, r *room) error {
	before := r.rec
	r.rec.Status = StatusOut
	l := Line{
		Room: r.rec.ID, Seq: r.rec.Cursor, Epoch: r.rec.Epoch, From: e.account.Identity, TimeMS: e.nowMS(),
		Kind: LineLeave, ID: eventID(r.rec.ID, r.rec.Cursor, "removed", 0),
	}
	err := e.Store.Update(ctx, func(tx Tx) error {
		if err := tx.PutLine(l); err != nil {
			return err
		}
		return r.save(tx)
	})
	if err != nil {
		r.rec = before
	}
	return err
}

// opened is an entry with what MLS makes of it.
type opened struct {
	entry  delivery.Entry
	app    *mls.Application
	commit *mls.StagedCommit
	before *policy.Roster // with commit: who was in the room, and who is
	after  *policy.Roster
	copied bool   // commit by which this device's place was taken, with keys that it has not
	made   bool   // with copied: by itself, and it did not hear of it; otherwise by another copy of this profile
	again  bool   // the same bytes were read before: the service was restored, or has forgotten that it has them
	own    bool   // from this leaf: its content is in the outbox or kept, unless another copy said it
	key    uint32 // with own: the generation that it used
	cause  string // why it cannot be read
}

// take processes entries in their order: gap check, decryption, the room's rules,
// then one transaction with the group's state, what was said, and the cursor.
func (e *Engine) take(ctx context.Context, r *room, entries []delivery.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	// A device whose entry into the room was healed does not see the incarnation
	// entry itself, only the jump behind it.
	if first := entries[0]; first.Seq > r.rec.Cursor+1 && first.Kind != delivery.KindIncarnation && first.Seq < r.rec.Cursor+delivery.IncarnationJump/2 && !e.wentAgain(ctx, r) {
		return fmt.Errorf("%w: the log jumps from %d to %d", client.ErrGarbage, r.rec.Cursor, first.Seq)
	}
	if err := e.remember(ctx, r, entries); err != nil {
		return err
	}
	s := r.state
	var done []opened
	var steps []mls.Step
	var broken *errBroken
	for _, entry := range entries {
		if entry.Seq <= r.rec.Cursor {
			continue
		}
		o, next, step, err := e.open(r, s, entry)
		if errors.As(err, &broken) {
			break
		}
		if err != nil {
			return err
		}
		if step != nil {
			steps = append(steps, *step)
		}
		if o.cause == CauseKeyUsed {
			err := e.Store.View(ctx, func(tx Tx) (err error) {
				o.again, err = r.wasRead(tx, entry)
				return err
			})
			if err != nil {
				return err
			}
			if o.again || holds(done, entry) {
				o.again, o.cause = true, ""
			}
		}
		if o.copied {
			if o.made, err = e.madeHere(ctx, r, entry); err != nil {
				return err
			}
		}
		s = next
		done = append(done, o)
		if o.copied {
			break // what follows is for the other copy; this one comes in again
		}
	}
	if err := e.keep(ctx, r, s, done, steps); err != nil {
		return err
	}
	if broken != nil {
		return e.mend(ctx, r, broken)
	}
	return nil
}

// wentAgain reports whether the last entry that was read may be this device's
// removal, offered again after a restore and read long ago: it does not see what
// lies between that and its coming back.
func (e *Engine) wentAgain(ctx context.Context, r *room) (again bool) {
	if r.rec.Lost == 0 {
		return false
	}
	err := e.Store.View(ctx, func(tx Tx) error {
		raw, err := tx.Get(TableRaw, seqKey(r.rec.ID, r.rec.Cursor))
		if err != nil || raw == nil {
			return err
		}
		entry, err := parseRaw(raw)
		again = entry.Kind == delivery.KindCommit
		return err
	})
	return again && err == nil
}

// keep stores what entries brought and goes on with the state after them.
func (e *Engine) keep(ctx context.Context, r *room, s state, done []opened, steps []mls.Step) error {
	if len(done) == 0 {
		return nil
	}
	before, old := r.rec, r.state
	r.state = s
	err := e.Store.Update(ctx, func(tx Tx) error {
		for _, step := range steps {
			if err := writeDelta(tx, r.rec.ID, step.Delta); err != nil {
				return err
			}
		}
		for _, o := range done {
			blobs, err := e.listed(tx, r, o) // before note empties the outbox
			if err != nil {
				return err
			}
			if err := e.note(tx, r, o); err != nil {
				return err
			}
			if err := putRaw(tx, r.rec.ID, delivery.KeptEntry{Entry: o.entry, Blobs: blobs}); err != nil {
				return err
			}
			if r.read != nil {
				r.read[sha256.Sum256(o.entry.Bytes)] = blobs
			}
			if err := e.noteRestore(tx, r, o.entry); err != nil {
				return err
			}
			r.rec.Cursor = o.entry.Seq
			if o.commit != nil { // whatever was in flight is settled by it
				r.rec.Beside = nil
				if err := forgetFlying(tx, r.rec.ID); err != nil {
					return err
				}
			}
		}
		return r.save(tx)
	})
	if err != nil {
		r.rec, r.state, r.read = before, old, nil
		return err
	}
	for _, step := range steps {
		step.Forget()
	}
	e.publish(r)
	e.spoke(r, done)
	e.changed()
	if before.Renew == "" && slices.ContainsFunc(done, opened.twin) {
		return e.copied(ctx, whyWritten)
	}
	return nil
}

const whyWritten = "another copy of this profile has written to a chat"

// twin reports whether an entry proves that another copy of this profile is in use.
func (o opened) twin() bool { return o.copied && !o.made || o.app != nil && o.app.Own }

// open processes one entry. A commit that cannot be processed is an *errBroken;
// everything else that cannot be read names its cause in the result.
func (e *Engine) open(r *room, s state, entry delivery.Entry) (opened, state, *mls.Step, error) {
	o := opened{entry: entry}
	if entry.Kind == delivery.KindIncarnation || s.group == nil {
		return o, s, nil, nil
	}
	if _, o.again = r.seen[sha256.Sum256(entry.Bytes)]; o.again {
		return o, s, nil, nil
	}
	got, err := s.group.Process(entry.Bytes, mls.ProcessParams{Now: time.UnixMilli(entry.AcceptedMS)})
	switch got := got.(type) {
	case *mls.Application:
		o.app = got
		s.group = got.Next
		return o, s, &got.Step, nil
	case *mls.ProposalReceived:
		if s.roster != nil {
			held := judged(s.group.Proposals())
			p := policy.Proposal{Ref: got.Ref, Sender: got.Sender, Proposal: got.Proposal, AuthenticatedData: got.AuthenticatedData}
			if _, err := policy.CheckProposal(s.policy, s.roster, held, p); err != nil && !errors.Is(err, policy.ErrHeld) {
				return o, s, nil, nil // the service should not have taken it; it is not committed
			}
		}
		s.group = got.Next
		return o, s, &got.Step, nil
	case *mls.StagedCommit:
		next, err := judge(s, got)
		if err != nil {
			return o, s, nil, &errBroken{entry, "policy", err}
		}
		o.commit, o.before, o.after = got, s.roster, next.roster
		o.copied = got.SelfRemoved && got.External && e.isThis(got.Committer.Node)
		return o, next, &got.Step, nil
	}
	var own *mls.OwnMessageError
	if errors.As(err, &own) && entry.Kind == delivery.KindApplication {
		o.own, o.key = true, own.Generation
		return o, s, nil, nil
	}
	if own == nil && errors.Is(err, mls.ErrOwnMessage) && entry.Kind == delivery.KindCommit { // signed by this leaf
		return o, s, nil, &errBroken{entry, reasonCopied, err}
	}
	if entry.Kind == delivery.KindCommit && entry.Epoch >= s.group.Epoch() && s.group.Active() {
		return o, s, nil, &errBroken{entry, reason(err), err}
	}
	if entry.Kind == delivery.KindApplication {
		o.cause = cause(err, entry, s)
	}
	return o, s, nil, nil
}

// isThis reports whether a leaf is this very device's.
func (e *Engine) isThis(leaf *wire.LeafNode) bool {
	cred, err := policy.CheckLeaf(leaf)
	return err == nil && cred.Identity() == e.account.Identity && cred.DeviceID() == e.account.Device
}

// CauseKeyUsed is the [Line.Cause] of an entry of a leaf, epoch and generation that
// another entry had before it.
const CauseKeyUsed = "its key was used before: it was sent twice, or this profile was copied"

// cause says for a person why an entry cannot be read here.
func cause(err error, entry delivery.Entry, s state) string {
	switch {
	case errors.Is(err, mls.ErrRemoved):
		return "it was said after this device was removed"
	case errors.Is(err, mls.ErrPastEpoch):
		return fmt.Sprintf("the keys of epoch %d are gone: this device is in epoch %d", entry.Epoch, s.group.Epoch())
	case errors.Is(err, mls.ErrFutureEpoch):
		return fmt.Sprintf("a change of the chat is missing before it: this device is in epoch %d, the message in %d", s.group.Epoch(), entry.Epoch)
	case errors.Is(err, mls.ErrKeyConsumed):
		return CauseKeyUsed
	case errors.Is(err, mls.ErrGenerationLimit):
		return "its sender skipped too many messages"
	case errors.Is(err, mls.ErrUnknownSender):
		return "its sender is not in the chat"
	case errors.Is(err, mls.ErrSignature), errors.Is(err, mls.ErrMembershipTag):
		return "its signature does not verify"
	case errors.Is(err, mls.ErrDecrypt):
		return "it does not decrypt: its sender or somebody on the way damaged it"
	}
	return "it is malformed"
}

// remember reads the hashes of what was read before, once the service has been
// restored: members offer those entries again, and they come back under new
// numbers.
func (e *Engine) remember(ctx context.Context, r *room, entries []delivery.Entry) error {
	restored := false
	for _, entry := range entries {
		restored = restored || entry.Kind == delivery.KindIncarnation || entry.Seq >= delivery.IncarnationJump
		if entry.Kind == delivery.KindIncarnation {
			r.seen = nil // what was read since the last one counts too
		}
	}
	if r.seen != nil || !restored && r.rec.Cursor < delivery.IncarnationJump {
		return nil
	}
	return e.Store.View(ctx, func(tx Tx) error {
		seen, err := recall(tx, r.rec.ID)
		if err == nil {
			r.seen = seen
		}
		return err
	})
}

// wasRead reports whether the bytes of an entry that is not kept yet were read before.
func (r *room) wasRead(tx Tx, entry delivery.Entry) (bool, error) {
	if r.read == nil {
		read, err := recall(tx, r.rec.ID)
		if err != nil {
			return false, err
		}
		r.read = read
	}
	_, was := r.read[sha256.Sum256(entry.Bytes)]
	return was, nil
}

// recall reads the hashes of everything that was read of a room, with the blobs of
// what is kept still.
func recall(tx Tx, id delivery.RoomID) (map[[32]byte][]delivery.BlobID, error) {
	seen := map[[32]byte][]delivery.BlobID{}
	if err := trimmed(tx, id, func(hash [32]byte) { seen[hash] = nil }); err != nil {
		return nil, err
	}
	err := tx.Scan(TableRaw, roomKey(id, ""), "", func(_ string, value []byte) (bool, error) {
		entry, err := parseRaw(value)
		if err == nil && len(entry.Bytes) > 0 {
			hash := sha256.Sum256(entry.Bytes)
			if len(seen[hash]) == 0 {
				seen[hash] = entry.Blobs
			}
		}
		return true, err
	})
	return seen, err
}

// holds reports whether entries just opened hold the bytes of another.
func holds(done []opened, entry delivery.Entry) bool {
	return slices.ContainsFunc(done, func(o opened) bool { return bytes.Equal(o.entry.Bytes, entry.Bytes) })
}
