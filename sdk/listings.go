package sdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Limits of what is said in public and of a request to join, in bytes. The service
// holds everybody to them.
const (
	MaxListingTitle = 256
	MaxListingAbout = 1024
	MaxAskNote      = 512
)

// Listing is a room in the public list of a home. Its title and description are
// the only words of a room that the service can read: an admin publishes them.
type Listing struct {
	Room    delivery.RoomID
	Title   string
	About   string
	Members int // people, when it was published
}

// Ask is somebody who asks to be added to a listed room. A member adds them
// ([Engine.Add]) or forgets it ([Engine.DeclineAsk]).
type Ask struct {
	Room   delivery.RoomID    `json:"room"`
	Who    identity.PublicKey `json:"who"`
	Note   string             `json:"note,omitempty"`
	Mail   uint64             `json:"mail"`            // id of the mailbox item
	TimeMS int64              `json:"time_ms"`         // when they asked, the service's clock
	Heard  bool               `json:"heard,omitempty"` // a listener was told
}

const (
	askPrefix   = "ask."   // in TableSetting: room id . identity → JSON of an Ask
	askedPrefix = "asked." // room id → 1: this account asked to be added there
)

func askKey(id delivery.RoomID, who identity.PublicKey) string {
	return askPrefix + id.String() + "." + who.String()
}

// Publish puts a group into the public list, or changes what it says there. An
// empty title means the room's own, which everybody can read from then on. Only an
// admin may ([delivery.CodeRefused]).
func (e *Engine) Publish(ctx context.Context, id delivery.RoomID, title, about string) error {
	r, done, err := e.writable(ctx, id)
	if err != nil {
		return err
	}
	own, kind := r.rec.Title, r.rec.Kind
	done()
	if kind != delivery.RoomGroup {
		return ErrDirect
	}
	title = cmp.Or(title, own)
	if title == "" || len(title) > MaxListingTitle || len(about) > MaxListingAbout || !utf8.ValidString(title+about) {
		return fmt.Errorf("%w: in public a title has 1 to %d bytes and a description at most %d", identity.ErrFormat, MaxListingTitle, MaxListingAbout)
	}
	return e.fail(ctx, e.client.List(ctx, delivery.ListingBody{Room: id, Title: title, About: about}))
}

// Unpublish takes a group out of the public list. One that is not there is no error.
func (e *Engine) Unpublish(ctx context.Context, id delivery.RoomID) error {
	_, done, err := e.writable(ctx, id)
	if err != nil {
		return err
	}
	done()
	return e.fail(ctx, e.client.Unlist(ctx, id))
}

// FindRooms searches the public list of this account's home; an empty text lists
// everything, as far as the service shows it at once.
func (e *Engine) FindRooms(ctx context.Context, text string) ([]Listing, error) {
	if len(text) > MaxListingTitle {
		return nil, fmt.Errorf("%w: what is searched for has at most %d bytes", identity.ErrFormat, MaxListingTitle)
	}
	found, err := e.client.Listings(ctx, text)
	if err != nil {
		return nil, e.fail(ctx, err)
	}
	out := make([]Listing, len(found))
	for i, l := range found {
		out[i] = Listing{Room: l.Room, Title: l.Title, About: l.About, Members: l.Members}
	}
	return out, nil
}

// AskToJoin asks the admins of a listed room to be added. An invitation to it that
// comes then is no stranger's: it was asked for.
func (e *Engine) AskToJoin(ctx context.Context, id delivery.RoomID, note string) error {
	if len(note) > MaxAskNote || !utf8.ValidString(note) {
		return fmt.Errorf("%w: a note has at most %d bytes", identity.ErrFormat, MaxAskNote)
	}
	if err := e.client.Ask(ctx, id, note); err != nil {
		if delivery.CodeOf(err) == delivery.CodeNotFound {
			err = fmt.Errorf("%w: %w", ErrNotListed, err)
		}
		return e.fail(ctx, err)
	}
	return e.Store.Update(ctx, func(tx Tx) error { return tx.Put(TableSetting, askedPrefix+id.String(), []byte{1}) })
}

// askedFor: this account asked to be added to the room.
func (e *Engine) askedFor(ctx context.Context, id delivery.RoomID) (asked bool, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		b, err := tx.Get(TableSetting, askedPrefix+id.String())
		asked = b != nil
		return err
	})
	return asked, err
}

// Asks lists who asks to be added to the rooms of this profile, the first first.
func (e *Engine) Asks(ctx context.Context) (out []Ask, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		out, err = scan[Ask](tx, TableSetting, askPrefix)
		return err
	})
	slices.SortFunc(out, func(a, b Ask) int { return cmp.Compare(a.Mail, b.Mail) })
	return out, err
}

// DeclineAsk forgets that somebody asks; they are told nothing. One that is not
// there is no error.
func (e *Engine) DeclineAsk(ctx context.Context, id delivery.RoomID, who identity.PublicKey) error {
	return e.Store.Update(ctx, func(tx Tx) error { return tx.Delete(TableSetting, askKey(id, who)) })
}

// asked keeps that somebody asks to be added to a listed room, and looks up what
// they call themselves.
func (e *Engine) asked(ctx context.Context, m delivery.MailView) error {
	var note delivery.AskNote
	if m.Room == nil || json.Unmarshal(m.Payload, &note) != nil || len(note.Note) > MaxAskNote {
		return nil // nothing that could be shown
	}
	if err := e.lookUp(ctx, note.Identity); err != nil {
		return err
	}
	a := Ask{Room: *m.Room, Who: note.Identity, Note: note.Note, Mail: m.ID, TimeMS: m.CreatedMS}
	err := e.Store.Update(ctx, func(tx Tx) error {
		var before Ask
		if found, err := get(tx, TableSetting, askKey(a.Room, a.Who), &before); err != nil || found && before.Mail == a.Mail {
			return err
		}
		return put(tx, TableSetting, askKey(a.Room, a.Who), a)
	})
	if err == nil {
		e.changed()
	}
	return err
}

// lookUp pins the username of an identity that the directory knows. What it does
// not know, or what is not signed by its owner, stays unnamed.
func (e *Engine) lookUp(ctx context.Context, who identity.PublicKey) error {
	known, err := e.Person(ctx, who)
	if err != nil || known.Name != "" || known.Username != "" {
		return err
	}
	f, err := e.lineOf(ctx, who)
	if isNet(err) {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // it has no name here
	}
	f.Identity = who
	return e.learnAll(ctx, []identity.UsernameFields{f}, nil)
}

// hearAsks gives f who asks and was not told of before.
func (e *Engine) hearAsks(ctx context.Context, l Listening, f func(Line) error) error {
	if !l.Events || l.Since != nil {
		return nil
	}
	asks, err := e.Asks(ctx)
	if err != nil {
		return err
	}
	for _, a := range asks {
		if a.Heard || l.Room != nil && *l.Room != a.Room {
			continue
		}
		err := f(Line{Room: a.Room, ID: eventID(a.Room, a.Mail, "ask", 0), From: a.Who, TimeMS: a.TimeMS, Kind: LineAsk, Text: a.Note})
		if err != nil && !errors.Is(err, ErrEnough) {
			return err
		}
		a.Heard = true
		if s := e.Store.Update(context.WithoutCancel(ctx), func(tx Tx) error { return put(tx, TableSetting, askKey(a.Room, a.Who), a) }); s != nil {
			return s
		}
		if err != nil {
			return err
		}
	}
	return nil
}
