// Package hpke is the public-key encryption of MLS (RFC 9420 §5.1.3, RFC 9180
// in base mode): EncryptWithLabel, DecryptWithLabel, DeriveKeyPair, and the
// export that an external commit needs (§8.3).
//
// It is the package that opens ciphertexts, so nothing of a server may reach
// it; a test over the import graph holds that.
//
// The Diffie-Hellman KEMs are our own over crypto/ecdh and edwards25519: the
// ephemeral key comes from the caller's randomness, so that runs can be
// repeated, and X25519 multiplies the base point by a table, at less than half
// the price of the ladder. crypto/hpke serves the hybrid KEM, and in tests it is
// the oracle for all others. Suites 4 and 6 work where package hpke448 is
// imported.
//
// Begin reading at hpke.go, then kem.go.
package hpke
