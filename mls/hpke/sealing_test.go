package hpke

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// TestSealingCanceled: whoever begins and does not go on keeps no goroutine, no
// randomness and no shared secret.
func TestSealingCanceled(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	cs := mustSuite(t, suite.X25519AES128GCMSHA256Ed25519)
	key, err := DeriveKeyPair(cs, []byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]wire.HPKEPublicKey, 400)
	for i := range keys {
		keys[i] = key.Public()
	}
	before := runtime.NumGoroutine()
	s, err := Begin(cs, rand.NewChaCha8([32]byte{}), keys)
	if err != nil {
		t.Fatal(err)
	}
	s.Cancel()
	// Wait has returned, but who called Done may still be on its last instruction.
	for runtime.NumGoroutine() > before {
		runtime.Gosched()
	}
	if !bytes.Equal(s.seeds, make([]byte, len(s.seeds))) {
		t.Error("randomness is left")
	}
	for i, e := range s.begun {
		if !bytes.Equal(e.shared, make([]byte, len(e.shared))) {
			t.Fatalf("the shared secret %d is left", i)
		}
	}
	var none *Sealing
	none.Cancel()
}

// TestSealingWithAnyProcessors: the result does not depend on who does the work,
// nor on when.
func TestSealingWithAnyProcessors(t *testing.T) {
	cs := mustSuite(t, suite.X25519AES128GCMSHA256Ed25519)
	key, err := DeriveKeyPair(cs, []byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 5, 40} {
		keys, data := make([]wire.HPKEPublicKey, n), make([][]byte, n)
		for i := range keys {
			keys[i], data[i] = key.Public(), []byte{byte(i)}
		}
		var first []wire.HPKECiphertext
		for _, processors := range []int{1, 2, 8} {
			out := func() []wire.HPKECiphertext {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
				s, err := Begin(cs, rand.NewChaCha8([32]byte{1}), keys)
				if err != nil {
					t.Fatal(err)
				}
				out, err := s.Encrypt("l", []byte("c"), data)
				if err != nil {
					t.Fatal(err)
				}
				s.Cancel() // after the end: nothing
				return out
			}()
			if first == nil {
				first = out
			}
			for i := range out {
				if !bytes.Equal(out[i].KEMOutput, first[i].KEMOutput) || !bytes.Equal(out[i].Ciphertext, first[i].Ciphertext) {
					t.Fatalf("%d of %d differs on %d processors", i, n, processors)
				}
				plaintext, err := key.DecryptWithLabel("l", []byte("c"), &out[i])
				if err != nil || !bytes.Equal(plaintext, data[i]) {
					t.Fatalf("%d of %d opens to %x, %v", i, n, plaintext, err)
				}
			}
		}
	}
}
