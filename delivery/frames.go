package delivery

import "github.com/askucher/compax-core/identity"

// FrameType is the first byte of every socket frame. All frames are binary and
// at most MaxFrame bytes.
type FrameType uint8

// The frames. Each struct below names its sender.
const (
	FrameHello     FrameType = 1 // device, first frame
	FrameReady     FrameType = 2 // service, answer to Hello
	FrameEntry     FrameType = 3 // service
	FrameGap       FrameType = 4 // service
	FrameMail      FrameType = 5 // service
	FrameEphemeral FrameType = 6 // both
	FrameDrain     FrameType = 7 // service
	FrameEnd       FrameType = 8 // service, last frame
)

// Hello is a device's first frame, within ten seconds of the upgrade.
// Cursors are optional: rooms not named are followed from now on; for a named
// one the service rings at once when its log goes past After.
type Hello struct {
	Token   string
	Cursors []Cursor // ≤ 10,000
}

// Cursor is how far a device has read a room.
type Cursor struct {
	Room  RoomID
	After uint64
}

// Ready answers Hello: the socket is attached, nothing appended from now on
// goes unrung.
type Ready struct {
	TimeMS      int64
	PingSeconds uint32 // the service pings this often; two missed pings end the socket
}

// EntryFrame says that a room has an entry, and carries it when it is small.
type EntryFrame struct {
	Room  RoomID
	Entry Entry // Bytes nil: read it from the log
}

// Gap says that frames for a room were dropped: read the log after From.
type Gap struct {
	Room RoomID
	From uint64
}

// MailFrame says that the mailbox has something.
type MailFrame struct{}

// Ephemeral is presence or typing: sealed by a device under an exporter key of
// the epoch and leaf, relayed to the room's members' sockets, never kept. From
// the device the frame goes up as it comes down to the others.
type Ephemeral struct {
	Room    RoomID
	Epoch   uint64
	Leaf    uint32
	Payload []byte // ≤ MaxEphemeral
}

// Drain asks the device to connect again after a random part of Within: this
// instance is about to stop.
type Drain struct {
	WithinMS uint32
}

// End is the reason for closing.
type End struct {
	Code   Code
	Detail string
}

// ConnectedDevice identifies a socket's other end to bus and presence.
type ConnectedDevice struct {
	Device   identity.DeviceID
	Identity identity.PublicKey
}
