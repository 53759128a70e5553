package local

import (
	"context"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
)

// Profile is an open profile: one account on one device. Every method may be
// called by several goroutines at once, and again with the same request when it is
// not known whether it was carried out: what would double carries a [Key].
//
// Errors are what package sdk, delivery and delivery/client name; what crosses
// the socket arrives as an [*Error] that explains them.
type Profile interface {
	// Self says whose profile it is. It sends nothing.
	Self(context.Context, None) (Self, error)
	// EditAccount changes what the account is called, for everybody (sdk.ErrNoKey: the phrase is
	// needed).
	EditAccount(context.Context, EditAccountRequest) (Self, error)
	// Sync sends what waits in the outbox and catches up with the service: the
	// mailbox and the log of every open room. Offline (client.ErrOffline) nothing
	// is lost and what is here can still be read.
	Sync(context.Context, None) (None, error)
	// Chats lists rooms and requests, the latest first. It sends nothing.
	Chats(context.Context, None) ([]Chat, error)
	// People lists whom this profile knows by a username. It sends nothing.
	People(context.Context, None) ([]Contact, error)

	// NewRoom makes a group, once for a Key, or finds or makes the direct room with
	// somebody.
	NewRoom(context.Context, NewRoomRequest) (Room, error)
	// Add invites somebody with all their devices; Remove takes all of them out.
	Add(context.Context, MemberRequest) (None, error)
	Remove(context.Context, MemberRequest) (None, error)
	// Accept joins a room that a stranger invites to; Decline forgets it.
	Accept(context.Context, RoomRequest) (None, error)
	Decline(context.Context, RoomRequest) (None, error)
	// Leave takes this account out of a room.
	Leave(context.Context, RoomRequest) (None, error)
	// Upgrade moves a room's conversation into a new room with the same people, of
	// another cipher suite. Called again it goes on, or says where it moved to.
	Upgrade(context.Context, UpgradeRequest) (Room, error)
	// Rename gives a room another title.
	Rename(context.Context, RenameRequest) (None, error)
	// Publish puts a group into its home's public list, Unpublish takes it out;
	// FindRooms searches that list, Ask asks to be added to a room of it, and
	// DeclineAsk forgets that somebody asks. Who asks stands in Chats.
	Publish(context.Context, PublishRequest) (None, error)
	Unpublish(context.Context, RoomRequest) (None, error)
	FindRooms(context.Context, FindRequest) ([]Listing, error)
	Ask(context.Context, AskRequest) (None, error)
	DeclineAsk(context.Context, MemberRequest) (None, error)
	// Members lists who is in a room, as its ratchet tree says.
	Members(context.Context, RoomRequest) ([]Member, error)

	// Send says something: text, files, or both. It returns when the service has
	// given it a seq; offline the message waits in the outbox, and the error wraps
	// client.ErrOffline. Two calls with one Key make one message, and answer the
	// same, also when a process died in between.
	Send(context.Context, SendRequest, func(Progress) error) (Sent, error)
	// Edit, Delete and React change or comment the message Seq, once for a Key, as
	// Send does.
	Edit(context.Context, EditRequest) (Sent, error)
	Delete(context.Context, DeleteRequest) (Sent, error)
	React(context.Context, ReactRequest) (Sent, error)
	// Outbox lists what has no number yet: what waits for the service, and what it
	// refused for good. It sends nothing.
	Outbox(context.Context, None) ([]Unsent, error)
	// Resend tries one of them (again); Discard drops one (sdk.ErrNotWaiting,
	// sdk.ErrSending).
	Resend(context.Context, UnsentRequest) (Sent, error)
	Discard(context.Context, UnsentRequest) (None, error)
	// Get writes a message's file to a path, and goes on where an interrupted one
	// stopped.
	Get(context.Context, GetRequest, func(Progress) error) (File, error)

	// Listen gives what arrives, from the profile's own cursor or after a seq, and
	// waits for more until the context ends. The cursor is moved past a row when f
	// has returned nil for it. f ends the listening by [ErrStop] (its row counts as
	// heard), or by any other error (its row does not). What this very device said is left out.
	Listen(context.Context, ListenRequest, func(Row) error) (None, error)
	// History gives what stands now of one chat, ascending: edits applied,
	// deletions gone, reactions with their message. It sends nothing.
	History(context.Context, HistoryRequest, func(Row) error) (None, error)
	// Search finds messages by part of their text, newest first. It sends nothing.
	Search(context.Context, SearchRequest, func(Row) error) (None, error)

	// Typing says in a chat that the person writes, at most every few seconds however
	// often it is called, or no more. Presence says in small chats that they are at
	// the program, or have left it. Both do nothing that the settings forbid; offline
	// (client.ErrOffline) nobody learns it, and nothing is kept.
	Typing(context.Context, TypingRequest) (Told, error)
	Presence(context.Context, PresenceRequest) (None, error)
	// Settings changes what the profile tells of its person, and gives what holds.
	Settings(context.Context, SettingsRequest) (Settings, error)

	// Seen notes that a person has seen a chat up to a message, for all devices of
	// the account. Nobody else learns it.
	Seen(context.Context, SeenRequest) (None, error)

	// Devices lists the account's own devices and those that were revoked.
	Devices(context.Context, None) ([]Device, error)
	// Revoke ends a device for good (sdk.ErrNoKey: the phrase is needed).
	Revoke(context.Context, RevokeRequest) (None, error)
	// Ticket is the code that a new device of the account reads first.
	Ticket(context.Context, None) (Ticket, error)
	// Approve attests a further device by its offer (sdk.ErrNoKey: the phrase is
	// needed). With Look it only says which device it is.
	Approve(context.Context, ApproveRequest) (Device, error)
	// Safety gives the number to compare with somebody, and notes that it was
	// compared when Confirm is set.
	Safety(context.Context, SafetyRequest) (Safety, error)

	// Archive writes what this device has read into the account's archive.
	Archive(context.Context, None) (Archived, error)
	// Past tells what a chat's history has of the time before this device. It
	// sends nothing.
	Past(context.Context, RoomRequest) (Past, error)
}

// None is a request or an answer without content.
type None struct{}

// Who names somebody: by username (normalised, without @) or identity, one of them.
type Who struct {
	Username string              `json:"username,omitempty"`
	Identity *identity.PublicKey `json:"identity,omitempty"`
}

// Self is the profile's own account.
type Self struct {
	Profile  string             `json:"profile"`
	Identity identity.PublicKey `json:"identity"`
	Device   identity.DeviceID  `json:"device"`
	Name     string             `json:"name,omitempty"`
	Username string             `json:"username,omitempty"`
	About    string             `json:"about,omitempty"`
	Server   string             `json:"server"`
	Waiting  int                `json:"waiting,omitempty"` // messages in the outbox
	Failed   int                `json:"failed,omitempty"`  // messages that were refused for good
}

// EditAccountRequest changes the account's public profile; nil leaves a part as it is,
// and an empty username gives it up. Phrase is empty when this device holds the account's
// key.
type EditAccountRequest struct {
	Name     *string `json:"name,omitempty"`     // 1 to identity.MaxDisplayName bytes
	About    *string `json:"about,omitempty"`    // at most identity.MaxAbout bytes
	Username *string `json:"username,omitempty"` // without @
	Phrase   string  `json:"phrase,omitempty"`
}

// Chat is a room in the list.
type Chat struct {
	Chat    delivery.RoomID      `json:"chat"`
	Title   string               `json:"title"`             // what to show: the title, or the other person's name
	Kind    string               `json:"kind"`              // "group" or "direct"
	Status  string               `json:"status"`            // an sdk.Status; "request" for a request
	Request bool                 `json:"request,omitempty"` // a stranger's invitation
	From    *identity.PublicKey  `json:"from,omitempty"`    // who invites
	Members int                  `json:"members,omitempty"` // people
	Suite   string               `json:"suite,omitempty"`   // cipher suite, its name in the registry
	Seq     uint64               `json:"seq,omitempty"`     // last processed
	Unread  int                  `json:"unread,omitempty"`  // messages of others
	Time    *time.Time           `json:"time,omitempty"`    // of the last message
	Last    string               `json:"last,omitempty"`    // its text, or what it is
	With    string               `json:"with,omitempty"`    // username of the other one in a direct room
	Safety  string               `json:"safety,omitempty"`  // of a request: the safety number with From, to compare before accepting
	Asks    []Ask                `json:"asks,omitempty"`    // who asks to be added
	Typing  []identity.PublicKey `json:"typing,omitempty"`  // who writes now
	Online  []identity.PublicKey `json:"online,omitempty"`  // who says that they are there
}

// Contact is somebody whom this profile knows by a username.
type Contact struct {
	Identity identity.PublicKey `json:"identity"`
	Name     string             `json:"name,omitempty"`
	Username string             `json:"username"`
}

// Ask is somebody who asks to be added to a listed room.
type Ask struct {
	Identity identity.PublicKey `json:"identity"`
	Name     string             `json:"name,omitempty"`
	Username string             `json:"username,omitempty"`
	Note     string             `json:"note,omitempty"`
	Time     *time.Time         `json:"time,omitempty"`
}

// PublishRequest says what the public list says of a room: a title of at most
// sdk.MaxListingTitle bytes (empty: the room's own) and a description of at most
// sdk.MaxListingAbout.
type PublishRequest struct {
	Chat  delivery.RoomID `json:"chat"`
	Title string          `json:"title,omitempty"`
	About string          `json:"about,omitempty"`
}

// FindRequest searches the public list; an empty Text finds all.
type FindRequest struct {
	Text string `json:"text,omitempty"`
}

// Listing is a room of the public list.
type Listing struct {
	Chat    delivery.RoomID `json:"chat"`
	Title   string          `json:"title"`
	About   string          `json:"about,omitempty"`
	Members int             `json:"members"` // people, when it was published
}

// AskRequest asks to be added, with a note of at most sdk.MaxAskNote bytes.
type AskRequest struct {
	Chat delivery.RoomID `json:"chat"`
	Note string          `json:"note,omitempty"`
}

// NewRoomRequest makes a room: Title for a group, or Direct.
type NewRoomRequest struct {
	Key    Key    `json:"key"`
	Title  string `json:"title,omitempty"`
	Direct *Who   `json:"direct,omitempty"`
	Suite  string `json:"suite,omitempty"` // as sdk.ParseSuite reads it
}

// UpgradeRequest moves a room to a cipher suite.
type UpgradeRequest struct {
	Chat  delivery.RoomID `json:"chat"`
	Suite string          `json:"suite"`         // as sdk.ParseSuite reads it
	Why   string          `json:"why,omitempty"` // told to the others
}

// Room names a room.
type Room struct {
	Chat delivery.RoomID `json:"chat"`
}

// RoomRequest is about one room.
type RoomRequest struct {
	Chat delivery.RoomID `json:"chat"`
}

// RenameRequest gives a room a title of at most content.MaxTitle bytes.
type RenameRequest struct {
	Chat  delivery.RoomID `json:"chat"`
	Title string          `json:"title"`
}

// MemberRequest is about somebody in a room.
type MemberRequest struct {
	Chat delivery.RoomID `json:"chat"`
	Who  Who             `json:"who"`
}

// Member is one person in a room.
type Member struct {
	Identity identity.PublicKey  `json:"identity"`
	Name     string              `json:"name,omitempty"`
	Username string              `json:"username,omitempty"`
	Devices  []identity.DeviceID `json:"devices"`
	Idle     []identity.DeviceID `json:"idle,omitempty"`  // of Devices: not at the service for 90 days, as it says
	Suite    string              `json:"suite,omitempty"` // of the room: its name in the registry
	Self     bool                `json:"self,omitempty"`
	Verified bool                `json:"verified,omitempty"`
}

// SendRequest is a message: Text (at most content.MaxText bytes) or a file, or
// both: then the text is the file's caption.
type SendRequest struct {
	Chat  delivery.RoomID `json:"chat"`
	Key   Key             `json:"key"`
	Text  string          `json:"text,omitempty"`
	File  string          `json:"file,omitempty"`  // absolute path
	Reply uint64          `json:"reply,omitempty"` // seq, 0 = none
}

// Sent is where a message stands in its room.
type Sent struct {
	Chat  delivery.RoomID `json:"chat"`
	Seq   uint64          `json:"seq"`
	Epoch uint64          `json:"epoch"`
	ID    string          `json:"id"`   // message id, hex
	Kept  bool            `json:"kept"` // it waits in the outbox: never, once it has a seq
}

// Unsent is a message that has no number yet.
type Unsent struct {
	Row
	Failed bool `json:"failed"` // refused for good, for Cause; else it goes out by itself
}

// UnsentRequest names a message of the outbox by its id, in hex.
type UnsentRequest struct {
	Chat delivery.RoomID `json:"chat"`
	ID   string          `json:"id"`
}

// Key makes the repetition of a request harmless: random, one for each thing that
// is meant. A call whose owner died is made again by the next one with the same
// key.
type Key = sdk.Key

// DeleteRequest takes a message back.
type DeleteRequest struct {
	Key  Key             `json:"key"`
	Chat delivery.RoomID `json:"chat"`
	Seq  uint64          `json:"seq"`
}

// EditRequest replaces a message's text.
type EditRequest struct {
	Key  Key             `json:"key"`
	Chat delivery.RoomID `json:"chat"`
	Seq  uint64          `json:"seq"`
	Text string          `json:"text"`
}

// ReactRequest adds a reaction, or takes it back.
type ReactRequest struct {
	Key    Key             `json:"key"`
	Chat   delivery.RoomID `json:"chat"`
	Seq    uint64          `json:"seq"`
	Emoji  string          `json:"emoji"` // at most content.MaxReaction bytes
	Remove bool            `json:"remove,omitempty"`
}

// GetRequest saves the file of message Seq at Path. What is there is replaced,
// at the end and at once; until then ciphertext lies beside it in a hidden file.
type GetRequest struct {
	Chat delivery.RoomID `json:"chat"`
	Seq  uint64          `json:"seq"`
	Path string          `json:"path"` // absolute
}

// File is a file of a message.
type File struct {
	Name string `json:"name"` // as its sender called it: not a path to trust
	Type string `json:"type,omitempty"`
	Size uint64 `json:"size"` // bytes
	Path string `json:"path,omitempty"`
}

// Progress is how far a transfer is, in bytes.
type Progress struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
}

// ListenRequest says what to listen for.
type ListenRequest struct {
	Chat   *delivery.RoomID `json:"chat,omitempty"`   // nil = all
	Since  *uint64          `json:"since,omitempty"`  // after this seq, with Chat; nil = the profile's cursor
	Events bool             `json:"events,omitempty"` // also joins, titles and so on, and who types and comes
	// Going is what the listener was told that somebody does: it is told when that
	// ends. nil = nothing.
	Going *[]Going `json:"going,omitempty"`
}

// HistoryRequest says what to read of one chat.
type HistoryRequest struct {
	Chat   delivery.RoomID `json:"chat"`
	Since  uint64          `json:"since,omitempty"` // after this seq
	Limit  int             `json:"limit,omitempty"` // the last so many; 0 = all
	Events bool            `json:"events,omitempty"`
}

// SeenRequest marks a chat as read up to Seq.
type SeenRequest struct {
	Chat delivery.RoomID `json:"chat"`
	Seq  uint64          `json:"seq"`
}

// SearchRequest looks for text.
type SearchRequest struct {
	Text  string           `json:"text"`
	Chat  *delivery.RoomID `json:"chat,omitempty"`
	Limit int              `json:"limit,omitempty"` // 0 = 100
}

// Row is one thing that happened in a chat.
type Row struct {
	Chat      delivery.RoomID    `json:"chat"`
	Seq       uint64             `json:"seq"`
	Epoch     uint64             `json:"epoch"`
	ID        string             `json:"id,omitempty"` // message id, hex
	From      identity.PublicKey `json:"from,omitzero"`
	Name      string             `json:"name,omitempty"` // what From is called here
	Device    identity.DeviceID  `json:"device,omitzero"`
	Time      time.Time          `json:"time"` // the service's clock
	Kind      string             `json:"kind"` // an sdk.LineKind, or a Row constant
	Text      string             `json:"text,omitempty"`
	ReplyTo   uint64             `json:"reply_to,omitempty"`    // seq; 0 when it is not known here
	ReplyToID string             `json:"reply_to_id,omitempty"` // message id
	Target    uint64             `json:"target,omitempty"`      // seq of what an edit, deletion or reaction is about
	TargetID  string             `json:"target_id,omitempty"`
	File      *File              `json:"file,omitempty"`
	Cause     string             `json:"cause,omitempty"` // why something cannot be shown
	Edited    bool               `json:"edited,omitempty"`
	Own       bool               `json:"own,omitempty"`   // said by this account
	Again     bool               `json:"again,omitempty"` // listening: a listener that was killed may have given it already
	Reactions []Reaction         `json:"reactions,omitempty"`
}

// Reaction is an emoji and who reacted with it.
type Reaction struct {
	Emoji string               `json:"emoji"`
	From  []identity.PublicKey `json:"from"`
}

// Device is one of the account's devices.
type Device struct {
	Device  identity.DeviceID `json:"device"`
	This    bool              `json:"this,omitempty"`
	Made    *time.Time        `json:"made,omitempty"` // when it was enrolled
	Seen    *time.Time        `json:"seen,omitempty"` // when it was last at the service
	Idle    bool              `json:"idle,omitempty"` // that is 90 days ago, or more
	Revoked bool              `json:"revoked,omitempty"`
}

// RevokeRequest ends a device. Phrase is empty when this device holds the
// account's key.
type RevokeRequest struct {
	Device identity.DeviceID `json:"device"`
	Phrase string            `json:"phrase,omitempty"`
}

// Ticket says who and where an account is. It holds no secret.
type Ticket struct {
	Ticket string `json:"ticket"`
}

// ApproveRequest is the offer of a further device. Phrase is empty when this
// device holds the account's key.
type ApproveRequest struct {
	Offer  string `json:"offer"`
	Phrase string `json:"phrase,omitempty"`
	Look   bool   `json:"look,omitempty"`
}

// SafetyRequest asks for the number of somebody.
type SafetyRequest struct {
	Who     Who  `json:"who"`
	Confirm bool `json:"confirm,omitempty"` // it was compared and is the same
}

// Safety is what two people compare.
type Safety struct {
	Identity identity.PublicKey `json:"identity"`
	Name     string             `json:"name,omitempty"`
	Username string             `json:"username,omitempty"`
	Number   string             `json:"number"` // 60 digits in groups of five
	QR       string             `json:"qr"`     // content of the code to scan
	Verified bool               `json:"verified"`
}
