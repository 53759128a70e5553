package hpke_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
	"github.com/askucher/compax-core/mls/hpke"
	_ "github.com/askucher/compax-core/mls/hpke/hpke448"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

func flip(b []byte) []byte {
	c := bytes.Clone(b)
	c[len(c)/2] ^= 1
	return c
}

// TestVectorsEncryptWithLabel opens the ciphertext of the official
// crypto-basics vectors in every suite, and refuses it after any change.
func TestVectorsEncryptWithLabel(t *testing.T) {
	type vector struct {
		CipherSuite      wire.CipherSuite `json:"cipher_suite"`
		EncryptWithLabel struct {
			Priv, Pub, Context, Plaintext, Ciphertext testdata.Hex
			KEMOutput                                 testdata.Hex `json:"kem_output"`
			Label                                     string
		} `json:"encrypt_with_label"`
	}
	cases := testdata.Vectors[vector](t, "crypto-basics.json")
	for _, c := range cases {
		cs, err := suite.Lookup(c.CipherSuite)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(cs.String(), func(t *testing.T) {
			testdata.Ran(t, "crypto-basics.json", uint16(c.CipherSuite))
			v := c.EncryptWithLabel
			key, err := hpke.NewPrivateKey(cs, v.Priv)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(key.Public(), v.Pub) {
				t.Errorf("public key %x, want %x", key.Public(), v.Pub)
			}
			if err := cs.ValidateHPKEPublicKey(v.Pub); err != nil {
				t.Error(err)
			}
			good := wire.HPKECiphertext{KEMOutput: v.KEMOutput, Ciphertext: v.Ciphertext}
			plaintext, err := key.DecryptWithLabel(v.Label, v.Context, &good)
			if err != nil || !bytes.Equal(plaintext, v.Plaintext) {
				t.Errorf("opens to %x (%v), want %x", plaintext, err, v.Plaintext)
			}
			refused := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, hpke.ErrOpen) && !errors.Is(err, hpke.ErrKey) {
					t.Errorf("another %s: %v", what, err)
				}
			}
			_, err = key.DecryptWithLabel(v.Label+"x", v.Context, &good)
			refused("label", err)
			_, err = key.DecryptWithLabel(v.Label, flip(v.Context), &good)
			refused("context", err)
			_, err = key.DecryptWithLabel(v.Label, v.Context, &wire.HPKECiphertext{KEMOutput: flip(v.KEMOutput), Ciphertext: v.Ciphertext})
			refused("KEM output", err)
			_, err = key.DecryptWithLabel(v.Label, v.Context, &wire.HPKECiphertext{KEMOutput: v.KEMOutput, Ciphertext: flip(v.Ciphertext)})
			refused("ciphertext", err)
		})
	}
	t.Logf("%d cases", len(cases))
}
