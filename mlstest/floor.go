package mlstest

import (
	"crypto/rand"
	"math/bits"
	"runtime"
	"slices"
	"time"

	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// Floors computes what an operation in a group of n has to cost, from the
// primitives alone: the table of seals, derivations, signatures and hashes of
// each. Seals and verifies of many divide by the processors.
type Floors struct {
	// The prices of what an operation cannot do without, measured beside it.
	Seal, Open, Derive, Sign, Verify, Hash, KDF, AEAD time.Duration
}

// Meter measures the primitives of a suite, as often as it is asked: a floor that
// stands beside an operation is measured when the operation is, because what a
// machine does in the meantime changes both. It is not safe for concurrent use.
type Meter struct {
	primitives []func()
	times      [][]time.Duration // of each, all that was measured
}

// NewMeter prepares what the primitives of a suite are measured on. A primitive
// that fails panics.
func NewMeter(cs *suite.Suite) *Meter {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	signer, err := cs.GenerateSignatureKey(rand.Reader)
	must(err)
	seed := make([]byte, 32)
	key, err := hpke.DeriveKeyPair(cs, seed)
	must(err)
	content, text := make([]byte, 256), make([]byte, 1024)
	seal := func() (wire.HPKECiphertext, error) {
		return hpke.EncryptWithLabel(cs, rand.Reader, key.Public(), "label", content, seed)
	}
	sealed, err := seal()
	must(err)
	signature, err := signer.SignWithLabel("label", content)
	must(err)
	m := &Meter{primitives: []func(){ // in the order of the fields of Floors
		func() { _, err := seal(); must(err) },
		func() { _, err := key.DecryptWithLabel("label", content, &sealed); must(err) },
		func() { _, err := hpke.DeriveKeyPair(cs, seed); must(err) },
		func() { _, err := signer.SignWithLabel("label", content); must(err) },
		func() {
			if !cs.VerifyWithLabel(signer.Public(), "label", content, signature) {
				panic("mlstest: a signature does not verify")
			}
		},
		func() { cs.Hash(content) },
		func() { cs.DeriveSecret(seed, "label") },
		func() { _, err := cs.Seal(seed[:16], seed[:12], content, text); must(err) },
	}}
	m.times = make([][]time.Duration, len(m.primitives))
	return m
}

// Measure does every primitive so many times and gives the medians.
func (m *Meter) Measure(times int) Floors {
	for i, do := range m.primitives {
		for range times {
			start := time.Now()
			do()
			m.times[i] = append(m.times[i], time.Since(start))
		}
	}
	return m.floors(times)
}

// Median is that of everything measured so far; there must be something.
func (m *Meter) Median() Floors { return m.floors(len(m.times[0])) }

// floors gives the medians of the last so many times.
func (m *Meter) floors(last int) Floors {
	median := make([]time.Duration, len(m.times))
	for i, all := range m.times {
		sorted := slices.Sorted(slices.Values(all[len(all)-last:]))
		median[i] = sorted[len(sorted)/2]
	}
	return Floors{
		Seal: median[0], Open: median[1], Derive: median[2], Sign: median[3],
		Verify: median[4], Hash: median[5], KDF: median[6], AEAD: median[7],
	}
}

func cores() time.Duration { return time.Duration(runtime.GOMAXPROCS(0)) }

// path is the length of a direct path in a group of n.
func path(n int) time.Duration { return time.Duration(bits.Len(uint(n - 1))) }

// Bulk creates a group and adds n-1 members in one commit with a path: a Welcome
// and two signatures of a key package for each, the key pairs of the creator's leaf
// and of the path, and four signatures: of that leaf twice, the commit and the
// GroupInfo.
func (f Floors) Bulk(n int) time.Duration {
	m := time.Duration(n - 1)
	return m*(f.Seal+2*f.Verify)/cores() + (path(n)+2)*f.Derive + 4*f.Sign + 2*m*f.Hash
}

// Commit commits with a path in a populated tree: it signs its leaf, the commit and
// the GroupInfo.
func (f Floors) Commit(n int) time.Duration {
	return path(n)*f.Seal/cores() + (path(n)+1)*f.Derive + 3*f.Sign + 20*(f.Hash+f.KDF)
}

// Process processes a commit, for a member that shares the whole path with the
// committer.
func (f Floors) Process(n int) time.Duration {
	return f.Open + path(n)*f.Derive + 2*f.Verify + 20*(f.Hash+f.KDF)
}

// Far is Process for a member that shares the root alone with the committer.
func (f Floors) Far() time.Duration { return f.Open + f.Derive + 2*f.Verify + 20*(f.Hash+f.KDF) }

// Join enters a group of n by Welcome: the signatures of the leaves and of the
// GroupInfo, and of the nodes that it shares with the committer at least the root's
// key pair.
func (f Floors) Join(n int) time.Duration {
	return f.Open + f.Derive + time.Duration(n+1)*f.Verify/cores() + 2*time.Duration(n)*f.Hash
}

// Message encrypts or decrypts 1 KiB, with the price of its signature.
func (f Floors) Message(signature time.Duration) time.Duration {
	return signature + 5*f.KDF + 2*f.AEAD
}
