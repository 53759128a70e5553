package sdk

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
)

// Reading the archive: a device that came into rooms in which other devices of its
// account were before, or that has missed a part of one, goes through all segments
// once, and through newer ones for two days, until nothing is missing. It goes on
// where it was interrupted.

const (
	settingWant = "archive.want"  // reading
	settingPast = "archive.past." // + room id: past

	readAtMost  = 256 // segments in one pass
	readAgain   = time.Hour
	readFor     = 48 * time.Hour
	readMargin  = 10 * time.Minute // by which times of the service may be apart
	maxSegments = 1 << 16          // that a service may show
)

// reading is how far a device has come with the archive.
type reading struct {
	After   string `json:"after,omitempty"` // the last name that was read in this round
	Read    int    `json:"read,omitempty"`  // segments in this round
	SinceMS int64  `json:"since_ms,omitempty"`
	LastMS  int64  `json:"last_ms,omitempty"` // latest time of a segment in this round
	NextMS  int64  `json:"next_ms,omitempty"` // when the next round begins
	UntilMS int64  `json:"until_ms,omitempty"`
}

// past is what the archive gave this device of a room.
type past struct {
	From  uint64 `json:"from,omitempty"` // the first seq that the account could read
	Spans spans  `json:"spans"`
}

// wantHistory notes that the archive has to be read, from its beginning.
func wantHistory(tx Tx) error { return put(tx, TableSetting, settingWant, reading{}) }

// wantMissing is wantHistory when something is missing.
func (e *Engine) wantMissing(tx Tx) error {
	rooms, err := scan[Room](tx, TableRoom, "")
	if err != nil {
		return err
	}
	for _, rec := range rooms {
		p, kept, err := pastOf(tx, rec.ID)
		if err != nil {
			return err
		}
		if rec.Kind != delivery.RoomSelf && len(missingOf(rec, p, kept)) > 0 {
			return wantHistory(tx)
		}
	}
	return nil
}

// readHistory reads a part of the archive when this device wants some. more says
// that the round is not over.
func (e *Engine) readHistory(ctx context.Context) (more bool, err error) {
	var w reading
	wanted := false
	err = e.Store.View(ctx, func(tx Tx) error {
		wanted, err = get(tx, TableSetting, settingWant, &w)
		return err
	})
	if err != nil || !wanted || e.nowMS() < w.NextMS {
		return false, err
	}
	page, err := e.client.Archive(ctx, w.After)
	if err != nil {
		return false, e.fail(ctx, err)
	}
	read := 0
	for _, v := range page.Segments {
		if v.Name <= w.After || w.Read >= maxSegments {
			e.Warn("the service's list of the archive has no order or no end: what is behind it is not read")
			return false, e.readRound(ctx, w)
		}
		w.After, w.LastMS, w.Read = v.Name, max(w.LastMS, v.CreatedMS), w.Read+1
		if v.CreatedMS < w.SinceMS {
			continue
		}
		if err := e.readSegment(ctx, v, w); err != nil {
			return false, err
		}
		if read++; read >= readAtMost {
			return true, nil
		}
	}
	if page.More && len(page.Segments) > 0 {
		return true, nil
	}
	return false, e.readRound(ctx, w)
}

// readSegment takes one segment in. One that does not open is passed over.
func (e *Engine) readSegment(ctx context.Context, v delivery.SegmentView, w reading) error {
	sealed, err := e.client.ArchiveSegment(ctx, v.Name)
	var s *segment
	if err == nil {
		s, err = e.openSegment(ctx, v.Name, sealed)
	}
	switch {
	case delivery.CodeOf(err) == delivery.CodeNotFound:
	case errors.Is(err, ErrSeal), errors.Is(err, errSegment), errors.Is(err, errKeys), delivery.CodeOf(err) == delivery.CodeTooLarge:
		e.Warn("a piece of the archive cannot be read here: %v", err)
	case err != nil:
		return e.fail(ctx, err)
	}
	err = e.Store.Update(ctx, func(tx Tx) error {
		if s != nil {
			if err := e.takeSegment(tx, s); err != nil {
				return err
			}
		}
		return put(tx, TableSetting, settingWant, w)
	})
	if err == nil && s != nil {
		e.changed()
	}
	return err
}

// takeSegment puts what others have read into this device's history: of seqs that
// it has not read itself, and of nothing else.
func (e *Engine) takeSegment(tx Tx, s *segment) error {
	var rec Room
	found, err := get(tx, TableRoom, s.Room.String(), &rec)
	if err != nil || !found || rec.Kind == delivery.RoomSelf {
		return err
	}
	first, last := blockOf(s.Block)
	own, err := e.haveRead(tx, rec, first, last)
	if err != nil {
		return err
	}
	var touched []content.MessageID
	for _, r := range s.Lines {
		if r.Seq > rec.Cursor || own.has(r.Seq) {
			continue
		}
		l, err := r.line(rec.ID, rec.URI, e.account.Device)
		if err != nil {
			e.Warn("a line of the archive is passed over: %v", err)
			continue
		}
		done, err := e.takeLine(tx, l)
		if err != nil {
			return err
		}
		if done {
			touched = append(touched, l.ID, l.Target)
		}
	}
	for _, id := range touched {
		if err := asItStands(tx, rec.ID, id); err != nil {
			return err
		}
	}
	var p past
	if _, err := get(tx, TableSetting, settingPast+rec.ID.String(), &p); err != nil {
		return err
	}
	p.Spans = p.Spans.with(s.Spans.within(1, rec.Cursor)...)
	if s.From > 0 && (p.From == 0 || s.From < p.From) {
		p.From = s.From
	}
	return put(tx, TableSetting, settingPast+rec.ID.String(), p)
}

// takeLine puts one line of the archive in, unless a message of its name is here,
// or one of its seq that is no better than it.
func (e *Engine) takeLine(tx Tx, l Line) (taken bool, err error) {
	if before, found, err := tx.Line(l.Room, l.ID); err != nil || found && (before.Seq != l.Seq || before.Kind != LineUnread) {
		return false, err
	}
	there, err := tx.Lines(LineQuery{Room: l.Room, After: l.Seq - 1, Upto: l.Seq})
	if err != nil {
		return false, err
	}
	for _, x := range there {
		switch {
		case x.Kind == LineUnread && l.Kind != LineUnread:
			if err := tx.DeleteLine(l.Room, x.ID); err != nil {
				return false, err
			}
		case archived(x), x.Kind == LineUnread:
			return false, nil
		}
	}
	return true, tx.PutLine(l)
}

// asItStands applies to a message what is here of its sender's edits and deletions,
// and to a reaction that it was taken back.
func asItStands(tx Tx, room delivery.RoomID, id content.MessageID) error {
	if id.IsZero() {
		return nil
	}
	l, found, err := tx.Line(room, id)
	if err != nil || !found || l.Deleted {
		return err
	}
	about, err := tx.Lines(LineQuery{Room: room, Target: &id})
	if err != nil {
		return err
	}
	about = slices.DeleteFunc(about, func(a Line) bool { return a.From != l.From })
	slices.SortFunc(about, func(a, b Line) int { return cmp.Compare(a.Seq, b.Seq) })
	gone, changed := false, false
	for _, a := range about {
		switch {
		case a.Kind == LineDelete, a.Kind == LineUnreact && l.Kind == LineReaction:
			gone = true
		case a.Kind == LineEdit && len(a.Content) > 0:
			m, err := content.Decode(a.Content)
			if err != nil {
				continue
			}
			if err := putFirst(tx, l); err != nil {
				return err
			}
			show(&l, m.Items())
			l.Edited, l.Content, changed = true, a.Content, true
		}
	}
	if !gone && !changed {
		return nil
	}
	if gone {
		if err := forgetFirst(tx, l); err != nil {
			return err
		}
		l.Text, l.File, l.Content, l.Deleted = "", nil, nil, true
		for _, a := range about {
			if a.Kind != LineEdit {
				continue
			}
			a.Text, a.Content = "", nil
			if err := tx.PutLine(a); err != nil {
				return err
			}
		}
	}
	return tx.PutLine(l)
}

// readRound ends a round through the archive: gaps that are filled are none any
// more, and when something is missing yet the next round looks at what is newer.
func (e *Engine) readRound(ctx context.Context, w reading) error {
	rooms, err := e.toldOfArchive(ctx)
	if err != nil {
		return err
	}
	return e.Store.Update(ctx, func(tx Tx) error {
		missing := false
		for id, told := range rooms {
			if err := noteArchived(tx, id, told); err != nil {
				return err
			}
		}
		list, err := scan[Room](tx, TableRoom, "")
		if err != nil {
			return err
		}
		for _, rec := range list {
			if rec.Kind == delivery.RoomSelf || rec.Past == 0 && len(rec.Gaps) == 0 {
				continue
			}
			p, kept, err := pastOf(tx, rec.ID)
			if err != nil {
				return err
			}
			if err := closeGaps(tx, rec, p.Spans.with(kept.Bare...)); err != nil {
				return err
			}
			missing = missing || len(missingOf(rec, p, kept)) > 0
		}
		if w.UntilMS == 0 {
			w.UntilMS = e.nowMS() + readFor.Milliseconds()
		}
		if !missing || e.nowMS() >= w.UntilMS {
			return tx.Delete(TableSetting, settingWant)
		}
		next := reading{SinceMS: w.SinceMS, NextMS: e.nowMS() + readAgain.Milliseconds(), UntilMS: w.UntilMS}
		if w.LastMS > 0 {
			next.SinceMS = w.LastMS - readMargin.Milliseconds()
		}
		return put(tx, TableSetting, settingWant, next)
	})
}

// toldOfArchive is what the account's snapshot says of its rooms. One that cannot
// be read says nothing.
func (e *Engine) toldOfArchive(ctx context.Context) (map[string]snapshotRoom, error) {
	_, s, err := e.fetchSnapshot(ctx)
	if errors.Is(err, ErrSeal) || errors.Is(err, errKeys) {
		e.Warn("what other devices say of the archive cannot be read here: %v", err)
		return nil, nil
	}
	return s.Rooms, err
}

// noteArchived keeps what another device says of a room's archive.
func noteArchived(tx Tx, id string, told snapshotRoom) error {
	var kept snapshotRoom
	if _, err := get(tx, TableSetting, settingKept+id, &kept); err != nil {
		return err
	}
	if bare := kept.Bare.with(told.Bare...).widest(archiveBare); told.Archived > kept.Archived || !slices.Equal(bare, kept.Bare) {
		kept.Archived, kept.Bare = max(told.Archived, kept.Archived), bare
		return put(tx, TableSetting, settingKept+id, kept)
	}
	return nil
}

// pastOf is what the archive gave of a room, and what the account says of it.
func pastOf(tx Tx, id delivery.RoomID) (p past, kept snapshotRoom, err error) {
	if _, err = get(tx, TableSetting, settingPast+id.String(), &p); err != nil {
		return p, kept, err
	}
	_, err = get(tx, TableSetting, settingKept+id.String(), &kept)
	return p, kept, err
}

// closeGaps takes lines away that tell of a gap which the archive has filled.
func closeGaps(tx Tx, rec Room, filled spans) error {
	for _, g := range rec.Gaps {
		if !filled.covers(g) {
			continue
		}
		for l, err := range eachLine(tx, rec.ID, g.From, g.To) {
			if err != nil {
				return err
			}
			if l.Kind == LineGap && l.GapFrom >= g.From {
				if err := tx.DeleteLine(rec.ID, l.ID); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// missingOf is what this device lacks of a room that its account could have read.
func missingOf(rec Room, p past, kept snapshotRoom) spans {
	lacks := rec.lacks()
	if rec.Past > 0 {
		lacks = lacks.with(Span{max(p.From, 1), rec.Past - 1}) // at Past itself stands how it came in
	}
	return lacks.without(p.Spans...).without(kept.Bare...)
}

// lacks is what this device has not read since it first came in, and another
// device of the account may have.
func (r Room) lacks() spans { return r.Gaps.without(r.Away...) }

// Past is what this device has of the time before it came into a room.
type Past struct {
	// Before is the seq with which it came in, when other devices of the account
	// were there before; 0 when none was.
	Before uint64
	// Never: this device was not in the room at all. Other devices of the account were,
	// up to Before.
	Never bool
	Read  []Span // what the archive had of it
	// Missing is what it cannot show and no device is known to have archived: said
	// since one wrote to the archive last, or never read by one.
	Missing []Span
	// Withheld is what it cannot show although another device says that it was
	// archived: it is older than the service keeps the archive, or the service does
	// not show it.
	Withheld []Span
	// From is the first seq that the account itself could read; 0 when nobody has
	// written it down.
	From  uint64
	Going bool // the archive was not read to its end yet
	Days  int  // how long the service keeps the archive; 0 when it was not asked
}

// PastOf tells what a room's history holds of the time before this device
// (ErrNoRoom).
func (e *Engine) PastOf(ctx context.Context, id delivery.RoomID) (Past, error) {
	var out Past
	err := e.Store.View(ctx, func(tx Tx) error {
		var rec Room
		found, err := get(tx, TableRoom, id.String(), &rec)
		if err != nil {
			return err
		}
		if !found {
			return ErrNoRoom
		}
		p, kept, err := pastOf(tx, id)
		if err != nil {
			return err
		}
		var w reading
		wanted, err := get(tx, TableSetting, settingWant, &w)
		if err != nil {
			return err
		}
		missing := missingOf(rec, p, kept)
		out = Past{
			Before: rec.Past, Never: rec.Past > 0 && rec.Joined == 0, From: p.From, Going: wanted && w.NextMS == 0, Read: p.Spans.within(1, max(rec.Past, 1)-1),
			Withheld: missing.within(1, kept.Archived), Missing: missing.within(kept.Archived+1, math.MaxUint64),
		}
		for _, g := range rec.Gaps {
			out.Read = spans(out.Read).with(p.Spans.within(g.From, g.To)...)
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.info != nil {
		out.Days = e.info.ArchiveDays
	}
	return out, nil
}

// history reads the archive to its end, for who waits for it. What fails goes on
// with a later sync.
func (e *Engine) history(ctx context.Context) error {
	for {
		more, err := e.readHistory(ctx)
		if err != nil {
			if errors.Is(err, ErrRevoked) || isNet(err) {
				return err
			}
			e.Warn("the archive could not be read: %v", err)
			return nil
		}
		if !more {
			return nil
		}
	}
}
