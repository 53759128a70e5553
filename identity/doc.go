// Package identity holds the public side of who somebody is: identities and
// devices, the attestation by which an identity speaks for a device, its
// revocation, the proof of possession at login, the signed request envelope
// (x-chat-relay), signed usernames and safety numbers.
//
// Every signed structure has a fixed or length-prefixed byte layout that starts
// with a literal of its own, so that no signature made for one of them can be
// presented as another. Integers are big-endian. Bytes from outside parse to an
// Unverified type; only its Verify yields the type that the rest of the program
// accepts. Signatures follow the one strict rule of internal/strict25519.
//
// Versions are monotonic, and that is the whole rule everywhere: a structure
// with a higher version replaces one with a lower version, the same version
// with the same bytes is the same structure, and the same version with other
// bytes is refused with ErrEquivocation (its signer, or a thief of its key,
// says two things at once). Clocks do not decide: issued_at is for people.
//
// The package never holds a secret: signing takes a Signer, and the phrase with
// everything derived from it lives in identity/phrase. It never reads a clock,
// randomness, the network or a file.
//
// Start reading at Attestation, then Credential, then UnverifiedEnvelope.
package identity
