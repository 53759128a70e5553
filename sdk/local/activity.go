package local

import (
	"context"
	"slices"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
)

// TypingRequest says in a chat that the person writes, or no more.
type TypingRequest struct {
	Chat  delivery.RoomID `json:"chat"`
	Ended bool            `json:"ended,omitempty"`
}

// Told says whether the settings and the size of the chat let anybody be told.
type Told struct {
	Told bool `json:"told"`
}

// PresenceRequest says that the person is at the program, or has left it.
type PresenceRequest struct {
	Left bool `json:"left,omitempty"`
}

// SettingsRequest changes what is not nil.
type SettingsRequest struct {
	Typing   *bool `json:"typing,omitempty"`
	Presence *bool `json:"presence,omitempty"`
}

// Settings are what a profile tells of its person beside what they say.
type Settings = sdk.Settings

// The kinds of rows that are no part of a chat: what somebody does now.
const (
	RowTyping      = string(sdk.ActivityTyping)
	RowTypingEnded = "typing-ended"
	RowOnline      = string(sdk.ActivityOnline)
	RowOffline     = "offline"
)

// Passing reports whether a row tells what somebody does now: it has no number, is
// kept nowhere, and comes as often as it happens.
func (r Row) Passing() bool {
	switch r.Kind {
	case RowTyping, RowTypingEnded, RowOnline, RowOffline:
		return true
	}
	return false
}

// Going is something that somebody does: Kind is RowTyping or RowOnline.
type Going struct {
	Chat delivery.RoomID    `json:"chat"`
	From identity.PublicKey `json:"from"`
	Kind string             `json:"kind"`
}

// following is a request and its function of which each repetition, by an owner
// that knows nothing of the one before, says what was told: what is over meanwhile
// ends.
func (r ListenRequest) following(f func(Row) error) (ListenRequest, func(Row) error) {
	var going []Going
	if r.Going != nil {
		going = slices.Clone(*r.Going)
	}
	r.Going = &going // do asks again with what it points to
	return r, func(row Row) error {
		err := f(row)
		if err != nil {
			return err
		}
		switch g := (Going{row.Chat, row.From, row.Kind}); row.Kind {
		case RowTyping, RowOnline:
			if !slices.Contains(going, g) {
				going = append(going, g)
			}
		case RowTypingEnded:
			going = slices.DeleteFunc(going, func(x Going) bool { return x == Going{g.Chat, g.From, RowTyping} })
		case RowOffline:
			going = slices.DeleteFunc(going, func(x Going) bool { return x == Going{g.Chat, g.From, RowOnline} })
		}
		return nil
	}
}

// told is what the listener was told.
func (r ListenRequest) told() (out []sdk.Activity) {
	if r.Going == nil {
		return nil
	}
	for _, g := range *r.Going {
		out = append(out, sdk.Activity{Room: g.Chat, From: g.From, Kind: sdk.ActivityKind(g.Kind)})
	}
	return out
}

// activityRow gives what somebody does the form in which it crosses the socket.
func (e engine) activityRow(ctx context.Context, a sdk.Activity, begins bool) (Row, error) {
	p, err := e.Person(ctx, a.From)
	r := Row{Chat: a.Room, From: a.From, Name: p.Name, Time: e.Now().UTC().Truncate(time.Millisecond), Kind: string(a.Kind)}
	switch {
	case begins:
	case a.Kind == sdk.ActivityTyping:
		r.Kind = RowTypingEnded
	case a.Kind == sdk.ActivityOnline:
		r.Kind = RowOffline
	}
	return r, err
}

func (e engine) Typing(ctx context.Context, r TypingRequest) (Told, error) {
	told, err := e.TellsTyping(ctx, r.Chat)
	switch {
	case err != nil:
		return Told{}, err
	case r.Ended:
		return Told{told}, e.TypingEnded(ctx, r.Chat)
	}
	return Told{told}, e.Engine.Typing(ctx, r.Chat)
}

func (e engine) Presence(ctx context.Context, r PresenceRequest) (None, error) {
	if r.Left {
		return None{}, e.Offline(ctx)
	}
	return None{}, e.Online(ctx)
}

func (e engine) Settings(ctx context.Context, r SettingsRequest) (Settings, error) {
	s, err := e.Engine.Settings(ctx)
	if err != nil || r == (SettingsRequest{}) {
		return s, err
	}
	if r.Typing != nil {
		s.Typing = *r.Typing
	}
	if r.Presence != nil {
		s.Presence = *r.Presence
	}
	return s, e.SetSettings(ctx, s)
}

// Typing implements [Profile].
func (h *Handle) Typing(ctx context.Context, r TypingRequest) (Told, error) {
	return do(ctx, h, callTyping, r, nothing)
}

// Presence implements [Profile].
func (h *Handle) Presence(ctx context.Context, r PresenceRequest) (None, error) {
	return do(ctx, h, callPresence, r, nothing)
}

// Settings implements [Profile].
func (h *Handle) Settings(ctx context.Context, r SettingsRequest) (Settings, error) {
	return do(ctx, h, callSettings, r, nothing)
}
