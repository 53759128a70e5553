package sdk

import (
	"context"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Table is a part of a [Store] that holds values by key.
type Table string

// The tables. Names are stored; never reuse one.
const (
	TableSetting  Table = "setting"  // name → value
	TableRoom     Table = "room"     // room id → JSON of a Room
	TableMLS      Table = "mls"      // room id / record key → record of the group
	TableBundle   Table = "bundle"   // key package reference → bundle
	TableOutbox   Table = "outbox"   // room id / number → JSON of what waits
	TableRaw      Table = "raw"      // room id / seq → entry as it was read
	TableRequest  Table = "request"  // room id → JSON of a stranger's invitation
	TablePerson   Table = "person"   // identity → JSON of a Person
	TableUsername Table = "username" // username → identity that it was first seen with
	TableRevoked  Table = "revoked"  // identity / device id → revocation
	TableSent     Table = "sent"     // room id / salt → message id of what was put into the outbox
	TableFailed   Table = "failed"   // room id / message id → JSON of what was refused for good
	TableUpload   Table = "upload"   // key of a file that is being sent → JSON
)

// Store keeps one profile. It has one writer: who opens it holds a lock.
type Store interface {
	// Update runs f in a transaction that is durable when Update returns nil.
	// When f or the store fails nothing of it is kept. f may be run once only;
	// it does no I/O beside tx.
	Update(ctx context.Context, f func(tx Tx) error) error
	// View runs f on a consistent state.
	View(ctx context.Context, f func(tx Tx) error) error
	// Close gives the lock back.
	Close() error
}

// Tx is a transaction. It ends with the function it was given to.
type Tx interface {
	// Get gives a value, nil when there is none. It is the caller's.
	Get(t Table, key string) ([]byte, error)
	// Put sets a value.
	Put(t Table, key string, value []byte) error
	// Delete takes a value away; one that is not there is no error.
	Delete(t Table, key string) error
	// Scan calls f for the keys that begin with prefix and are above after, in the
	// order of their bytes, until f gives false or an error. f must not write.
	Scan(t Table, prefix, after string, f func(key string, value []byte) (more bool, err error)) error

	// PutLine inserts a line or replaces the one with its room and id. Its text is
	// what Search finds.
	PutLine(l Line) error
	// Line gives the line of a room with an id; found is false when there is none.
	Line(room delivery.RoomID, id content.MessageID) (l Line, found bool, err error)
	// LineAt gives the line of a seq.
	LineAt(room delivery.RoomID, seq uint64) (l Line, found bool, err error)
	// Lines lists lines as q says.
	Lines(q LineQuery) ([]Line, error)
	// Search finds lines of conversations whose text contains the words, newest
	// first. Fewer than three characters are found by going through all lines.
	Search(text string, room *delivery.RoomID, limit int) ([]Line, error)
	// DeleteLine takes a line away, its text from the search too.
	DeleteLine(room delivery.RoomID, id content.MessageID) error
}

// LineQuery chooses lines of one room by seq, ascending.
type LineQuery struct {
	Room   delivery.RoomID
	After  uint64             // seqs above it
	Upto   uint64             // and up to it; 0 = all
	Target *content.MessageID // only lines about this message
	Last   bool               // when there are more than Limit, the last ones
	Expire int64              // only lines that expire before this, Unix milliseconds; 0 = any
	Limit  int                // 0 = 10,000
}

// LineKind says what a line is. The names are part of the command line's output.
type LineKind string

// The kinds of lines.
const (
	LineText     LineKind = "text"          // Text is what somebody says
	LineFile     LineKind = "file"          // File says which; Text is its caption
	LinePoll     LineKind = "poll"          // Text is the question and below it the options, a line each
	LineOther    LineKind = "other"         // something to see that this build cannot show: Text names its type
	LineEdit     LineKind = "edit"          // Target was changed; Text is the new one
	LineDelete   LineKind = "delete"        // Target was taken back
	LineReaction LineKind = "reaction"      // Text is the emoji, Target what it is about
	LineUnreact  LineKind = "unreact"       // the reaction Target was taken back
	LineVote     LineKind = "vote"          // in the poll Target
	LineReceipt  LineKind = "receipt"       // what reached From and what they read; Text says how many
	LineTap      LineKind = "tap"           // From tapped a button of Target; Text is what the button carries
	LineTitle    LineKind = "title"         // Text is the room's title
	LinePicture  LineKind = "picture"       // From changed the room's picture
	LineProfile  LineKind = "profile"       // Text is the sender's name
	LineControl  LineKind = "control"       // another message to the program
	LineJoin     LineKind = "join"          // From came
	LineLeave    LineKind = "leave"         // From went
	LineAsk      LineKind = "ask"           // From asks to be added to the room; Text is their note. It has no seq
	LineGap      LineKind = "gap"           // what is missing here and why: Cause
	LineUnread   LineKind = "undecryptable" // why it cannot be read: Cause
)

// Conversation reports whether people see lines of this kind in the stream of a
// room; the others are events.
func (k LineKind) Conversation() bool {
	switch k {
	case LineText, LineFile, LinePoll, LineOther, LineGap, LineUnread:
		return true
	}
	return false
}

// Said reports whether a person said it: what counts as a message of people.
func (k LineKind) Said() bool {
	switch k {
	case LineText, LineFile, LinePoll, LineOther, LineEdit, LineDelete, LineReaction, LineUnreact, LineVote, LineTap, LineUnread:
		return true
	}
	return false
}

// Line is one thing that happened in a room, as this profile keeps it.
type Line struct {
	Room     delivery.RoomID    `json:"room"`
	Seq      uint64             `json:"seq"`     // of the entry that brought it; several lines may share one
	Epoch    uint64             `json:"epoch"`   // that it was said in
	ID       content.MessageID  `json:"id"`      // of the message, or made here for an event
	From     identity.PublicKey `json:"from"`    // by the credential of the leaf that signed it
	Device   identity.DeviceID  `json:"device"`  // zero when no device said it
	TimeMS   int64              `json:"time_ms"` // Unix milliseconds, the service's clock
	Kind     LineKind           `json:"kind"`
	Text     string             `json:"text,omitempty"`
	ReplyTo  content.MessageID  `json:"reply_to,omitzero"` // the message that it answers
	Target   content.MessageID  `json:"target,omitzero"`   // the message that it is about
	Content  []byte             `json:"content,omitempty"` // the encoded message, when there is one
	File     *FileView          `json:"file,omitempty"`
	Cause    string             `json:"cause,omitempty"`    // why something cannot be shown, for a person
	GapFrom  uint64             `json:"gap_from,omitempty"` // of a LineGap: the first missing seq
	Mine     bool               `json:"mine,omitempty"`     // said by this very device
	Edited   bool               `json:"edited,omitempty"`
	Deleted  bool               `json:"deleted,omitempty"`
	ExpireMS int64              `json:"expire_ms,omitempty"` // when it is forgotten; 0 = never
}

// FileView is what a message says about its first file.
type FileView struct {
	Name string `json:"name"` // as its sender called it: not a path to trust
	Type string `json:"type"` // media type
	Size uint64 `json:"size"` // bytes
}
