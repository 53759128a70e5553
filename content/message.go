package content

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"
)

// MediaType is the media type of an encoded message (section 8.1).
const MediaType = "application/mimi-content"

// ErrNoURI says that a message lacks the sender's or the room's URI, without
// which it has no id.
var ErrNoURI = errors.New("content: message without sender and room URI")

// Salt makes a message unique: 16 random bytes. A message that must be
// encrypted again after a refusal keeps its salt and so its id.
type Salt [16]byte

// NewSalt reads a salt from random, which must be a cryptographic source.
func NewSalt(random io.Reader) (Salt, error) {
	var s Salt
	if _, err := io.ReadFull(random, s[:]); err != nil {
		return Salt{}, fmt.Errorf("content: read randomness: %w", err)
	}
	return s, nil
}

// MessageID names a message: the number of the hash algorithm (1, SHA-256) and
// 31 bytes of hash (section 3.3). The zero value names none. Its text and JSON
// form is lower-case hex.
type MessageID [32]byte

const hashSHA256 = 1

// IsZero reports whether the id names no message.
func (id MessageID) IsZero() bool { return id == MessageID{} }

func (id MessageID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText writes lower-case hex.
func (id MessageID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id[:]), nil }

// UnmarshalText reads 64 hex digits (ErrEncoding).
func (id *MessageID) UnmarshalText(b []byte) error {
	raw := make([]byte, len(id))
	if len(b) != 2*len(id) {
		return fmt.Errorf("%w: message id of %d characters", ErrEncoding, len(b))
	}
	if _, err := hex.Decode(raw, b); err != nil {
		return fmt.Errorf("%w: message id: %w", ErrEncoding, err)
	}
	*id = MessageID(raw)
	return nil
}

// Expiration says when a message wants to be forgotten (section 4.1).
type Expiration struct {
	Relative bool   // seconds after it was read, otherwise seconds since 1970
	Seconds  uint32 //
}

// Message is the content of one message, the mimiContent of section 4.1.
type Message struct {
	Salt       Salt
	Replaces   MessageID   // the message that this edits or takes back; zero = none
	TopicID    []byte      // at most MaxTopic bytes; empty = none
	Expires    *Expiration // nil = never
	InReplyTo  MessageID   // zero = none
	Extensions Extensions
	Body       Part
}

// Encode checks the limits and returns the one encoding of m (ErrEncoding,
// ErrLimit).
func (m Message) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	b := appendArray(make([]byte, 0, 512), 7)
	b = appendBytes(b, m.Salt[:])
	b = appendID(b, m.Replaces)
	b = appendBytes(b, m.TopicID)
	if m.Expires == nil {
		b = append(b, simpleNull)
	} else {
		b = appendArray(b, 2)
		if m.Expires.Relative {
			b = append(b, simpleTrue)
		} else {
			b = append(b, simpleFalse)
		}
		b = appendUint(b, uint64(m.Expires.Seconds))
	}
	b = appendID(b, m.InReplyTo)
	b = m.Extensions.appendTo(b)
	b = m.Body.appendTo(b)
	if len(b) > MaxSize {
		return nil, fmt.Errorf("%w: %d bytes, at most %d allowed", ErrLimit, len(b), MaxSize)
	}
	return b, nil
}

func appendID(b []byte, id MessageID) []byte {
	if id.IsZero() {
		return append(b, simpleNull)
	}
	return appendBytes(b, id[:])
}

// check holds what Decode demands of a message, for one that was built here.
func (m Message) check() error {
	if len(m.TopicID) > MaxTopic {
		return fmt.Errorf("%w: topic id of %d bytes, at most %d allowed", ErrLimit, len(m.TopicID), MaxTopic)
	}
	for _, id := range []MessageID{m.Replaces, m.InReplyTo} {
		if !id.IsZero() && id[0] != hashSHA256 {
			return fmt.Errorf("%w: message id with the unknown hash algorithm %d", ErrEncoding, id[0])
		}
	}
	if err := m.Extensions.check(); err != nil {
		return err
	}
	parts := 0
	return m.Body.check(1, &parts)
}

// Decode reads exactly one message. The result shares no memory with b; what it
// holds is at most a small multiple of len(b). Encode of the result returns b
// again (ErrEncoding, ErrLimit).
func Decode(b []byte) (Message, error) {
	if len(b) > MaxSize {
		return Message{}, fmt.Errorf("%w: %d bytes, at most %d allowed", ErrLimit, len(b), MaxSize)
	}
	r := reader{b: bytes.Clone(b)}
	m, err := r.message()
	if err != nil {
		return Message{}, err
	}
	if r.rest() != 0 {
		return Message{}, r.fail("%d bytes follow the message", r.rest())
	}
	if err := m.check(); err != nil {
		return Message{}, err
	}
	return m, nil
}

func (r *reader) message() (m Message, err error) {
	if err := r.array("the message", 7); err != nil {
		return m, err
	}
	salt, err := r.bytes("salt")
	if err != nil {
		return m, err
	}
	if len(salt) != len(m.Salt) {
		return m, r.fail("salt of %d bytes, not %d", len(salt), len(m.Salt))
	}
	m.Salt = Salt(salt)
	if m.Replaces, err = r.id("replaces"); err != nil {
		return m, err
	}
	if m.TopicID, err = r.bytes("topic id"); err != nil {
		return m, err
	}
	if m.Expires, err = r.expiration(); err != nil {
		return m, err
	}
	if m.InReplyTo, err = r.id("in reply to"); err != nil {
		return m, err
	}
	if m.Extensions, err = r.extensions(); err != nil {
		return m, err
	}
	parts := 0
	m.Body, err = r.part(1, &parts)
	return m, err
}

func (r *reader) id(what string) (MessageID, error) {
	if r.null() {
		return MessageID{}, nil
	}
	raw, err := r.bytes(what)
	if err != nil {
		return MessageID{}, err
	}
	if len(raw) != len(MessageID{}) || raw[0] != hashSHA256 {
		return MessageID{}, r.fail("%s is not a message id", what)
	}
	return MessageID(raw), nil
}

func (r *reader) expiration() (*Expiration, error) {
	if r.null() {
		return nil, nil
	}
	if err := r.array("expires", 2); err != nil {
		return nil, err
	}
	relative, err := r.bool("expires")
	if err != nil {
		return nil, err
	}
	seconds, err := r.uint("expires", math.MaxUint32)
	if err != nil {
		return nil, err
	}
	return &Expiration{relative, uint32(seconds)}, nil
}

// ComputeID returns the id of an encoded message for a sender and a room by
// their URIs (section 3.3):
//
//	1 ‖ SHA-256(u16 len ‖ sender ‖ u16 len ‖ room ‖ message ‖ salt)[:31]
func ComputeID(senderURI, roomURI string, salt Salt, encoded []byte) (MessageID, error) {
	if senderURI == "" || roomURI == "" {
		return MessageID{}, ErrNoURI
	}
	if len(senderURI) > math.MaxUint16 || len(roomURI) > math.MaxUint16 {
		return MessageID{}, fmt.Errorf("%w: URI above %d bytes", ErrLimit, math.MaxUint16)
	}
	h := sha256.New()
	var n [2]byte
	for _, uri := range []string{senderURI, roomURI} {
		binary.BigEndian.PutUint16(n[:], uint16(len(uri)))
		h.Write(n[:])
		h.Write([]byte(uri))
	}
	h.Write(encoded)
	h.Write(salt[:])
	id := MessageID{hashSHA256}
	copy(id[1:], h.Sum(nil))
	return id, nil
}

// ID returns the id of m from the URIs that it carries itself (ErrNoURI, and
// the errors of Encode). The caller has checked that they name the sender and
// the room; see SenderURI.
func (m Message) ID() (MessageID, error) {
	encoded, err := m.Encode()
	if err != nil {
		return MessageID{}, err
	}
	return ComputeID(m.SenderURI(), m.RoomURI(), m.Salt, encoded)
}

// SenderURI returns the sender's URI that m carries, empty when it carries
// none. The identity in it must be the one of the sender's credential:
// ParseUserURI gives it.
func (m Message) SenderURI() string { return m.Extensions.text(ExtSenderURI) }

// RoomURI returns the room's URI that m carries, empty when it carries none. It
// must be the room_uri of the room.
func (m Message) RoomURI() string { return m.Extensions.text(ExtRoomURI) }

// checkText demands UTF-8 within a limit in bytes.
func checkText(what, s string, limit int) error {
	if len(s) > limit {
		return fmt.Errorf("%w: %s of %d bytes, at most %d allowed", ErrLimit, what, len(s), limit)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%w: %s is not UTF-8", ErrEncoding, what)
	}
	return nil
}
