package delivery

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/askucher/compax-core/identity"
)

// What every port returns, wrapped, so that callers ask with errors.Is. A port
// returns other errors only for faults of its medium; those become [CodeRetry]
// (or [CodeFull] for ErrFull) at the edge.
var (
	ErrNotFound = errors.New("delivery: not found")
	ErrExists   = errors.New("delivery: exists already")
	ErrChanged  = errors.New("delivery: changed since it was read") // a compare-and-swap lost
	ErrRevoked  = errors.New("delivery: device is revoked")
	ErrFull     = errors.New("delivery: no space left")
	ErrLimit    = errors.New("delivery: over a limit")
)

// Store keeps what anybody would want back after a restart. store/sqlite and
// store/postgres implement it and store/storetest is its contract: what is not
// tested there is not promised here.
//
// Every method that writes has made its change durable when it returns nil and
// has changed nothing when it returns an error. No transaction crosses a room
// and a person, so the two can live in different databases one day.
// Times are Unix milliseconds passed in; a store never reads a clock.
type Store interface {
	Rooms
	Accounts
	KeyPackages
	Mailboxes
	BlobIndex
	Directory
	Housekeeping

	// Setting reads a small value of the deployment; ErrNotFound when unset.
	Setting(ctx context.Context, key string) ([]byte, error)
	// InitSetting sets key to value unless it is set, and returns what stands.
	// Instances starting together agree on one value.
	InitSetting(ctx context.Context, key string, value []byte) ([]byte, error)
	// PutSetting sets key.
	PutSetting(ctx context.Context, key string, value []byte) error

	// Ping reports whether the store can take a write now.
	Ping(ctx context.Context) error
	// Close waits for what is under way and releases the medium.
	Close() error
}

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
	// log begins with a KindIncarnation entry at the seq 1 + IncarnationJump,
	// accepted at RestoredMS, and the room is RoomHealing.
	Incarnation uint32
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
	// and kind is the caller's rule, not the store's. ErrExists for a known ref.
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
	// Memberships are all intervals of one device in one room, oldest first.
	Memberships(ctx context.Context, id RoomID, device identity.DeviceID) ([]Membership, error)
	// Members are the current members, by leaf.
	Members(ctx context.Context, id RoomID) ([]Membership, error)
	// RoomsOf are the device's current memberships, by room id.
	RoomsOf(ctx context.Context, device identity.DeviceID) ([]Membership, error)
	// RoomsOfIdentity are the rooms in which any device of the identity is a
	// current member: what a further device may ask to join.
	RoomsOfIdentity(ctx context.Context, id identity.PublicKey) ([]RoomID, error)
	// State is the follower state at an epoch that is still kept.
	State(ctx context.Context, id RoomID, epoch uint64) (StoredState, error)
	// Rebase replaces base and deltas up to epoch by one base. It changes no
	// answer of State for epoch and later ones; earlier ones it may drop unless
	// an unacknowledged Welcome or the previous epoch needs them.
	Rebase(ctx context.Context, id RoomID, epoch uint64, base []byte) error
	// GroupInfo is the GroupInfo of an epoch that is still kept; the current and
	// the previous one always are.
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
	// Welcome and tree of that epoch. Idempotent.
	AckWelcome(ctx context.Context, id RoomID, epoch uint64, device identity.DeviceID) error
}

// Device is a device's row. Its keys never change.
type Device struct {
	ID         identity.DeviceID
	Identity   identity.PublicKey
	Key        identity.DevicePublicKey
	Role       identity.Role
	Version    uint64
	Credential []byte // attestation and both signatures
	EnrolledMS int64
	SeenMS     int64
}

// Session is a logged-in device.
type Session struct {
	Device    Device
	ExpiresMS int64
}

// NewSession opens a session and swaps the device's copy counter.
type NewSession struct {
	Token     [32]byte // SHA-256 of the bearer token
	Device    identity.DeviceID
	ExpiresMS int64
	NowMS     int64
	Have      [16]byte // the counter the device believes in; zero at its first login
	Want      [16]byte // random, persisted by the device before it asks
}

// Accounts keeps devices, sessions, revocations and what people store sealed
// for themselves.
type Accounts interface {
	// Enrol makes a device known. An existing row with the same keys takes a
	// higher version's credential; the same credential again is no change.
	// ErrRevoked for a device that its identity revoked, ErrExists when the key or the id is
	// taken by another row, ErrChanged for a lower version.
	Enrol(ctx context.Context, d Device) error
	// Device finds a device by id, DeviceByKey by its public key.
	Device(ctx context.Context, id identity.DeviceID) (Device, error)
	DeviceByKey(ctx context.Context, key identity.DevicePublicKey) (Device, error)
	// Devices are an identity's devices, by enrolment.
	Devices(ctx context.Context, id identity.PublicKey) ([]Device, error)

	// OpenSession inserts the session. copied is true when the stored counter is
	// neither s.Have nor s.Want (and is not unset): two copies of one profile
	// live. The counter is s.Want afterwards. ErrNotFound for an unknown device,
	// ErrExists for a known token.
	OpenSession(ctx context.Context, s NewSession) (copied bool, err error)
	// Session finds a live session by token hash and notes the device as seen, at
	// most once a minute; on a medium that takes no write the note is left out.
	// ErrNotFound when there is none or it ended.
	Session(ctx context.Context, token [32]byte, nowMS int64) (Session, error)
	// CloseSession ends one session. Idempotent.
	CloseSession(ctx context.Context, token [32]byte) error

	// Revoke keeps the tombstone and deletes the device's row, when it is of the
	// same identity, and by cascade its sessions, key packages, mailbox, wrapped keys, push token and unreferenced
	// uploads. Room rosters stay: members remove leaves. fresh is false when it
	// was known. The device need not be known here.
	Revoke(ctx context.Context, r StoredRevocation) (fresh bool, err error)
	// Revocations are an identity's tombstones, oldest first.
	Revocations(ctx context.Context, id identity.PublicKey) ([]StoredRevocation, error)
	// Revoked looks one device up; ErrNotFound when its identity has not revoked
	// it. A tombstone counts for its own identity's device alone: everything here
	// keeps and finds it by both, because anybody can sign a revocation that
	// names somebody else's device id.
	Revoked(ctx context.Context, id identity.PublicKey, device identity.DeviceID) (StoredRevocation, error)
	// RevokedMembers are current memberships of revoked devices: removals that the
	// rooms still owe, by device and then by room in an order of the store's. It
	// gives those behind after, whose Device and Room alone count; the zero
	// Membership stands before all.
	RevokedMembers(ctx context.Context, after Membership, limit int) ([]Membership, error)

	// UseNonce spends a nonce of a device key until expiresMS. fresh is false for
	// a replay.
	UseNonce(ctx context.Context, key identity.DevicePublicKey, nonce [16]byte, expiresMS int64) (fresh bool, err error)

	// Snapshot is the sealed state that an account keeps under its identity;
	// version 0 and nil when it has none.
	Snapshot(ctx context.Context, id identity.PublicKey) (version uint64, sealed []byte, err error)
	// PutSnapshot replaces version by version+1; ErrChanged when it is not the stored one.
	PutSnapshot(ctx context.Context, id identity.PublicKey, version uint64, sealed []byte) error

	// PutArchive keeps one sealed segment of history in the place of the one of its
	// name. replaces is the SHA-256 of the bytes that stand there, all zero when
	// nothing does: ErrChanged otherwise, unless the very same bytes are there
	// already. ErrLimit when the identity would keep more than most.
	PutArchive(ctx context.Context, s ArchiveSegment, replaces [32]byte, most ArchiveBound) error
	// Archive lists an identity's segments (without bytes) in name order, after a name.
	Archive(ctx context.Context, id identity.PublicKey, after string, limit int) ([]ArchiveSegment, error)
	// ArchiveSegment reads one with its bytes.
	ArchiveSegment(ctx context.Context, id identity.PublicKey, name string) (ArchiveSegment, error)
	// PutWrappedKey keeps an account key wrapped to one device; WrappedKeys reads
	// them by generation. A revocation deletes the device's. ErrNotFound for an
	// unknown device, ErrLimit when it would have more than most generations.
	PutWrappedKey(ctx context.Context, k WrappedKey, most int) error
	WrappedKeys(ctx context.Context, device identity.DeviceID) ([]WrappedKey, error)
}

// StoredRevocation is a verified revocation.
type StoredRevocation struct {
	Identity  identity.PublicKey
	Device    identity.DeviceID
	Bytes     []byte // signed by the identity
	RevokedMS int64
}

// ArchiveSegment is a sealed piece of history.
type ArchiveSegment struct {
	Identity  identity.PublicKey
	Name      string // opaque to the service, ≤ 128 bytes
	Size      int
	CreatedMS int64
	Sealed    []byte
}

// ArchiveBound is how much sealed history an identity may keep. Over it (a bound
// was lowered), segments may still be replaced by smaller ones.
type ArchiveBound struct {
	Segments int
	Bytes    int64 // of all segments together
}

// Fits reports whether an identity that keeps n segments of size bytes may put one
// of new bytes in the place of one of old bytes, -1 for none.
func (b ArchiveBound) Fits(n int, size, old, new int64) bool {
	if old < 0 {
		return n < b.Segments && size+new <= b.Bytes
	}
	return new <= old || size-old+new <= b.Bytes
}

// WrappedKey is an account key wrapped to a device's HPKE key.
type WrappedKey struct {
	Device     identity.DeviceID
	Generation uint64
	Wrapped    []byte
}

// StoredKeyPackage is a published key package.
type StoredKeyPackage struct {
	Ref        []byte // KeyPackageRef, RFC 9420 §5.2
	Device     identity.DeviceID
	Identity   identity.PublicKey
	Suite      uint16
	Bytes      []byte // MLSMessage with a KeyPackage
	NotAfterMS int64
	LastResort bool
}

// KeyPackages hands out each package once.
type KeyPackages interface {
	// PublishKeyPackages adds a batch of one device. A last-resort package
	// replaces the device's one of the same suite. Known refs are ignored, claimed
	// ones too. ErrNotFound for an unknown device: a revocation stands.
	PublishKeyPackages(ctx context.Context, batch []StoredKeyPackage) error
	// ClaimKeyPackages takes one package for each device of the identity that has
	// one of the suite, never the same twice (concurrent claims on any number of
	// instances included), and the last-resort one, again and again, only when no
	// other is left. Expired packages are never given.
	ClaimKeyPackages(ctx context.Context, id identity.PublicKey, suite uint16, nowMS int64) ([]StoredKeyPackage, error)
	// CountKeyPackages counts a device's ordinary unclaimed, unexpired packages.
	CountKeyPackages(ctx context.Context, device identity.DeviceID, suite uint16, nowMS int64) (n int, lastResort bool, err error)
	// PackageDevice finds whose package a ref is, claimed or not, until it expires.
	PackageDevice(ctx context.Context, ref []byte) (identity.DeviceID, error)
}

// MailKind says what a mailbox item is about.
type MailKind uint8

// The mailbox kinds. The numbers are stored and sent.
const (
	MailWelcome  MailKind = 1 // a Welcome waits: Room, Epoch, StartSeq
	MailLowKeys  MailKind = 2 // few key packages are left
	MailAsk      MailKind = 3 // somebody asks to join a listed room: Payload
	MailRemoved  MailKind = 4 // the device is no longer in Room
	MailReissued MailKind = 5 // the account's keys or revocations changed: read them again
)

// MailItem is one line of a device's mailbox.
type MailItem struct {
	ID        uint64 // from 1, by device, ascending
	Kind      MailKind
	Room      RoomID
	Epoch     uint64
	StartSeq  uint64
	Payload   []byte
	CreatedMS int64
	Key       string // idempotency key: the same key is put once while it is unacknowledged or kept
}

// Mailboxes holds pointers for devices until they are acknowledged.
type Mailboxes interface {
	// PutMail adds an item; put is false when its key is known, and id then that
	// of the first. ErrNotFound for an unknown device: there is nobody to read it.
	PutMail(ctx context.Context, device identity.DeviceID, item MailItem) (id uint64, put bool, err error)
	// Mail reads items after an id.
	Mail(ctx context.Context, device identity.DeviceID, after uint64, limit int) ([]MailItem, error)
	// AckMail forgets items by id. Keys are remembered for the retention window.
	AckMail(ctx context.Context, device identity.DeviceID, ids []uint64) error
}

// BlobMeta is what the store knows of a blob; its bytes are a [BlobStore]'s.
type BlobMeta struct {
	ID        BlobID
	Owner     identity.DeviceID
	Size      int64 // declared
	Received  int64 // durable so far
	CreatedMS int64
	Refs      int64 // how many entries refer to it; the store counts
}

// Complete reports whether all bytes are here.
func (m BlobMeta) Complete() bool { return m.Received == m.Size }

// BlobIndex knows whose a blob is and which entries refer to it.
type BlobIndex interface {
	CreateBlob(ctx context.Context, m BlobMeta) error
	Blob(ctx context.Context, id BlobID) (BlobMeta, error)
	// AdvanceBlob moves Received from one value to a higher one; ErrChanged when
	// it is not from.
	AdvanceBlob(ctx context.Context, id BlobID, from, to int64) error
	// MayReadBlob reports whether the device uploaded the blob or is a current
	// member of a room in which a kept entry refers to it.
	MayReadBlob(ctx context.Context, id BlobID, device identity.DeviceID) (bool, error)
	// DeleteBlob forgets an unreferenced blob; ErrExists while an entry refers to
	// it. Delete the bytes first: what the index does not know is never found again.
	DeleteBlob(ctx context.Context, id BlobID) error
	// BlobBytes sums the declared sizes of a device's unreferenced uploads.
	BlobBytes(ctx context.Context, owner identity.DeviceID) (int64, error)
}

// Profile is a person's public line in the directory.
type Profile struct {
	Identity identity.PublicKey
	Username string // "" = none; lower-case
	Record   []byte // signed by the identity
	Version  uint64
	PutMS    int64
}

// Listing is a room that its members made public.
type Listing struct {
	Room      RoomID
	Title     string
	About     string
	Members   int
	ListedMS  int64
	ListedBy  identity.PublicKey
	PictureID *BlobID
}

// Directory finds people and listed rooms.
type Directory interface {
	// PutProfile sets an identity's line; ErrExists when another identity has the
	// username, ErrChanged unless the version is higher than the stored one.
	PutProfile(ctx context.Context, p Profile) error
	Profile(ctx context.Context, id identity.PublicKey) (Profile, error)
	ProfileByUsername(ctx context.Context, username string) (Profile, error)
	// SearchProfiles finds by username prefix (≥ 2 characters), in order.
	SearchProfiles(ctx context.Context, prefix string, limit int) ([]Profile, error)
	PutListing(ctx context.Context, l Listing) error
	DeleteListing(ctx context.Context, room RoomID) error
	Listing(ctx context.Context, room RoomID) (Listing, error)
	// Listings finds by a part of title or description, newest first; "" = all.
	Listings(ctx context.Context, query string, limit, offset int) ([]Listing, error)
}

// SweepPlan says what housekeeping drops. Times are Unix milliseconds; what is
// older goes.
type SweepPlan struct {
	NowMS          int64
	LogBefore      int64 // entries, their dedupe rows and blob references
	ArchiveBefore  int64
	UploadsBefore  int64 // blobs that no entry refers to
	MailKeysBefore int64 // remembered idempotency keys
	WelcomesBefore int64 // Welcomes that nobody acknowledged since: their joiners are given up
	Limit          int   // rows a table and call; the rest at the next call
}

// SweepCounts says what went, by kind, and which blobs' bytes to delete.
type SweepCounts struct {
	Entries, Sessions, KeyPackages, Nonces, Mail, Archive, States, Welcomes int64
	// Blobs are those whose bytes may go. They are named again by each Sweep
	// until DeleteBlob says that the bytes are gone.
	Blobs []BlobID
	More  bool // the limit cut it short
}

// Housekeeping trims and restores.
type Housekeeping interface {
	// Sweep drops what the plan allows and expired sessions, packages and nonces.
	// It never touches the current and previous epoch's GroupInfo and state, nor
	// what an unacknowledged Welcome needs.
	Sweep(ctx context.Context, plan SweepPlan) (SweepCounts, error)
	// StartIncarnation is the first thing after a restore from a backup, in one
	// transaction: every room's next seq jumps by IncarnationJump behind one
	// KindIncarnation entry and its status becomes RoomHealing (unless succeeded);
	// sessions and ordinary key packages are dropped; copy counters are unset.
	StartIncarnation(ctx context.Context, nowMS int64) error
}

// BlobStore keeps ciphertext bytes. blob/disk implements it; blob/blobtest is
// its contract.
type BlobStore interface {
	// Location names where bytes are kept, so that instances can compare.
	Location() string
	// Append writes r at offset, which must be the present length, makes it
	// durable, and returns how many bytes it took; on error what was taken stays
	// and counts. ErrFull when the medium is. ErrChanged for another offset, and
	// while another Append of the blob is under way.
	Append(ctx context.Context, id BlobID, offset int64, r io.Reader) (int64, error)
	// Open reads length bytes from offset, or fewer where the blob ends;
	// ErrNotFound when it is unknown.
	Open(ctx context.Context, id BlobID, offset, length int64) (io.ReadCloser, error)
	// Size is how much is durable; ErrNotFound when unknown.
	Size(ctx context.Context, id BlobID) (int64, error)
	// Delete is idempotent.
	Delete(ctx context.Context, id BlobID) error
	// Free is how many bytes can still be written.
	Free(ctx context.Context) (int64, error)
}

// HintKind says what a [Hint] rings for.
type HintKind uint8

// The hints.
const (
	HintEntry     HintKind = 1 // Room has entries up to Seq
	HintMail      HintKind = 2 // the mailbox has something
	HintEphemeral HintKind = 3 // Payload, for the sockets only
	HintRevoked   HintKind = 4 // close the device's sockets now
	HintSessions  HintKind = 5 // a session ended: check yours
)

// Hint is a doorbell. It may be lost, doubled or late; whoever gets it reads
// the store. Entry rides along only inside one process.
type Hint struct {
	Kind    HintKind
	Room    RoomID
	Seq     uint64
	Payload []byte
	Entry   *Entry
}

// Bus wakes the instances that hold sockets for some devices, and no others.
// bus/local implements it; bus/bustest is its contract.
type Bus interface {
	// Attach says that this instance holds a socket for the device and gets its
	// hints through wake, which must return at once. detach ends it, once or more
	// often. ErrLimit for too many sockets of one device.
	Attach(device identity.DeviceID, wake func(Hint)) (detach func(), err error)
	// Publish rings for devices. HintRevoked reaches every instance within a second.
	Publish(ctx context.Context, devices []identity.DeviceID, h Hint) error
	// Online tells which of the devices hold a socket anywhere (presence; best effort).
	Online(ctx context.Context, devices []identity.DeviceID) ([]identity.DeviceID, error)
	Close() error
}

// Buckets is a budget for each subject for the whole fleet. bus/local keeps
// them in memory. A bucket that cannot be read allows and says so.
type Buckets interface {
	// Take spends cost from a bucket that holds burst and refills rate a second; a
	// subject not seen lately has a full one. ok is false when less than cost is
	// there: nothing is spent then, and it will be there after retryAfter, which
	// is 0 when it never will (cost above burst, no refill).
	Take(ctx context.Context, subject string, cost, rate, burst float64, now time.Time) (ok bool, retryAfter time.Duration, err error)
}
