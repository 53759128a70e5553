package identity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	// EnvelopeHeader is the name of the HTTP header that carries an envelope.
	EnvelopeHeader = "x-chat-relay"
	// EnvelopeSkew is how far issued_at may be from the verifier's clock, in
	// either direction, the bound included.
	EnvelopeSkew = 60 * time.Second

	envelopeDomain = "chat-relay-envelope-v1"

	// MaxEnvelopeMethod and MaxEnvelopeTarget bound the method and the request
	// target in bytes; MaxEnvelopeHeader bounds the header's value.
	MaxEnvelopeMethod = 16
	MaxEnvelopeTarget = 32 << 10
	MaxEnvelopeHeader = 64 << 10
)

var (
	// ErrEnvelopeRequest says that the envelope names another method or request
	// target than the request that carries it.
	ErrEnvelopeRequest = errors.New("identity: envelope is for another request")
	// ErrWrongHome says that a validly signed envelope is addressed to another
	// home; only that home may act on it.
	ErrWrongHome = errors.New("identity: envelope is for another home")
	// ErrSkew says that a validly signed envelope was issued too long ago or in
	// the future: the sender's clock is wrong, or somebody replays it.
	ErrSkew = errors.New("identity: envelope is outside the time window")
)

// Nonce is the single-use number of an envelope. Its text and JSON form is
// lower-case hex, except inside the header.
type Nonce [16]byte

// EnvelopeRequest is what a device signs about one HTTP request.
type EnvelopeRequest struct {
	Home     Home   // the home that shall act on it
	Method   string // as in the request line, in its exact case
	Target   string // raw path and query of the request line, exactly as sent
	Body     []byte // the exact bytes of the body; may be empty
	IssuedAt uint64 // seconds since 1970
	Nonce    Nonce  // random, never used twice by this device
}

// UnverifiedEnvelope is a parsed header that nobody has checked against a
// request.
type UnverifiedEnvelope struct {
	DevicePubkey DevicePublicKey
	Home         Home
	Method       string
	Target       string
	IssuedAt     uint64
	Nonce        Nonce
	Signature    Signature
}

// Envelope is a verified envelope: the device with this key made this request
// for this home at about this time. It is not yet fresh: the caller must spend
// NonceKey in a store that all instances share, until NonceExpiry.
type Envelope struct {
	u    UnverifiedEnvelope
	skew time.Duration
}

// appendEnvelope appends the signed bytes, big-endian:
//
//	"chat-relay-envelope-v1" ‖ device_pubkey[32] ‖ home[3] ‖ u32 len ‖ method ‖
//	u32 len ‖ target ‖ u32 len ‖ body ‖ issued_at u64 ‖ nonce[16]
//
// Each variable field is preceded by its length, so different requests never
// lay out alike.
func appendEnvelope(b []byte, device DevicePublicKey, r EnvelopeRequest) []byte {
	b = append(b, envelopeDomain...)
	b = append(b, device[:]...)
	b = append(b, r.Home[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Method)))
	b = append(b, r.Method...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Target)))
	b = append(b, r.Target...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Body)))
	b = append(b, r.Body...)
	b = binary.BigEndian.AppendUint64(b, r.IssuedAt)
	return append(b, r.Nonce[:]...)
}

func envelopeSize(r EnvelopeRequest) int {
	return len(envelopeDomain) + 32 + 3 + 3*4 + len(r.Method) + len(r.Target) + len(r.Body) + 8 + 16
}

// check holds the bounds of a request that is signed or verified.
func (r EnvelopeRequest) check() error {
	if r.Method == "" || len(r.Method) > MaxEnvelopeMethod {
		return fmt.Errorf("%w: envelope method of %d bytes, not 1 to %d", ErrFormat, len(r.Method), MaxEnvelopeMethod)
	}
	if r.Target == "" || r.Target[0] != '/' || len(r.Target) > MaxEnvelopeTarget {
		return fmt.Errorf("%w: envelope target must start with / and have at most %d bytes", ErrFormat, MaxEnvelopeTarget)
	}
	if !visibleASCII(r.Method) || !visibleASCII(r.Target) {
		return fmt.Errorf("%w: envelope method or target has a character that no request line can carry", ErrFormat)
	}
	// mutants: equivalent: a body of 4 GiB is more than a test can hold
	if uint64(len(r.Body)) > math.MaxUint32 {
		return fmt.Errorf("%w: envelope body of %d bytes", ErrFormat, len(r.Body))
	}
	return nil
}

func visibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// Seal signs a request with a device's key and returns the value of the
// x-chat-relay header (ErrFormat, ErrSigner).
func Seal(deviceKey Signer, r EnvelopeRequest) (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	pub, err := PublicKeyOf(deviceKey)
	if err != nil {
		return "", err
	}
	sig, err := sign(deviceKey, pub, appendEnvelope(make([]byte, 0, envelopeSize(r)), pub, r))
	if err != nil {
		return "", err
	}
	return UnverifiedEnvelope{
		DevicePubkey: pub,
		Home:         r.Home,
		Method:       r.Method,
		Target:       r.Target,
		IssuedAt:     r.IssuedAt,
		Nonce:        r.Nonce,
		Signature:    sig,
	}.header(), nil
}

// Verify checks the envelope against the request that carried it: method and
// raw request target (path and query) byte for byte, the exact body, the
// signature by the strict rule, the home, and that issued_at is within skew of
// now, both edges included.
//
// The errors are checked in this order, so that a stranger learns nothing:
// ErrFormat, ErrEnvelopeRequest, ErrSignature, then, for a genuine signature
// only, ErrWrongHome and ErrSkew.
func (u UnverifiedEnvelope) Verify(method, rawTarget string, body []byte, home Home, now time.Time, skew time.Duration) (Envelope, error) {
	if err := u.names(method, rawTarget); err != nil {
		return Envelope{}, err
	}
	r := EnvelopeRequest{Home: u.Home, Method: method, Target: rawTarget, Body: body, IssuedAt: u.IssuedAt, Nonce: u.Nonce}
	if err := r.check(); err != nil {
		return Envelope{}, err
	}
	signed := appendEnvelope(make([]byte, 0, envelopeSize(r)), u.DevicePubkey, r)
	if !VerifyStrict(u.DevicePubkey[:], signed, u.Signature[:]) {
		return Envelope{}, fmt.Errorf("%w: envelope", ErrSignature)
	}
	if err := u.window(home, now, skew); err != nil {
		return Envelope{}, err
	}
	return Envelope{u, skew}, nil
}

// Check says what is wrong for certain before the body is here, for who would not read
// a body for nothing: ErrEnvelopeRequest, ErrWrongHome or ErrSkew. It proves nothing:
// [UnverifiedEnvelope.Verify] does.
func (u UnverifiedEnvelope) Check(method, rawTarget string, home Home, now time.Time, skew time.Duration) error {
	if err := u.names(method, rawTarget); err != nil {
		return err
	}
	return u.window(home, now, skew)
}

func (u UnverifiedEnvelope) names(method, rawTarget string) error {
	if u.Method != method || u.Target != rawTarget {
		return fmt.Errorf("%w: method or path differ", ErrEnvelopeRequest)
	}
	return nil
}

// window checks home and time.
func (u UnverifiedEnvelope) window(home Home, now time.Time, skew time.Duration) error {
	if u.Home != home {
		return fmt.Errorf("%w: it names %s, this is %s", ErrWrongHome, u.Home, home)
	}
	// Beyond this the conversion to time.Time is of no use to anybody.
	const farFuture = 1 << 40
	if u.IssuedAt > farFuture {
		return fmt.Errorf("%w: issued_at is not a time in seconds", ErrSkew)
	}
	if off := now.Sub(u.issued()); off > skew || off < -skew {
		return fmt.Errorf("%w: issued %s off the clock here, at most %s allowed", ErrSkew, off.Round(time.Second), skew)
	}
	return nil
}

func (u UnverifiedEnvelope) issued() time.Time { return time.Unix(int64(u.IssuedAt), 0) }

// Device returns the key of the device that signed.
func (e Envelope) Device() DevicePublicKey { return e.u.DevicePubkey }

// Home returns the home that the envelope is addressed to.
func (e Envelope) Home() Home { return e.u.Home }

// IssuedAt returns when the device says that it signed.
func (e Envelope) IssuedAt() time.Time { return e.u.issued() }

// Nonce returns the single-use number.
func (e Envelope) Nonce() Nonce { return e.u.Nonce }

// NonceKey names the nonce in a shared store: the device's key and the nonce.
// One device cannot use up another's.
func (e Envelope) NonceKey() [48]byte {
	var k [48]byte
	copy(k[:], e.u.DevicePubkey[:])
	copy(k[32:], e.u.Nonce[:])
	return k
}

// NonceExpiry returns until when the nonce must be remembered: two windows
// after issued_at, one in which the envelope is accepted and one for clocks
// that differ between instances.
func (e Envelope) NonceExpiry() time.Time { return e.u.issued().Add(2 * e.skew) }

// Predates reports whether the envelope may have been used before the nonce
// store was born, so that its nonce cannot be known to be unused: it must be
// refused as busy (503), and succeeds when it is signed anew a minute later.
func (e Envelope) Predates(birth time.Time) bool {
	return e.u.issued().Before(birth.Add(e.skew))
}
