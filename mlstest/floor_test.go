package mlstest_test

import (
	"crypto/rand"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
)

// primitives are the prices of what an operation cannot do without, measured in
// the same run as the operation.
type primitives struct {
	seal, open, derive, sign, verify, hash, kdf, aead time.Duration
}

// floors computes, from the primitives alone, what an operation in a group of n
// has to cost: the table of seals, derivations, signatures and hashes of each.
// Seals and verifies of many divide by the processors.
type floors struct{ primitives }

var measure = sync.OnceValue(func() floors {
	cs, err := suite.Lookup(benchSuite)
	if err != nil {
		panic(err)
	}
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
	return floors{primitives{
		seal:   median(func() { _, _ = hpke.EncryptWithLabel(cs, rand.Reader, key.Public(), "label", content, seed) }),
		open:   median(func() { _, _ = key.DecryptWithLabel("label", content, &sealed) }),
		derive: median(func() { _, _ = hpke.DeriveKeyPair(cs, seed) }),
		sign:   median(func() { _, _ = signer.SignWithLabel("label", content) }),
		verify: median(func() { cs.VerifyWithLabel(signer.Public(), "label", content, signature) }),
		hash:   median(func() { cs.Hash(content) }),
		kdf:    median(func() { cs.DeriveSecret(seed, "label") }),
		aead:   median(func() { _, _ = cs.Seal(seed[:16], seed[:12], content, text) }),
	}}
})

func cores() time.Duration { return time.Duration(runtime.GOMAXPROCS(0)) }

// path is the length of a direct path in a group of n.
func path(n int) time.Duration { return time.Duration(bits.Len(uint(n - 1))) }

func (f floors) bulk(n int) time.Duration {
	m := time.Duration(n - 1)
	return m*(f.seal+2*f.verify)/cores() + 2*m*f.hash
}

func (f floors) commit(n int) time.Duration {
	return path(n)*f.seal/cores() + (path(n)+1)*f.derive + 3*f.sign + 20*(f.hash+f.kdf)
}

// process is the floor for a member that shares the whole path with the
// committer; far is the floor for one that shares the root alone.
func (f floors) process(n int) time.Duration {
	return f.open + path(n)*f.derive + 2*f.verify + 20*(f.hash+f.kdf)
}

func (f floors) far() time.Duration { return f.open + f.derive + 2*f.verify + 20*(f.hash+f.kdf) }

func (f floors) join(n int) time.Duration {
	return f.open + time.Duration(n)*f.verify/cores() + 2*time.Duration(n)*f.hash
}

func (f floors) message(signature time.Duration) time.Duration {
	return signature + 5*f.kdf + 2*f.aead
}

// against reports how many times its floor an operation costs.
func against(b *testing.B, floor time.Duration) {
	b.Helper()
	b.ReportMetric(float64(floor.Nanoseconds()), "floor-ns/op")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(floor.Nanoseconds()), "x-floor")
}
