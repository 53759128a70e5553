package mlstest

import (
	"crypto/rand"
	"math/bits"
	"runtime"
	"slices"
	"time"

	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
)

// Floors computes what an operation in a group of n has to cost, from the
// primitives alone: the table of seals, derivations, signatures and hashes of
// each. Seals and verifies of many divide by the processors.
type Floors struct {
	// The prices of what an operation cannot do without, measured in the same run
	// as the operation.
	Seal, Open, Derive, Sign, Verify, Hash, KDF, AEAD time.Duration
}

// MeasureFloors measures the primitives of a suite.
func MeasureFloors(cs *suite.Suite) Floors {
	signer, err := cs.GenerateSignatureKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	seed := make([]byte, 32)
	key, err := hpke.DeriveKeyPair(cs, seed)
	if err != nil {
		panic(err)
	}
	content, text := make([]byte, 256), make([]byte, 1024)
	sealed, err := hpke.EncryptWithLabel(cs, rand.Reader, key.Public(), "label", content, seed)
	if err != nil {
		panic(err)
	}
	signature, err := signer.SignWithLabel("label", content)
	if err != nil {
		panic(err)
	}
	median := func(f func()) time.Duration {
		times := make([]time.Duration, 101)
		for i := range times {
			start := time.Now()
			f()
			times[i] = time.Since(start)
		}
		slices.Sort(times)
		return times[len(times)/2]
	}
	return Floors{
		Seal:   median(func() { _, _ = hpke.EncryptWithLabel(cs, rand.Reader, key.Public(), "label", content, seed) }),
		Open:   median(func() { _, _ = key.DecryptWithLabel("label", content, &sealed) }),
		Derive: median(func() { _, _ = hpke.DeriveKeyPair(cs, seed) }),
		Sign:   median(func() { _, _ = signer.SignWithLabel("label", content) }),
		Verify: median(func() { cs.VerifyWithLabel(signer.Public(), "label", content, signature) }),
		Hash:   median(func() { cs.Hash(content) }),
		KDF:    median(func() { cs.DeriveSecret(seed, "label") }),
		AEAD:   median(func() { _, _ = cs.Seal(seed[:16], seed[:12], content, text) }),
	}
}

func cores() time.Duration { return time.Duration(runtime.GOMAXPROCS(0)) }

// path is the length of a direct path in a group of n.
func path(n int) time.Duration { return time.Duration(bits.Len(uint(n - 1))) }

// Bulk creates a group and adds n-1 members in one commit.
func (f Floors) Bulk(n int) time.Duration {
	m := time.Duration(n - 1)
	return m*(f.Seal+2*f.Verify)/cores() + 2*m*f.Hash
}

// Commit commits with a path in a populated tree.
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

// Join enters a group of n by Welcome.
func (f Floors) Join(n int) time.Duration {
	return f.Open + time.Duration(n)*f.Verify/cores() + 2*time.Duration(n)*f.Hash
}

// Message encrypts or decrypts 1 KiB, with the price of its signature.
func (f Floors) Message(signature time.Duration) time.Duration {
	return signature + 5*f.KDF + 2*f.AEAD
}
