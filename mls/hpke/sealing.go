package hpke

import (
	"fmt"
	"io"
	"runtime"

	"github.com/askucher/compax-core/internal/parallel"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// Sealing is encryptions to many that have begun: most of their work depends on
// the public keys alone, and processors that are free do it while the caller is
// still making what is to be encrypted. It is for one goroutine, and ends with
// [Sealing.Encrypt] or [Sealing.Cancel]: no goroutine outlives them.
type Sealing struct {
	suite *suite.Suite
	kem   kem
	keys  []wire.HPKEPublicKey
	seeds []byte
	begun []encapsulated
	errs  []error

	ahead *parallel.Work // the encapsulations; nil when the KEM makes none ahead
}

// encapsulated is what a KEM gives for one public key.
type encapsulated struct{ enc, shared []byte }

// maxChunk is how many encapsulations, of less than 0.1 ms each, a goroutine takes
// at a time at most: enough that handing out costs nothing beside it. Few, like
// the ten of a path in a tree of 1,000, are shared out evenly.
const maxChunk = 8

// Begin begins [EncryptWithLabel] to each of the public keys. All randomness is
// read here, in the order of the keys; the result depends on it only, except in
// the hybrid suite. That a key is none is told by [Sealing.Encrypt].
func Begin(cs *suite.Suite, rand io.Reader, keys []wire.HPKEPublicKey) (*Sealing, error) {
	k, err := lookup(cs)
	if err != nil {
		return nil, err
	}
	seeds, err := readSeed(rand, k.seedSize()*len(keys))
	if err != nil {
		return nil, err
	}
	s := &Sealing{
		suite: cs, kem: k, keys: keys, seeds: seeds,
		begun: make([]encapsulated, len(keys)), errs: make([]error, len(keys)),
	}
	if k.ahead() {
		s.ahead = parallel.Begin(s.each(s.encapsulate))
	}
	return s, nil
}

// each gives the parts in which something is done for each key, and how.
func (s *Sealing) each(one func(i int)) (parts int, do func(part int)) {
	chunk := max(1, min(maxChunk, len(s.keys)/(4*runtime.GOMAXPROCS(0))))
	return (len(s.keys) + chunk - 1) / chunk, func(part int) {
		for i := part * chunk; i < min((part+1)*chunk, len(s.keys)); i++ {
			one(i)
		}
	}
}

func (s *Sealing) encapsulate(i int) {
	size := s.kem.seedSize()
	seed := s.seeds[i*size : (i+1)*size]
	s.begun[i], s.errs[i] = s.kem.encapsulate(seed, s.keys[i])
	clear(seed)
}

// fewLate is up to how many encryptions are finished by the caller alone, of some
// µs each when their encapsulation is done.
const fewLate = 16

// Encrypt encrypts the plaintexts, one for each public key and in their order,
// under one label and context. The error is that of the first that fails and
// names its index; it wraps [ErrKey] for a key that is none or of low order. It
// panics when there are not as many plaintexts as keys.
func (s *Sealing) Encrypt(label string, context []byte, plaintexts [][]byte) ([]wire.HPKECiphertext, error) {
	if len(plaintexts) != len(s.keys) {
		panic("mls/hpke: a plaintext for each key")
	}
	prepared := s.kem.prepare(s.suite, encryptContext(label, context))
	if s.ahead != nil {
		s.ahead.Finish()
	}
	out := make([]wire.HPKECiphertext, len(s.keys))
	finish := func(i int) {
		if s.errs[i] == nil {
			out[i], s.errs[i] = encrypt(s.suite, s.kem, s.begun[i], s.keys[i], prepared, plaintexts[i])
		}
	}
	do := parallel.Do
	if s.ahead != nil && len(s.keys) <= fewLate {
		do = parallel.InTurn
	}
	do(s.each(finish))
	for i, err := range s.errs {
		if err != nil {
			return nil, fmt.Errorf("plaintext %d: %w", i, err)
		}
	}
	return out, nil
}

// Cancel ends what was begun, unless it has ended, and wipes it. It does nothing
// for a nil Sealing.
func (s *Sealing) Cancel() {
	if s == nil {
		return
	}
	if s.ahead != nil {
		s.ahead.Cancel()
	}
	clear(s.seeds)
	for i := range s.begun {
		clear(s.begun[i].shared)
	}
}
