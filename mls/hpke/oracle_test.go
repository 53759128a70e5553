package hpke_test

import (
	"bytes"
	"crypto/ecdh"
	stdhpke "crypto/hpke"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	circlhpke "github.com/cloudflare/circl/hpke"

	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// every returns all suites.
func every(t testing.TB) []*suite.Suite {
	var list []*suite.Suite
	for _, id := range suite.Known() {
		cs, err := suite.Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, cs)
	}
	if len(list) != 8 {
		t.Fatalf("%d suites, want 8", len(list))
	}
	return list
}

func chacha(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

func bytesOf(r *rand.ChaCha8, n int) []byte {
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

// info is EncryptContext as the RFC writes it.
func info(label string, context []byte) []byte {
	return wire.AppendOpaque(wire.AppendOpaque(nil, "MLS 1.0 "+label), context)
}

// TestOracleStandardLibrary compares with crypto/hpke, which shares no code
// with our KEMs: same derived keys, each opens what the other sealed, same
// exports.
func TestOracleStandardLibrary(t *testing.T) {
	for _, cs := range every(t) {
		if cs.KEM() == suite.KEMX448 {
			continue // not in the standard library: TestOracle448
		}
		t.Run(cs.String(), func(t *testing.T) {
			kem, err := stdhpke.NewKEM(uint16(cs.KEM()))
			if err != nil {
				t.Fatal(err)
			}
			kdf, _ := stdhpke.NewKDF(uint16(cs.KDF()))
			aead, _ := stdhpke.NewAEAD(uint16(cs.AEAD()))
			for i := range 12 {
				r := chacha(byte(i))
				ikm, context, plaintext := bytesOf(r, cs.HashSize()), bytesOf(r, i*40), bytesOf(r, i*37)
				ours, err := hpke.DeriveKeyPair(cs, ikm)
				if err != nil {
					t.Fatal(err)
				}
				theirs, err := kem.DeriveKeyPair(ikm)
				if err != nil {
					t.Fatal(err)
				}
				secret, _ := theirs.Bytes()
				if !bytes.Equal(ours.Bytes(), secret) || !bytes.Equal(ours.Public(), theirs.PublicKey().Bytes()) {
					t.Fatal("DeriveKeyPair differs")
				}
				again, err := hpke.NewPrivateKey(cs, ours.Bytes())
				if err != nil || !bytes.Equal(again.Public(), ours.Public()) {
					t.Fatalf("the key does not come back from its bytes: %v", err)
				}

				ct, err := hpke.EncryptWithLabel(cs, r, ours.Public(), "test", context, plaintext)
				if err != nil {
					t.Fatal(err)
				}
				got, err := stdhpke.Open(theirs, kdf, aead, info("test", context), append(bytes.Clone(ct.KEMOutput), ct.Ciphertext...))
				if err != nil || !bytes.Equal(got, plaintext) {
					t.Fatalf("crypto/hpke does not open ours: %v", err)
				}
				enc, sender, err := stdhpke.NewSender(theirs.PublicKey(), kdf, aead, info("test", context))
				if err != nil {
					t.Fatal(err)
				}
				sealed, err := sender.Seal(nil, plaintext)
				if err != nil {
					t.Fatal(err)
				}
				got, err = ours.DecryptWithLabel("test", context, &wire.HPKECiphertext{KEMOutput: enc, Ciphertext: sealed})
				if err != nil || !bytes.Equal(got, plaintext) {
					t.Fatalf("we do not open crypto/hpke's: %v", err)
				}

				enc, exported, err := hpke.ExportSender(cs, r, ours.Public(), "label", cs.HashSize())
				if err != nil {
					t.Fatal(err)
				}
				recipient, err := stdhpke.NewRecipient(enc, theirs, kdf, aead, nil)
				if err != nil {
					t.Fatal(err)
				}
				want, _ := recipient.Export("label", cs.HashSize())
				received, err := ours.ExportReceiver(enc, "label", cs.HashSize())
				if err != nil || !bytes.Equal(exported, want) || !bytes.Equal(received, want) {
					t.Fatalf("exports differ: %v", err)
				}
			}
		})
	}
}

// TestOracle448 compares suites 4 and 6 with circl's HPKE.
func TestOracle448(t *testing.T) {
	for _, cs := range every(t) {
		if cs.KEM() != suite.KEMX448 {
			continue
		}
		t.Run(cs.String(), func(t *testing.T) {
			scheme := circlhpke.KEM_X448_HKDF_SHA512.Scheme()
			oracle := circlhpke.NewSuite(circlhpke.KEM_X448_HKDF_SHA512, circlhpke.KDF(cs.KDF()), circlhpke.AEAD(cs.AEAD()))
			for i := range 6 {
				r := chacha(byte(i))
				ikm, context, plaintext := bytesOf(r, 56), bytesOf(r, i*40), bytesOf(r, i*37)
				ours, err := hpke.DeriveKeyPair(cs, ikm)
				if err != nil {
					t.Fatal(err)
				}
				pub, priv := scheme.DeriveKeyPair(ikm)
				encoded, _ := pub.MarshalBinary()
				if !bytes.Equal(ours.Public(), encoded) {
					t.Fatal("DeriveKeyPair differs")
				}
				ct, err := hpke.EncryptWithLabel(cs, r, ours.Public(), "test", context, plaintext)
				if err != nil {
					t.Fatal(err)
				}
				receiver, err := oracle.NewReceiver(priv, info("test", context))
				if err != nil {
					t.Fatal(err)
				}
				opener, err := receiver.Setup(ct.KEMOutput)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := opener.Open(ct.Ciphertext, nil); err != nil || !bytes.Equal(got, plaintext) {
					t.Fatalf("circl does not open ours: %v", err)
				}
				sender, err := oracle.NewSender(pub, info("test", context))
				if err != nil {
					t.Fatal(err)
				}
				enc, sealer, err := sender.Setup(r)
				if err != nil {
					t.Fatal(err)
				}
				sealed, err := sealer.Seal(plaintext, nil)
				if err != nil {
					t.Fatal(err)
				}
				got, err := ours.DecryptWithLabel("test", context, &wire.HPKECiphertext{KEMOutput: enc, Ciphertext: sealed})
				if err != nil || !bytes.Equal(got, plaintext) {
					t.Fatalf("we do not open circl's: %v", err)
				}
				enc, exported, err := hpke.ExportSender(cs, r, ours.Public(), "label", 64)
				if err != nil {
					t.Fatal(err)
				}
				empty, _ := oracle.NewReceiver(priv, nil)
				opener, err = empty.Setup(enc)
				if err != nil {
					t.Fatal(err)
				}
				received, err := ours.ExportReceiver(enc, "label", 64)
				if want := opener.Export([]byte("label"), 64); err != nil || !bytes.Equal(exported, want) || !bytes.Equal(received, want) {
					t.Fatalf("exports differ: %v", err)
				}
			}
		})
	}
}

// edgeX25519 holds coordinates where implementations could part: low order,
// not reduced, with the top bit set, and points on the twist.
var edgeX25519 = []string{
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000000",
	"0200000000000000000000000000000000000000000000000000000000000000",
	"0900000000000000000000000000000000000000000000000000000000000000",
	"e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
	"5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
	"ebffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"efffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}

// TestTrap28X25519EdgeCases: validation, our X25519 and that of crypto/ecdh
// agree on which keys can be encrypted to, for every edge coordinate with and
// without the top bit.
func TestTrap28X25519EdgeCases(t *testing.T) {
	cs, err := suite.Lookup(suite.X25519AES128GCMSHA256Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, text := range edgeX25519 {
		for _, top := range []byte{0, 0x80} {
			pub, _ := hex.DecodeString(text)
			pub[31] |= top
			key, err := ecdh.X25519().NewPrivateKey(bytes.Repeat([]byte{0x55}, 32))
			if err != nil {
				t.Fatal(err)
			}
			peer, err := ecdh.X25519().NewPublicKey(pub)
			if err != nil {
				t.Fatal(err)
			}
			_, errStd := key.ECDH(peer)
			_, errOurs := hpke.EncryptWithLabel(cs, chacha(1), pub, "l", nil, nil)
			errValid := cs.ValidateHPKEPublicKey(pub)
			if (errStd == nil) != (errOurs == nil) || (errStd == nil) != (errValid == nil) {
				t.Errorf("%x: crypto/ecdh %v, ours %v, validation %v", pub, errStd, errOurs, errValid)
			}
			if errOurs != nil {
				refused++
				if !errors.Is(errOurs, hpke.ErrKey) || !errors.Is(errValid, suite.ErrKey) {
					t.Errorf("%x: %v, %v are not ErrKey", pub, errOurs, errValid)
				}
				recipient, err := hpke.DeriveKeyPair(cs, []byte("recipient"))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := recipient.DecryptWithLabel("l", nil, &wire.HPKECiphertext{KEMOutput: pub, Ciphertext: make([]byte, 16)}); !errors.Is(err, hpke.ErrKey) {
					t.Errorf("KEM output %x: %v, want ErrKey", pub, err)
				}
			}
		}
	}
	if refused != 14 {
		t.Errorf("%d of the 14 low-order encodings refused", refused)
	}
}

// FuzzX25519 compares fixed-base and ladder multiplication with crypto/ecdh.
func FuzzX25519(f *testing.F) {
	for i, text := range edgeX25519 {
		pub, _ := hex.DecodeString(text)
		f.Add(bytesOf(chacha(byte(i)), 32), pub)
	}
	cs, err := suite.Lookup(suite.X25519AES128GCMSHA256Ed25519)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, secret, public []byte) {
		std, err := ecdh.X25519().NewPrivateKey(secret)
		key, errOurs := hpke.NewPrivateKey(cs, secret)
		if (err == nil) != (errOurs == nil) {
			t.Fatalf("private key: %v, %v", err, errOurs)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(key.Public(), std.PublicKey().Bytes()) {
			t.Fatalf("public key of %x differs", secret)
		}
		stdKey, err := stdhpke.NewDHKEMPrivateKey(std)
		if err != nil {
			t.Fatal(err)
		}
		recipient, err := stdhpke.NewRecipient(public, stdKey, stdhpke.HKDFSHA256(), stdhpke.AES128GCM(), nil)
		ours, errOurs := key.ExportReceiver(public, "x", 32)
		if (err == nil) != (errOurs == nil) {
			t.Fatalf("KEM output %x: %v, %v", public, err, errOurs)
		}
		if err == nil {
			if want, _ := recipient.Export("x", 32); !bytes.Equal(ours, want) {
				t.Fatalf("%x with %x: shared secrets differ", secret, public)
			}
		}
	})
}

// FuzzPublicKey: in every suite a key is valid exactly when it can be
// encrypted to, and nothing panics.
func FuzzPublicKey(f *testing.F) {
	suites := every(f)
	for i, cs := range suites {
		key, err := hpke.DeriveKeyPair(cs, bytes.Repeat([]byte{byte(i)}, 64))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), []byte(key.Public()))
		f.Add(byte(i), make([]byte, len(key.Public())))
	}
	f.Fuzz(func(t *testing.T, which byte, public []byte) {
		cs := suites[int(which)%len(suites)]
		valid := cs.ValidateHPKEPublicKey(public)
		_, err := hpke.EncryptWithLabel(cs, chacha(which), public, "l", nil, []byte("p"))
		if (valid == nil) != (err == nil) {
			t.Fatalf("%v, %x: valid %v, encrypt %v", cs, public, valid, err)
		}
	})
}

// FuzzDecrypt opens arbitrary bytes in every suite: an error, never a panic.
func FuzzDecrypt(f *testing.F) {
	suites := every(f)
	keys := make([]*hpke.PrivateKey, len(suites))
	for i, cs := range suites {
		var err error
		if keys[i], err = hpke.DeriveKeyPair(cs, bytes.Repeat([]byte{byte(i)}, 64)); err != nil {
			f.Fatal(err)
		}
		ct, err := hpke.EncryptWithLabel(cs, chacha(byte(i)), keys[i].Public(), "other", nil, []byte("p"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), ct.KEMOutput, ct.Ciphertext)
	}
	f.Fuzz(func(t *testing.T, which byte, enc, ciphertext []byte) {
		key := keys[int(which)%len(keys)]
		_, err := key.DecryptWithLabel("l", nil, &wire.HPKECiphertext{KEMOutput: enc, Ciphertext: ciphertext})
		if !errors.Is(err, hpke.ErrOpen) && !errors.Is(err, hpke.ErrKey) {
			t.Fatalf("%v", err)
		}
	})
}

// TestEncryptAllEqualsOneByOne: the parallel form gives what the serial one
// gives from the same randomness, in order.
func TestEncryptAllEqualsOneByOne(t *testing.T) {
	for _, cs := range every(t) {
		keys := make([]*hpke.PrivateKey, 3)
		for i := range keys {
			var err error
			if keys[i], err = hpke.DeriveKeyPair(cs, bytes.Repeat([]byte{byte(i)}, 64)); err != nil {
				t.Fatal(err)
			}
		}
		sizes := []int{0, 1, 9} // the curves other than X25519 are slow
		if cs.KEM() == suite.KEMX25519 {
			sizes = []int{0, 1, 7, 8, 9, 16, 17, 40}
		}
		for _, n := range sizes {
			var all []hpke.Plaintext
			for i := range n {
				all = append(all, hpke.Plaintext{PublicKey: keys[i%len(keys)].Public(), Data: []byte(fmt.Sprint(i))})
			}
			got, err := hpke.EncryptAllWithLabel(cs, chacha(3), "l", []byte("c"), all)
			if err != nil || len(got) != n {
				t.Fatalf("%v: %d of %d, %v", cs, len(got), n, err)
			}
			r := chacha(3)
			for i := range all {
				want, err := hpke.EncryptWithLabel(cs, r, all[i].PublicKey, "l", []byte("c"), all[i].Data)
				if err != nil {
					t.Fatal(err)
				}
				if cs.KEM() != suite.KEMMLKEM768X25519 && (!bytes.Equal(want.KEMOutput, got[i].KEMOutput) || !bytes.Equal(want.Ciphertext, got[i].Ciphertext)) {
					t.Fatalf("%v: %d of %d differs", cs, i, n)
				}
				if plaintext, err := keys[i%len(keys)].DecryptWithLabel("l", []byte("c"), &got[i]); err != nil || string(plaintext) != fmt.Sprint(i) {
					t.Fatalf("%v: %d of %d opens to %q, %v", cs, i, n, plaintext, err)
				}
			}
		}
	}
}
