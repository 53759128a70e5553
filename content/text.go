package content

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/askucher/compax-core/identity"
)

// TextFormat says how a text is written.
type TextFormat uint8

// Formats of text.
const (
	FormatPlain    TextFormat = iota // text/plain, with Entities or without
	FormatMarkdown                   // text/markdown in the GFM-MIMI variant: never any HTML
	FormatHTML                       // text/html, read only: never run, never fetched
)

var textFormats = map[string]TextFormat{
	"text/plain":    FormatPlain,
	"text/markdown": FormatMarkdown,
	"text/html":     FormatHTML,
}

const (
	// MaxText bounds a text in bytes.
	MaxText = 64 << 10
	// MaxEntities bounds the entities of a text.
	MaxEntities = 1000
)

// Text is something to read. Plain text with entities is what this program
// writes, because it says exactly what a person or a bot formatted; markdown is
// what others of the draft write.
type Text struct {
	Text     string
	Format   TextFormat
	Language string // language tags, or empty
	Entities []Entity
}

// Entity is a formatted span of a plain text, in the terms of the Bot API.
// Offset and Length count UTF-16 code units.
type Entity struct {
	Type     string              `json:"type"` // as in MessageEntity: bold, text_link, text_mention …
	Offset   int                 `json:"offset"`
	Length   int                 `json:"length"`
	URL      string              `json:"url,omitempty"`             // of text_link
	Identity *identity.PublicKey `json:"identity,omitempty"`        // of mention and text_mention
	Language string              `json:"language,omitempty"`        // of pre
	Emoji    string              `json:"custom_emoji_id,omitempty"` // of custom_emoji
}

func (t Text) parts() ([]Part, error) {
	if err := checkText("text", t.Text, MaxText); err != nil {
		return nil, err
	}
	contentType := MediaPlain
	switch t.Format {
	case FormatPlain:
	case FormatMarkdown:
		contentType = MediaMarkdown
	default:
		return nil, fmt.Errorf("%w: HTML is not written", ErrEncoding)
	}
	parts := []Part{{DispositionRender, t.Language, Single{contentType, []byte(t.Text)}}}
	if len(t.Entities) == 0 {
		return parts, nil
	}
	e := entities{t.Entities}
	if t.Format != FormatPlain || !e.fit(t.Text) {
		return nil, fmt.Errorf("%w: entities that do not lie within a plain text", ErrEncoding)
	}
	p, err := ownPart(DispositionUnspecified, MediaEntities, e)
	return append(parts, p), err
}

// Mentions returns the identities that a text mentions: by entities, or in
// markdown by links to a user's URI (section 5.4).
func (t Text) Mentions() []identity.PublicKey {
	var out []identity.PublicKey
	for _, e := range t.Entities {
		if e.Identity != nil {
			out = append(out, *e.Identity)
		}
	}
	if t.Format != FormatMarkdown {
		return out
	}
	rest := t.Text
	for {
		_, after, ok := strings.Cut(rest, "](mimi://")
		if !ok {
			return out
		}
		link, _, _ := strings.Cut(after, ")")
		if id, err := ParseUserURI("mimi://" + link); err == nil {
			out = append(out, id)
		}
		rest = after
	}
}

// entities is the part that formats the text before it.
type entities struct {
	Entities []Entity `json:"entities"`
}

func (e entities) parts() ([]Part, error) {
	return ownParts(DispositionUnspecified, MediaEntities, e)
}

func (e entities) check() error {
	if len(e.Entities) == 0 || len(e.Entities) > MaxEntities {
		return fmt.Errorf("%w: %d entities, not 1 to %d", ErrLimit, len(e.Entities), MaxEntities)
	}
	for _, x := range e.Entities {
		if x.Type == "" || x.Offset < 0 || x.Length <= 0 || x.Offset > MaxText || x.Length > MaxText {
			return fmt.Errorf("%w: entity %q at %d of %d", ErrEncoding, x.Type, x.Offset, x.Length)
		}
	}
	return nil
}

// fit reports whether every entity lies within text.
func (e entities) fit(text string) bool {
	units := 0
	for _, r := range text {
		units += utf16.RuneLen(r)
	}
	for _, x := range e.Entities {
		if x.Offset < 0 || x.Length <= 0 || x.Length > units-x.Offset {
			return false
		}
	}
	return true
}

// MaxReaction bounds a reaction in bytes: one emoji with all its modifiers.
const MaxReaction = 64

// Reaction is one emoji as an answer to the message replied to.
type Reaction struct {
	Emoji string
}

func (r Reaction) parts() ([]Part, error) {
	if r.Emoji == "" {
		return nil, fmt.Errorf("%w: a reaction without an emoji", ErrEncoding)
	}
	if err := checkText("reaction", r.Emoji, MaxReaction); err != nil {
		return nil, err
	}
	return []Part{{Disposition: DispositionReaction, Content: Single{MediaPlain, []byte(r.Emoji)}}}, nil
}

// Embedded is a small picture, sound or film inside the message itself.
type Embedded struct {
	ContentType string
	Disposition Disposition
	Data        []byte
}

func (e Embedded) parts() ([]Part, error) {
	return []Part{{Disposition: e.Disposition, Content: Single{e.ContentType, e.Data}}}, nil
}
