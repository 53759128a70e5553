package mls

import (
	"fmt"

	"github.com/askucher/compax-core/mls/suite"
)

// Limits bounds what one sender can make a member keep or compute. The zero
// value means the defaults.
type Limits struct {
	// Forward is how many generations a message may be ahead of the newest one
	// seen from its sender; at most Forward key derivations happen for one
	// message. Default 2000.
	Forward uint32
	// Window is how many keys of skipped generations are kept per sender and
	// ratchet for messages that arrive late; the oldest go first. Default 1000.
	Window uint32
}

func (l Limits) forward() uint64 {
	if l.Forward == 0 {
		return 2000
	}
	return uint64(l.Forward)
}

func (l Limits) window() int {
	if l.Window == 0 {
		return 1000
	}
	return int(l.Window)
}

// messageKey is the single-use key and nonce of one generation (RFC 9420
// Section 9.1).
type messageKey struct {
	generation uint32
	key, nonce Secret
}

func (k messageKey) secrets() []wiper { return []wiper{k.key, k.nonce} }

// ratchet is one sender ratchet: immutable, each use gives the next value.
type ratchet struct {
	// secret is ratchet_secret of generation next; empty when the ratchet is
	// exhausted (next is 2^32).
	secret Secret
	// next is the first generation whose key was not derived yet.
	next uint64
	// skipped holds the keys of earlier generations that were not used,
	// ascending by generation.
	skipped []messageKey
}

// maxGenerations is the number of generations of one ratchet: a uint32 counts
// them.
const maxGenerations = 1 << 32

// derive gives the key of the generation r.next and the ratchet after it. The
// caller wipes r.secret.
func (r *ratchet) derive(cs *suite.Suite) (messageKey, *ratchet) {
	generation := uint32(r.next)
	key := messageKey{
		generation: generation,
		nonce:      cs.DeriveTreeSecret(r.secret, "nonce", generation, cs.NonceSize()),
		key:        cs.DeriveTreeSecret(r.secret, "key", generation, cs.KeySize()),
	}
	after := &ratchet{next: r.next + 1, skipped: r.skipped}
	if after.next < maxGenerations {
		after.secret = cs.DeriveTreeSecret(r.secret, "secret", generation, cs.HashSize())
	}
	return key, after
}

// forSending gives the next unused key. forget lists what the ratchet after it
// no longer holds.
func (r *ratchet) forSending(cs *suite.Suite) (key messageKey, after *ratchet, forget []wiper, err error) {
	if r.secret.wiped() { // what it gives everybody can compute
		return messageKey{}, nil, nil, ErrForgotten
	}
	if r.next >= maxGenerations {
		return messageKey{}, nil, nil, fmt.Errorf("%w: this sender's ratchet of the epoch is used up; commit to start a new epoch", ErrGenerationLimit)
	}
	key, after = r.derive(cs)
	return key, after, append(key.secrets(), r.secret), nil
}

// forReceiving gives the key of one generation, keeping the keys that it
// skips. It changes nothing by itself: only a caller that could decrypt keeps
// the returned ratchet.
func (r *ratchet) forReceiving(cs *suite.Suite, generation uint32, limits Limits) (key messageKey, after *ratchet, forget []wiper, err error) {
	if uint64(generation) < r.next {
		return r.late(generation)
	}
	if ahead := uint64(generation) - r.next; ahead > limits.forward() {
		return messageKey{}, nil, nil, fmt.Errorf("%w: generation %d is %d ahead of the last one seen, %d are allowed", ErrGenerationLimit, generation, ahead, limits.forward())
	}
	if r.secret.wiped() {
		return messageKey{}, nil, nil, ErrForgotten
	}
	window := limits.window()
	after = &ratchet{secret: r.secret, next: r.next, skipped: r.skipped}
	var fresh []messageKey
	for {
		forget = append(forget, after.secret)
		var k messageKey
		k, after = after.derive(cs)
		if k.generation == generation {
			key = k
			break
		}
		fresh = append(fresh, k)
	}
	total := len(r.skipped) + len(fresh)
	drop := max(0, total-window)
	kept := make([]messageKey, 0, total-drop)
	for i, k := range append(r.skipped[:len(r.skipped):len(r.skipped)], fresh...) {
		if i < drop {
			forget = append(forget, k.secrets()...)
			continue
		}
		kept = append(kept, k)
	}
	after.skipped = kept
	return key, after, append(forget, key.secrets()...), nil
}

// late takes the key of a generation that was skipped before.
func (r *ratchet) late(generation uint32) (messageKey, *ratchet, []wiper, error) {
	for i, k := range r.skipped {
		if k.generation != generation {
			continue
		}
		rest := make([]messageKey, 0, len(r.skipped)-1)
		rest = append(append(rest, r.skipped[:i]...), r.skipped[i+1:]...)
		return k, &ratchet{secret: r.secret, next: r.next, skipped: rest}, k.secrets(), nil
	}
	return messageKey{}, nil, nil, fmt.Errorf("%w: generation %d", ErrKeyConsumed, generation)
}

// wipe wipes everything the ratchet holds.
func (r *ratchet) wipe() {
	r.secret.Wipe()
	for _, k := range r.skipped {
		k.key.Wipe()
		k.nonce.Wipe()
	}
}
