package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/askucher/compax-core/identity"
)

// TestRevocationsAreVerifiedOnce: what was verified is known by all of its bytes; a
// forged one is refused each time, also beside a genuine one.
func TestRevocationsAreVerifiedOnce(t *testing.T) {
	var c revocationCache
	bob := newPerson(2)
	raw := bob.device(t, 21).revocation(t, bob).Bytes()
	forged := append([]byte(nil), raw...)
	forged[len(forged)-40] ^= 1
	for range 2 {
		if _, err := c.verify(forged); !errors.Is(err, identity.ErrSignature) {
			t.Fatalf("a forged revocation: %v", err)
		}
		r, err := c.verify(raw)
		if err != nil || string(r.Bytes()) != string(raw) {
			t.Fatalf("%x, %v", r.Bytes(), err)
		}
	}
	if _, found := c.find(sha256.Sum256(raw)); !found {
		t.Error("what was verified is not known")
	}
	if _, found := c.find(sha256.Sum256(forged)); found {
		t.Error("what was refused is known")
	}
	if _, err := c.verify(raw[:40]); !errors.Is(err, identity.ErrFormat) {
		t.Errorf("a part of one: %v", err)
	}
}

// TestVerifiedRevocationsAreBounded: the cache never holds more than its two halves,
// and what is asked for again and again stays.
func TestVerifiedRevocationsAreBounded(t *testing.T) {
	var c revocationCache
	bob := newPerson(2)
	raw := bob.device(t, 21).revocation(t, bob).Bytes()
	r, err := c.verify(raw)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5 * rememberedRevocations {
		var key [32]byte
		binary.BigEndian.PutUint64(key[:], uint64(n))
		c.mu.Lock()
		c.put(key, r)
		c.mu.Unlock()
		if n%(rememberedRevocations/2) == 0 {
			if _, found := c.find(sha256.Sum256(raw)); !found {
				t.Fatalf("forgotten after %d others", n)
			}
		}
	}
	if held := len(c.young) + len(c.older); held > 2*rememberedRevocations {
		t.Errorf("%d are held", held)
	}
}

func BenchmarkParseFullDictionary(b *testing.B) {
	bob := newPerson(2)
	list := make(Revocations, maxRevocations)
	for i := range list {
		f := identity.RevocationFields{Identity: bob.id, DeviceID: identity.DeviceID{byte(i >> 8), byte(i)}, IssuedAt: 1}
		var err error
		if list[i], err = identity.Revoke(f, bob.key); err != nil {
			b.Fatal(err)
		}
	}
	data := list.Bytes()
	if _, err := ParseRevocations(data); err != nil { // verified once
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ParseRevocations(data); err != nil {
			b.Fatal(err)
		}
	}
}
