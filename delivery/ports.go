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
//
// Reading one thing that is not there is ErrNotFound, and a list of what is not there
// is empty, without an error: of a device, an identity or a name that nobody knows as
// well. What is read of a room, or changed in it, is ErrNotFound where the room is
// unknown. Other errors stand with their method. Nothing that was ended, acknowledged
// or taken back twice is an error, unless it says so.
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
	// CreateBlob notes an upload that begins. ErrExists for a known id. ErrLimit when
	// the declared sizes of the owner's uploads that no entry refers to would come
	// to more than most bytes, however many begin at once.
	CreateBlob(ctx context.Context, m BlobMeta, most int64) error
	Blob(ctx context.Context, id BlobID) (BlobMeta, error)
	// AdvanceBlob moves Received from one value to a higher one; ErrChanged when
	// it is not from. ErrNotFound for an unknown blob.
	AdvanceBlob(ctx context.Context, id BlobID, from, to int64) error
	// MayReadBlob reports whether the device uploaded the blob or is a current
	// member of a room in which a kept entry refers to it; nobody may read an unknown one.
	MayReadBlob(ctx context.Context, id BlobID, device identity.DeviceID) (bool, error)
	// DeleteBlob forgets an unreferenced blob; ErrExists while an entry refers to
	// it, ErrNotFound for one that is forgotten or was never known. Delete the bytes first: what the index does not know is never found again.
	DeleteBlob(ctx context.Context, id BlobID) error
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
	// PutListing sets a room's line, whatever stood there; DeleteListing takes it back.
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
	// Limit bounds each transaction: rows of one kind; 1,000 when it is 0. A call
	// ends with the first transaction that reaches it.
	Limit int
	// BlobsAfter: blobs are named behind this id, so that one whose bytes cannot be
	// deleted is passed over.
	BlobsAfter BlobID
}

// SweepCounts says what went, by kind, and which blobs' bytes to delete.
type SweepCounts struct {
	Entries, Sessions, KeyPackages, Nonces, Mail, Archive, States, Welcomes int64
	// Blobs are those whose bytes may go, in the order of their ids, once nothing else
	// is left. They are named again until DeleteBlob says that the bytes are gone.
	Blobs []BlobID
	More  bool // the limit cut it short: call again
}

// Housekeeping trims and restores.
type Housekeeping interface {
	// Sweep drops what the plan allows and expired sessions, packages and nonces.
	// It never touches the current and previous epoch's GroupInfo and state, nor
	// what an unacknowledged Welcome needs. It works in short transactions, one kind
	// of rows in each, and appends come between: unlike elsewhere, what it counts is
	// done also when it returns an error.
	Sweep(ctx context.Context, plan SweepPlan) (SweepCounts, error)
	// StartIncarnation is the first thing after a restore from a backup, in one
	// transaction: every room's next seq jumps behind one KindIncarnation entry, with
	// the Marker of a backup that ends with the last change of any room, or at sinceMS
	// if that is later, and its status becomes RoomHealing (unless succeeded);
	// sessions and ordinary key packages are dropped; copy counters are unset; and what
	// settings says of the marker is set. It may be asked again after a conflict, and an
	// error of it comes back as it is, with nothing changed.
	StartIncarnation(ctx context.Context, sinceMS, nowMS int64, settings func(Marker) (map[string][]byte, error)) (Marker, error)
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
	// Delete is idempotent. The removal is durable when it returns.
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
