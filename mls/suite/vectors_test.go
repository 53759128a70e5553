package suite_test

import (
	"bytes"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
	"github.com/askucher/compax-core/mls/suite"
	_ "github.com/askucher/compax-core/mls/suite/suite448"
	"github.com/askucher/compax-core/mls/wire"
)

// flip returns b with one bit changed.
func flip(b []byte) []byte {
	c := bytes.Clone(b)
	c[len(c)/2] ^= 1
	return c
}

// TestVectorsCryptoBasics runs everything of the official crypto-basics vectors
// but encryption, which package hpke tests, for every suite of the RFC. A
// flipped bit of any input changes the result.
func TestVectorsCryptoBasics(t *testing.T) {
	type vector struct {
		CipherSuite wire.CipherSuite `json:"cipher_suite"`
		RefHash     struct {
			Label      string
			Value, Out testdata.Hex
		} `json:"ref_hash"`
		ExpandWithLabel struct {
			Secret, Context, Out testdata.Hex
			Label                string
			Length               int
		} `json:"expand_with_label"`
		DeriveSecret struct {
			Secret, Out testdata.Hex
			Label       string
		} `json:"derive_secret"`
		DeriveTreeSecret struct {
			Secret, Out testdata.Hex
			Label       string
			Generation  uint32
			Length      int
		} `json:"derive_tree_secret"`
		SignWithLabel struct {
			Priv, Pub, Content, Signature testdata.Hex
			Label                         string
		} `json:"sign_with_label"`
	}
	cases := testdata.Vectors[vector](t, "crypto-basics.json")
	for _, c := range cases {
		s, err := suite.Lookup(c.CipherSuite)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(s.String(), func(t *testing.T) {
			testdata.Ran(t, "crypto-basics.json", uint16(c.CipherSuite))
			same := func(what string, got, want []byte) {
				t.Helper()
				if !bytes.Equal(got, want) {
					t.Errorf("%s = %x, want %x", what, got, want)
				}
			}
			other := func(what string, got, not []byte) {
				t.Helper()
				if bytes.Equal(got, not) {
					t.Errorf("%s: a flipped bit changes nothing", what)
				}
			}
			rh := c.RefHash
			same("RefHash", s.RefHash(rh.Label, rh.Value), rh.Out)
			other("RefHash", s.RefHash(rh.Label, flip(rh.Value)), rh.Out)

			x := c.ExpandWithLabel
			same("ExpandWithLabel", s.ExpandWithLabel(x.Secret, x.Label, x.Context, x.Length), x.Out)
			other("ExpandWithLabel", s.ExpandWithLabel(flip(x.Secret), x.Label, x.Context, x.Length), x.Out)
			other("ExpandWithLabel", s.ExpandWithLabel(x.Secret, x.Label, flip(x.Context), x.Length), x.Out)

			d := c.DeriveSecret
			same("DeriveSecret", s.DeriveSecret(d.Secret, d.Label), d.Out)
			other("DeriveSecret", s.DeriveSecret(flip(d.Secret), d.Label), d.Out)

			e := c.DeriveTreeSecret
			same("DeriveTreeSecret", s.DeriveTreeSecret(e.Secret, e.Label, e.Generation, e.Length), e.Out)
			other("DeriveTreeSecret", s.DeriveTreeSecret(e.Secret, e.Label, e.Generation^1, e.Length), e.Out)

			g := c.SignWithLabel
			if !s.VerifyWithLabel(g.Pub, g.Label, g.Content, g.Signature) {
				t.Error("VerifyWithLabel refuses the vector's signature")
			}
			for what, verdict := range map[string]bool{
				"content":   s.VerifyWithLabel(g.Pub, g.Label, flip(g.Content), g.Signature),
				"signature": s.VerifyWithLabel(g.Pub, g.Label, g.Content, flip(g.Signature)),
				"key":       s.VerifyWithLabel(flip(g.Pub), g.Label, g.Content, g.Signature),
				"label":     s.VerifyWithLabel(g.Pub, g.Label+"x", g.Content, g.Signature),
			} {
				if verdict {
					t.Errorf("VerifyWithLabel accepts another %s", what)
				}
			}
			key, err := s.NewSignatureKey(g.Priv)
			if err != nil {
				t.Fatal(err)
			}
			same("public key", key.Public(), g.Pub)
			sig, err := key.SignWithLabel(g.Label, g.Content)
			if err != nil {
				t.Fatal(err)
			}
			if !s.VerifyWithLabel(g.Pub, g.Label, g.Content, sig) {
				t.Error("VerifyWithLabel refuses what SignWithLabel made")
			}
			if err := s.ValidateSignaturePublicKey(g.Pub); err != nil {
				t.Error(err)
			}
		})
	}
	t.Logf("%d cases", len(cases))
}
