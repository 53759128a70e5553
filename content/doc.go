// Package content is what a message says, inside its encryption: MIMI content
// (draft-ietf-mimi-content-08) and this program's own parts within it.
//
// A Message is the container of the draft: salt, replaces, topic, expiry, reply,
// extensions and a tree of parts. It is encoded in deterministic CBOR (RFC 8949
// section 4.2.1) by a small codec of its own that takes exactly one encoding of
// everything: what decodes encodes again to the same bytes, parts and extensions
// that nobody here understands included. The message id is a hash over those
// bytes, the sender's URI and the room's URI, which every message of ours
// carries in its extensions 1 and 2. Messages name each other by that id only.
//
// An Item is what a part means: text, an attachment, a reaction, a poll, the
// room's title, a keyboard. New and its siblings build a message of items, and
// Message.Items reads them back; a part that is not understood comes back as
// Unknown with its media type and is never summarised. The own media types
// stand in one table, in mediatype.go.
//
// Attachments lie elsewhere as ciphertext; the files attachment.go and stream.go
// encrypt them, in memory that does not grow with the file.
//
// The package decides no policy: whether an edit counts (its sender's identity
// must be the original's), whether an expiry is honoured and who may rename a
// room are the client's to decide. It never does I/O beyond the readers and
// writers it is given, reads no clock and takes randomness as a parameter.
//
// Start reading at Message, then Item.
package content
