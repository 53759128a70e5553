package suite_test

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"testing"

	"github.com/askucher/compax-core/mls/suite"
)

// TestKDFAgainstStandardLibrary compares what is computed on the stack with
// crypto/hkdf and crypto/hmac, across the lengths at which one hands over to the
// other.
func TestKDFAgainstStandardLibrary(t *testing.T) {
	bytesOf := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i*7 + n)
		}
		return b
	}
	kdf := suite.KDFSHA256
	for _, k := range []int{0, 1, 16, 32, 63, 64, 65, 200} {
		for _, n := range []int{0, 1, 31, 32, 55, 56, 64, 200, 510, 511, 512, 513, 2000} {
			key, data := bytesOf(k), bytesOf(n)
			h := hmac.New(sha256.New, key)
			h.Write(data)
			if !bytes.Equal(kdf.MAC(key, data), h.Sum(nil)) {
				t.Errorf("MAC of %d bytes under %d", n, k)
			}
			prk, err := hkdf.Extract(sha256.New, data, key)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(kdf.Extract(key, data), prk) {
				t.Errorf("Extract of %d bytes with salt of %d", n, k)
			}
			for _, length := range []int{0, 1, 12, 16, 32, 33, 64, 255 * 32} {
				want, err := hkdf.Expand(sha256.New, key, string(data), length)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(kdf.Expand(key, data, length), want) {
					t.Errorf("Expand of %d bytes under %d to %d", n, k, length)
				}
			}
			if !bytes.Equal(key, bytesOf(k)) || !bytes.Equal(data, bytesOf(n)) {
				t.Fatal("the arguments were changed")
			}
		}
	}
}

func BenchmarkExpand(b *testing.B) {
	secret := make([]byte, 32)
	b.ReportAllocs()
	for b.Loop() {
		suite.KDFSHA256.Expand(secret, secret[:20], 32)
	}
}
