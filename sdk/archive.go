package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// The archive is what the devices of an account have read, sealed for the account
// itself, so that a device which is linked today, or comes from the phrase, shows
// what was said before. Rooms are cut into blocks of seqs; a block is one segment
// under a name that all devices find and nobody else understands. A device that
// has more of a block than its segment puts both together; one that has nothing
// more writes nothing.
//
// Writing happens after the fact, with a sync: a block that is complete at once,
// an open one when its oldest message waits for an hour, and everything when a
// device is approved or [Engine.Archive] is called. No message waits for it.
//
// Not in it: keys, files (a message names them; they are fetched while the service
// keeps them), what people wanted to disappear, and what is not conversation.

const (
	archiveWait     = time.Hour
	archiveRest     = 24 * time.Hour        // after the service refused for good
	archiveAtMost   = 16                    // blocks of one room in one pass
	archiveBare     = 64                    // ranges of a room in which nothing has to be kept
	settingTo       = "archive.to."         // + room id: archiveState
	settingResting  = "archive.rest"        // until when nothing is archived
	settingSince    = "archive.incarnation" // of the service that archiveState speaks of: incarnation
	archivePassEach = 5 * time.Minute
)

// archiveState is how far this device has archived a room.
type archiveState struct {
	To uint64 `json:"to"` // everything of the room up to it
	// Bare are the parts of it of which nothing has to be kept: nobody said
	// anything there, or the account was not in the room. The snapshot tells it to
	// the other devices, which miss nothing there.
	Bare spans `json:"bare,omitempty"`
}

// due is what has to be written of a room.
type due struct {
	blocks []uint64
	to     uint64 // up to where the room is archived then; 0 = nothing is due
	have   spans  // what this device has read of it
	bare   spans
}

// Archive writes what this device has read into the account's archive now, without
// waiting until it is worth a segment; also what it had written and the service does
// not show any more. Then it reads what the archive has of what is missing here. It
// gives the number of segments written.
func (e *Engine) Archive(ctx context.Context) (segments int, err error) {
	if err := e.settleKeys(ctx, nil); err != nil {
		return 0, err
	}
	n, err := e.archive(ctx, true)
	if err != nil {
		return n, err
	}
	again, err := e.archiveLost(ctx)
	if err != nil {
		return n + again, err
	}
	if err := e.Store.Update(ctx, e.wantMissing); err != nil {
		return n + again, err
	}
	if err := e.history(ctx); err != nil {
		return n + again, err
	}
	return n + again, e.flushSnapshot(ctx)
}

// archive writes what is due, of all rooms.
func (e *Engine) archive(ctx context.Context, all bool) (segments int, err error) {
	held, owed, err := e.generations(ctx)
	if err != nil || held < owed {
		return 0, err // nothing is sealed before the new key is here
	}
	if err := e.archiveRestored(ctx); err != nil {
		return 0, err
	}
	var rooms []Room
	resting := uint64(0)
	err = e.Store.View(ctx, func(tx Tx) error {
		if resting, err = number(tx, settingResting); err != nil {
			return err
		}
		rooms, err = scan[Room](tx, TableRoom, "")
		return err
	})
	if err != nil || !all && uint64(e.nowMS()) < resting {
		return 0, err
	}
	for _, rec := range rooms {
		if rec.Kind == delivery.RoomSelf {
			continue
		}
		n, err := e.archiveRoom(ctx, rec, all)
		segments += n
		if delivery.CodeOf(err) == delivery.CodeTooLarge {
			e.Warn("the account's archive takes nothing more; what is said from now on may be missing on a device that is linked later: %v", err)
			until := uint64(e.nowMS() + archiveRest.Milliseconds())
			return segments, e.Store.Update(ctx, func(tx Tx) error { return putNumber(tx, settingResting, until) })
		}
		if err != nil {
			return segments, err
		}
	}
	return segments, nil
}

// archiveLater is archive for who has other things to do: what fails is tried
// again with a later sync.
func (e *Engine) archiveLater(ctx context.Context) error {
	e.archivedAt.Store(e.nowMS())
	if _, err := e.archive(ctx, false); err != nil {
		if isNet(err) || errors.Is(err, ErrRevoked) {
			return err
		}
		e.Warn("history could not be archived: %v", err)
	}
	return nil
}

// archiveNowAndThen is archiveLater for who follows rooms all day.
func (e *Engine) archiveNowAndThen(ctx context.Context) error {
	if e.nowMS()-e.archivedAt.Load() < archivePassEach.Milliseconds() {
		return nil
	}
	if err := e.archiveLater(ctx); err != nil {
		return err
	}
	return e.flushSnapshot(ctx)
}

// archiveRoom writes the blocks of a room in which something is due.
func (e *Engine) archiveRoom(ctx context.Context, rec Room, all bool) (segments int, err error) {
	for {
		d, err := e.dueOf(ctx, rec, all)
		if err != nil || d.to == 0 {
			return segments, err
		}
		var written spans
		for _, b := range d.blocks {
			wrote, err := e.archiveBlock(ctx, rec, b)
			if err != nil {
				return segments, err
			}
			if wrote {
				segments++
				first, last := blockOf(b)
				written = written.with(d.have.within(first, last)...)
			}
		}
		err = e.Store.Update(ctx, func(tx Tx) error {
			if err := tx.Put(TableSetting, settingDirty, []byte{1}); err != nil {
				return err
			}
			var state archiveState
			if _, err := get(tx, TableSetting, settingTo+rec.ID.String(), &state); err != nil {
				return err
			}
			state.To, state.Bare = d.to, state.Bare.with(d.bare...).without(written...).widest(archiveBare)
			return put(tx, TableSetting, settingTo+rec.ID.String(), state)
		})
		if err != nil || !all && len(d.blocks) >= archiveAtMost || d.to >= rec.Cursor {
			return segments, err
		}
	}
}

// dueOf tells what has to be written of a room, if it is worth it yet. An edit or a
// deletion makes the block due of what it is about.
func (e *Engine) dueOf(ctx context.Context, rec Room, all bool) (d due, err error) {
	info, err := e.archiveInfo(ctx)
	if err != nil {
		return d, err
	}
	state := archiveState{To: rec.First}
	waited := false
	err = e.Store.View(ctx, func(tx Tx) error {
		if _, err := get(tx, TableSetting, settingTo+rec.ID.String(), &state); err != nil || state.To >= rec.Cursor {
			return err
		}
		d.to = min(rec.Cursor, (state.To/segmentSeqs+archiveAtMost)*segmentSeqs-1)
		next, err := tx.Lines(LineQuery{Room: rec.ID, After: state.To, Limit: 1})
		if err != nil {
			return err
		}
		if len(next) == 0 {
			d.to = rec.Cursor
		} else if next[0].Seq > d.to { // the numbers of a service that was restored have a wide gap
			d.to = min(rec.Cursor, next[0].Seq-1)
		}
		if d.have, err = e.haveRead(tx, rec, (state.To+1)/segmentSeqs*segmentSeqs, d.to); err != nil {
			return err
		}
		d.bare = d.have.within(state.To+1, d.to)
		for l, err := range eachLine(tx, rec.ID, state.To+1, d.to) {
			if err != nil {
				return err
			}
			if !archived(l) {
				continue
			}
			block := l.Seq / segmentSeqs
			first, last := blockOf(block)
			d.bare = d.bare.without(Span{first, last})
			if l.TimeMS < info.oldestMS {
				continue
			}
			waited = waited || e.nowMS()-l.TimeMS >= archiveWait.Milliseconds()
			d.blocks = append(d.blocks, block)
			if l.Target.IsZero() {
				continue
			}
			about, found, err := tx.Line(rec.ID, l.Target)
			if err != nil {
				return err
			}
			if found && archived(about) && about.TimeMS >= info.oldestMS {
				d.blocks = append(d.blocks, about.Seq/segmentSeqs)
			}
		}
		return nil
	})
	d.bare = d.bare.with(rec.Away.within(state.To+1, d.to)...)
	complete := d.to/segmentSeqs > state.To/segmentSeqs
	if err != nil || !all && !complete && !waited {
		return due{}, err
	}
	slices.Sort(d.blocks)
	d.blocks = slices.Compact(d.blocks)
	return d, nil
}

// archiveTimes is what the service says about its archive.
type archiveTimes struct {
	keptMS   int64 // how long that is
	oldestMS int64 // what was said before it is not kept
}

func (e *Engine) archiveInfo(ctx context.Context) (archiveTimes, error) {
	info, err := e.home(ctx)
	if err != nil {
		return archiveTimes{}, err
	}
	days := info.ArchiveDays
	if days <= 0 {
		days = info.RetentionDays
	}
	kept := int64(min(days, 36500)) * 24 * time.Hour.Milliseconds()
	return archiveTimes{kept, e.nowMS() - kept}, nil
}

// archiveBlock puts what this device has of a block to what stands in the archive.
func (e *Engine) archiveBlock(ctx context.Context, rec Room, block uint64) (wrote bool, err error) {
	info, err := e.archiveInfo(ctx)
	if err != nil {
		return false, err
	}
	name, err := e.nameOf(ctx, rec.ID, block)
	if err != nil {
		return false, err
	}
	for range 5 {
		own, err := e.ownSegment(ctx, rec, block, info.oldestMS)
		if err != nil {
			return false, err
		}
		before, stands, err := e.fetchSegment(ctx, name, rec.ID, block)
		if err != nil {
			return false, err
		}
		if before != nil {
			// A clock of this device that is far ahead takes nothing of the others'.
			newest := max(before.newestMS(), own.newestMS())
			own = merged(before, own, min(info.oldestMS, newest-info.keptMS))
			if own.same(before) {
				return false, nil
			}
		} else if len(own.Lines) == 0 {
			return false, nil
		}
		plain, err := own.encode()
		if err != nil {
			return false, err
		}
		sealed, _, err := e.sealFor(ctx, sealSegment, name, plain)
		clear(plain)
		if err != nil {
			return false, err
		}
		err = e.client.PutArchive(ctx, name, sealed, stands)
		if delivery.CodeOf(err) != delivery.CodeConflict {
			return err == nil, e.fail(ctx, err)
		}
		// Another device was faster, or has revoked one.
		if err := e.readKeys(ctx); err != nil {
			return false, err
		}
	}
	return false, delivery.Refuse(delivery.CodeRetry, "another device keeps changing the archive")
}

func (e *Engine) nameOf(ctx context.Context, id delivery.RoomID, block uint64) (string, error) {
	first, err := e.archiveKey(ctx, 1)
	if err != nil {
		return "", err
	}
	if first == nil {
		return "", errKeys
	}
	defer clear(first)
	return segmentName(first, id, block)
}

// fetchSegment reads the segment of a block, and its bytes as they stand. One that
// cannot be opened is as good as none: what this device has takes its place.
func (e *Engine) fetchSegment(ctx context.Context, name string, id delivery.RoomID, block uint64) (*segment, []byte, error) {
	sealed, err := e.client.ArchiveSegment(ctx, name)
	if delivery.CodeOf(err) == delivery.CodeNotFound {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, e.fail(ctx, err)
	}
	s, err := e.openSegment(ctx, name, sealed)
	if err == nil && (s.Room != id || s.Block != block) {
		err = fmt.Errorf("%w: of another chat", errSegment)
	}
	if errors.Is(err, ErrSeal) || errors.Is(err, errSegment) {
		e.Warn("a piece of the archive does not open and is replaced: %v", err)
		return nil, sealed, nil
	}
	return s, sealed, err
}

// openSegment opens a segment that stands under a name (ErrSeal, errSegment; errKeys
// when its key is not here).
func (e *Engine) openSegment(ctx context.Context, name string, sealed []byte) (*segment, error) {
	plain, _, err := e.openFor(ctx, sealSegment, name, sealed)
	if err != nil {
		return nil, err
	}
	s, err := parseSegment(plain)
	if err != nil {
		return nil, err
	}
	want, err := e.nameOf(ctx, s.Room, s.Block)
	if err != nil {
		return nil, err
	}
	if want != name {
		return nil, fmt.Errorf("%w: it stands under another name", errSegment)
	}
	return s, nil
}

// ownSegment is what this device has of a block.
func (e *Engine) ownSegment(ctx context.Context, rec Room, block uint64, oldestMS int64) (*segment, error) {
	first, last := blockOf(block)
	s := &segment{Room: rec.ID, Block: block, Spans: spans{}, Lines: []record{}}
	return s, e.Store.View(ctx, func(tx Tx) error {
		if _, err := get(tx, TableRoom, rec.ID.String(), &rec); err != nil {
			return err
		}
		s.Seen = rec.Cursor
		if rec.Past == 0 {
			s.From = rec.First + 1
		}
		have, err := e.haveRead(tx, rec, first, last)
		if err != nil {
			return err
		}
		s.Spans = append(s.Spans, have...)
		for l, err := range eachLine(tx, rec.ID, first, last) {
			if err != nil {
				return err
			}
			if !archived(l) || !have.has(l.Seq) {
				continue
			}
			if l.TimeMS < oldestMS { // what is not there does not count as read
				s.Spans = s.Spans.without(Span{l.Seq, l.Seq})
				continue
			}
			if !l.Target.IsZero() {
				about, found, err := tx.Line(rec.ID, l.Target)
				if err != nil {
					return err
				}
				if found && about.ExpireMS != 0 {
					continue // it tells of something that disappears
				}
			}
			if n := len(s.Lines); n > 0 && s.Lines[n-1].Seq == l.Seq {
				continue
			}
			s.Lines = append(s.Lines, recordOf(l))
		}
		return nil
	})
}

// haveRead are the seqs between two that this device has read itself: since it
// came in, without gaps and without what it could not open.
func (e *Engine) haveRead(tx Tx, rec Room, from, to uint64) (spans, error) {
	from = max(from, 1)
	have := spans{}.with(Span{rec.First + 1, rec.Cursor}).without(rec.Gaps...).within(from, to)
	for l, err := range eachLine(tx, rec.ID, from, to) {
		if err != nil {
			return nil, err
		}
		if l.Kind == LineUnread {
			have = have.without(Span{l.Seq, l.Seq})
		}
	}
	return have, nil
}
