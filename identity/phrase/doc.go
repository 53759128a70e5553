// Package phrase turns a person's 24 words into keys: BIP-39 for the words,
// SLIP-0010 for the Ed25519 tree below them.
//
// From the phrase comes one account node, m/9420', and from that node everything
// the account signs with: the identity m/9420'/0'/0', the bots m/9420'/1'/i',
// and by HKDF the archive key. A device keeps the account node sealed at rest
// and never the phrase. Wallet keys do not come from this node: they use the
// chains' own paths from Phrase.Seed.
//
// Every secret of this package prints as [redacted] under every verb, inside
// other values too, refuses to be marshalled, and has a Wipe. Errors name the
// position of a word and never a word; what a person should see instead of a
// mistyped word is in fields of the error. Wiping is best effort: Go strings
// that held the words stay until the garbage collector reuses their memory.
//
// The package never stores anything and never reads randomness of its own.
//
// Start reading at Parse, then Account.
package phrase
