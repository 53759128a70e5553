package identity

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	usernameDomain = "compax-username-v1"

	// MinUsername and MaxUsername bound a username in characters.
	MinUsername = 3
	MaxUsername = 32
	// MaxDisplayName, MaxAbout bound the public profile in bytes of UTF-8.
	MaxDisplayName = 128
	MaxAbout       = 512
)

// PublicProfile is what a person chose to show to everybody, strangers and the
// server included. All of it is optional.
type PublicProfile struct {
	DisplayName string   `json:"display_name,omitempty"` // at most MaxDisplayName bytes
	About       string   `json:"about,omitempty"`        // at most MaxAbout bytes
	Picture     [32]byte `json:"-"`                      // SHA-256 of the picture's bytes; zero when there is none
}

// UsernameFields is what an identity signs about its public name.
type UsernameFields struct {
	Identity PublicKey
	Username string // normalised, see NormalizeUsername; empty when the identity holds none
	Version  uint64 // monotonic per identity
	IssuedAt uint64 // seconds since 1970
	Profile  PublicProfile
}

// UnverifiedUsernameRecord is a record whose signature nobody has checked.
type UnverifiedUsernameRecord struct {
	UsernameFields
	Signature Signature
}

// UsernameRecord is a verified record: the identity claims this username. Who
// holds a name is first come at each server; clients pin the identity that they
// first saw under a name and warn when it changes.
type UsernameRecord struct {
	u UnverifiedUsernameRecord
}

// NormalizeUsername returns the one form of a username: without a leading @ and
// in lower case. It refuses (ErrFormat) what is not MinUsername to MaxUsername
// letters a–z, digits and single underscores, starting with a letter and not
// ending with an underscore.
func NormalizeUsername(s string) (string, error) {
	// Only A-Z: strings.ToLower would turn the Kelvin sign into a k.
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.TrimPrefix(s, "@"))
	if err := checkUsername(name); err != nil {
		return "", err
	}
	return name, nil
}

func checkUsername(name string) error {
	if len(name) < MinUsername || len(name) > MaxUsername {
		return fmt.Errorf("%w: a username has %d to %d characters", ErrFormat, MinUsername, MaxUsername)
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z':
		case c >= '0' && c <= '9' && i > 0:
		case c == '_' && i > 0 && i < len(name)-1 && name[i-1] != '_':
		default:
			return fmt.Errorf("%w: a username has letters a-z, digits and single underscores, and starts with a letter", ErrFormat)
		}
	}
	return nil
}

// check holds the bounds of a record.
func (f UsernameFields) check() error {
	if f.Username != "" {
		if err := checkUsername(f.Username); err != nil {
			return err
		}
	}
	if err := checkText("display name", f.Profile.DisplayName, MaxDisplayName, false); err != nil {
		return err
	}
	return checkText("about", f.Profile.About, MaxAbout, true)
}

// checkText refuses text that is too long, not UTF-8, or holds control
// characters, separators of lines and paragraphs, or the bidirectional overrides
// that let a name pose as another. lines allows line feeds.
func checkText(what, s string, limit int, lines bool) error {
	if len(s) > limit {
		return fmt.Errorf("%w: %s of %d bytes, at most %d allowed", ErrFormat, what, len(s), limit)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%w: %s is not UTF-8", ErrFormat, what)
	}
	for _, r := range s {
		switch {
		case r == '\n' && lines:
		case unicode.IsControl(r), r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return fmt.Errorf("%w: %s holds the control character %U", ErrFormat, what, r)
		}
	}
	return nil
}

// appendTo appends the signed bytes, big-endian:
//
//	"compax-username-v1" ‖ identity[32] ‖ version u64 ‖ issued_at u64 ‖
//	u16 len ‖ username ‖ u16 len ‖ display name ‖ u16 len ‖ about ‖ picture[32]
func (f UsernameFields) appendTo(b []byte) []byte {
	b = append(b, usernameDomain...)
	b = append(b, f.Identity[:]...)
	b = binary.BigEndian.AppendUint64(b, f.Version)
	b = binary.BigEndian.AppendUint64(b, f.IssuedAt)
	for _, s := range []string{f.Username, f.Profile.DisplayName, f.Profile.About} {
		b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
		b = append(b, s...)
	}
	return append(b, f.Profile.Picture[:]...)
}

// SignUsername signs a record with the identity's key (ErrFormat, ErrKey,
// ErrSigner).
func SignUsername(f UsernameFields, identityKey Signer) (UsernameRecord, error) {
	if err := f.check(); err != nil {
		return UsernameRecord{}, err
	}
	if err := f.Identity.Check(); err != nil {
		return UsernameRecord{}, err
	}
	sig, err := sign(identityKey, f.Identity, f.appendTo(nil))
	if err != nil {
		return UsernameRecord{}, err
	}
	return UsernameRecord{UnverifiedUsernameRecord{f, sig}}, nil
}

// MaxUsernameRecord bounds the encoded record in bytes.
const MaxUsernameRecord = len(usernameDomain) + 32 + 8 + 8 + 3*2 + MaxUsername + MaxDisplayName + MaxAbout + 32 + SignatureSize

// ParseUsernameRecord reads the bytes that Bytes returns (ErrFormat).
func ParseUsernameRecord(b []byte) (UnverifiedUsernameRecord, error) {
	var u UnverifiedUsernameRecord
	const fixed = len(usernameDomain) + 32 + 8 + 8
	if len(b) < fixed || len(b) > MaxUsernameRecord || string(b[:len(usernameDomain)]) != usernameDomain {
		return u, fmt.Errorf("%w: username record of %d bytes", ErrFormat, len(b))
	}
	b = b[len(usernameDomain):]
	b = b[copy(u.Identity[:], b):]
	u.Version = binary.BigEndian.Uint64(b)
	u.IssuedAt = binary.BigEndian.Uint64(b[8:])
	b = b[16:]
	for _, dst := range []*string{&u.Username, &u.Profile.DisplayName, &u.Profile.About} {
		if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
			return UnverifiedUsernameRecord{}, fmt.Errorf("%w: username record is cut short", ErrFormat)
		}
		n := int(binary.BigEndian.Uint16(b))
		*dst = string(b[2 : 2+n])
		b = b[2+n:]
	}
	if len(b) != len(u.Profile.Picture)+SignatureSize {
		return UnverifiedUsernameRecord{}, fmt.Errorf("%w: username record ends with %d bytes", ErrFormat, len(b))
	}
	b = b[copy(u.Profile.Picture[:], b):]
	copy(u.Signature[:], b)
	return u, nil
}

// Verify checks the bounds and the identity's signature by the strict rule
// (ErrFormat, ErrSignature).
func (u UnverifiedUsernameRecord) Verify() (UsernameRecord, error) {
	if err := u.check(); err != nil {
		return UsernameRecord{}, err
	}
	if !VerifyStrict(u.Identity[:], u.appendTo(nil), u.Signature[:]) {
		return UsernameRecord{}, fmt.Errorf("%w: username record of %s", ErrSignature, u.Identity)
	}
	return UsernameRecord{u}, nil
}

// Fields returns what the identity signed.
func (r UsernameRecord) Fields() UsernameFields { return r.u.UsernameFields }

// IsZero reports whether r is the zero value rather than a record.
func (r UsernameRecord) IsZero() bool { return r == UsernameRecord{} }

// Bytes returns what ParseUsernameRecord reads.
func (r UsernameRecord) Bytes() []byte {
	return append(r.u.appendTo(nil), r.u.Signature[:]...)
}

// CheckSuccessor decides whether next may replace r for one identity: the
// version rises, or everything is the same (ErrKey for another identity,
// ErrStale, ErrEquivocation).
func (r UsernameRecord) CheckSuccessor(next UsernameRecord) error {
	switch {
	case r.u.Identity != next.u.Identity:
		return fmt.Errorf("%w: a username record of %s follows one of %s", ErrKey, next.u.Identity, r.u.Identity)
	case next.u.Version < r.u.Version:
		return fmt.Errorf("%w: username record is at %d, offered %d", ErrStale, r.u.Version, next.u.Version)
	case next.u.Version == r.u.Version && r != next:
		return fmt.Errorf("%w: username record at version %d", ErrEquivocation, next.u.Version)
	}
	return nil
}
