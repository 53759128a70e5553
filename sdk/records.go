package sdk

import (
	"encoding/json"
	"fmt"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// Status says where this device stands with a room.
type Status string

// The statuses. The names are stored.
const (
	StatusOpen      Status = "open"
	StatusOut       Status = "out"       // removed, or left
	StatusLeft      Status = "left"      // left by its own will: other devices follow
	StatusSucceeded Status = "succeeded" // the conversation goes on in Successor
	StatusStuck     Status = "stuck"     // see ErrStuck
)

// Room is what a profile keeps of a room beside its group.
type Room struct {
	ID        delivery.RoomID     `json:"id"`
	Kind      delivery.RoomKind   `json:"kind"`
	Status    Status              `json:"status"`
	Title     string              `json:"title,omitempty"`
	TitleSeq  uint64              `json:"title_seq,omitempty"`
	About     string              `json:"about,omitempty"`
	Disappear uint32              `json:"disappear,omitempty"` // seconds
	Other     *identity.PublicKey `json:"other,omitempty"`     // of a direct room
	URI       string              `json:"uri"`                 // mimi://…, frozen when the room was made
	First     uint64              `json:"first,omitempty"`     // nothing up to it was ever for this device
	Past      uint64              `json:"past,omitempty"`      // up to it other devices of this account were there without this one
	Gaps      spans               `json:"gaps,omitempty"`      // what this device has not read since
	Away      spans               `json:"away,omitempty"`      // of them, when the whole account was out of the room
	Joined    uint64              `json:"joined"`              // seq of the commit by which this leaf came in
	Cursor    uint64              `json:"cursor"`              // everything up to it is processed
	Heard     uint64              `json:"heard"`               // everything up to it was given to a listener
	Read      uint64              `json:"read"`                // everything up to it was seen by a person
	Caught    int64               `json:"caught,omitempty"`    // when the log was last read to its end, this device's clock, to the hour; see invitedAt
	Renew     string              `json:"renew,omitempty"`     // why this leaf must be replaced before anything is sent
	Beside    []uint32            `json:"beside,omitempty"`    // generations of this epoch that somebody else used from this leaf
	Leaving   bool                `json:"leaving,omitempty"`   // another device of this account left: this one follows
	Announced int64               `json:"announced,omitempty"`
	Profile   uint64              `json:"profile,omitempty"` // version of this account's that the others can know
	Since     int64               `json:"since,omitempty"`   // when this device last came in, its clock, Unix milliseconds
	Met       bool                `json:"met,omitempty"`     // the directory was asked what its people are called
	Epoch     uint64              `json:"epoch"`
	Suite     wire.CipherSuite    `json:"suite,omitempty"` // 0 in the record of an older profile that has not used the room since
	Successor *delivery.RoomID    `json:"successor,omitempty"`
	Named     bool                `json:"successor_named,omitempty"` // an admin of this room said so in it; otherwise the service alone
	Muted     bool                `json:"muted,omitempty"`
	Lapse     lapse               `json:"lapse,omitzero"` // of a room that a restored service did not know
	// Lost: the service was restored from a backup and may have lost entries from
	// this seq on; what this device holds of them has not come back yet.
	Lost uint64 `json:"lost,omitempty"`
	// Anew, with Lost: entries from this seq on were given theirs since the restore.
	Anew uint64 `json:"anew,omitempty"`
	// Apart, with Lost: what this device itself sent from Anew on and before this seq went
	// into a state that the room did not go on in.
	Apart uint64 `json:"apart,omitempty"`
}

// Request is a room that a stranger invites to. Nothing is sent to it and no
// message fetched from it.
type Request struct {
	Room     delivery.RoomID      `json:"room"`
	Kind     delivery.RoomKind    `json:"kind"`
	Mail     uint64               `json:"mail"`      // id of the mailbox item
	Epoch    uint64               `json:"epoch"`     // that the Welcome leads to
	StartSeq uint64               `json:"start_seq"` // of the commit that adds this device: it reads what follows
	Welcome  []byte               `json:"welcome"`   // RFC 9420 §12.4.3.1
	From     identity.PublicKey   `json:"from"`      // who invites, by the signature over the room's state
	People   []identity.PublicKey `json:"people"`    // who is listed there
	TimeMS   int64                `json:"time_ms"`
}

// Person is what a profile knows of an identity.
type Person struct {
	Identity identity.PublicKey `json:"identity"`
	Name     string             `json:"name,omitempty"` // as they call themselves
	Username string             `json:"username,omitempty"`
	Version  uint64             `json:"version,omitempty"` // of the profile that Name comes from
	Asked    int64              `json:"asked,omitempty"`   // when the directory was last asked, Unix milliseconds; 0 = not since they came into a room
	Bot      bool               `json:"bot,omitempty"`
	Contact  bool               `json:"contact,omitempty"`  // not a stranger
	Verified bool               `json:"verified,omitempty"` // safety numbers were compared
	// Judged is when Verified was said or taken back, Unix milliseconds by the clock of
	// the device that did, and above every such time that it knew of.
	Judged uint64 `json:"judged,omitempty"`
}

// judge notes that the person was verified, or that it was taken back, at a time.
func (p *Person) judge(verified bool, at uint64) {
	p.Verified, p.Judged = verified, max(at, p.Judged+1)
}

// with is p and what another device of this account knew of the same person: what was
// said last of whether they are verified counts, and a contact stays one.
func (p Person) with(old Person) Person {
	p.Contact = p.Contact || old.Contact
	switch {
	case p.Judged < old.Judged:
		p.Verified, p.Judged = old.Verified, old.Judged
	case p.Judged == old.Judged:
		p.Verified = p.Verified || old.Verified
	}
	return p
}

// waiting is a message of the outbox.
type waiting struct {
	Room    delivery.RoomID   `json:"room"`
	Number  uint64            `json:"number"`
	ID      content.MessageID `json:"id"`
	Content []byte            `json:"content"`
	Blobs   []delivery.BlobID `json:"blobs,omitempty"`
	Entry   []byte            `json:"entry,omitempty"` // ciphertext that may have left already
	Epoch   uint64            `json:"epoch,omitempty"`
	TimeMS  int64             `json:"time_ms"`
	Again   bool              `json:"again,omitempty"` // it was accepted before, by a service that lost it
}

func (w waiting) key() string { return fmt.Sprintf("%s/%016x", w.Room, w.Number) }

func roomKey(id delivery.RoomID, rest string) string { return id.String() + "/" + rest }

func seqKey(id delivery.RoomID, seq uint64) string { return fmt.Sprintf("%s/%016x", id, seq) }

// put writes v as JSON.
func put(tx Tx, t Table, key string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("sdk: encode %s: %w", t, err)
	}
	return tx.Put(t, key, b)
}

// get reads JSON into v; found is false when there is none.
func get(tx Tx, t Table, key string, v any) (found bool, err error) {
	b, err := tx.Get(t, key)
	if err != nil || b == nil {
		return false, err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return false, fmt.Errorf("sdk: the stored %s %q cannot be read: %w", t, key, err)
	}
	return true, nil
}

// scan reads all JSON values below a prefix.
func scan[T any](tx Tx, t Table, prefix string) ([]T, error) {
	var out []T
	err := tx.Scan(t, prefix, "", func(key string, value []byte) (bool, error) {
		var v T
		if err := json.Unmarshal(value, &v); err != nil {
			return false, fmt.Errorf("sdk: the stored %s %q cannot be read: %w", t, key, err)
		}
		out = append(out, v)
		return true, nil
	})
	return out, err
}
