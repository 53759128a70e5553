// Package suite is the table of MLS cipher suites (RFC 9420 §17.1) and what
// everybody may do with one: hash, MAC, derive, sign, verify, validate keys,
// and the plain AEAD of the suite.
//
// It never encrypts to or decrypts with an HPKE key: package hpke does, which
// a server must not reach. A signing key is the only private key it touches.
//
// Suites 4 and 6 need Ed448, which the standard library lacks: [Lookup] knows
// them only in programs that import package suite448.
//
// Ed25519 has one rule for everybody, that of package internal/strict25519:
// canonical encodings, no small-order keys, the cofactored equation, so that
// one signature and a batch of signatures get the same verdict in every
// client and server. X25519 and X448 public keys of low order are refused
// wherever they come in ([Suite.ValidateHPKEPublicKey]), not only when
// somebody encrypts to them.
//
// Begin reading at table.go, then kdf.go and signature.go.
package suite
