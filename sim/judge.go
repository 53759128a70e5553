package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
)

// rounds bounds how often everybody reads until nothing changes any more.
const rounds = 12

// lostRounds bounds for how long everybody waits for the successors of lost rooms: nine
// hours each.
const lostRounds = 12

// rest lets the storm pass: the service runs, nothing is lost or killed, every
// device that is not gone is used until all know the same.
func (w *World) rest(ctx context.Context) error {
	w.tell("the storm passes")
	w.network.SetFaults(Faults{})
	w.network.Between(nil)
	for _, p := range slices.Clone(w.pairs) {
		if err := w.part(ctx, p); err != nil {
			return err
		}
	}
	w.network.SetFaults(Faults{})
	if !w.service.running() {
		if err := w.service.start(ctx); err != nil {
			return err
		}
	}
	for range rounds {
		if err := w.everybodyReads(ctx, time.Hour); err != nil { // past every window in which a room waits for somebody
			return err
		}
	}
	for range lostRounds { // a lost room waits for its creator for a day or more
		due, err := w.lostOnes(ctx)
		if err != nil {
			return err
		}
		if !due {
			return nil
		}
		for _, d := range []time.Duration{6 * time.Hour, 90 * time.Minute, 90 * time.Minute} { // then who went on brings the others along
			if err := w.everybodyReads(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// everybodyReads lets time pass, and then every device that is not gone read.
func (w *World) everybodyReads(ctx context.Context, after time.Duration) error {
	w.clock.Add(after)
	if err := w.service.chores(ctx); err != nil {
		return err
	}
	for _, p := range w.people {
		for _, d := range p.devices {
			if d.gone {
				continue
			}
			d.away = 0
			if d.engine == nil || d.crash.died() || d.cut {
				if err := w.boot(ctx, d); err != nil {
					return err
				}
			}
			err := w.welcomeIn(ctx, d)
			if errors.Is(err, sdk.ErrRevoked) { // the revocation arrived although its owner heard of a fault
				d.gone = true
			}
			if err != nil && !w.tolerable(err) {
				return fmt.Errorf("at rest, %s reads: %w", d, err)
			}
		}
	}
	return nil
}

// Close ends the world.
func (w *World) Close() error {
	errs := []error{w.service.stop()}
	for _, c := range slices.Backward(w.closers) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// Judge checks what must hold at rest:
//
//   - all devices in a room are in one epoch with one epoch authenticator; one that says
//     that it cannot go on there, as may be after a restore or weeks away, is not in it;
//   - a device shows no message twice;
//   - a message that the service acknowledged is shown by every device that is in
//     the room now, unless its account came in later, or one line names the seqs
//     that are missing there and why, or the message and why it cannot be read, or
//     the device says that the archive did not have it;
//   - of a room that a restore has lost and that nobody brought back, all who are there go
//     on in one;
//   - no key is used twice: who reads two entries of one leaf, epoch and generation
//     finds the key of the second consumed, and says so in a line. Two copies of a
//     profile may do it, and then who sent the second one has said it again, if it is
//     there still;
//   - nobody believes that a profile was copied that was not.
func (w *World) Judge(ctx context.Context) error {
	if err := w.notePlaces(ctx); err != nil {
		return err
	}
	var faults []error
	for _, room := range slices.Concat(w.rooms, w.movedTo) {
		in, out, fault := w.inRoom(ctx, room)
		if fault == nil {
			fault = errors.Join(w.judgeEpochs(ctx, room, in), w.judgeLines(ctx, room, in, out), w.judgeLost(ctx, room))
		}
		if fault != nil {
			fault = errors.Join(fault, w.describe(ctx, room))
		}
		faults = append(faults, fault)
	}
	return errors.Join(append(faults, w.wrong...)...)
}

// senderOf is who sent the entry at a seq, nil when nobody here did.
func (w *World) senderOf(room delivery.RoomID, seq uint64) *device {
	for _, s := range w.sent {
		if s.room == room && slices.Contains(w.places[s.hash], seq) {
			return s.by
		}
	}
	return nil
}

// describe tells how the service and every device have a room, for whoever looks into a
// failure.
func (w *World) describe(ctx context.Context, room delivery.RoomID) error {
	at, err := w.service.store.Room(ctx, room)
	w.tell("%s at the service: epoch %d, next seq %d, first %d, status %d, incarnation %d, %v", room, at.Epoch, at.NextSeq, at.FirstSeq, at.Status, at.Incarnation, err)
	list, err := w.service.store.Log(ctx, room, delivery.LogRange{Limit: 1000})
	if err != nil && !errors.Is(err, delivery.ErrNotFound) {
		return fmt.Errorf("sim: read the log: %w", err)
	}
	for _, e := range list {
		w.tell("  %d: %s of epoch %d, %s, %x", e.Seq, e.Kind, e.Epoch, time.UnixMilli(e.AcceptedMS).UTC().Format(time.DateTime), sha256.Sum256(e.Bytes))
	}
	for _, p := range w.people {
		for _, d := range p.devices {
			if d.gone || d.engine == nil {
				continue
			}
			rec, err := d.engine.RoomOf(ctx, room)
			if err != nil {
				w.tell("%s: %v", d, err)
				continue
			}
			w.tell("%s: %s, epoch %d, cursor %d, joined %d, first %d, lost %d, anew %d, renew %q, reads: %v", d, rec.Status, rec.Epoch, rec.Cursor, rec.Joined, rec.First, rec.Lost, rec.Anew, rec.Renew, d.engine.Refresh(ctx, room))
		}
	}
	return nil
}

// present is a device that is in a room, with its record of it.
type present struct {
	*device
	rec sdk.Room
}

// inRoom lists the devices that are in a room now. One that the restored service does
// not know there, because everybody has forgotten how it came in, is not, nor is one that
// nobody vouches to for the room's present state. Either has to say so when it is asked to
// send something, or that the room is not back yet: these are out.
func (w *World) inRoom(ctx context.Context, room delivery.RoomID) (in []present, out map[*device]bool, err error) {
	members, err := w.service.store.Members(ctx, room)
	if err != nil && !errors.Is(err, delivery.ErrNotFound) {
		return nil, nil, fmt.Errorf("sim: read the members: %w", err)
	}
	out = map[*device]bool{}
	known := map[identity.DeviceID]bool{}
	for _, m := range members {
		known[m.Device] = true
	}
	for _, p := range w.people {
		for _, d := range p.devices {
			if d.gone {
				continue
			}
			rec, err := d.engine.RoomOf(ctx, room)
			if errors.Is(err, sdk.ErrNoRoom) || errors.Is(err, sdk.ErrRequest) || err == nil && rec.Status != sdk.StatusOpen {
				continue
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%s opens %s: %w", d, room, err)
			}
			if stuck := w.mayBeStuck() && errors.Is(d.engine.Refresh(ctx, room), sdk.ErrStuck); stuck || w.done && !known[d.id] {
				_, err := d.engine.Rename(ctx, room, "is anybody there?")
				if !errors.Is(err, sdk.ErrOut) && !errors.Is(err, sdk.ErrStuck) && delivery.CodeOf(err) != delivery.CodeHealing {
					return nil, nil, fmt.Errorf("%s: %s is not in it, and says %v", room, d, err)
				}
				w.tally.Outside++
				out[d] = true
				continue
			}
			in = append(in, present{d, rec})
		}
	}
	return in, out, nil
}

func (w *World) judgeEpochs(ctx context.Context, room delivery.RoomID, in []present) error {
	var faults []error
	var epoch uint64
	var authenticator []byte
	for i, d := range in {
		e, a, err := d.engine.EpochAuthenticator(ctx, room)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s in %s: %w", d, room, err))
			continue
		}
		if i == 0 {
			epoch, authenticator = e, a
		}
		if e != epoch || !bytes.Equal(a, authenticator) {
			faults = append(faults, fmt.Errorf("%s: %s is in epoch %d, %s in %d, or their authenticators differ", room, in[0], epoch, d, e))
		}
	}
	return errors.Join(faults...)
}

// shownAt is where anybody shows the messages of a room: what a device says again after
// a restore is another entry with the same message in it.
func (w *World) shownAt(ctx context.Context, room delivery.RoomID) (map[content.MessageID][]uint64, error) {
	at := map[content.MessageID][]uint64{}
	for _, p := range w.people {
		for _, d := range p.devices {
			if d.gone {
				continue
			}
			lines, err := d.engine.History(ctx, room, 0, 0, true)
			if errors.Is(err, sdk.ErrNoRoom) || errors.Is(err, sdk.ErrRequest) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s reads %s: %w", d, room, err)
			}
			for _, l := range lines {
				if !slices.Contains(at[l.ID], l.Seq) {
					at[l.ID] = append(at[l.ID], l.Seq)
				}
			}
		}
	}
	return at, nil
}

// entriesOf lists the seqs of all entries in which a message was sent: what a restore lost
// is said again in another entry.
func (w *World) entriesOf(s said) (seqs []uint64) {
	for _, x := range w.sent {
		if x.room == s.room && x.id == s.id {
			seqs = append(seqs, w.places[x.hash]...)
		}
	}
	return seqs
}

// haveThere is who is in a room, and the messages that any of them has read there. Who was removed
// by a change that a restore has lost is not in it, and says nothing again there: it knows
// of its removal. What it said and none of these has nobody can bring back.
func (w *World) haveThere(ctx context.Context, room delivery.RoomID, in []present) (here map[*device]bool, have map[content.MessageID]bool, err error) {
	here, have = map[*device]bool{}, map[content.MessageID]bool{}
	for _, d := range in {
		here[d.device] = true
		lines, err := d.engine.History(ctx, room, 0, 0, true)
		if err != nil {
			return nil, nil, fmt.Errorf("%s reads %s: %w", d, room, err)
		}
		for _, l := range lines {
			if l.Seq > d.rec.First { // not from the archive, which gives nobody the entry
				have[l.ID] = true
			}
		}
	}
	return here, have, nil
}

func (w *World) judgeLines(ctx context.Context, room delivery.RoomID, in []present, out map[*device]bool) error {
	at, err := w.shownAt(ctx, room)
	if err != nil {
		return err
	}
	here, have, err := w.haveThere(ctx, room, in)
	if err != nil {
		return err
	}
	var faults []error
	for _, d := range in {
		lines, err := d.engine.History(ctx, room, 0, 0, true)
		if err != nil {
			return fmt.Errorf("%s reads %s: %w", d, room, err)
		}
		past, err := d.engine.PastOf(ctx, room)
		if err != nil {
			return fmt.Errorf("%s in %s: %w", d, room, err)
		}
		shown := map[content.MessageID]int{}
		texts := map[string]int{}
		unread := map[uint64]bool{}
		for _, l := range lines {
			shown[l.ID]++
			if l.Kind == sdk.LineText && !l.Edited {
				texts[l.Text]++
			}
			if l.Kind == sdk.LineUnread && l.Cause == sdk.CauseKeyUsed {
				by := w.senderOf(room, l.Seq)
				if by == nil || !by.copied {
					faults = append(faults, fmt.Errorf("%s: %s reads two entries under one key, the later one at %d", room, d, l.Seq))
				} else if w.tally.Twice++; !by.gone {
					continue // it counts for nothing: it is said again
				}
			}
			if l.Kind == sdk.LineUnread && l.Cause != "" {
				unread[l.Seq] = true
			}
		}
		for text, n := range texts {
			if n > 1 {
				faults = append(faults, fmt.Errorf("%s shows %q %d times", d, text, n))
			}
		}
		for i, s := range w.said {
			if i < w.lost && i >= w.saved && (s.by.gone || out[s.by] || !here[s.by] && !have[s.id]) {
				continue // a restore lost it, and the device that could say it again is gone or out
			}
			told := func(seq uint64) bool { return unread[seq] || excused(lines, seq) || lacks(past, seq) }
			if s.room != room || shown[s.id] == 1 || told(s.seq) || slices.ContainsFunc(w.entriesOf(s), told) || slices.ContainsFunc(at[s.id], told) || absent(d.rec, past, lines, d.device, s.seq) {
				continue
			}
			faults = append(faults, fmt.Errorf("%s: %s lacks %q (seq %d, shown at %d, joined at %d) and says nothing about it", room, d, s.text, s.seq, at[s.id], d.rec.Joined))
		}
	}
	return errors.Join(faults...)
}

// excused reports whether a gap line covers a seq.
func excused(lines []sdk.Line, seq uint64) bool {
	for _, l := range lines {
		if l.Kind == sdk.LineGap && l.Cause != "" && l.GapFrom <= seq && seq <= l.Seq {
			return true
		}
	}
	return false
}

// lacks reports whether a device says that it cannot show what had a seq before it came
// in. What a restore lost and others brought back has another one besides its first.
func lacks(past sdk.Past, seq uint64) bool {
	return slices.ContainsFunc(slices.Concat(past.Missing, past.Withheld), func(x sdk.Span) bool { return x.From <= seq && seq <= x.To })
}

// absent reports whether this device was no member when a seq was given: before
// it first came in, or between leaving and coming in again. What its account could
// read before and the archive had is here all the same.
func absent(rec sdk.Room, past sdk.Past, lines []sdk.Line, d *device, seq uint64) bool {
	if seq <= rec.First {
		return !slices.ContainsFunc(past.Read, func(x sdk.Span) bool { return x.From <= seq && seq <= x.To })
	}
	left := uint64(0) // the latest seq before seq at which it went
	for _, l := range lines {
		if l.Kind == sdk.LineLeave && l.From == d.owner.id && l.Seq <= seq {
			left = l.Seq
		}
	}
	for _, l := range lines {
		if left > 0 && l.Kind == sdk.LineJoin && l.From == d.owner.id && left < l.Seq && l.Seq < seq {
			return false // it had come back by then
		}
	}
	return left > 0 && seq <= rec.Joined
}
