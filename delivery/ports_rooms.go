package delivery

import (
	"context"
	"math"

	"github.com/askucher/compax-core/identity"
)

// NewRoom is a room as it is created.
type NewRoom struct {
	ID        RoomID
	Epoch     uint64 // of the first GroupInfo; a fresh group has 0
	Kind      RoomKind
	CreatedMS int64
	State     []byte // follower base at Epoch
	GroupInfo []byte // signed, without the tree
	Members   []Membership
	// Incarnation above 0 makes a room again that a restored service has lost: the
	// log begins with a KindIncarnation entry with the Marker, accepted at RestoredMS,
	// and the room is RoomHealing.
	Incarnation uint32
	Marker      Marker
	RestoredMS  int64
}

// Room is a room's row.
type Room struct {
	ID          RoomID
	Epoch       uint64
	NextSeq     uint64 // what the next entry gets; the first is 1
	FirstSeq    uint64 // oldest entry kept
	Kind        RoomKind
	Status      RoomStatus
	Incarnation uint32
	Successor   *RoomID
	CreatedMS   int64
	ChangedMS   int64 // last append
}

// StoredState is a follower's state: a base and the deltas that lead from it
// to the wanted epoch, one a commit, oldest first.
type StoredState struct {
	BaseEpoch uint64
	Base      []byte
	Deltas    [][]byte
}

// NewEntry is an entry before it has a seq.
type NewEntry struct {
	Device     identity.DeviceID // the session's device: half of the dedupe key, not kept with the entry
	Hash       [32]byte          // SHA-256 of Bytes: the other half
	Epoch      uint64
	Kind       EntryKind
	AcceptedMS int64
	Bytes      []byte
	Blobs      []BlobID // live and die with the entry; each must exist and be complete
}

// HeldProposal is a proposal that the next commit may or must reference.
type HeldProposal struct {
	Ref      []byte // ProposalRef
	Seq      uint64 // the entry that carries it
	Epoch    uint64
	Proposer uint32 // leaf index; NoLeaf for an external sender
	Must     bool   // Remove or SelfRemove: a commit that leaves it out is refused
	Bytes    []byte // the MLSMessage, as in the log
}

// NoLeaf stands where a sender has no leaf.
const NoLeaf = ^uint32(0)

// Advance is what a commit changes beside its entry in the log.
type Advance struct {
	Epoch     uint64 // the new epoch: the room's plus one
	Delta     []byte // follower delta from the old epoch to the new
	GroupInfo []byte // signed, of the new epoch, without the tree
	Added     []Membership
	Removed   []identity.DeviceID
	Updated   []Membership // same device, other leaf or key (external commit by a member)
	Welcome   []byte       // nil when nobody joins by Welcome
	Joiners   []Joiner
}

// Joiner is a device that a Welcome is for. It stays pending on the room until
// its mailbox pointer was relayed, and its tree is kept until it acknowledges.
type Joiner struct {
	Ref    []byte // KeyPackageRef
	Device identity.DeviceID
}

// RoomTx is a room inside one transaction that holds its row lock.
type RoomTx interface {
	// Every method returns another error when the medium fails: the transaction cannot
	// commit any more then, and after it has ended none can be called.

	// Room is the row as locked, with the changes made so far in this transaction.
	Room() Room
	// Duplicate looks an entry up by its dedupe key. It must be asked before any
	// other check: a repeated append gets its first answer.
	Duplicate(device identity.DeviceID, hash [32]byte) (Accepted, bool, error)
	// Member is the device's current membership; ErrNotFound when it has none.
	Member(device identity.DeviceID) (Membership, error)
	// Proposals are the proposals held in the room's epoch, oldest first.
	Proposals() ([]HeldProposal, error)
	// Append gives the entry the next seq. ErrNotFound when a blob it refers to
	// does not exist or is incomplete.
	Append(e NewEntry) (Accepted, error)
	// Hold keeps a proposal of the current epoch; at most one for each proposer
	// and kind is the caller's rule, not the store's. ErrExists for a known ref,
	// ErrChanged for a proposal of another epoch.
	Hold(p HeldProposal) error
	// Unhold forgets proposals by ref; unknown refs are ignored.
	Unhold(refs ...[]byte) error
	// Advance moves the room to the next epoch: stores delta and GroupInfo,
	// changes the roster as of the last appended seq, keeps the Welcome with its
	// joiners, and drops every held proposal. ErrChanged unless a.Epoch is the
	// room's epoch plus one. ErrNotFound when who is removed or updated is no
	// member, ErrExists when who is added is one: then the transaction cannot
	// commit any more.
	Advance(a Advance) error
	// SetGroupInfo replaces the GroupInfo of the room's epoch.
	SetGroupInfo(info []byte) error
	// SetStatus changes the room's status; successor only with RoomSucceeded.
	SetStatus(s RoomStatus, successor *RoomID) error
}

// Relay is a mailbox pointer that a commit owes a joiner.
type Relay struct {
	Room     RoomID
	Epoch    uint64
	Device   identity.DeviceID
	Ref      []byte
	StartSeq uint64 // the commit's seq: the joiner reads after it
}

// LogRange asks for entries with After < Seq ≤ Upto (0 = no bound), at most
// Limit entries and MaxBytes of bytes, but at least one entry when there is one.
type LogRange struct {
	After, Upto uint64
	Limit       int
	MaxBytes    int
}

// Page is r with every bound stated, in the numbers of a database: at most
// [MaxLogEntries] and [MaxLogPage], also when nothing was asked for. What no seq can be
// is no negative number.
func (r LogRange) Page() (after, upto int64, limit, maxBytes int) {
	after, upto, limit, maxBytes = int64(min(r.After, math.MaxInt64)), int64(min(r.Upto, math.MaxInt64)), r.Limit, r.MaxBytes
	if upto == 0 {
		upto = math.MaxInt64
	}
	if limit <= 0 || limit > MaxLogEntries {
		limit = MaxLogEntries
	}
	if maxBytes <= 0 || maxBytes > MaxLogPage {
		maxBytes = MaxLogPage
	}
	return after, upto, limit, maxBytes
}

// Rooms orders entries.
type Rooms interface {
	// CreateRoom inserts a room; ErrExists when the id is taken.
	CreateRoom(ctx context.Context, r NewRoom) error
	// WithRoom runs fn in one transaction that holds the room's row lock and
	// commits when fn returns nil; otherwise nothing changed and fn's error comes
	// back as it is. ErrNotFound for an unknown room. A panic of fn changes
	// nothing and goes on in the caller. fn may be run again after a
	// conflict, and may share its commit with other rooms' (group commit), so it
	// must be quick, must not block, and has effects only through tx.
	WithRoom(ctx context.Context, id RoomID, fn func(tx RoomTx) error) error
	// Room is the row without a lock.
	Room(ctx context.Context, id RoomID) (Room, error)
	// Log reads entries in order. An empty answer means there are none.
	Log(ctx context.Context, id RoomID, r LogRange) ([]Entry, error)
	// Memberships are all intervals of one device in one room, oldest first; none for
	// one that never was in it.
	Memberships(ctx context.Context, id RoomID, device identity.DeviceID) ([]Membership, error)
	// Members are the current members, by leaf.
	Members(ctx context.Context, id RoomID) ([]Membership, error)
	// RoomsOf are the device's current memberships, by room id.
	RoomsOf(ctx context.Context, device identity.DeviceID) ([]Membership, error)
	// HeadsOf are the last seqs of the rooms that the device is in now, 0 for an
	// empty log.
	HeadsOf(ctx context.Context, device identity.DeviceID) (map[RoomID]uint64, error)
	// RoomsOfIdentity are the rooms in which any device of the identity is a
	// current member: what a further device may ask to join.
	RoomsOfIdentity(ctx context.Context, id identity.PublicKey) ([]RoomID, error)
	// State is the follower state at an epoch that is still kept; ErrNotFound for another.
	State(ctx context.Context, id RoomID, epoch uint64) (StoredState, error)
	// Rebase replaces base and deltas up to epoch by one base. It changes no
	// answer of State for epoch and later ones; earlier ones it may drop unless
	// an unacknowledged Welcome or the previous epoch needs them.
	Rebase(ctx context.Context, id RoomID, epoch uint64, base []byte) error
	// GroupInfo is the GroupInfo of an epoch that is still kept; the current and
	// the previous one always are. ErrNotFound for another; empty where none came with
	// the commit.
	GroupInfo(ctx context.Context, id RoomID, epoch uint64) ([]byte, error)
	// Held are the held proposals without a lock.
	Held(ctx context.Context, id RoomID) ([]HeldProposal, error)
	// Welcome is the Welcome of the commit that led to epoch, for one of its
	// joiners only; ErrNotFound otherwise.
	Welcome(ctx context.Context, id RoomID, epoch uint64, device identity.DeviceID) ([]byte, error)
	// Report notes that an identity could not process the commit that led to
	// epoch, and counts the identities that said so. A later epoch forgets them;
	// of another epoch than the room's nothing is noted and the count is 0.
	Report(ctx context.Context, id RoomID, epoch uint64, who identity.PublicKey) (identities int, err error)
	// PendingRelays are mailbox pointers still owed, oldest first.
	PendingRelays(ctx context.Context, limit int) ([]Relay, error)
	// FinishRelay notes that the pointer is in the mailbox. Idempotent.
	FinishRelay(ctx context.Context, r Relay) error
	// AckWelcome notes that the joiner has joined or given up; the last one frees
	// Welcome and tree of that epoch. Idempotent; ErrNotFound for an unknown room alone.
	AckWelcome(ctx context.Context, id RoomID, epoch uint64, device identity.DeviceID) error
}
