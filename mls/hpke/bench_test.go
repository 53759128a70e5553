package hpke_test

import (
	"bytes"
	"testing"

	"github.com/askucher/compax-core/mls/hpke"
)

// BenchmarkEncryptWithLabel is one path secret to one member.
func BenchmarkEncryptWithLabel(b *testing.B) {
	for _, cs := range every(b) {
		key, err := hpke.DeriveKeyPair(cs, bytes.Repeat([]byte{1}, 64))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(cs.String(), func(b *testing.B) {
			r, context, plaintext := chacha(1), make([]byte, 150), make([]byte, cs.HashSize())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := hpke.EncryptWithLabel(cs, r, key.Public(), "UpdatePathNode", context, plaintext); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEncryptAll is a thousand path secrets, on all processors.
func BenchmarkEncryptAll1000(b *testing.B) {
	cs := every(b)[0]
	key, err := hpke.DeriveKeyPair(cs, bytes.Repeat([]byte{1}, 64))
	if err != nil {
		b.Fatal(err)
	}
	all := make([]hpke.Plaintext, 1000)
	for i := range all {
		all[i] = hpke.Plaintext{PublicKey: key.Public(), Data: make([]byte, 32)}
	}
	r, context := chacha(1), make([]byte, 150)
	for b.Loop() {
		if _, err := hpke.EncryptAllWithLabel(cs, r, "UpdatePathNode", context, all); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecryptWithLabel opens one path secret.
func BenchmarkDecryptWithLabel(b *testing.B) {
	for _, cs := range every(b) {
		key, err := hpke.DeriveKeyPair(cs, bytes.Repeat([]byte{1}, 64))
		if err != nil {
			b.Fatal(err)
		}
		ct, err := hpke.EncryptWithLabel(cs, chacha(1), key.Public(), "UpdatePathNode", nil, make([]byte, 32))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(cs.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := key.DecryptWithLabel("UpdatePathNode", nil, &ct); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDeriveKeyPair is one node of a path.
func BenchmarkDeriveKeyPair(b *testing.B) {
	for _, cs := range every(b) {
		ikm := bytes.Repeat([]byte{1}, cs.HashSize())
		b.Run(cs.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := hpke.DeriveKeyPair(cs, ikm); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
