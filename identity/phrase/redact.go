package phrase

import (
	"errors"
	"fmt"
	"io"
)

// hidden holds a secret inside a closure: fmt calls no methods on unexported
// fields and follows pointers to arrays under some verbs, but of a function it
// never shows more than an address. All copies share the secret and its end.
type hidden[T any] func() *cell[T]

type cell[T any] struct {
	secret *T // nil once wiped
}

func hide[T any](secret *T) hidden[T] {
	c := &cell[T]{secret}
	return func() *cell[T] { return c }
}

// get returns the secret, nil when there is none or no more.
func (h hidden[T]) get() *T {
	if h == nil {
		return nil
	}
	return h().secret
}

// wipe overwrites the secret; every copy of h holds none from then on.
func (h hidden[T]) wipe() {
	if secret := h.get(); secret != nil {
		var zero T
		*secret = zero
		h().secret = nil
	}
}

// Printed themselves, the secrets show this.
const redacted = "[redacted]"

var errSecret = errors.New("phrase: a secret is not marshalled; take its bytes explicitly and seal them")

// Format prints [redacted] for every verb.
func (Phrase) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// Format prints [redacted] for every verb.
func (Account) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// Format prints [redacted] for every verb.
func (Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText always fails.
func (Phrase) MarshalText() ([]byte, error) { return nil, errSecret }

// MarshalText always fails.
func (Account) MarshalText() ([]byte, error) { return nil, errSecret }

// MarshalText always fails.
func (Key) MarshalText() ([]byte, error) { return nil, errSecret }
