package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
)

// Chat is a room or a request in a list.
type Chat struct {
	Room    Room
	Request *Request             // set for a stranger's invitation
	Title   string               // what to show
	Unread  int                  // messages of others behind the place of the reader, at most 1,000
	Last    *Line                // the last message; nil = none among the last 100 lines and the unread
	Typing  []identity.PublicKey // who writes now, see [Engine.TypingIn]
	Online  []identity.PublicKey // who is said to be there, see [Engine.OnlineIn]
}

// Chats lists rooms and requests; the account's own room is not among them.
func (e *Engine) Chats(ctx context.Context) ([]Chat, error) {
	var out []Chat
	err := e.Store.View(ctx, func(tx Tx) error {
		rooms, err := scan[Room](tx, TableRoom, "")
		if err != nil {
			return err
		}
		for _, r := range rooms {
			if r.Kind == delivery.RoomSelf {
				continue
			}
			c := Chat{Room: r, Typing: e.TypingIn(r.ID), Online: e.OnlineIn(r.ID)}
			if c.Title, err = titleOf(tx, r); err != nil {
				return err
			}
			unread, err := tx.Lines(LineQuery{Room: r.ID, After: r.Read, Last: true, Limit: 1000})
			if err != nil {
				return err
			}
			for _, l := range unread {
				if !e.stands(l) {
					continue
				}
				if c.Last = &l; l.From != e.account.Identity {
					c.Unread++
				}
			}
			if c.Last == nil {
				if c.Last, err = e.lastSaid(tx, r.ID); err != nil {
					return err
				}
			}
			out = append(out, c)
		}
		requests, err := scan[Request](tx, TableRequest, "")
		for _, q := range requests {
			out = append(out, Chat{Room: Room{ID: q.Room, Kind: q.Kind}, Request: &q})
		}
		return err
	})
	return out, err
}

// stands reports whether a line is part of the conversation as it stands now.
func (e *Engine) stands(l Line) bool {
	return l.Kind.Conversation() && e.visible(l)
}

// lastSaid is the last message among the last lines of a room.
func (e *Engine) lastSaid(tx Tx, room delivery.RoomID) (*Line, error) {
	lines, err := tx.Lines(LineQuery{Room: room, Last: true, Limit: 100})
	if err != nil {
		return nil, err
	}
	for _, l := range slices.Backward(lines) {
		if e.stands(l) {
			return &l, nil
		}
	}
	return nil, nil
}

// RoomOf gives the record of a room (ErrNoRoom, ErrRequest).
func (e *Engine) RoomOf(ctx context.Context, id delivery.RoomID) (Room, error) {
	r, done, err := e.find(ctx, id)
	if err != nil {
		return Room{}, err
	}
	defer done()
	return r.rec, nil
}

// Refresh reads a room up to its end and delivers what waits in it. Without the
// service the room stays as it was and the error wraps client.ErrOffline.
func (e *Engine) Refresh(ctx context.Context, id delivery.RoomID) error {
	r, done, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	if r.rec.Status != StatusOpen {
		return nil
	}
	err = e.catchUp(ctx, r)
	if errors.Is(err, ErrOut) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.rec.Status != StatusOpen {
		return nil
	}
	return e.flush(ctx, r, content.MessageID{})
}

// History gives the conversation of a room as it stands now, oldest first: the
// last limit lines (0: 10,000) after a seq, edited and without what was taken back
// or has expired. events adds joins, titles and so on. It sends nothing.
func (e *Engine) History(ctx context.Context, id delivery.RoomID, after uint64, limit int, events bool) ([]Line, error) {
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return nil, err
	}
	upto := r.rec.Cursor
	done()
	var all []Line
	err = e.Store.View(ctx, func(tx Tx) error {
		all, err = tx.Lines(LineQuery{Room: id, After: after, Upto: max(upto, 1), Last: true, Limit: limit})
		return err
	})
	out := all[:0]
	for _, l := range all {
		if (l.Kind.Conversation() || events) && e.visible(l) {
			out = append(out, l)
		}
	}
	return out, err
}

// SeqOf gives the number of a message of a room by its id, 0 when it is not here.
func (e *Engine) SeqOf(ctx context.Context, id delivery.RoomID, message content.MessageID) (seq uint64, err error) {
	if message.IsZero() {
		return 0, nil
	}
	err = e.Store.View(ctx, func(tx Tx) error {
		l, _, err := tx.Line(id, message)
		seq = l.Seq
		return err
	})
	return seq, err
}

// Search finds messages by a part of their text, newest first: at most limit, in one
// room, or with nil in all. It sends nothing.
func (e *Engine) Search(ctx context.Context, text string, id *delivery.RoomID, limit int) (out []Line, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		out, err = tx.Search(text, id, limit)
		return err
	})
	return out, err
}

// Member is an identity in a room with its devices.
type Member struct {
	Person  Person
	Role    policy.Role // in the room's dictionary
	Devices []identity.DeviceID
	Idle    []identity.DeviceID // of Devices: away for [delivery.IdleAfter], as the service says; see [Engine.Idle]
}

// Members lists who is in a room, read from its ratchet tree, in the order of their
// identities (ErrOut).
func (e *Engine) Members(ctx context.Context, id delivery.RoomID) ([]Member, error) {
	r, done, err := e.find(ctx, id)
	if err != nil {
		return nil, err
	}
	s, status := r.state, r.rec.Status
	done()
	if s.roster == nil || status != StatusOpen {
		return nil, ErrOut
	}
	byID := map[identity.PublicKey]*Member{}
	for _, m := range s.roster.Members() {
		x := byID[m.Identity]
		if x == nil {
			p, err := e.Person(ctx, m.Identity)
			if err != nil {
				return nil, err
			}
			x = &Member{Person: p, Role: s.policy.Participants.Role(m.Identity)}
			byID[m.Identity] = x
		}
		x.Devices = append(x.Devices, m.Device)
	}
	out := make([]Member, 0, len(byID))
	for _, m := range byID {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b Member) int { return a.Person.Identity.Compare(b.Person.Identity) })
	return out, nil
}

// Idle marks the members' devices that the service says have been away for
// [delivery.IdleAfter]. It is advice, and the service could say anything: nothing is
// done about them, and a device that is not in the room is passed over. Offline they
// stay unmarked.
func (e *Engine) Idle(ctx context.Context, id delivery.RoomID, members []Member) error {
	if err := e.ensure(ctx); err != nil {
		if isNet(err) {
			return nil
		}
		return err
	}
	idle, err := e.client.Idle(ctx, id)
	if err != nil {
		if isNet(err) || delivery.CodeOf(err) == delivery.CodeNotFound {
			return nil
		}
		return e.fail(ctx, err)
	}
	for i := range members {
		m := &members[i]
		for _, d := range m.Devices {
			if slices.Contains(idle, d) {
				m.Idle = append(m.Idle, d)
			}
		}
		if len(m.Idle) == len(m.Devices) {
			m.Idle = nil // never all of somebody's
		}
	}
	return nil
}

// SafetyNumber is what this account and another compare.
func (e *Engine) SafetyNumber(other identity.PublicKey) identity.SafetyNumber {
	return identity.PairSafetyNumber(e.account.Identity, other)
}

// RoomSafetyNumber is what everybody in a room compares.
func (e *Engine) RoomSafetyNumber(ctx context.Context, id delivery.RoomID) (identity.SafetyNumber, error) {
	members, err := e.Members(ctx, id)
	if err != nil {
		return identity.SafetyNumber{}, err
	}
	ids := make([]identity.PublicKey, len(members))
	for i, m := range members {
		ids[i] = m.Person.Identity
	}
	return identity.RoomSafetyNumber(id, ids)
}

// Verify notes that safety numbers with an identity were compared, and tells the
// other devices of this account; revoke takes it back.
func (e *Engine) Verify(ctx context.Context, other identity.PublicKey, revoke bool) error {
	err := e.Store.Update(ctx, func(tx Tx) error {
		p := Person{Identity: other}
		if _, err := get(tx, TablePerson, other.String(), &p); err != nil {
			return err
		}
		p.judge(!revoke, uint64(e.nowMS()))
		if err := tx.Put(TableSetting, settingDirty, []byte{1}); err != nil {
			return err
		}
		return put(tx, TablePerson, other.String(), p)
	})
	if err != nil || e.account.SelfRoom == nil {
		return err
	}
	v := content.Verified{Identity: other, Revoked: revoke, At: uint64(e.nowMS())}
	if _, err := e.Write(ctx, *e.account.SelfRoom, func(h content.Header) (content.Message, error) { return content.New(h, v) }); err != nil {
		return fmt.Errorf("tell the account's other devices: %w", err)
	}
	return e.flushSnapshot(ctx)
}
