package content

import (
	"fmt"

	"github.com/askucher/compax-core/identity"
)

// Limits of control parts, in bytes of UTF-8 where they are text.
const (
	MaxTitle   = 256
	MaxAbout   = 1024
	MaxName    = 128
	MaxListed  = 512 // message ids in a receipt
	maxShort   = 256
	maxRecord  = identity.MaxUsernameRecord
	maxAddress = 1024
)

// Options says how a message wants to be shown.
type Options struct {
	Silent    bool `json:"silent,omitempty"`     // no sound
	NoPreview bool `json:"no_preview,omitempty"` // no preview of links
	Protected bool `json:"protected,omitempty"`  // asks not to be forwarded or saved
	Spoiler   bool `json:"spoiler,omitempty"`    // attachments are covered until tapped
	TextAbove bool `json:"text_above,omitempty"` // the caption stands above
}

func (Options) check() error             { return nil }
func (o Options) parts() ([]Part, error) { return ownParts(DispositionUnspecified, MediaOptions, o) }

// Forwarded says that the other items of the message were said elsewhere.
// Nothing proves it: it is the forwarder's word and shown as such.
type Forwarded struct {
	Name     string              `json:"name,omitempty"`     // as the forwarder saw it
	Identity *identity.PublicKey `json:"identity,omitempty"` // nil when the forwarder keeps it
	At       uint64              `json:"at,omitempty"`       // milliseconds since 1970
}

func (f Forwarded) check() error { return checkText("name", f.Name, MaxName) }
func (f Forwarded) parts() ([]Part, error) {
	return ownParts(DispositionUnspecified, MediaForwarded, f)
}

// Reel says that the message is a reel: shown apart from the conversation and
// forgotten when it expires, a day after it was sent.
type Reel struct{}

func (Reel) check() error             { return nil }
func (r Reel) parts() ([]Part, error) { return ownParts(DispositionUnspecified, MediaReel, r) }

// RoomInfo sets what a room is called and looks like; nil fields stay as they
// are. It is said again whenever somebody is added; a client tells its user only
// when something really changes.
type RoomInfo struct {
	Title     *string `json:"title,omitempty"`     // at most MaxTitle bytes
	About     *string `json:"about,omitempty"`     // at most MaxAbout bytes
	Disappear *uint32 `json:"disappear,omitempty"` // seconds after reading that new messages live, 0 = for good
	NoPicture bool    `json:"no_picture,omitempty"`
	// Picture is a new picture, carried in a part of its own.
	Picture *Attachment `json:"-"`
}

func (r RoomInfo) check() error {
	if r.Title != nil {
		if err := checkText("title", *r.Title, MaxTitle); err != nil {
			return err
		}
	}
	if r.About != nil {
		if err := checkText("about", *r.About, MaxAbout); err != nil {
			return err
		}
	}
	if r.NoPicture && r.Picture != nil {
		return fmt.Errorf("%w: a picture and no picture", ErrEncoding)
	}
	return nil
}

func (r RoomInfo) parts() ([]Part, error) {
	return withPicture(MediaRoom, r, r.Picture)
}

// Profile announces the sender to a room, at most once a day and when it
// changes. The highest Version that a sender said stands.
type Profile struct {
	Name      string `json:"name"`
	About     string `json:"about,omitempty"`
	Username  string `json:"username,omitempty"` // a claim: the directory says whose a name is
	Record    []byte `json:"record,omitempty"`   // identity.UsernameRecord of the sender
	Version   uint64 `json:"version"`
	Bot       bool   `json:"bot,omitempty"`
	NoPicture bool   `json:"no_picture,omitempty"`
	// Picture is the picture, carried in a part of its own.
	Picture *Attachment `json:"-"`
}

func (p Profile) check() error {
	if len(p.Record) > maxRecord {
		return fmt.Errorf("%w: username record of %d bytes", ErrLimit, len(p.Record))
	}
	if p.NoPicture && p.Picture != nil {
		return fmt.Errorf("%w: a picture and no picture", ErrEncoding)
	}
	for _, f := range []struct {
		what, s string
		limit   int
	}{{"name", p.Name, MaxName}, {"about", p.About, MaxAbout}, {"username", p.Username, identity.MaxUsername}} {
		if err := checkText(f.what, f.s, f.limit); err != nil {
			return err
		}
	}
	return nil
}

func (p Profile) parts() ([]Part, error) { return withPicture(MediaProfile, p, p.Picture) }

func withPicture(mediaType string, v ownItem, picture *Attachment) ([]Part, error) {
	parts, err := ownParts(DispositionProfile, mediaType, v)
	if err != nil || picture == nil {
		return parts, err
	}
	icon := *picture
	icon.Disposition = DispositionIcon
	more, err := icon.parts()
	return append(parts, more...), err
}

// Verified says that the sender compared safety numbers with an identity. In a
// self room it tells the other devices of the account.
type Verified struct {
	Identity identity.PublicKey `json:"identity"`
	Revoked  bool               `json:"revoked,omitempty"` // no longer verified
	At       uint64             `json:"at"`                // milliseconds since 1970
}

func (v Verified) check() error {
	if err := v.Identity.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	return nil
}
func (v Verified) parts() ([]Part, error) { return ownParts(DispositionUnspecified, MediaVerified, v) }

// Receipt says which messages the sender's device has got and shown.
type Receipt struct {
	Delivered []MessageID `json:"delivered,omitempty"`
	Read      []MessageID `json:"read,omitempty"`
}

func (r Receipt) check() error {
	if n := len(r.Delivered) + len(r.Read); n == 0 || n > MaxListed {
		return fmt.Errorf("%w: a receipt of %d messages, not 1 to %d", ErrLimit, n, MaxListed)
	}
	return nil
}
func (r Receipt) parts() ([]Part, error) { return ownParts(DispositionUnspecified, MediaReceipt, r) }

// ReadMark tells the other devices of an account how far it has read a room.
type ReadMark struct {
	Room string    `json:"room"` // room id in UUID form
	UpTo MessageID `json:"up_to"`
}

func (r ReadMark) check() error {
	if r.Room == "" || r.UpTo.IsZero() {
		return fmt.Errorf("%w: a read mark of no room or message", ErrEncoding)
	}
	return checkText("room", r.Room, maxShort)
}
func (r ReadMark) parts() ([]Part, error) { return ownParts(DispositionUnspecified, MediaReadMark, r) }

// Pin pins or unpins a message for the room.
type Pin struct {
	Message MessageID `json:"message"`
	Unpin   bool      `json:"unpin,omitempty"`
	Silent  bool      `json:"silent,omitempty"`
}

func (p Pin) check() error {
	if p.Message.IsZero() {
		return fmt.Errorf("%w: a pin of no message", ErrEncoding)
	}
	return nil
}
func (p Pin) parts() ([]Part, error) { return ownParts(DispositionUnspecified, MediaPin, p) }

// Successor says that the conversation goes on in another room with the same
// people: at another home, in another suite, or because this one broke.
type Successor struct {
	Room   string `json:"room"` // room id in UUID form
	Reason string `json:"reason,omitempty"`
}

func (s Successor) check() error {
	if s.Room == "" {
		return fmt.Errorf("%w: a successor without a room", ErrEncoding)
	}
	if err := checkText("room", s.Room, maxShort); err != nil {
		return err
	}
	return checkText("reason", s.Reason, maxShort)
}
func (s Successor) parts() ([]Part, error) {
	return ownParts(DispositionUnspecified, MediaSuccessor, s)
}

// Call says that a call in the room starts or ends. A state that is not known
// is shown as not understood.
type Call struct {
	ID    string `json:"id"`
	State string `json:"state"` // "started", "ended", "declined", "missed"
	Video bool   `json:"video,omitempty"`
	At    uint64 `json:"at,omitempty"`      // milliseconds since 1970
	Lasts uint32 `json:"seconds,omitempty"` // of an ended call
}

func (c Call) check() error {
	if c.ID == "" || c.State == "" {
		return fmt.Errorf("%w: a call without id or state", ErrEncoding)
	}
	if err := checkText("call id", c.ID, maxShort); err != nil {
		return err
	}
	return checkText("call state", c.State, maxShort)
}
func (c Call) parts() ([]Part, error) { return ownParts(DispositionSession, MediaCall, c) }
