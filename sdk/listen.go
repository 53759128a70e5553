package sdk

import (
	"context"
	"errors"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/identity"
)

// ErrEnough ends [Engine.Listen] without an error when its function returns it.
var ErrEnough = errors.New("enough was heard")

// Listening says what to hear.
type Listening struct {
	Room   *delivery.RoomID // nil = all
	Since  *uint64          // begin after this number instead of the profile's own place
	Events bool             // also joins, titles, profiles and so on
	Mine   bool             // also what this very device said
	// Activity is told of what people begin and cease to do, between the lines; nil =
	// nobody is. Its error ends the listening as that of the function for lines does.
	Activity func(a Activity, begins bool) error
	// Told is what Activity was told before, by a listening that this one follows: it
	// is told when that is over.
	Told []Activity
}

// Listen gives f every line that the profile has not been given before, in the
// order of each room, then waits for more. The profile has a place in each room, which
// is moved on when f has returned; listening Since a number leaves it where it is. It
// ends with ctx, with f's error (nil for [ErrEnough]), or when this device is revoked
// (ErrRevoked); a broken connection is made again.
func (e *Engine) Listen(ctx context.Context, l Listening, f func(Line) error) error {
	if l.Room != nil {
		r, done, err := e.find(ctx, *l.Room)
		if err != nil {
			return err
		}
		ahead := l.Since != nil && *l.Since > r.rec.Cursor
		done()
		if ahead {
			if err := e.Refresh(ctx, *l.Room); err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var broke error // of Follow, once ended is closed
	ended := make(chan struct{})
	go func() { defer close(ended); broke = e.Follow(ctx) }() // ends with ctx
	defer func() { cancel(); <-ended }()
	people := telling{engine: e, room: l.Room, f: l.Activity, told: map[Activity]bool{}}
	for _, a := range l.Told {
		people.told[a] = true
	}
	heard, met := map[delivery.RoomID]uint64{}, &introduced{met: map[identity.PublicKey]bool{}}
	for {
		bell := e.bell()
		err := e.hear(ctx, l, heard, met, f)
		if err == nil {
			err = people.wait(ctx, bell, ended)
		}
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			<-ended // it ended while the store was read or written: what is left is heard below
			err = nil
		}
		if err != nil {
			cancel()
			<-ended
			if errors.Is(err, ErrEnough) {
				return nil
			}
			return errors.Join(err, broke)
		}
		select {
		case <-ended:
			// What came in with the last frames is still to be heard.
			if h := e.hear(context.WithoutCancel(ctx), l, heard, met, f); h != nil && !errors.Is(h, ErrEnough) {
				return h
			} else if h != nil {
				return nil
			}
			return broke
		default:
		}
	}
}

// hear gives f what is new in the rooms.
func (e *Engine) hear(ctx context.Context, l Listening, heard map[delivery.RoomID]uint64, met *introduced, f func(Line) error) error {
	give := func(line Line) error {
		if err := e.nameFirst(ctx, met, line.From); err != nil {
			return err
		}
		return f(line)
	}
	var rooms []Room
	err := e.Store.View(ctx, func(tx Tx) (err error) {
		rooms, err = scan[Room](tx, TableRoom, "")
		return err
	})
	if err != nil {
		return err
	}
	if err := e.hearAsks(ctx, l, f); err != nil {
		return err
	}
	for _, rec := range rooms {
		if l.Room != nil && rec.ID != *l.Room || rec.Kind == delivery.RoomSelf {
			continue
		}
		after, known := heard[rec.ID]
		if !known {
			after = rec.Heard
			if l.Since != nil {
				after = *l.Since
			}
		}
		after, err = e.hearRoom(ctx, l, rec, after, give)
		heard[rec.ID] = after
		if err != nil {
			if l.Since != nil {
				return err
			}
			return errors.Join(err, e.moveOn(context.WithoutCancel(ctx), rec.ID, after))
		}
	}
	return nil
}

// hearRoom gives f the lines of one room and tells how far it came.
func (e *Engine) hearRoom(ctx context.Context, l Listening, rec Room, after uint64, f func(Line) error) (uint64, error) {
	for after < rec.Cursor {
		var lines []Line
		err := e.Store.View(ctx, func(tx Tx) (err error) {
			lines, err = tx.Lines(LineQuery{Room: rec.ID, After: after, Upto: rec.Cursor, Limit: 200})
			return err
		})
		if err != nil {
			return after, err
		}
		next := rec.Cursor
		if len(lines) == 200 { // the lines of the last seq may go on: they are read again
			if next = lines[len(lines)-1].Seq; next-1 > after {
				next--
			}
		}
		own := l.Since == nil // else it is a look at a part, and not the profile's own listening
		for i, line := range lines {
			wanted := (line.Kind.Said() || line.Kind == LineGap || l.Events) && (!line.Mine || l.Mine) && line.Kind != LineReceipt
			if !wanted || line.Deleted && line.Kind != LineReaction || line.Seq > next {
				continue
			}
			whole := i+1 == len(lines) || lines[i+1].Seq != line.Seq
			if err := f(line); err != nil {
				if errors.Is(err, ErrEnough) && whole && own {
					after = line.Seq
				}
				return after, err
			}
			if !whole {
				continue
			}
			after = line.Seq
			// Line by line, so that a listener that is killed hears again at most the
			// line it was given last; a long absence is worth one write for a page.
			if own && len(lines) <= 64 && line.Seq < next {
				if err := e.moveOn(ctx, rec.ID, after); err != nil {
					return after, err
				}
			}
		}
		after = next
		if !own {
			continue
		}
		if err := e.moveOn(ctx, rec.ID, after); err != nil {
			return after, err
		}
	}
	return after, nil
}

// moveOn moves a room's place on.
func (e *Engine) moveOn(ctx context.Context, id delivery.RoomID, heard uint64) error {
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if heard <= r.rec.Heard {
		return nil
	}
	return e.rewrite(ctx, r, func(rec *Room) { rec.Heard = heard })
}

// calm is how long a connection that came back may break again without a word:
// one that flutters tells nothing by telling all of it.
const calm = 30 * time.Second

// Follow keeps the profile up to date until ctx ends: it reads what is missing,
// then what a socket rings for, and connects again when the connection breaks, or when
// it was silent for so long that it may be dead (from five minutes, later an hour). It
// ends with nil when ctx does, with ErrRevoked, with ErrClosed, or when the store fails.
func (e *Engine) Follow(ctx context.Context) error {
	told := false      // that there is no connection
	var back time.Time // when it was last told that there is one again
	var bell doorbell
	for try := 0; ; try++ {
		began := e.Now()
		err := e.follow(ctx, &bell, func() {
			if told {
				e.Warn("the connection is back")
				back = e.Now()
			}
			told = false
		})
		if ctx.Err() != nil {
			return nil
		}
		if e.life.ctx.Err() != nil {
			return ErrClosed
		}
		if errors.Is(err, errQuiet) {
			bell.looks()
			try = -1
			continue
		}
		bell.quiet = 0
		if err != nil && !isNet(err) && !errors.Is(err, client.ErrGarbage) && delivery.CodeOf(err) != delivery.CodeLogIn {
			return err
		}
		if e.Now().Sub(began) > time.Minute {
			try = 0
		}
		if !told && err != nil && e.Now().Sub(back) > calm {
			e.Warn("no connection, trying again: %v", err)
			told = true
		}
		if err := e.pause(ctx, try, err); errors.Is(err, ErrClosed) {
			return ErrClosed
		} else if err != nil {
			return nil // ctx ended
		}
	}
}

// follow reads what is missing, then what a socket rings for. connected is called
// when the socket is open. It ends with errQuiet when it is time to look without it.
func (e *Engine) follow(ctx context.Context, bell *doorbell, connected func()) error {
	if err := e.Sync(ctx); err != nil {
		return err
	}
	cursors, err := e.cursors(ctx)
	if err != nil {
		return err
	}
	c, err := e.connect(ctx, cursors)
	if err != nil {
		return e.fail(ctx, err)
	}
	defer func() { _ = c.Close() }() // it is of no use any more
	defer e.uplink.use(c)()
	connected()
	bell.hung(e.Now())
	quiet := e.listenTo(ctx, bell, c, len(cursors))
	defer quiet()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	for {
		frame, err := c.Receive(ctx)
		if err != nil && quiet() {
			return errQuiet
		}
		if err != nil {
			return e.fail(ctx, err)
		}
		bell.rang(e.Now())
		if _, drain := frame.(*delivery.Drain); drain {
			return nil
		}
		if err := e.ring(ctx, frame); err != nil {
			return err
		}
	}
}

func (e *Engine) cursors(ctx context.Context) (out []delivery.Cursor, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		rooms, err := scan[Room](tx, TableRoom, "")
		for _, r := range rooms {
			if r.Status == StatusOpen && len(out) < 10_000 {
				out = append(out, delivery.Cursor{Room: r.ID, After: r.Cursor})
			}
		}
		return err
	})
	return out, err
}

// ring acts on one frame of the socket.
func (e *Engine) ring(ctx context.Context, frame any) error {
	switch f := frame.(type) {
	case *delivery.EntryFrame:
		if err := e.rungFor(ctx, f); err != nil {
			return err
		}
		return e.archiveNowAndThen(ctx)
	case *delivery.Gap:
		if known, err := e.knows(ctx, f.Room); err != nil || !known {
			return err
		}
		return e.quietly(ctx, f.Room)
	case *delivery.MailFrame:
		return e.ReadMail(ctx)
	case *delivery.Ephemeral:
		e.hearFrame(f)
	}
	return nil
}

// knows reports whether this profile has a room. What is rung for is the service's
// word: a room that nobody here knows is not even remembered.
func (e *Engine) knows(ctx context.Context, id delivery.RoomID) (known bool, err error) {
	if e.liveOf(id) != nil {
		return true, nil
	}
	err = e.Store.View(ctx, func(tx Tx) error {
		rec, err := tx.Get(TableRoom, id.String())
		known = rec != nil
		return err
	})
	return known, err
}

// rungFor takes the entry that a frame carries when it is the next one.
func (e *Engine) rungFor(ctx context.Context, f *delivery.EntryFrame) error {
	if known, err := e.knows(ctx, f.Room); err != nil || !known {
		return err
	}
	r, done, err := e.enter(ctx, f.Room)
	if errors.Is(err, ErrNoRoom) || errors.Is(err, ErrRequest) {
		return nil
	}
	if err != nil {
		return err
	}
	if f.Entry.Seq == r.rec.Cursor+1 && len(f.Entry.Bytes) > 0 && r.rec.Status == StatusOpen {
		err = e.take(ctx, r, []delivery.Entry{f.Entry})
		if err == nil && f.Entry.Kind == delivery.KindProposal {
			err = e.tidy(ctx, r)
		}
		if err == nil {
			err = e.meet(ctx, r)
		}
		done()
		return e.quiet(f.Room, err)
	}
	behind := f.Entry.Seq > r.rec.Cursor
	done()
	if !behind {
		return nil
	}
	return e.quietly(ctx, f.Room)
}

func (e *Engine) quietly(ctx context.Context, id delivery.RoomID) error {
	err := e.syncRoom(ctx, id)
	if errors.Is(err, ErrNoRoom) || errors.Is(err, ErrRequest) {
		return nil
	}
	return err
}

// quiet tells of what is wrong with one room without ending the others'.
func (e *Engine) quiet(id delivery.RoomID, err error) error {
	if err == nil || errors.Is(err, ErrOut) {
		return nil
	}
	if isNet(err) || errors.Is(err, ErrRevoked) {
		return err
	}
	e.Warn("%s: %v", id, err)
	return nil
}
