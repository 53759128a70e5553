package content

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Item is what a part of a message means. The types of this package that are
// items: Text, Attachment, Embedded, Session, Reaction, Poll, Vote, PollClose,
// Location, Contact, Dice, Keyboard, Tap, TapAnswer, Widget, WidgetEvent,
// RoomInfo, Profile, Verified, Receipt, ReadMark, Pin, Successor, Call, Options,
// Forwarded, Reel, Wallet, Self and Unknown.
type Item interface {
	// parts returns the parts that carry the item, at least one.
	parts() ([]Part, error)
}

// Unknown is a part that is not understood. It is kept, shown as not understood
// with its media type, and never guessed at.
type Unknown struct {
	MediaType string
	Part      Part
	Cause     error // why an own part could not be read; nil for foreign types
}

func (u Unknown) parts() ([]Part, error) { return []Part{u.Part}, nil }

// Kind says what a message does.
type Kind uint8

const (
	// KindMessage is a message of the conversation.
	KindMessage Kind = iota
	// KindEdit replaces the message Replaces.
	KindEdit
	// KindDelete takes back the message Replaces.
	KindDelete
	// KindReaction reacts to the message InReplyTo.
	KindReaction
	// KindUnreact takes back the reaction Replaces.
	KindUnreact
	// KindControl says something to the program rather than to people: it is
	// not a line of the conversation by itself.
	KindControl
	// KindEmpty says nothing: no part and nothing that it takes back.
	KindEmpty
)

var kindNames = [...]string{"message", "edit", "delete", "reaction", "unreact", "control", "empty"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Kind returns what m does. Whether its sender may is not decided here: an edit
// or a deletion counts only when its sender's identity is the original's.
func (m Message) Kind() Kind {
	if _, ok := m.Body.Content.(Null); ok || m.Body.Content == nil {
		switch {
		case m.Replaces.IsZero():
			return KindEmpty
		case m.Body.Disposition == DispositionReaction:
			return KindUnreact
		default:
			return KindDelete
		}
	}
	items := m.Items()
	switch {
	case all(items, func(i Item) bool { _, ok := i.(Reaction); return ok }):
		return KindReaction
	case !m.Replaces.IsZero():
		return KindEdit
	case all(items, IsControl):
		return KindControl
	}
	return KindMessage
}

func all(items []Item, is func(Item) bool) bool {
	return len(items) > 0 && !slices.ContainsFunc(items, func(i Item) bool { return !is(i) })
}

// IsControl reports whether an item speaks to the program rather than to
// people.
func IsControl(i Item) bool {
	switch i.(type) {
	case Options, Forwarded, Reel, RoomInfo, Profile, Verified, Receipt, ReadMark, Pin, Successor, Call,
		Vote, PollClose, Tap, TapAnswer, WidgetEvent, Self:
		return true
	}
	return false
}

// Header is what surrounds the items of a message that is being made.
type Header struct {
	Salt      Salt        // from NewSalt; kept when the same message is encrypted again
	SenderURI string      // UserURI of the sender
	RoomURI   string      // the room_uri of the room
	ReplyTo   MessageID   // zero = none
	Topic     []byte      // empty = none
	Expires   *Expiration // nil = never
}

// New makes a message of items (ErrNoURI, ErrEncoding, ErrLimit).
func New(h Header, items ...Item) (Message, error) {
	body, err := bodyOf(items)
	if err != nil {
		return Message{}, err
	}
	return h.message(MessageID{}, body)
}

// Edit makes a message that replaces original, which is always the first
// version, with new items. It keeps the reply of the original in h.ReplyTo.
func Edit(h Header, original MessageID, items ...Item) (Message, error) {
	if original.IsZero() {
		return Message{}, fmt.Errorf("%w: an edit of no message", ErrEncoding)
	}
	body, err := bodyOf(items)
	if err != nil {
		return Message{}, err
	}
	return h.message(original, body)
}

// Delete makes a message that takes original back, which is always the first
// version.
func Delete(h Header, original MessageID) (Message, error) {
	if original.IsZero() {
		return Message{}, fmt.Errorf("%w: a deletion of no message", ErrEncoding)
	}
	return h.message(original, Part{Disposition: DispositionRender, Content: Null{}})
}

// React makes a message that reacts to target with one or more emoji; each is a
// reaction of its own and all are taken back together.
func React(h Header, target MessageID, emoji ...string) (Message, error) {
	if target.IsZero() {
		return Message{}, fmt.Errorf("%w: a reaction to no message", ErrEncoding)
	}
	h.ReplyTo = target
	items := make([]Item, len(emoji))
	for i, e := range emoji {
		items[i] = Reaction{e}
	}
	return New(h, items...)
}

// Unreact makes a message that takes the reaction back, which was to target.
func Unreact(h Header, reaction, target MessageID) (Message, error) {
	if reaction.IsZero() {
		return Message{}, fmt.Errorf("%w: taking back no reaction", ErrEncoding)
	}
	h.ReplyTo = target
	return h.message(reaction, Part{Disposition: DispositionReaction, Content: Null{}})
}

func (h Header) message(replaces MessageID, body Part) (Message, error) {
	if h.SenderURI == "" || h.RoomURI == "" {
		return Message{}, ErrNoURI
	}
	m := Message{
		Salt:       h.Salt,
		Replaces:   replaces,
		TopicID:    h.Topic,
		Expires:    h.Expires,
		InReplyTo:  h.ReplyTo,
		Extensions: Extensions(nil).SetText(ExtSenderURI, h.SenderURI).SetText(ExtRoomURI, h.RoomURI),
		Body:       body,
	}
	return m, m.check()
}

// bodyOf puts the parts of items side by side.
func bodyOf(items []Item) (Part, error) {
	var parts []Part
	for _, i := range items {
		p, err := i.parts()
		if err != nil {
			return Part{}, err
		}
		parts = append(parts, p...)
	}
	switch len(parts) {
	case 0:
		return Part{}, fmt.Errorf("%w: a message of nothing", ErrEncoding)
	case 1:
		return parts[0], nil
	}
	disposition := DispositionRender
	if all(items, func(i Item) bool { _, ok := i.(Reaction); return ok }) {
		disposition = DispositionReaction
	}
	return Part{Disposition: disposition, Content: Multi{ProcessAll, parts}}, nil
}

// Items returns what the parts of m mean, in order. Of parts to choose from it
// takes the first that is understood; a unit of which one part is not
// understood is Unknown as a whole; formatting and file information are part of
// the text and attachment that they follow.
func (m Message) Items() []Item {
	if m.Body.Content == nil {
		return nil
	}
	return fold(flatten(m.Body))
}

func flatten(p Part) []Item {
	multi, ok := p.Content.(Multi)
	if !ok {
		if _, ok := p.Content.(Null); ok {
			return nil
		}
		return []Item{leaf(p)}
	}
	switch multi.Semantics {
	case ChooseOne:
		return choose(multi.Parts)
	case SingleUnit:
		items := flattenAll(multi.Parts)
		for _, i := range items {
			if u, ok := i.(Unknown); ok {
				return []Item{Unknown{u.MediaType, p, u.Cause}}
			}
		}
		return items
	default:
		return flattenAll(multi.Parts)
	}
}

func flattenAll(parts []Part) []Item {
	var items []Item
	for _, p := range parts {
		items = append(items, flatten(p)...)
	}
	return items
}

// choose takes the alternative that is understood best, the first of equals:
// whole, then as HTML, then in part, then the first at all.
func choose(parts []Part) []Item {
	var best []Item
	rank := -1
	for _, p := range parts {
		items := flatten(p)
		r := 3
		for _, i := range items {
			switch i := i.(type) {
			case Unknown:
				r = min(r, 1)
			case Text:
				if i.Format == FormatHTML {
					r = min(r, 2)
				}
			}
		}
		if all(items, func(i Item) bool { _, ok := i.(Unknown); return ok }) {
			r = 0
		}
		if r > rank {
			best, rank = items, r
		}
	}
	return best
}

// leaf reads a part without parts of its own.
func leaf(p Part) Item {
	switch c := p.Content.(type) {
	case External:
		return externalItem(p, c)
	case Single:
		return singleItem(p, c)
	}
	return Unknown{Part: p}
}

func singleItem(p Part, c Single) Item {
	kind, parameter := mediaTypeOf(c.ContentType)
	if read, ok := readers[kind]; ok {
		item, err := read(c.Content)
		if err != nil {
			return Unknown{kind, p, err}
		}
		return item
	}
	major, _, _ := strings.Cut(kind, "/")
	switch major {
	case "text":
		charset := parameter("charset")
		if charset != "" && charset != "utf-8" && charset != "us-ascii" || !utf8.Valid(c.Content) {
			return Unknown{MediaType: kind, Part: p}
		}
		format, ok := textFormats[kind]
		if !ok {
			return Unknown{MediaType: kind, Part: p}
		}
		if p.Disposition == DispositionReaction && format == FormatPlain {
			return Reaction{string(c.Content)}
		}
		return Text{Text: string(c.Content), Format: format, Language: p.Language}
	case "image", "audio", "video":
		return Embedded{ContentType: c.ContentType, Disposition: p.Disposition, Data: c.Content}
	}
	return Unknown{MediaType: kind, Part: p}
}

// fold joins parts that speak about the item before them to it.
func fold(items []Item) []Item {
	out := items[:0:0]
	for _, i := range items {
		if len(out) > 0 {
			if joined, ok := join(out[len(out)-1], i); ok {
				out[len(out)-1] = joined
				continue
			}
		}
		switch i := i.(type) {
		case entities, FileInfo:
			// Formatting or file information of nothing.
			parts, err := i.parts()
			if err != nil {
				continue
			}
			out = append(out, Unknown{mediaTypeOfPart(parts[0]), parts[0], nil})
		default:
			out = append(out, i)
		}
	}
	return out
}

func join(before, i Item) (Item, bool) {
	switch b := before.(type) {
	case Text:
		if e, ok := i.(entities); ok && b.Format == FormatPlain && e.fit(b.Text) {
			b.Entities = e.Entities
			return b, true
		}
	case Attachment:
		if info, ok := i.(FileInfo); ok {
			b.Info = info
			return b, true
		}
	case RoomInfo:
		if joinPicture(&b.Picture, i) {
			return b, true
		}
	case Profile:
		if joinPicture(&b.Picture, i) {
			return b, true
		}
	}
	return nil, false
}

// joinPicture takes an icon as a picture that is not there yet, or what is known
// of the picture.
func joinPicture(picture **Attachment, i Item) bool {
	switch i := i.(type) {
	case Attachment:
		if i.Disposition == DispositionIcon && *picture == nil {
			*picture = &i
			return true
		}
	case FileInfo:
		if *picture != nil {
			(*picture).Info = i
			return true
		}
	}
	return false
}

func mediaTypeOfPart(p Part) string {
	if s, ok := p.Content.(Single); ok {
		kind, _ := mediaTypeOf(s.ContentType)
		return kind
	}
	return ""
}
