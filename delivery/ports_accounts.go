package delivery

import (
	"bytes"
	"context"

	"github.com/askucher/compax-core/identity"
)

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
	Resume    bool     // a copy that has logged in since keeps its place
}

// Copied reports whether another copy of the profile has logged in since the device
// last had an answer. counter is what the device's latest login set, nil when it is
// unset, and told whether that login was told of a copy. A login that asks for the
// counter that is there already asks again, as its answer was lost: it is told the same.
func (s NewSession) Copied(counter []byte, told bool) bool {
	switch {
	case counter == nil, bytes.Equal(counter, s.Have[:]):
		return false
	case bytes.Equal(counter, s.Want[:]):
		return told
	}
	return true
}

// Accounts keeps devices, sessions, revocations and what people store sealed
// for themselves.
type Accounts interface {
	// Enrol makes a device known. An existing row with the same keys takes a
	// higher version's credential; the same credential again is no change.
	// ErrRevoked for a device that its identity revoked, ErrExists when the key or the id is
	// taken by another row, ErrChanged for a lower version. ErrLimit when the device
	// is new and its identity has as many as most allows.
	Enrol(ctx context.Context, d Device, most DeviceBound) error
	// Device finds a device by id, DeviceByKey by its public key.
	Device(ctx context.Context, id identity.DeviceID) (Device, error)
	DeviceByKey(ctx context.Context, key identity.DevicePublicKey) (Device, error)
	// Devices are an identity's devices, by enrolment.
	Devices(ctx context.Context, id identity.PublicKey) ([]Device, error)
	// LastSeen is when devices were last seen, in milliseconds; those that are not
	// enrolled are not in it.
	LastSeen(ctx context.Context, ids []identity.DeviceID) (map[identity.DeviceID]int64, error)

	// OpenSession inserts the session and ends every other one of the device, so
	// that of two copies of one profile one speaks at a time. copied is what s.Copied
	// says of the counter that is stored and of what was said when it was set: two
	// copies live; with s.Resume nothing is changed then. Else the counter is s.Want
	// afterwards, and copied is kept with it. ErrNotFound for an unknown device,
	// ErrExists for a known token, which changes nothing.
	OpenSession(ctx context.Context, s NewSession) (copied bool, err error)
	// Session finds a live session by token hash and notes the device as seen, at
	// most once a minute; on a medium that takes no write the note is left out.
	// ErrNotFound when there is none or it ended.
	Session(ctx context.Context, token [32]byte, nowMS int64) (Session, error)
	// CloseSession ends one session. Idempotent.
	CloseSession(ctx context.Context, token [32]byte) error

	// Revoke keeps the tombstone and deletes the device's row, when it is of the
	// same identity, and by cascade its sessions, key packages, mailbox, wrapped
	// keys and unreferenced uploads. Room rosters stay: members remove leaves. fresh is false when it
	// was known. The device need not be known here: then ErrLimit when its identity
	// has as many as most allows. An enrolled device is always revoked.
	Revoke(ctx context.Context, r StoredRevocation, most DeviceBound) (fresh bool, err error)
	// Revocations are an identity's tombstones, oldest first.
	Revocations(ctx context.Context, id identity.PublicKey) ([]StoredRevocation, error)
	// Revoked looks one device up; ErrNotFound when its identity has not revoked
	// it. A tombstone counts for its own identity's device alone: everything here
	// keeps and finds it by both, because anybody can sign a revocation that
	// names somebody else's device id.
	Revoked(ctx context.Context, id identity.PublicKey, device identity.DeviceID) (StoredRevocation, error)
	// RevokedMembers are current memberships of revoked devices: removals that the
	// rooms still owe, by device and then by room in an order of the store's. Rooms
	// that have a successor owe none. It gives those behind after, whose Device and
	// Room alone count; the zero Membership stands before all.
	RevokedMembers(ctx context.Context, after Membership, limit int) ([]OwedRemoval, error)

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

// DeviceBound is how many devices and revocations an identity may have. An
// enrolled device counts as a revocation, too: there is room for its own for as
// long as it lives, and the sum never grows past the bound by revoking.
type DeviceBound struct {
	Devices     int // enrolled now
	Revocations int // for good, and of the enrolled devices to come
}

// MayEnrol reports whether an identity with so many of each may enrol a device.
func (b DeviceBound) MayEnrol(devices, revocations int) bool {
	return devices < b.Devices && b.MayRevoke(devices, revocations)
}

// MayRevoke reports whether an identity with so many of each may revoke a device
// that is not enrolled.
func (b DeviceBound) MayRevoke(devices, revocations int) bool {
	return devices+revocations < b.Revocations
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
