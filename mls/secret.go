package mls

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
)

// Secret is a secret byte string: a ratchet secret, a message key, a private
// key, a pre-shared key. It never prints its content: fmt verbs, String and
// GoString show only its length, and text marshallers refuse, log/slog with them,
// so that no error, log line or dump can carry it (RFC 9420 Section 16).
//
// Call [Secret.Wipe] as soon as a secret was consumed (RFC 9420 Section 9.2).
type Secret []byte

// String returns a redaction with the length in bytes.
func (s Secret) String() string { return fmt.Sprintf("Secret(%d bytes, redacted)", len(s)) }

// GoString returns the same redaction as String.
func (s Secret) GoString() string { return s.String() }

// Format writes the redaction whatever the verb is.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// errSecretMarshal is what the text marshallers return: a secret travels only
// in the binary forms that this package defines.
var errSecretMarshal = errors.New("mls: a secret is not written as text")

// MarshalText always fails.
func (s Secret) MarshalText() ([]byte, error) { return nil, errSecretMarshal }

// MarshalJSON always fails.
func (s Secret) MarshalJSON() ([]byte, error) { return nil, errSecretMarshal }

// Wipe overwrites the secret with zeros, in place: every slice that shares its
// memory is wiped too.
func (s Secret) Wipe() {
	clear(s)
}

// Equal compares in constant time. Secrets of different lengths differ.
func (s Secret) Equal(other []byte) bool { return subtle.ConstantTimeCompare(s, other) == 1 }

// wiped reports whether the secret was overwritten. A secret that is all zeros by
// itself does not occur.
func (s Secret) wiped() bool {
	var all byte
	for _, b := range s {
		all |= b
	}
	return len(s) > 0 && all == 0
}

// clone copies the secret, so that wiping one leaves the other.
func (s Secret) clone() Secret {
	if s == nil {
		return nil
	}
	return append(make(Secret, 0, len(s)), s...)
}

// wiper is anything that holds a secret: a Secret or a private key.
type wiper interface{ Wipe() }

// wipeAll wipes a list of secrets.
func wipeAll[T wiper](secrets []T) {
	for _, s := range secrets {
		s.Wipe()
	}
}
