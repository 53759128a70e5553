package follower

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

func TestKeyPackageVerify(t *testing.T) {
	w := newWorld(t)
	c := w.client("new")
	c.kp.Extensions = wire.Extensions{{ExtensionType: 0x2a2a}}
	w.seal(c)
	u, err := ParseKeyPackage(wire.Marshal(c.kp))
	w.must(err)
	k, err := u.Verify(w.options)
	w.must(err)
	if string(k.Ref()) != string(w.cs.KeyPackageRef(c.kp)) || k.Suite() != w.cs || k.LastResort() || k.Wire().InitKey == nil {
		t.Error("the verified key package is another one")
	}
	if _, err := ParseKeyPackage(append(wire.Marshal(c.kp), 0)); !errors.Is(err, wire.ErrTrailing) {
		t.Errorf("a byte too many: %v", err)
	}
	c.kp.CipherSuite = 0xfefe
	if _, err := UnverifiedFrom(c.kp).Verify(w.options); !errors.Is(err, suite.ErrUnknown) || !errors.Is(err, ErrKeyPackage) {
		t.Errorf("an unknown suite: %v", err)
	}
}

// TestKeyPackageCache: a signature is verified once, lifetime and credential each
// time, and a changed byte is another key package.
func TestKeyPackageCache(t *testing.T) {
	w := newWorld(t)
	w.options.KeyPackages = new(KeyPackageCache)
	c := w.client("new")
	_, err := UnverifiedFrom(c.kp).Verify(w.options)
	w.must(err)
	if n := len(w.options.KeyPackages.now); n != 1 {
		t.Fatalf("%d are remembered", n)
	}
	_, err = UnverifiedFrom(c.kp).Verify(w.options)
	w.must(err)
	late := w.options
	late.Now = w.now.Add(200 * 24 * time.Hour)
	if _, err := UnverifiedFrom(c.kp).Verify(late); !errors.Is(err, tree.ErrLifetime) {
		t.Errorf("when its lifetime has ended: %v", err)
	}
	strict := w.options
	strict.Credentials = refusing{"new": true}
	if _, err := UnverifiedFrom(c.kp).Verify(strict); !errors.Is(err, tree.ErrCredential) {
		t.Errorf("when its credential is refused now: %v", err)
	}
	forged := *c.kp
	forged.Signature = append([]byte(nil), c.kp.Signature...)
	forged.Signature[0] ^= 1
	if _, err := UnverifiedFrom(&forged).Verify(w.options); !errors.Is(err, ErrSignature) {
		t.Errorf("with another signature: %v", err)
	}
	if n := len(w.options.KeyPackages.now); n != 1 {
		t.Errorf("%d are remembered: a refused one among them", n)
	}
	cache := new(KeyPackageCache)
	for i := range 3 * cacheGeneration {
		cache.add([32]byte{byte(i), byte(i >> 8), 1})
	}
	if len(cache.now)+len(cache.old) > 2*cacheGeneration {
		t.Errorf("the cache holds %d", len(cache.now)+len(cache.old))
	}
	if !cache.has([32]byte{255, 47, 1}) || cache.has([32]byte{9, 9, 9}) {
		t.Error("the cache forgets the newest, or remembers what it never saw")
	}
}

// TestParallelVerification gives the same verdict as one by one, and names the
// same culprit.
func TestParallelVerification(t *testing.T) {
	w := newWorld(t)
	var list []*wire.Proposal
	for i := range 150 {
		list = append(list, w.client(fmt.Sprintf("m%d", i+1)).add())
	}
	good := w.commit(member(0), values(list...), bad{})
	list[140].Add.KeyPackage.Signature[0] ^= 1
	list[149].Add.KeyPackage.Signature[0] ^= 1
	wrong := w.commit(member(0), values(list...), bad{})
	var texts []string
	for _, parallel := range []bool{false, true} {
		o := w.options
		o.Parallel = parallel
		// The first commit shares the key packages that were spoiled since.
		_, err := w.g.StageCommit(wrong, o)
		if !errors.Is(err, ErrSignature) {
			t.Fatalf("parallel %v: %v", parallel, err)
		}
		texts = append(texts, err.Error())
	}
	if texts[0] != texts[1] {
		t.Errorf("one by one: %s\nparallel: %s", texts[0], texts[1])
	}
	list[140].Add.KeyPackage.Signature[0] ^= 1
	list[149].Add.KeyPackage.Signature[0] ^= 1
	for _, parallel := range []bool{false, true} {
		w.options.Parallel = parallel
		_, err := w.g.StageCommit(good, w.options)
		w.must(err)
	}
}
