package suite_test

import (
	"bytes"
	"crypto/ecdh"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"filippo.io/edwards25519"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

func mustSuite(t testing.TB, id wire.CipherSuite) *suite.Suite {
	t.Helper()
	s, err := suite.Lookup(id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTrap28NISTPoints refuses what is not the uncompressed encoding of a point
// of the curve, as encryption and as signature key.
func TestTrap28NISTPoints(t *testing.T) {
	for _, c := range []struct {
		id    wire.CipherSuite
		curve ecdh.Curve
		size  int
	}{{2, ecdh.P256(), 32}, {7, ecdh.P384(), 48}, {5, ecdh.P521(), 66}} {
		s := mustSuite(t, c.id)
		scalar := make([]byte, c.size)
		scalar[c.size-1] = 5
		key, err := c.curve.NewPrivateKey(scalar)
		if err != nil {
			t.Fatal(err)
		}
		good := key.PublicKey().Bytes()
		if s.ValidateHPKEPublicKey(good) != nil || s.ValidateSignaturePublicKey(good) != nil {
			t.Fatalf("%v: a good key is refused", s)
		}
		off := bytes.Clone(good)
		off[len(off)-1] ^= 1
		compressed := append([]byte{2 + good[len(good)-1]&1}, good[1:1+c.size]...)
		hybrid := append([]byte{6 + good[len(good)-1]&1}, good[1:]...)
		large := append([]byte{4}, bytes.Repeat([]byte{0xff}, 2*c.size)...)
		for name, bad := range map[string][]byte{
			"nothing": nil, "infinity": {0}, "off the curve": off, "compressed": compressed, "hybrid form": hybrid,
			"coordinates not reduced": large, "zeros": make([]byte, len(good)),
			"one byte less": good[:len(good)-1], "one byte more": append(bytes.Clone(good), 0),
			"without the form byte": good[1:],
		} {
			if err := s.ValidateHPKEPublicKey(bad); !errors.Is(err, suite.ErrKey) {
				t.Errorf("%v: %s as HPKE key: %v", s, name, err)
			}
			if err := s.ValidateSignaturePublicKey(bad); !errors.Is(err, suite.ErrKey) {
				t.Errorf("%v: %s as signature key: %v", s, name, err)
			}
			if s.VerifyWithLabel(bad, "l", nil, make([]byte, 64)) {
				t.Errorf("%v: %s verifies", s, name)
			}
		}
	}
}

// TestTrap28MontgomeryLowOrder refuses low-order X25519 and X448 keys in every
// encoding, alone and inside the hybrid key.
func TestTrap28MontgomeryLowOrder(t *testing.T) {
	x25519 := mustSuite(t, 1)
	hybrid := mustSuite(t, suite.MLKEM768X25519AES256GCMSHA384Ed25519)
	// All zeros is a reduced ML-KEM key: only the other half can be at fault.
	mlkem := make([]byte, 1184)
	nine := append([]byte{9}, make([]byte, 31)...)
	if err := x25519.ValidateHPKEPublicKey(nine); err != nil {
		t.Fatal(err)
	}
	if err := hybrid.ValidateHPKEPublicKey(append(bytes.Clone(mlkem), nine...)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
		"5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	} {
		for _, top := range []byte{0, 0x80} {
			bad := unhex(t, text)
			bad[31] |= top
			if err := x25519.ValidateHPKEPublicKey(bad); !errors.Is(err, suite.ErrKey) {
				t.Errorf("X25519 %x: %v", bad, err)
			}
			if err := hybrid.ValidateHPKEPublicKey(append(bytes.Clone(mlkem), bad...)); !errors.Is(err, suite.ErrKey) {
				t.Errorf("hybrid with X25519 %x: %v", bad, err)
			}
		}
	}
	for _, n := range []int{0, 31, 33, 64} {
		if err := x25519.ValidateHPKEPublicKey(bytes.Repeat([]byte{9}, n)); !errors.Is(err, suite.ErrKey) {
			t.Errorf("X25519 key of %d bytes: %v", n, err)
		}
	}
	unreduced := append(bytes.Clone(mlkem), nine...)
	unreduced[0], unreduced[1] = 0xff, 0xff // a coefficient of 4095, above q
	for name, bad := range map[string][]byte{
		"not reduced": unreduced, "without X25519": mlkem, "one byte more": append(bytes.Clone(unreduced), 0), "nothing": nil,
	} {
		if err := hybrid.ValidateHPKEPublicKey(bad); !errors.Is(err, suite.ErrKey) {
			t.Errorf("hybrid, %s: %v", name, err)
		}
	}

	x448 := mustSuite(t, 4)
	zeros, ones := strings.Repeat("00", 27), strings.Repeat("ff", 27)
	for name, text := range map[string]string{
		"0":     "00" + zeros + "00" + zeros,
		"1":     "01" + zeros + "00" + zeros,
		"p - 1": "fe" + ones + "fe" + ones,
		"p":     "ff" + ones + "fe" + ones,
		"p + 1": "00" + zeros + "ff" + ones,
	} {
		if err := x448.ValidateHPKEPublicKey(unhex(t, text)); !errors.Is(err, suite.ErrKey) {
			t.Errorf("X448 %s: %v", name, err)
		}
	}
	if err := x448.ValidateHPKEPublicKey(append([]byte{5}, make([]byte, 55)...)); err != nil {
		t.Errorf("X448 base point: %v", err)
	}
	if err := x448.ValidateHPKEPublicKey(make([]byte, 57)); !errors.Is(err, suite.ErrKey) {
		t.Errorf("X448 key of 57 bytes: %v", err)
	}
}

// TestTrap28Ed25519Encodings refuses keys that are not canonical or of small
// order, and signatures with such a commitment or a scalar that is not reduced.
func TestTrap28Ed25519Encodings(t *testing.T) {
	s := mustSuite(t, 1)
	for name, text := range map[string]string{
		"identity":                "0100000000000000000000000000000000000000000000000000000000000000",
		"identity, negative zero": "0100000000000000000000000000000000000000000000000000000000000080",
		"order 2":                 "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"order 4":                 "0000000000000000000000000000000000000000000000000000000000000000",
		"order 4, negative":       "0000000000000000000000000000000000000000000000000000000000000080",
		"order 8":                 "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"order 8, negative":       "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"order 8, other":          "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"order 8, other negative": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
		"p, that is 0":            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"p + 1, that is 1":        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"p + 3, not reduced":      "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"off the curve":           "0200000000000000000000000000000000000000000000000000000000000000",
		"31 bytes":                "00000000000000000000000000000000000000000000000000000000000000",
	} {
		if err := s.ValidateSignaturePublicKey(unhex(t, text)); !errors.Is(err, suite.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	key, err := s.GenerateSignatureKey(chacha(1))
	if err != nil {
		t.Fatal(err)
	}
	sig, err := key.SignWithLabel("l", []byte("m"))
	if err != nil {
		t.Fatal(err)
	}
	// S + L verifies in implementations that do not look.
	order := unhex(t, "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
	malleable := bytes.Clone(sig)
	carry := 0
	for i, l := range order {
		sum := int(malleable[32+i]) + int(l) + carry
		malleable[32+i], carry = byte(sum), sum>>8
	}
	if s.VerifyWithLabel(key.Public(), "l", []byte("m"), malleable) {
		t.Error("S + L accepted")
	}
	for _, n := range []int{0, 63, 65} {
		if s.VerifyWithLabel(key.Public(), "l", []byte("m"), append(bytes.Clone(sig), 0)[:n]) {
			t.Errorf("signature of %d bytes accepted", n)
		}
	}
}

// TestTrap28MixedOrderSameVerdictInBatch: a key with a small-order part, for
// which cofactored and cofactorless verification part, gets one verdict alone
// and in a batch.
func TestTrap28MixedOrderSameVerdictInBatch(t *testing.T) {
	s := mustSuite(t, 1)
	torsion, err := new(edwards25519.Point).SetBytes(unhex(t, "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range byte(16) {
		key, err := s.GenerateSignatureKey(chacha(seed))
		if err != nil {
			t.Fatal(err)
		}
		a, err := new(edwards25519.Point).SetBytes(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		mixed := a.Add(a, torsion).Bytes()
		sig, err := key.SignWithLabel("l", []byte("m"))
		if err != nil {
			t.Fatal(err)
		}
		for _, public := range [][]byte{key.Public(), mixed} {
			alone := s.VerifyWithLabel(public, "l", []byte("m"), sig)
			b := s.NewSignatureBatch()
			b.Add(public, "l", []byte("m"), sig)
			other, err := key.SignWithLabel("l", []byte("other"))
			if err != nil {
				t.Fatal(err)
			}
			b.Add(key.Public(), "l", []byte("other"), other)
			if got := b.Verify(); got != alone {
				t.Errorf("seed %d: alone %v, in a batch %v", seed, alone, got)
			}
		}
	}
}

// TestBatchEqualsOneByOne in every suite, with every kind of fault.
func TestBatchEqualsOneByOne(t *testing.T) {
	for _, s := range every(t) {
		if !s.NewSignatureBatch().Verify() {
			t.Errorf("%v: an empty batch fails", s)
		}
		type signed struct{ public, content, signature []byte }
		var all []signed
		for i := range byte(5) {
			key, err := s.GenerateSignatureKey(chacha(i))
			if err != nil {
				t.Fatal(err)
			}
			sig, err := key.SignWithLabel("l", []byte{i})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, signed{key.Public(), []byte{i}, sig})
		}
		verify := func(list []signed) bool {
			b := s.NewSignatureBatch()
			for _, x := range list {
				b.Add(x.public, "l", x.content, x.signature)
			}
			return b.Verify()
		}
		if !verify(all) {
			t.Errorf("%v: good signatures fail", s)
		}
		for what, spoil := range map[string]func(*signed){
			"content":         func(x *signed) { x.content = []byte{99} },
			"signature":       func(x *signed) { x.signature = flip(x.signature) },
			"no signature":    func(x *signed) { x.signature = nil },
			"key":             func(x *signed) { x.public = all[0].public },
			"no key":          func(x *signed) { x.public = nil },
			"signature twice": func(x *signed) { x.signature = all[1].signature },
		} {
			bad := append([]signed(nil), all...)
			spoil(&bad[3])
			if verify(bad) {
				t.Errorf("%v: batch with a wrong %s verifies", s, what)
			}
		}
	}
}

// TestTrap28Ed448Encodings: the demands on Ed25519 hold for Ed448.
func TestTrap28Ed448Encodings(t *testing.T) {
	s := mustSuite(t, 4)
	zeros, ones := strings.Repeat("00", 27), strings.Repeat("ff", 27)
	for name, text := range map[string]string{
		"identity":                "01" + zeros + "00" + zeros + "00",
		"identity, negative zero": "01" + zeros + "00" + zeros + "80",
		"order 2":                 "fe" + ones + "fe" + ones + "00",
		"order 4":                 "00" + zeros + "00" + zeros + "00",
		"order 4, negative":       "00" + zeros + "00" + zeros + "80",
		"p, that is 0":            "ff" + ones + "fe" + ones + "00",
		"p + 1, that is 1":        "00" + zeros + "ff" + ones + "00",
		"56 bytes":                "01" + zeros + "00" + zeros,
	} {
		if err := s.ValidateSignaturePublicKey(unhex(t, text)); !errors.Is(err, suite.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	key, err := s.GenerateSignatureKey(chacha(1))
	if err != nil {
		t.Fatal(err)
	}
	stray := append(bytes.Clone(key.Public()[:56]), key.Public()[56]|1) // a bit that no encoding has
	if err := s.ValidateSignaturePublicKey(stray); !errors.Is(err, suite.ErrKey) {
		t.Errorf("stray bit: %v", err)
	}
	sig, err := key.SignWithLabel("l", []byte("m"))
	if err != nil {
		t.Fatal(err)
	}
	order := unhex(t, "f34458ab92c27823558fc58d72c26c219036d6ae49db4ec4e923ca7cffffffffffffffffffffffffffffffffffffffffffffffffffffff3f00")
	malleable := bytes.Clone(sig)
	carry := 0
	for i, l := range order {
		sum := int(malleable[57+i]) + int(l) + carry
		malleable[57+i], carry = byte(sum), sum>>8
	}
	if s.VerifyWithLabel(key.Public(), "l", []byte("m"), malleable) {
		t.Error("S + L accepted")
	}
}

// FuzzVerify verifies arbitrary keys and signatures in every suite: no panic,
// and a batch says the same.
func FuzzVerify(f *testing.F) {
	suites := every(f)
	for i, s := range suites {
		key, err := s.GenerateSignatureKey(chacha(byte(i)))
		if err != nil {
			f.Fatal(err)
		}
		sig, err := key.SignWithLabel("l", []byte("m"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), []byte(key.Public()), []byte("m"), sig)
		f.Add(byte(i), []byte(key.Public()), []byte("n"), sig)
	}
	f.Fuzz(func(t *testing.T, which byte, public, content, signature []byte) {
		s := suites[int(which)%len(suites)]
		alone := s.VerifyWithLabel(public, "l", content, signature)
		if alone && s.ValidateSignaturePublicKey(public) != nil {
			t.Fatal("a signature of a key that is not valid verifies")
		}
		b := s.NewSignatureBatch()
		b.Add(public, "l", content, signature)
		if b.Verify() != alone {
			t.Fatalf("alone %v, in a batch %v", alone, !alone)
		}
	})
}
