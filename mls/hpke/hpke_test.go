package hpke

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

func mustSuite(t testing.TB, id wire.CipherSuite) *suite.Suite {
	t.Helper()
	cs, err := suite.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// brokenRand fails after n bytes.
type brokenRand struct{ n int }

var errBroken = errors.New("no randomness")

func (r *brokenRand) Read(b []byte) (int, error) {
	n := min(len(b), r.n)
	r.n -= n
	if n < len(b) {
		return n, errBroken
	}
	return n, nil
}

// TestRandomnessFails: no ciphertext without all of its randomness.
func TestRandomnessFails(t *testing.T) {
	cs := mustSuite(t, suite.X25519AES128GCMSHA256Ed25519)
	key, err := DeriveKeyPair(cs, []byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := EncryptWithLabel(cs, &brokenRand{31}, key.Public(), "l", nil, nil); !errors.Is(err, errBroken) {
		t.Errorf("EncryptWithLabel: %v", err)
	}
	if _, _, err := ExportSender(cs, &brokenRand{31}, key.Public(), "l", 32); !errors.Is(err, errBroken) {
		t.Errorf("ExportSender: %v", err)
	}
	two := []Plaintext{{PublicKey: key.Public()}, {PublicKey: key.Public()}}
	if _, err := EncryptAllWithLabel(cs, &brokenRand{63}, "l", nil, two); !errors.Is(err, errBroken) {
		t.Errorf("EncryptAllWithLabel: %v", err)
	}
	var none io.Reader = &brokenRand{0}
	if out, err := EncryptAllWithLabel(cs, none, "l", nil, nil); err != nil || len(out) != 0 {
		t.Errorf("nothing to encrypt: %v", err)
	}
}

// TestEncryptAllNamesTheBadKey: one low-order key fails the whole, and the
// error says which.
func TestEncryptAllNamesTheBadKey(t *testing.T) {
	cs := mustSuite(t, suite.X25519AES128GCMSHA256Ed25519)
	key, err := DeriveKeyPair(cs, []byte("k"))
	if err != nil {
		t.Fatal(err)
	}
	all := make([]Plaintext, 30)
	for i := range all {
		all[i].PublicKey = key.Public()
	}
	all[17].PublicKey = make([]byte, 32)
	out, err := EncryptAllWithLabel(cs, rand.NewChaCha8([32]byte{}), "l", nil, all)
	if out != nil || !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), "plaintext 17") {
		t.Errorf("%d ciphertexts, %v", len(out), err)
	}
}

// TestWithoutThe448Package: the suite's KEM is named, and nothing panics.
func TestWithoutThe448Package(t *testing.T) {
	linked := kemX448
	kemX448 = nil
	defer func() { kemX448 = linked }()
	cs := mustSuite(t, suite.X448AES256GCMSHA512Ed448)
	if _, err := DeriveKeyPair(cs, []byte("k")); !errors.Is(err, ErrNoKEM) {
		t.Errorf("DeriveKeyPair: %v", err)
	}
	if _, err := NewPrivateKey(cs, make([]byte, 56)); !errors.Is(err, ErrNoKEM) {
		t.Errorf("NewPrivateKey: %v", err)
	}
	if _, err := EncryptWithLabel(cs, rand.NewChaCha8([32]byte{}), make([]byte, 56), "l", nil, nil); !errors.Is(err, ErrNoKEM) {
		t.Errorf("EncryptWithLabel: %v", err)
	}
}

// TestPrivateKeysDoNotPrint, and are gone after Wipe.
func TestPrivateKeysDoNotPrint(t *testing.T) {
	for _, id := range suite.Known() {
		cs, err := suite.Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		key, err := DeriveKeyPair(cs, bytes.Repeat([]byte{9}, 64))
		if err != nil {
			t.Fatal(err)
		}
		secret := hex.EncodeToString(key.Bytes()[8:12])
		decimal := strings.Trim(fmt.Sprint(key.Bytes()[8:12]), "[]")
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
			for _, v := range []any{key, *key, []*PrivateKey{key}, struct{ K PrivateKey }{*key}} {
				if text := fmt.Sprintf(verb, v); strings.Contains(strings.ToLower(text), secret) || strings.Contains(text, decimal) {
					t.Errorf("%v: %s shows the key: %s", cs, verb, text)
				}
			}
		}
		ct, err := EncryptWithLabel(cs, rand.NewChaCha8([32]byte{}), key.Public(), "l", nil, []byte("p"))
		if err != nil {
			t.Fatal(err)
		}
		held := key.Bytes()
		key.Wipe()
		if !bytes.Equal(held, make([]byte, len(held))) || len(key.Bytes()) != 0 {
			t.Errorf("%v: the bytes are still there", cs)
		}
		if _, err := key.DecryptWithLabel("l", nil, &ct); !errors.Is(err, ErrKey) {
			t.Errorf("%v: a wiped key: %v", cs, err)
		}
	}
}

// TestKeyPairFromStorage: a stored pair opens what the key opens; a public key
// of somebody else opens nothing.
func TestKeyPairFromStorage(t *testing.T) {
	for _, id := range suite.Known() {
		cs := mustSuite(t, id)
		key, err := DeriveKeyPair(cs, bytes.Repeat([]byte{9}, 64))
		if err != nil {
			t.Fatal(err)
		}
		other, err := DeriveKeyPair(cs, bytes.Repeat([]byte{8}, 64))
		if err != nil {
			t.Fatal(err)
		}
		ct, err := EncryptWithLabel(cs, rand.NewChaCha8([32]byte{}), key.Public(), "l", nil, []byte("p"))
		if err != nil {
			t.Fatal(err)
		}
		stored, err := NewKeyPair(cs, key.Bytes(), key.Public())
		if err != nil || !bytes.Equal(stored.Public(), key.Public()) || !bytes.Equal(stored.Bytes(), key.Bytes()) {
			t.Fatalf("%v: another key came back, %v", cs, err)
		}
		if plaintext, err := stored.DecryptWithLabel("l", nil, &ct); err != nil || string(plaintext) != "p" {
			t.Errorf("%v: %q, %v", cs, plaintext, err)
		}
		if err := stored.CheckPair(); err != nil {
			t.Errorf("%v: the pair that was stored: %v", cs, err)
		}
		wrong, err := NewKeyPair(cs, key.Bytes(), other.Public())
		if err != nil {
			t.Fatal(err)
		}
		// The hybrid KEM computes the public key again, so nothing is wrong there.
		if _, err := wrong.DecryptWithLabel("l", nil, &ct); cs.KEM() != suite.KEMMLKEM768X25519 && !errors.Is(err, ErrOpen) {
			t.Errorf("%v: with another public key: %v", cs, err)
		}
		if err := wrong.CheckPair(); cs.KEM() != suite.KEMMLKEM768X25519 && !errors.Is(err, ErrKey) {
			t.Errorf("%v: another public key passes for a pair: %v", cs, err)
		}
		for _, size := range []int{0, len(key.Bytes()) - 1, len(key.Bytes()) + 1} {
			if _, err := NewKeyPair(cs, make([]byte, size), key.Public()); !errors.Is(err, ErrKey) {
				t.Errorf("%v: private key of %d bytes: %v", cs, size, err)
			}
		}
	}
}

// TestSizes refuses private keys and KEM outputs of other sizes, and scalars
// out of range.
func TestSizes(t *testing.T) {
	for _, id := range suite.Known() {
		cs, err := suite.Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		key, err := DeriveKeyPair(cs, bytes.Repeat([]byte{9}, 64))
		if err != nil {
			t.Fatal(err)
		}
		n := len(key.Bytes())
		for _, size := range []int{0, 1, n - 1, n + 1, 2 * n} {
			if _, err := NewPrivateKey(cs, make([]byte, size)); !errors.Is(err, ErrKey) {
				t.Errorf("%v: %d bytes: %v", cs, size, err)
			}
		}
		ct, err := EncryptWithLabel(cs, rand.NewChaCha8([32]byte{}), key.Public(), "l", nil, []byte("p"))
		if err != nil {
			t.Fatal(err)
		}
		whole := append(bytes.Clone(ct.KEMOutput), 0)
		for _, size := range []int{0, 1, len(whole) - 2, len(whole)} {
			ct.KEMOutput = whole[:size]
			if _, err := key.DecryptWithLabel("l", nil, &ct); !errors.Is(err, ErrKey) {
				t.Errorf("%v: KEM output of %d bytes: %v", cs, size, err)
			}
			if _, err := key.ExportReceiver(ct.KEMOutput, "l", 32); !errors.Is(err, ErrKey) {
				t.Errorf("%v: export from a KEM output of %d bytes: %v", cs, size, err)
			}
		}
		switch cs.KEM() {
		case suite.KEMP256, suite.KEMP384, suite.KEMP521:
			for _, fill := range []byte{0, 0xff} {
				if _, err := NewPrivateKey(cs, bytes.Repeat([]byte{fill}, n)); !errors.Is(err, ErrKey) {
					t.Errorf("%v: scalar of bytes %#x: %v", cs, fill, err)
				}
			}
		}
	}
}
