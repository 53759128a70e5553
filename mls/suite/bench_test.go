package suite_test

import "testing"

// BenchmarkVerifyWithLabel is one signature over 300 bytes.
func BenchmarkVerifyWithLabel(b *testing.B) {
	for _, s := range every(b) {
		key, err := s.GenerateSignatureKey(chacha(1))
		if err != nil {
			b.Fatal(err)
		}
		content := make([]byte, 300)
		sig, err := key.SignWithLabel("l", content)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(s.String(), func(b *testing.B) {
			for b.Loop() {
				if !s.VerifyWithLabel(key.Public(), "l", content, sig) {
					b.Fatal("refused")
				}
			}
		})
	}
}

// BenchmarkSignWithLabel is one signature over 300 bytes by a prepared key.
func BenchmarkSignWithLabel(b *testing.B) {
	for _, s := range every(b) {
		key, err := s.GenerateSignatureKey(chacha(1))
		if err != nil {
			b.Fatal(err)
		}
		content := make([]byte, 300)
		b.Run(s.String(), func(b *testing.B) {
			for b.Loop() {
				if _, err := key.SignWithLabel("l", content); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSignatureBatch64 is 64 Ed25519 signatures at once.
func BenchmarkSignatureBatch64(b *testing.B) {
	s := every(b)[0]
	content := make([]byte, 300)
	var publics, sigs [][]byte
	for i := range byte(64) {
		key, err := s.GenerateSignatureKey(chacha(i))
		if err != nil {
			b.Fatal(err)
		}
		sig, err := key.SignWithLabel("l", content)
		if err != nil {
			b.Fatal(err)
		}
		publics, sigs = append(publics, key.Public()), append(sigs, sig)
	}
	for b.Loop() {
		batch := s.NewSignatureBatch()
		for i := range sigs {
			batch.Add(publics[i], "l", content, sigs[i])
		}
		if !batch.Verify() {
			b.Fatal("refused")
		}
	}
}

// BenchmarkKDF is what the key schedule and the secret tree are made of.
func BenchmarkKDF(b *testing.B) {
	s := every(b)[0]
	secret := make([]byte, 32)
	b.Run("DeriveSecret", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.DeriveSecret(secret, "confirm")
		}
	})
	b.Run("Seal1KiB", func(b *testing.B) {
		key, nonce, plaintext := make([]byte, 16), make([]byte, 12), make([]byte, 1024)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Seal(key, nonce, nil, plaintext); err != nil {
				b.Fatal(err)
			}
		}
	})
}
