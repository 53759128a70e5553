package delivery

import (
	"time"

	"github.com/askucher/compax-core/identity"
)

// The JSON bodies around devices and sessions. []byte is base64 in JSON;
// 64-bit numbers that may pass 2⁵³ are decimal strings (tag ",string").

// EnrolRequest makes a device known: POST /v1/devices. No session is needed,
// the credential signs for itself.
type EnrolRequest struct {
	Credential []byte `json:"credential"` // identity.Credential bytes
}

// DeviceView is a device as its own identity sees it: GET /v1/devices.
type DeviceView struct {
	Device     identity.DeviceID `json:"device"`
	Credential []byte            `json:"credential"`
	EnrolledMS int64             `json:"enrolled_ms"`
	SeenMS     int64             `json:"seen_ms"`
}

// DevicesResponse lists devices and revocations of one identity. A client
// verifies every credential and revocation itself.
type DevicesResponse struct {
	Devices     []DeviceView `json:"devices"`
	Revocations [][]byte     `json:"revocations"`
}

// IdleAfter is how long a device was not at the service when the others are advised of
// it: its keys in their rooms are as old.
const IdleAfter = 90 * 24 * time.Hour

// IdleResponse names devices of a room that have been away for [IdleAfter], to its
// members, never an identity's last one: GET /v1/rooms/{room}/idle. It is advice, on the
// service's word alone.
type IdleResponse struct {
	Devices []identity.DeviceID `json:"devices"`
}

// ChallengeRequest asks for a login challenge: POST /v1/challenges.
type ChallengeRequest struct {
	Device identity.DeviceID `json:"device"`
}

// ChallengeResponse carries it; it is good for two minutes.
type ChallengeResponse struct {
	Challenge []byte        `json:"challenge"`
	Home      identity.Home `json:"home"`
}

// SessionRequest logs in: POST /v1/sessions. Signature is the device's over
// identity.LoginMessage(home, challenge).
type SessionRequest struct {
	Device    identity.DeviceID `json:"device"`
	Challenge []byte            `json:"challenge"`
	Signature []byte            `json:"signature"`
	Have      []byte            `json:"have"` // copy counter, 16 bytes: what the device holds
	Want      []byte            `json:"want"` // 16 random bytes, persisted before asking
	// Resume: this process had a session already. When another copy of the profile
	// has logged in since, it is not to take that one's place: nothing changes.
	Resume bool `json:"resume,omitempty"`
}

// SessionResponse is a session, after which the device's others are over. Copied
// means that another copy of this profile has logged in since: stop sending and
// resync as a fresh leaf. To who resumes it then gives no session: Token is empty.
type SessionResponse struct {
	Token     string `json:"token"` // bearer, 43 characters
	ExpiresMS int64  `json:"expires_ms"`
	Copied    bool   `json:"copied"`
}

// RevokeRequest ends a device: POST /v1/revocations. Signed by the identity,
// so no session is needed.
type RevokeRequest struct {
	Revocation []byte `json:"revocation"`
}

// SnapshotBody is the account's sealed state: GET and PUT /v1/snapshot. GET
// needs a session of the identity; PUT replaces exactly Version.
type SnapshotBody struct {
	Version uint64 `json:"version,string"` // of the stored one; 0 = none
	Sealed  []byte `json:"sealed"`         // behind a header, ≤ MaxSnapshot
}

// PublishRequest publishes key packages: POST /v1/keypackages.
type PublishRequest struct {
	Packages [][]byte `json:"packages"` // MLSMessage with a KeyPackage each, ≤ MaxKeyPackages
}

// KeyPackageCount is the answer, also of GET /v1/keypackages.
type KeyPackageCount struct {
	Suite      uint16 `json:"suite"`
	Unclaimed  int    `json:"unclaimed"`
	LastResort bool   `json:"last_resort"`
	LowWater   int    `json:"low_water"` // publish again below this
}

// ClaimRequest asks for one package of each device: POST /v1/keypackages/claim.
type ClaimRequest struct {
	Identity identity.PublicKey `json:"identity"`
	Suite    uint16             `json:"suite"`
	Room     RoomID             `json:"room"` // what the packages are for
}

// ClaimResponse carries one package for each device that had one.
type ClaimResponse struct {
	Packages [][]byte            `json:"packages"`
	Missing  []identity.DeviceID `json:"missing,omitempty"` // devices without any
}

// MailView is a mailbox item on the wire: GET /v1/mailbox.
type MailView struct {
	ID        uint64         `json:"id,string"`
	Kind      MailKind       `json:"kind"`
	Room      *RoomID        `json:"room,omitempty"`
	Epoch     uint64         `json:"epoch,string,omitempty"`
	StartSeq  uint64         `json:"start_seq,string,omitempty"` // read the log after it
	ReadAt    *identity.Home `json:"read_at,omitempty"`          // which home holds the copy to read
	Welcome   []byte         `json:"welcome,omitempty"`          // MLSMessage with a Welcome
	Payload   []byte         `json:"payload,omitempty"`
	CreatedMS int64          `json:"created_ms"`
}

// MailResponse is a page of the mailbox.
type MailResponse struct {
	Items []MailView `json:"items"`
	More  bool       `json:"more"`
}

// AckRequest acknowledges items: POST /v1/mailbox/ack. A Welcome is
// acknowledged once the device has joined durably, or given up.
type AckRequest struct {
	IDs []string `json:"ids"` // decimal
}

// ProfileBody sets or shows a person's line: PUT /v1/profile, GET /v1/people/….
type ProfileBody struct {
	Record []byte `json:"record"` // identity's signed username record
}

// ProfilesResponse lists records: GET /v1/people?username= or ?prefix=.
type ProfilesResponse struct {
	Records [][]byte `json:"records"`
}

// ListingBody makes a room public: PUT /v1/listings/{room}, by a member.
type ListingBody struct {
	Room    RoomID `json:"room"`
	Title   string `json:"title"` // ≤ 256 bytes
	About   string `json:"about"` // ≤ 1024 bytes
	Members int    `json:"members"`
}

// ListingsResponse lists public rooms: GET /v1/listings?query=.
type ListingsResponse struct {
	Listings []ListingBody `json:"listings"`
}

// AskRequest asks a listed room's members to be added: POST /v1/listings/{room}/ask.
type AskRequest struct {
	Note string `json:"note"` // ≤ 512 bytes, shown to members
}

// AskNote is the payload of MailAsk.
type AskNote struct {
	Identity identity.PublicKey `json:"identity"`
	Note     string             `json:"note"`
}

// BlobRequest begins an upload: POST /v1/blobs.
type BlobRequest struct {
	Size int64 `json:"size"`
}

// BlobView is an upload's state: also HEAD and GET /v1/blobs/{id}/state.
type BlobView struct {
	ID       BlobID `json:"id"`
	Size     int64  `json:"size"`
	Received int64  `json:"received"`
}

// ReportRequest says that a member could not process a commit:
// POST /v1/rooms/{id}/report.
type ReportRequest struct {
	Seq    uint64 `json:"seq,string"`
	Epoch  uint64 `json:"epoch,string"`
	Reason string `json:"reason"` // a code of the client: path_secret, confirmation_tag, welcome, …
}

// SucceedRequest closes a room for its successor: POST /v1/rooms/{id}/succeed,
// by a member, once the successor exists.
type SucceedRequest struct {
	Successor RoomID `json:"successor"`
}

// RoomsResponse lists rooms: GET /v1/rooms.
type RoomsResponse struct {
	Rooms []RoomView `json:"rooms"`
}

// RoomView is a room that the asking device is in, or that another device of
// the same identity is in and this one may join by external commit.
type RoomView struct {
	Room   RoomID `json:"room"`
	Member bool   `json:"member"` // this very device has a leaf
}

// Info is what the service offers right now: GET /v1/info.
type Info struct {
	Name          string        `json:"name"`
	Version       string        `json:"version"`
	Home          identity.Home `json:"home"`
	Domain        string        `json:"domain"` // for mimi:// names
	ConfigDigest  string        `json:"config_digest"`
	Suites        []uint16      `json:"suites"`
	SenderKey     []byte        `json:"sender_key"`            // the home's external-sender signature key, Ed25519
	SenderIndex   int           `json:"sender_index"`          // where new rooms put it
	RetentionDays int           `json:"retention_days"`        // of the log
	ArchiveDays   int           `json:"archive_days"`          // retention of sealed history
	MaxBlobBytes  int64         `json:"max_blob_bytes"`        // of an upload that begins now; 0: none
	Level         string        `json:"level"`                 // calm, busy, congested, critical
	Refused       []string      `json:"refused"`               // what is given up now: voice, photo, video, calls
	TimeMS        int64         `json:"time_ms"`               // the service's clock
	Incarnation   uint32        `json:"incarnation"`           // how often the service was restored from a backup
	RestoredMS    int64         `json:"restored_ms,omitempty"` // when that was last: two restores of one backup have one incarnation
	Shadow        []string      `json:"shadow,omitempty"`      // rules that count without refusing
}

// Health is GET /health/live and /health/ready.
type Health struct {
	Status string            `json:"status"` // ok, draining, failing
	Parts  map[string]string `json:"parts,omitempty"`
}

// ArchiveResponse lists sealed segments: GET /v1/archive?after=name.
type ArchiveResponse struct {
	Segments []SegmentView `json:"segments"`
	More     bool          `json:"more"`
}

// SegmentView is a segment without its bytes.
type SegmentView struct {
	Name      string `json:"name"`
	Size      int    `json:"size"`
	CreatedMS int64  `json:"created_ms"`
}

// WrappedKeysResponse lists the account keys wrapped to the asking device, by
// generation: GET /v1/wrapped-keys.
type WrappedKeysResponse struct {
	Keys []WrappedKeyView `json:"keys"`
}

// WrappedKeyView is one of them.
type WrappedKeyView struct {
	Generation uint64 `json:"generation,string"`
	Wrapped    []byte `json:"wrapped"`
}
