package sdk

import (
	"context"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// ActivityKind says what somebody does. The names are part of the command line's
// output.
type ActivityKind string

// What people do.
const (
	ActivityTyping ActivityKind = "typing" // writes a message
	ActivityOnline ActivityKind = "online" // is at the program
)

// Activity is what somebody does in a room now. It is no part of the room's log,
// is kept nowhere, and may be missed: nothing may depend on it. All devices of an
// account are one somebody, and what the own ones do is not told.
type Activity struct {
	Room delivery.RoomID
	From identity.PublicKey
	Kind ActivityKind
}

// Limits of what is said. In larger rooms nothing is.
const (
	MaxTypingPeople = 200 // people in a room that is told of typing
	MaxOnlinePeople = 20  // people in a room that is told of presence
	MaxOnlineRooms  = 50  // rooms that are told of presence, those with the latest messages
)

// How often something is said again while it goes on.
const (
	typingEvery = 4 * time.Second
	onlineEvery = time.Minute
)

// Settings are what a profile tells of its person, beside what they say. They are
// this device's own.
type Settings struct {
	Typing   bool `json:"typing"`   // rooms are told that the person types; on at first
	Presence bool `json:"presence"` // small rooms are told that the person is there; off at first
}

const settingSettings = "settings"

// Settings gives the profile's settings.
func (e *Engine) Settings(ctx context.Context) (s Settings, err error) {
	s.Typing = true
	err = e.Store.View(ctx, func(tx Tx) error {
		_, err := get(tx, TableSetting, settingSettings, &s)
		return err
	})
	return s, err
}

// SetSettings replaces the profile's settings.
func (e *Engine) SetSettings(ctx context.Context, s Settings) error {
	return e.Store.Update(ctx, func(tx Tx) error { return put(tx, TableSetting, settingSettings, s) })
}

// Typing tells a room that the person writes. Programs call it at each key: it is
// said at most every four seconds, and holds for six. Nothing is said when the
// settings forbid it, and in rooms of more than [MaxTypingPeople] or of nobody
// else (ErrNoRoom, ErrRequest, ErrOut, client.ErrOffline). While [Engine.Follow]
// or [Engine.Listen] runs it goes over their connection.
func (e *Engine) Typing(ctx context.Context, id delivery.RoomID) error {
	v, err := e.liveView(ctx, id)
	if err != nil {
		return err
	}
	now := e.Now()
	u := e.uplink
	u.mu.Lock()
	said, known := u.typing[id]
	u.mu.Unlock()
	if since := now.Sub(said.at); known && said.epoch == v.at.epoch && since >= 0 && since < typingEvery {
		return nil
	}
	s, err := e.Settings(ctx)
	if err != nil {
		return err
	}
	if !s.Typing || !v.sayable(MaxTypingPeople) {
		return nil
	}
	u.mu.Lock()
	u.typing[id] = saidNow{v.at.epoch, now}
	u.mu.Unlock()
	if err := e.speak(ctx, frameTyping, id); err != nil {
		e.typed(id)
		return err
	}
	return nil
}

// TellsTyping reports whether anybody in a room is told that the person writes: the
// settings allow it, and there are others and not too many (ErrNoRoom, ErrRequest, ErrOut).
func (e *Engine) TellsTyping(ctx context.Context, id delivery.RoomID) (bool, error) {
	v, err := e.liveView(ctx, id)
	if err != nil {
		return false, err
	}
	s, err := e.Settings(ctx)
	return s.Typing && v.sayable(MaxTypingPeople), err
}

// TypingEnded tells a room that the person writes no more, when it was told that
// they do. A message that is sent says it by itself.
func (e *Engine) TypingEnded(ctx context.Context, id delivery.RoomID) error {
	if !e.typed(id) {
		return nil
	}
	return e.speak(ctx, frameTypingEnd, id)
}

// typed forgets that the person was said to type in a room, and reports whether it
// was said so lately that others still think so.
func (e *Engine) typed(id delivery.RoomID) bool {
	u := e.uplink
	u.mu.Lock()
	defer u.mu.Unlock()
	said, known := u.typing[id]
	delete(u.typing, id)
	return known && e.Now().Sub(said.at) < typingFor
}

// Online tells that the person is at the program. Programs call it while they are
// used: it is said at most once a minute, and holds for two and a half. It is said
// only when the settings allow it, in open rooms of at most [MaxOnlinePeople], and
// in at most [MaxOnlineRooms] of them (client.ErrOffline).
func (e *Engine) Online(ctx context.Context) error {
	now := e.Now()
	u := e.uplink
	u.mu.Lock()
	since := now.Sub(u.online)
	u.mu.Unlock()
	if since >= 0 && since < onlineEvery {
		return nil
	}
	return e.tellPresence(ctx, frameOnline, now)
}

// Offline tells that the person has left the program, when it was told that they
// are there.
func (e *Engine) Offline(ctx context.Context) error {
	u := e.uplink
	u.mu.Lock()
	told := !u.online.IsZero()
	u.mu.Unlock()
	if !told {
		return nil
	}
	return e.tellPresence(ctx, frameOffline, time.Time{})
}

// tellPresence says a kind in the rooms that are told of presence.
func (e *Engine) tellPresence(ctx context.Context, kind uint16, said time.Time) error {
	s, err := e.Settings(ctx)
	if err != nil || !s.Presence {
		return err
	}
	rooms, err := e.smallRooms(ctx)
	if err != nil {
		return err
	}
	if err := e.speak(ctx, kind, rooms...); err != nil {
		return err
	}
	e.uplink.mu.Lock()
	defer e.uplink.mu.Unlock()
	e.uplink.online = said
	return nil
}

// TypingIn lists who writes in a room now, in the order of their identities; not
// this account.
func (e *Engine) TypingIn(id delivery.RoomID) []identity.PublicKey {
	return e.doing(id, ActivityTyping)
}

// OnlineIn lists who is said to be there by a room's frames, in the order of their
// identities; not this account. Who is not listed may be there and not say so.
func (e *Engine) OnlineIn(id delivery.RoomID) []identity.PublicKey {
	return e.doing(id, ActivityOnline)
}
