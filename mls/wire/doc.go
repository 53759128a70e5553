// Package wire holds the structures of MLS (RFC 9420) and of its extensions
// draft as Go values, and the codec that turns them into bytes and back.
//
// Every structure is named as in the RFC, every field is the RFC's field in
// camel case. A select becomes one field per case; the field that says which
// case it is (ProposalType, ContentType, …) decides what is encoded, and the
// fields of the other cases are ignored.
//
// # What it promises
//
//   - [Unmarshal] accepts exactly one encoding of a value: lengths are minimal
//     QUIC varints (§2.1.2), nothing may follow the value, and encoding the
//     result gives the same bytes again.
//   - A declared length is compared with the bytes that are there before
//     anything is allocated, so memory is at most a constant times the input.
//   - Types, code points and extensions that this package does not know are
//     kept as they came; whether they are acceptable is for the validator.
//
// # What it never does
//
// It checks no signature, tag, key or rule of the protocol: a decoded value is
// a claim. The packages above give verified values types of their own. It
// holds no key that opens anything and imports nothing but the standard
// library's formatting and error packages, so both server and client use it.
//
// # Memory
//
// [Unmarshal] copies its input once, and the byte slices of the result point
// into that copy. Keeping a small part of a large message alive keeps the
// whole message alive; Clone methods cut loose what is to be kept for long.
//
// Begin reading at reader.go and append.go (the codec), then framing.go.
package wire
