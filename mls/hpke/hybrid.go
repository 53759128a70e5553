package hpke

import (
	"crypto/hpke"

	"github.com/askucher/compax-core/mls/suite"
)

// hybrid is MLKEM768-X25519 by crypto/hpke. Its encapsulation draws from the
// system's randomness, because ML-KEM in the standard library takes none from
// its caller; the seed is not used.
type hybrid struct{}

func (hybrid) seedSize() int { return 0 }

func (hybrid) derive(ikm []byte) ([]byte, error) {
	key, err := hpke.MLKEM768X25519().DeriveKeyPair(ikm)
	if err != nil {
		return nil, ErrKey
	}
	return key.Bytes()
}

func (hybrid) public(secret []byte) ([]byte, any, error) {
	key, err := hpke.MLKEM768X25519().NewPrivateKey(secret)
	if err != nil {
		return nil, nil, ErrKey
	}
	return key.PublicKey().Bytes(), key, nil
}

func (hybrid) prepare(_ *suite.Suite, info []byte) []byte { return info }

func (hybrid) encapsulate(_, _ []byte) (encapsulated, error) { return encapsulated{}, nil }

func (hybrid) ahead() bool { return false }

func (hybrid) setupS(_ encapsulated, public []byte, cs *suite.Suite, info []byte) ([]byte, context, error) {
	pub, err := hpke.MLKEM768X25519().NewPublicKey(public)
	if err != nil {
		return nil, nil, ErrKey
	}
	kdf, aead, err := algorithms(cs)
	if err != nil {
		return nil, nil, err
	}
	enc, sender, err := hpke.NewSender(pub, kdf, aead, info)
	if err != nil {
		return nil, nil, ErrKey
	}
	return enc, hybridContext{sender: sender}, nil
}

func (hybrid) setupR(key *PrivateKey, enc, info []byte) (context, error) {
	private, ok := key.state.(hpke.PrivateKey)
	if !ok {
		return nil, ErrKey // the key was wiped
	}
	kdf, aead, err := algorithms(key.suite)
	if err != nil {
		return nil, err
	}
	recipient, err := hpke.NewRecipient(enc, private, kdf, aead, info)
	if err != nil {
		return nil, ErrKey
	}
	return hybridContext{recipient: recipient}, nil
}

func algorithms(cs *suite.Suite) (hpke.KDF, hpke.AEAD, error) {
	kdf, err := hpke.NewKDF(uint16(cs.KDF()))
	if err != nil {
		return nil, nil, err
	}
	aead, err := hpke.NewAEAD(uint16(cs.AEAD()))
	return kdf, aead, err
}

// hybridContext is one of the two ends.
type hybridContext struct {
	sender    *hpke.Sender
	recipient *hpke.Recipient
}

func (c hybridContext) seal(plaintext []byte) ([]byte, error) {
	return c.sender.Seal(nil, plaintext)
}

func (c hybridContext) open(ciphertext []byte) ([]byte, error) {
	plaintext, err := c.recipient.Open(nil, ciphertext)
	if err != nil {
		return nil, ErrOpen
	}
	return plaintext, nil
}

func (c hybridContext) export(exporterContext string, length int) ([]byte, error) {
	if c.sender != nil {
		return c.sender.Export(exporterContext, length)
	}
	return c.recipient.Export(exporterContext, length)
}
