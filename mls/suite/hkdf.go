package suite

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
)

// sha256Input is up to how many bytes HMAC with SHA-256 is computed here: in one
// buffer on the stack, where crypto/hmac makes two hash states in memory for each
// key. Almost all that MLS derives is that short.
const sha256Input = 512

// hmacSHA256 is HMAC with SHA-256 (RFC 2104) of the concatenation of data, and
// says whether it computed it: not for a key above one block (64 bytes) nor for
// more than sha256Input bytes. Its time depends on the lengths alone.
func hmacSHA256(key []byte, data ...[]byte) (mac [sha256.Size]byte, ok bool) {
	size := 0
	for _, d := range data {
		size += len(d)
	}
	if len(key) > sha256.BlockSize || size > sha256Input {
		return mac, false
	}
	var buf [sha256.BlockSize + sha256Input]byte
	inner := buf[:sha256.BlockSize]
	copy(inner, key)
	for i := range inner {
		inner[i] ^= 0x36
	}
	for _, d := range data {
		inner = append(inner, d...)
	}
	hash := sha256.Sum256(inner)
	outer := inner[:sha256.BlockSize]
	for i := range outer {
		outer[i] ^= 0x36 ^ 0x5c
	}
	mac = sha256.Sum256(append(outer, hash[:]...))
	clear(buf[:max(len(inner), sha256.BlockSize+sha256.Size)])
	clear(hash[:])
	return mac, true
}

// Extract is HKDF-Extract (RFC 5869 section 2.2) with the KDF's hash. An empty
// salt is the salt of zeros.
func (k KDF) Extract(salt, ikm []byte) []byte {
	if k == KDFSHA256 {
		if mac, ok := hmacSHA256(salt, ikm); ok {
			return mac[:]
		}
	}
	prk, err := hkdf.Extract(k.New, ikm, salt)
	if err != nil {
		panic("mls/suite: " + err.Error()) // not possible outside FIPS-only mode
	}
	return prk
}

// Expand is HKDF-Expand (RFC 5869 section 2.3) with the KDF's hash. It panics when
// length, in bytes, is above 255 hashes.
func (k KDF) Expand(prk, info []byte, length int) []byte {
	if k == KDFSHA256 && length > 0 && length <= sha256.Size {
		if mac, ok := hmacSHA256(prk, info, []byte{1}); ok {
			return mac[:length:length]
		}
	}
	out, err := hkdf.Expand(k.New, prk, string(info), length)
	if err != nil {
		panic("mls/suite: " + err.Error())
	}
	return out
}

// MAC is HMAC with the KDF's hash (RFC 2104).
func (k KDF) MAC(key, data []byte) []byte {
	if k == KDFSHA256 {
		if mac, ok := hmacSHA256(key, data); ok {
			return mac[:]
		}
	}
	h := hmac.New(k.New, key)
	h.Write(data)
	return h.Sum(nil)
}
