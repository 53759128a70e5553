package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// rounds bounds how often everybody reads until nothing changes any more.
const rounds = 12

// rest lets the storm pass: the service runs, nothing is lost or killed, every
// device that is not gone is used until all know the same.
func (w *World) rest(ctx context.Context) error {
	w.tell("the storm passes")
	w.network.SetFaults(Faults{})
	w.network.Between(nil)
	if !w.service.running() {
		if err := w.service.start(ctx); err != nil {
			return err
		}
	}
	for range rounds {
		w.clock.Add(time.Hour) // past every window in which a room waits for somebody
		if err := w.service.chores(ctx); err != nil {
			return err
		}
		for _, p := range w.people {
			for _, d := range p.devices {
				if d.gone {
					continue
				}
				d.away = 0
				if d.engine == nil || d.crash.died() {
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
//   - all devices in a room are in one epoch with one epoch authenticator;
//   - a device shows no message twice;
//   - a message that the service acknowledged is shown by every device that is in
//     the room now, unless its account came in later, or one line names the seqs
//     that are missing there and why, or the message and why it cannot be read, or
//     the device says that the archive did not have it;
//   - no key is used twice: who reads two entries of one leaf, epoch and generation
//     finds the key of the second consumed, and says so in a line.
func (w *World) Judge(ctx context.Context) error {
	if err := w.notePlaces(ctx); err != nil {
		return err
	}
	var faults []error
	for _, room := range w.rooms {
		faults = append(faults, w.judgeEpochs(ctx, room), w.judgeLines(ctx, room))
	}
	return errors.Join(faults...)
}

// inRoom lists the devices that are in a room now.
func (w *World) inRoom(ctx context.Context, room delivery.RoomID) (in []*device, recs []sdk.Room, err error) {
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
			in, recs = append(in, d), append(recs, rec)
		}
	}
	return in, recs, nil
}

func (w *World) judgeEpochs(ctx context.Context, room delivery.RoomID) error {
	in, _, err := w.inRoom(ctx, room)
	if err != nil {
		return err
	}
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

func (w *World) judgeLines(ctx context.Context, room delivery.RoomID) error {
	in, recs, err := w.inRoom(ctx, room)
	if err != nil {
		return err
	}
	var faults []error
	for i, d := range in {
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
				faults = append(faults, fmt.Errorf("%s: %s reads two entries under one key, the later one at %d", room, d, l.Seq))
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
		for _, s := range w.said {
			told := func(seq uint64) bool { return unread[seq] || excused(lines, seq) }
			if s.room != room || shown[s.id] == 1 || told(s.seq) || slices.ContainsFunc(w.places[s.hash], told) || absent(recs[i], past, lines, d, s.seq) {
				continue
			}
			faults = append(faults, fmt.Errorf("%s: %s lacks %q (seq %d, joined at %d) and says nothing about it", room, d, s.text, s.seq, recs[i].Joined))
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

// absent reports whether this device was no member when a seq was given: before
// it first came in, or between leaving and coming in again. What its account could
// read before and the archive had is here all the same.
func absent(rec sdk.Room, past sdk.Past, lines []sdk.Line, d *device, seq uint64) bool {
	if slices.ContainsFunc(slices.Concat(past.Missing, past.Withheld), func(x sdk.Span) bool { return x.From <= seq && seq <= x.To }) {
		return true
	}
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
