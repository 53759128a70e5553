package hpke

import (
	"fmt"
	"io"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// EncryptWithLabel encrypts plaintext to a public key (RFC 9420 §5.1.3). Same
// randomness, same ciphertext, except in the hybrid suite, which draws its own.
// The error wraps [ErrKey] when public is no key of the suite or of low order,
// or says that rand failed.
func EncryptWithLabel(cs *suite.Suite, rand io.Reader, public []byte, label string, context, plaintext []byte) (wire.HPKECiphertext, error) {
	k, err := lookup(cs)
	if err != nil {
		return wire.HPKECiphertext{}, err
	}
	seed, err := readSeed(rand, k.seedSize())
	if err != nil {
		return wire.HPKECiphertext{}, err
	}
	e, err := k.encapsulate(seed, public)
	clear(seed)
	if err != nil {
		return wire.HPKECiphertext{}, fmt.Errorf("encrypting to a public key: %w", err)
	}
	return encrypt(cs, k, e, public, k.prepare(cs, encryptContext(label, context)), plaintext)
}

// encrypt finishes an encryption whose encapsulation was made.
func encrypt(cs *suite.Suite, k kem, e encapsulated, public, prepared, plaintext []byte) (wire.HPKECiphertext, error) {
	enc, c, err := k.setupS(e, public, cs, prepared)
	if err != nil {
		return wire.HPKECiphertext{}, fmt.Errorf("encrypting to a public key: %w", err)
	}
	ciphertext, err := c.seal(plaintext)
	if err != nil {
		return wire.HPKECiphertext{}, fmt.Errorf("mls/hpke: sealing: %w", err)
	}
	return wire.HPKECiphertext{KEMOutput: enc, Ciphertext: ciphertext}, nil
}

// Plaintext is one message of [EncryptAllWithLabel] and who shall read it.
type Plaintext struct {
	PublicKey wire.HPKEPublicKey
	Data      []byte
}

// EncryptAllWithLabel is [EncryptWithLabel] for many plaintexts under one label
// and context, spread over the processors: [Begin] and [Sealing.Encrypt] at once.
func EncryptAllWithLabel(cs *suite.Suite, rand io.Reader, label string, context []byte, plaintexts []Plaintext) ([]wire.HPKECiphertext, error) {
	keys, data := make([]wire.HPKEPublicKey, len(plaintexts)), make([][]byte, len(plaintexts))
	for i, p := range plaintexts {
		keys[i], data[i] = p.PublicKey, p.Data
	}
	s, err := Begin(cs, rand, keys)
	if err != nil {
		return nil, err
	}
	defer s.Cancel()
	return s.Encrypt(label, context, data)
}

// DecryptWithLabel decrypts what [EncryptWithLabel] made for the key (RFC 9420
// §5.1.3). The error wraps [ErrOpen], or [ErrKey] when the KEM output is none.
func (k *PrivateKey) DecryptWithLabel(label string, context []byte, c *wire.HPKECiphertext) ([]byte, error) {
	r, err := k.kem.setupR(k, c.KEMOutput, k.kem.prepare(k.suite, encryptContext(label, context)))
	if err != nil {
		return nil, err
	}
	return r.open(c.Ciphertext)
}

// ExportSender sets up an encryption to public with empty info and exports
// length bytes from it; kemOutput lets the holder of the private key export
// the same (RFC 9180 §5.3, used by external commits, RFC 9420 §8.3).
func ExportSender(cs *suite.Suite, rand io.Reader, public []byte, exporterContext string, length int) (kemOutput, secret []byte, err error) {
	k, err := lookup(cs)
	if err != nil {
		return nil, nil, err
	}
	seed, err := readSeed(rand, k.seedSize())
	if err != nil {
		return nil, nil, err
	}
	e, err := k.encapsulate(seed, public)
	clear(seed)
	if err != nil {
		return nil, nil, fmt.Errorf("exporting to a public key: %w", err)
	}
	enc, c, err := k.setupS(e, public, cs, k.prepare(cs, nil))
	if err != nil {
		return nil, nil, fmt.Errorf("exporting to a public key: %w", err)
	}
	secret, err = c.export(exporterContext, length)
	return enc, secret, err
}

// ExportReceiver exports what [ExportSender] exported, given its KEM output.
func (k *PrivateKey) ExportReceiver(kemOutput []byte, exporterContext string, length int) ([]byte, error) {
	c, err := k.kem.setupR(k, kemOutput, k.kem.prepare(k.suite, nil))
	if err != nil {
		return nil, err
	}
	return c.export(exporterContext, length)
}

func readSeed(rand io.Reader, size int) ([]byte, error) {
	seed := make([]byte, size)
	if size == 0 {
		return seed, nil
	}
	if _, err := io.ReadFull(rand, seed); err != nil {
		return nil, fmt.Errorf("mls/hpke: reading randomness: %w", err)
	}
	return seed, nil
}

// encryptContext encodes EncryptContext (RFC 9420 §5.1.3), HPKE's info.
func encryptContext(label string, context []byte) []byte {
	const prefix = "MLS 1.0 "
	b := make([]byte, 0, len(prefix)+len(label)+len(context)+8)
	b = wire.AppendVarint(b, len(prefix)+len(label))
	b = append(append(b, prefix...), label...)
	return wire.AppendOpaque(b, context)
}
