package suite_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// every returns all suites.
func every(t testing.TB) []*suite.Suite {
	t.Helper()
	var list []*suite.Suite
	for _, id := range suite.Known() {
		s, err := suite.Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if len(list) != 8 {
		t.Fatalf("%d suites, want 8", len(list))
	}
	return list
}

func chacha(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

// TestTable compares the table with RFC 9420 §17.1.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		id         wire.CipherSuite
		name       string
		kem        suite.KEM
		kdf        suite.KDF
		aead       suite.AEAD
		nh, nk, nn int
	}{
		{1, "MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519", 0x20, 1, 1, 32, 16, 12},
		{2, "MLS_128_DHKEMP256_AES128GCM_SHA256_P256", 0x10, 1, 1, 32, 16, 12},
		{3, "MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519", 0x20, 1, 3, 32, 32, 12},
		{4, "MLS_256_DHKEMX448_AES256GCM_SHA512_Ed448", 0x21, 3, 2, 64, 32, 12},
		{5, "MLS_256_DHKEMP521_AES256GCM_SHA512_P521", 0x12, 3, 2, 64, 32, 12},
		{6, "MLS_256_DHKEMX448_CHACHA20POLY1305_SHA512_Ed448", 0x21, 3, 3, 64, 32, 12},
		{7, "MLS_256_DHKEMP384_AES256GCM_SHA384_P384", 0x11, 2, 2, 48, 32, 12},
		{0xf0c0, "MLS_128_MLKEM768X25519_AES256GCM_SHA384_Ed25519", 0x647a, 2, 2, 48, 32, 12},
	} {
		s, err := suite.Lookup(c.id)
		if err != nil {
			t.Fatal(err)
		}
		if s.ID() != c.id || s.String() != c.name || s.KEM() != c.kem || s.KDF() != c.kdf || s.AEAD() != c.aead ||
			s.HashSize() != c.nh || s.KeySize() != c.nk || s.NonceSize() != c.nn || s.KDF().New().Size() != c.nh {
			t.Errorf("%v: %v %#x %v %v %d %d %d", c.name, s, s.KEM(), s.KDF(), s.AEAD(), s.HashSize(), s.KeySize(), s.NonceSize())
		}
	}
	for _, id := range []wire.CipherSuite{0, 8, 0x0a0a, 0xf0c1, 0xffff} {
		if _, err := suite.Lookup(id); !errors.Is(err, suite.ErrUnknown) {
			t.Errorf("suite %#04x: %v", id, err)
		}
	}
}

// TestTrap03MACLengthsAndContents: a truncated, empty, longer or changed tag is
// refused.
func TestTrap03MACLengthsAndContents(t *testing.T) {
	for _, s := range every(t) {
		key, data := []byte("key"), []byte("data")
		tag := s.MAC(key, data)
		if len(tag) != s.HashSize() || !s.VerifyMAC(key, data, tag) {
			t.Fatalf("%v: its own tag is refused", s)
		}
		for what, bad := range map[string][]byte{
			"nil": nil, "empty": {}, "first byte": tag[:1], "one byte less": tag[:len(tag)-1],
			"one byte more": append(bytes.Clone(tag), 0), "flipped": flip(tag),
		} {
			if s.VerifyMAC(key, data, bad) {
				t.Errorf("%v: %s tag accepted", s, what)
			}
		}
		if s.VerifyMAC(flip(key), data, tag) || s.VerifyMAC(key, flip(data), tag) {
			t.Errorf("%v: tag of other data accepted", s)
		}
	}
}

// TestAEAD seals and opens, and refuses every change.
func TestAEAD(t *testing.T) {
	for _, s := range every(t) {
		key, nonce := make([]byte, s.KeySize()), make([]byte, s.NonceSize())
		ct, err := s.Seal(key, nonce, []byte("aad"), []byte("plaintext"))
		if err != nil || len(ct) != len("plaintext")+s.AEAD().Overhead() {
			t.Fatalf("%v: %d bytes, %v", s, len(ct), err)
		}
		if got, err := s.Open(key, nonce, []byte("aad"), ct); err != nil || string(got) != "plaintext" {
			t.Errorf("%v: %q, %v", s, got, err)
		}
		for what, open := range map[string]func() ([]byte, error){
			"key":        func() ([]byte, error) { return s.Open(flip(key), nonce, []byte("aad"), ct) },
			"nonce":      func() ([]byte, error) { return s.Open(key, flip(nonce), []byte("aad"), ct) },
			"aad":        func() ([]byte, error) { return s.Open(key, nonce, []byte("aax"), ct) },
			"ciphertext": func() ([]byte, error) { return s.Open(key, nonce, []byte("aad"), flip(ct)) },
			"short":      func() ([]byte, error) { return s.Open(key, nonce, []byte("aad"), ct[:15]) },
			"empty":      func() ([]byte, error) { return s.Open(key, nonce, []byte("aad"), nil) },
		} {
			if _, err := open(); !errors.Is(err, suite.ErrOpen) {
				t.Errorf("%v: other %s: %v", s, what, err)
			}
		}
		// 48 less a suite's own is the other size that an AES key can have.
		for _, size := range []int{0, 24, 48 - s.KeySize(), s.KeySize() - 1, s.KeySize() + 1} {
			if _, err := s.Seal(make([]byte, size), nonce, nil, nil); err == nil {
				t.Errorf("%v: key of %d bytes accepted", s, size)
			}
			if _, err := s.Open(make([]byte, size), nonce, nil, ct); err == nil || errors.Is(err, suite.ErrOpen) {
				t.Errorf("%v: key of %d bytes: %v", s, size, err)
			}
		}
		if _, err := s.Seal(key, nonce[:11], nil, nil); err == nil {
			t.Errorf("%v: nonce of 11 bytes accepted", s)
		}
		if _, err := s.Open(key, nonce[:11], nil, ct); err == nil || errors.Is(err, suite.ErrOpen) {
			t.Errorf("%v: nonce of 11 bytes: %v", s, err)
		}
	}
}

// TestLabelsByHand computes what the RFC writes with nothing but HMAC and the
// hash: labels, prefixes and lengths stand where §5.1.2, §5.2 and §8 put them.
func TestLabelsByHand(t *testing.T) {
	for _, s := range every(t) {
		secret := bytes.Repeat([]byte{1}, s.HashSize())
		mac := func(key []byte, parts ...[]byte) []byte {
			h := hmac.New(s.KDF().New, key)
			h.Write(slices.Concat(parts...))
			return h.Sum(nil)
		}
		n := byte(s.HashSize())
		label := func(text string) []byte { return append([]byte{byte(8 + len(text))}, "MLS 1.0 "+text...) }
		want := mac(secret, []byte{0, n}, label("confirm"), []byte{0}, []byte{1})
		if got := s.DeriveSecret(secret, "confirm"); !bytes.Equal(got, want) {
			t.Errorf("%v: DeriveSecret %x, want %x", s, got, want)
		}
		want = mac(secret, []byte{0, 16}, label("key"), []byte{4, 0, 0, 1, 2}, []byte{1})[:16]
		if got := s.DeriveTreeSecret(secret, "key", 0x102, 16); !bytes.Equal(got, want) {
			t.Errorf("%v: DeriveTreeSecret %x, want %x", s, got, want)
		}
		first := mac(secret, []byte{0, n + 1}, label("x"), []byte{1, 'c'}, []byte{1})
		want = append(first, mac(secret, first, []byte{0, n + 1}, label("x"), []byte{1, 'c'}, []byte{2})[0])
		if got := s.ExpandWithLabel(secret, "x", []byte("c"), s.HashSize()+1); !bytes.Equal(got, want) {
			t.Errorf("%v: ExpandWithLabel %x, want %x", s, got, want)
		}
		if got, want := s.Extract([]byte("salt"), secret), mac([]byte("salt"), secret); !bytes.Equal(got, want) {
			t.Errorf("%v: Extract %x, want %x", s, got, want)
		}
		h := s.KDF().New()
		h.Write([]byte{1, 'L', 2, 'v', 'w'})
		if got, want := s.RefHash("L", []byte("vw")), h.Sum(nil); !bytes.Equal(got, want) {
			t.Errorf("%v: RefHash %x, want %x", s, got, want)
		}
	}
	s := every(t)[0]
	key, err := s.GenerateSignatureKey(chacha(1))
	if err != nil {
		t.Fatal(err)
	}
	sig := ed25519.Sign(ed25519.NewKeyFromSeed(key.Private()), []byte("\x09MLS 1.0 L\x02vw"))
	if got, err := key.SignWithLabel("L", []byte("vw")); err != nil || !bytes.Equal(got, sig) {
		t.Errorf("SignWithLabel %x, want %x (%v)", got, sig, err)
	}
}

// TestExpandLengths gives exactly what is asked, up to 255 hashes, and panics
// beyond.
func TestExpandLengths(t *testing.T) {
	panics := func(f func()) (did bool) {
		defer func() { did = recover() != nil }()
		f()
		return
	}
	for _, s := range every(t) {
		secret := make([]byte, s.HashSize())
		for _, n := range []int{0, 1, s.HashSize(), s.HashSize() + 1, s.MaxExpand()} {
			if out := s.ExpandWithLabel(secret, "l", nil, n); len(out) != n {
				t.Errorf("%v: %d of %d bytes", s, len(out), n)
			}
		}
		for _, n := range []int{-1, s.MaxExpand() + 1} {
			if !panics(func() { s.ExpandWithLabel(secret, "l", nil, n) }) {
				t.Errorf("%v: length %d does not panic", s, n)
			}
		}
	}
}

// TestSignatureKeys makes keys, the same from the same randomness, and refuses
// private keys of another size.
func TestSignatureKeys(t *testing.T) {
	for _, s := range every(t) {
		key, err := s.GenerateSignatureKey(chacha(1))
		if err != nil {
			t.Fatal(err)
		}
		same, err := s.GenerateSignatureKey(chacha(1))
		if err != nil || !bytes.Equal(key.Private(), same.Private()) || !bytes.Equal(key.Public(), same.Public()) {
			t.Errorf("%v: same randomness, other key (%v)", s, err)
		}
		other, err := s.GenerateSignatureKey(chacha(2))
		if err != nil || bytes.Equal(key.Private(), other.Private()) {
			t.Errorf("%v: other randomness, same key (%v)", s, err)
		}
		back, err := s.NewSignatureKey(key.Private())
		if err != nil || !bytes.Equal(back.Public(), key.Public()) || back.Suite() != s {
			t.Errorf("%v: the key does not come back from its bytes (%v)", s, err)
		}
		if err := s.ValidateSignaturePublicKey(key.Public()); err != nil {
			t.Errorf("%v: %v", s, err)
		}
		sig, err := key.SignWithLabel("l", []byte("content"))
		if err != nil || !s.VerifyWithLabel(key.Public(), "l", []byte("content"), sig) {
			t.Errorf("%v: its own signature is refused (%v)", s, err)
		}
		once, err := back.SignWithLabel("l", []byte("content"))
		if err != nil || !bytes.Equal(once, sig) {
			t.Errorf("%v: signing is not repeatable (%v)", s, err)
		}
		if s.VerifyWithLabel(other.Public(), "l", []byte("content"), sig) {
			t.Errorf("%v: another key's signature accepted", s)
		}
		for _, n := range []int{0, 1, len(key.Private()) - 1, len(key.Private()) + 1} {
			if _, err := s.NewSignatureKey(make([]byte, n)); !errors.Is(err, suite.ErrKey) {
				t.Errorf("%v: private key of %d bytes: %v", s, n, err)
			}
		}
		if _, err := s.GenerateSignatureKey(bytes.NewReader([]byte{1})); err == nil {
			t.Errorf("%v: a key from one random byte", s)
		}
		secret := fmt.Sprintf("%x", key.Private()[4:8])
		decimal := strings.Trim(fmt.Sprint(key.Private()[4:8]), "[]")
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
			for _, v := range []any{key, *key, []*suite.SignatureKey{key}} {
				if text := fmt.Sprintf(verb, v); strings.Contains(text, secret) || strings.Contains(text, decimal) {
					t.Errorf("%v: %s shows the private key: %s", s, verb, text)
				}
			}
		}
	}
}

// TestReferences: a KeyPackageRef and a ProposalRef are RefHash under the
// labels of §5.2, so one structure has two.
func TestReferences(t *testing.T) {
	s := every(t)[0]
	k := wire.KeyPackage{Version: 1, CipherSuite: 1}
	k.LeafNode.LeafNodeSource = wire.LeafNodeSourceUpdate
	if got, want := s.KeyPackageRef(&k), s.RefHash("MLS 1.0 KeyPackage Reference", wire.Marshal(&k)); !bytes.Equal(got, want) {
		t.Errorf("KeyPackageRef %x, want %x", got, want)
	}
	c := wire.AuthenticatedContent{WireFormat: 1, Content: wire.FramedContent{ContentType: wire.ContentTypeApplication}}
	if got, want := s.ProposalRef(&c), s.RefHash("MLS 1.0 Proposal Reference", wire.Marshal(&c)); !bytes.Equal(got, want) {
		t.Errorf("ProposalRef %x, want %x", got, want)
	}
}
