package delivery

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/askucher/compax-core/identity"
)

// RulesVersion is byte 0 of a room id: the rules that the room was made under.
// A client refuses to join a room whose version it does not know.
const RulesVersion = 1

// RoomID names a room: 16 bytes in UUID form (version 8, RFC 9562 §5.8). Byte
// 0 is [RulesVersion], bytes 1–3 the label of the home that orders the room,
// the rest is random. The same bytes are the MLS group_id.
type RoomID [16]byte

// ErrRoomID is returned by [ParseRoomID] and [RoomIDFromBytes].
var ErrRoomID = errors.New("delivery: not a room id")

// NewRoomID makes the id of a new room ordered by home; random must be a
// cryptographic source.
func NewRoomID(home identity.Home, random io.Reader) (RoomID, error) {
	var r RoomID
	if _, err := io.ReadFull(random, r[4:]); err != nil {
		return RoomID{}, fmt.Errorf("delivery: random bytes for a room id: %w", err)
	}
	r[0] = RulesVersion
	copy(r[1:4], home[:])
	r[6] = r[6]&0x0f | 0x80 // version 8
	r[8] = r[8]&0x3f | 0x80 // variant 10
	return r, nil
}

// MaxSuccessors bounds how many successors of a lost room are tried.
const MaxSuccessors = 8

// SuccessorID is the id of the room in which one goes on that a restored service has
// lost and nobody can bring back: that of [NewRoomID], at the same home, from the first 12
// bytes of SHA-256("compax-successor-v1" ‖ old ‖ n u32). n counts, from 0, those that were
// made by somebody who invited nobody.
func SuccessorID(old RoomID, n uint32) RoomID {
	seed := sha256.Sum256(binary.BigEndian.AppendUint32(append([]byte("compax-successor-v1"), old[:]...), n))
	r := old
	copy(r[4:], seed[:12])
	r[0] = RulesVersion
	r[6] = r[6]&0x0f | 0x80 // version 8
	r[8] = r[8]&0x3f | 0x80 // variant 10
	return r
}

// RoomIDFromBytes reads a room id from 16 raw bytes, for example a group_id.
func RoomIDFromBytes(b []byte) (RoomID, error) {
	var r RoomID
	if len(b) != len(r) {
		return r, fmt.Errorf("%w: %d bytes instead of 16", ErrRoomID, len(b))
	}
	copy(r[:], b)
	if r[6]>>4 != 8 || r[8]>>6 != 2 {
		return RoomID{}, fmt.Errorf("%w: not a version 8 UUID", ErrRoomID)
	}
	return r, nil
}

// ParseRoomID reads the UUID form, 36 lower-case characters.
func ParseRoomID(s string) (RoomID, error) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return RoomID{}, fmt.Errorf("%w: want a UUID such as 01a1b2c3-…", ErrRoomID)
	}
	packed := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	for _, c := range []byte(packed) {
		if c >= 'A' && c <= 'F' {
			return RoomID{}, fmt.Errorf("%w: upper-case hex", ErrRoomID)
		}
	}
	b, err := hex.DecodeString(packed)
	if err != nil {
		return RoomID{}, fmt.Errorf("%w: %w", ErrRoomID, err)
	}
	return RoomIDFromBytes(b)
}

// String is the UUID form.
func (r RoomID) String() string {
	h := hex.EncodeToString(r[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// MarshalText writes the UUID form.
func (r RoomID) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the UUID form.
func (r *RoomID) UnmarshalText(b []byte) error {
	id, err := ParseRoomID(string(b))
	if err == nil {
		*r = id
	}
	return err
}

// Home is the label of the home that orders the room.
func (r RoomID) Home() identity.Home { return identity.Home(r[1:4]) }

// Rules is the version of the rules that the room was made under.
func (r RoomID) Rules() byte { return r[0] }

// URI is the MIMI name of the room at the provider with this domain.
func (r RoomID) URI(domain string) string { return "mimi://" + domain + "/r/" + r.String() }

// BlobID names an uploaded ciphertext: 16 random bytes, hex in text.
type BlobID [16]byte

// ErrBlobID is returned by [ParseBlobID].
var ErrBlobID = errors.New("delivery: not a blob id")

// ParseBlobID reads 32 hex characters.
func ParseBlobID(s string) (BlobID, error) {
	var id BlobID
	if len(s) != 2*len(id) {
		return id, fmt.Errorf("%w: %d characters instead of 32", ErrBlobID, len(s))
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil {
		return BlobID{}, fmt.Errorf("%w: %w", ErrBlobID, err)
	}
	return id, nil
}

// String is 32 hex characters.
func (id BlobID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText writes hex.
func (id BlobID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads hex.
func (id *BlobID) UnmarshalText(b []byte) error {
	v, err := ParseBlobID(string(b))
	if err == nil {
		*id = v
	}
	return err
}
