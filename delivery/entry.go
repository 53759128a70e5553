package delivery

import "github.com/askucher/compax-core/identity"

// EntryKind says what an [Entry]'s bytes are.
type EntryKind uint8

// The kinds. The numbers are stored and sent; never reuse one.
const (
	// KindApplication is an MLSMessage with a PrivateMessage of the entry's epoch.
	KindApplication EntryKind = 1
	// KindProposal is an MLSMessage with a PublicMessage that carries a proposal.
	KindProposal EntryKind = 2
	// KindCommit is an MLSMessage with a PublicMessage that carries a commit; the
	// entry's epoch is the one it ends.
	KindCommit EntryKind = 3
	// KindIncarnation marks a restore of the service: its bytes are a [Marker]; the
	// seq before it is at least [IncarnationJump] lower. The only legal gap in a
	// room's log.
	KindIncarnation EntryKind = 4
)

// String is the kind's name as metrics and documents write it.
func (k EntryKind) String() string {
	switch k {
	case KindApplication:
		return "message"
	case KindProposal:
		return "proposal"
	case KindCommit:
		return "commit"
	case KindIncarnation:
		return "incarnation"
	}
	return "unknown"
}

// IncarnationJump is how far every room's next seq moves at least when a service
// starts anew from a backup, see [NewMarker].
const IncarnationJump = 1 << 20

// Limits of the protocol, in bytes unless said. A service may configure lower
// ones for blobs; these bound what either end ever parses.
const (
	MaxEntry       = 16 << 20 // one handshake or message; text is at most MaxText
	MaxText        = 64 << 10 // an entry up to this size is never refused by load shedding
	MaxWelcome     = 16 << 20
	MaxGroupInfo   = 1 << 20 // without the ratchet tree
	MaxTree        = 32 << 20
	MaxAppendBlobs = 64 // blobs that one entry refers to
	MaxLogPage     = 4 << 20
	MaxLogEntries  = 1000
	MaxJSON        = 1 << 20 // any JSON body
	MaxKeyPackages = 100     // in one publication
	MaxEphemeral   = 4 << 10
	MaxFrame       = 5 << 20
)

// MaxNumber bounds what one side chooses and the other keeps: a seq, an epoch, a
// version, a generation. Databases count with 63 bits and a sign.
const MaxNumber = 1 << 62

// Entry is one line of a room's log. It names no sender: members read that
// from MLS, the service has no need to keep it.
type Entry struct {
	Seq        uint64    // from 1, contiguous except after KindIncarnation
	Epoch      uint64    // the epoch that the bytes belong to
	Kind       EntryKind // what the bytes are
	AcceptedMS int64     // Unix milliseconds, the service's clock
	Bytes      []byte    // MLSMessage, RFC 9420 §6
}

// Accepted is the answer to an append: where the entry stands in the log. The
// same bytes from the same device get the same answer for the retention window.
type Accepted struct {
	Seq        uint64 `json:"seq,string"`
	Epoch      uint64 `json:"epoch,string"` // the room's epoch after the entry
	AcceptedMS int64  `json:"accepted_ms"`
	Duplicate  bool   `json:"duplicate,omitempty"` // it was in the log already
}

// RoomKind is fixed when the room is made.
type RoomKind uint8

// The room kinds. The numbers are stored, sent and stand in the GroupContext.
const (
	RoomGroup  RoomKind = 1
	RoomDirect RoomKind = 2 // exactly two identities
	RoomSelf   RoomKind = 3 // the devices of one identity
)

// RoomStatus says what the room takes.
type RoomStatus uint8

// The statuses. The numbers are stored.
const (
	RoomOpen      RoomStatus = 1
	RoomHealing   RoomStatus = 2 // after a restore: members offer kept entries, appends wait
	RoomSucceeded RoomStatus = 3 // a successor room exists: reading only
)

// RoomHead is the answer to GET /v1/rooms/{id}.
type RoomHead struct {
	Room        RoomID     `json:"room"`
	Epoch       uint64     `json:"epoch,string"`
	LastSeq     uint64     `json:"last_seq,string"`  // 0 = empty log
	FirstSeq    uint64     `json:"first_seq,string"` // oldest entry still kept; LastSeq+1 when none is
	Kind        RoomKind   `json:"kind"`
	Status      RoomStatus `json:"status"`
	Incarnation uint32     `json:"incarnation"`
	Successor   *RoomID    `json:"successor,omitempty"`
	// Proposals are the refs of the held proposals, which the next commit must
	// reference when they are Remove or SelfRemove.
	Proposals []HeldRef `json:"proposals,omitempty"`
}

// HeldRef names a held proposal and the log entry that carries it.
type HeldRef struct {
	Ref []byte `json:"ref"` // ProposalRef, RFC 9420 §5.2
	Seq uint64 `json:"seq,string"`
}

// Membership is a device's right to read a room's log: the seqs after From up
// to and including Until.
type Membership struct {
	Room     RoomID
	Device   identity.DeviceID
	Identity identity.PublicKey
	Leaf     uint32
	From     uint64 // the commit that added it; 0 = there from the creation
	Until    uint64 // the commit that removed it; 0 = still a member
}

// OwedRemoval is the membership of a revoked device that its room still has, and
// where the room stands.
type OwedRemoval struct {
	Membership
	Epoch       uint64
	Incarnation uint32
}

// Current reports whether the device is a member now.
func (m Membership) Current() bool { return m.Until == 0 }
