package phrase

import (
	"crypto/pbkdf2"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"strings"
)

// WordCount is how many words a phrase has.
const WordCount = 24

const entropySize = 32

// Phrase is a person's recovery phrase: 256 bits as 24 words of the English
// BIP-39 list. It is secret. The zero value is no phrase.
type Phrase struct {
	entropy hidden[[entropySize]byte]
}

// ErrWiped says that a secret was used after Wipe, or was never set.
var ErrWiped = errors.New("phrase: the secret was wiped or never set")

// Generate makes a phrase of 32 bytes from random, which must be a
// cryptographic source.
func Generate(random io.Reader) (Phrase, error) {
	var entropy [entropySize]byte
	if _, err := io.ReadFull(random, entropy[:]); err != nil {
		return Phrase{}, fmt.Errorf("phrase: read randomness: %w", err)
	}
	return Phrase{hide(&entropy)}, nil
}

// Parse reads 24 words in any case, separated by any white space. The error is
// a *WordError (words that are not in the list, or their number) or a
// *ChecksumError (all are in the list, and yet together they are no phrase).
func Parse(text string) (Phrase, error) {
	if len(text) > maxText {
		return Phrase{}, &WordError{Count: -1}
	}
	words := strings.Fields(strings.ToLower(text))
	if len(words) != WordCount {
		return Phrase{}, &WordError{Count: len(words)}
	}
	indices, err := lookUp(words)
	if err != nil {
		return Phrase{}, err
	}
	entropy, ok := decode(indices)
	if !ok {
		return Phrase{}, &ChecksumError{Repairs: repairs(indices)}
	}
	return Phrase{hide((*[entropySize]byte)(entropy))}, nil
}

// maxText bounds what Parse looks at, in bytes.
const maxText = 4096

// Words returns the 24 words, separated by single spaces, to show them to their
// owner. It is the only way to get them out; it is empty after Wipe.
func (p Phrase) Words() string {
	entropy := p.entropy.get()
	if entropy == nil {
		return ""
	}
	return encode(entropy[:])
}

// Seed returns the BIP-39 seed of the phrase, 64 bytes, for derivations by the
// paths of other systems (wallets). The passphrase is the optional "25th word",
// empty for everything of this program, in Unicode NFKD form. The caller wipes
// the seed.
func (p Phrase) Seed(passphrase string) ([]byte, error) {
	if p.entropy.get() == nil {
		return nil, ErrWiped
	}
	return seed(p.Words(), passphrase)
}

// Wipe overwrites the phrase in this and every copy of the value.
func (p Phrase) Wipe() { p.entropy.wipe() }

// seed stretches words by PBKDF2-HMAC-SHA512 with 2048 rounds (BIP-39).
func seed(words, passphrase string) ([]byte, error) {
	s, err := pbkdf2.Key(sha512.New, words, []byte("mnemonic"+passphrase), 2048, 64)
	if err != nil {
		return nil, fmt.Errorf("phrase: stretch: %w", err)
	}
	return s, nil
}
