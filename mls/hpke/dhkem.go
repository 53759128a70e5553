package hpke

import (
	"crypto/cipher"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// dhKEM is DHKEM (RFC 9180 §4.1) over a group.
type dhKEM struct {
	group   Group
	kdf     suite.KDF
	suiteID string
}

func newDHKEM(id suite.KEM, kdf suite.KDF, g Group) *dhKEM {
	return &dhKEM{group: g, kdf: kdf, suiteID: string(wire.AppendUint16([]byte("KEM"), uint16(id)))}
}

// seedSize: at least as many bytes as a private key has; they become the input
// of DeriveKeyPair, as RFC 9180 §4 suggests for GenerateKeyPair.
func (k *dhKEM) seedSize() int { return k.group.SecretSize() }

func (k *dhKEM) derive(ikm []byte) ([]byte, error) {
	prk := labeledExtract(k.kdf, k.suiteID, nil, "dkp_prk", ikm)
	defer clear(prk)
	return k.group.Derive(func(label string, info []byte, length int) []byte {
		return labeledExpand(k.kdf, k.suiteID, prk, label, info, length)
	})
}

func (k *dhKEM) public(secret []byte) ([]byte, any, error) {
	public, err := k.group.Public(secret)
	return public, nil, err
}

func (k *dhKEM) ahead() bool { return true }

func (k *dhKEM) encapsulate(seed, public []byte) (encapsulated, error) {
	ephemeral, err := k.derive(seed)
	if err != nil {
		return encapsulated{}, err
	}
	defer clear(ephemeral)
	dh, err := k.group.DH(ephemeral, public)
	if err != nil {
		return encapsulated{}, err
	}
	enc, err := k.group.Public(ephemeral)
	if err != nil {
		return encapsulated{}, err
	}
	return encapsulated{enc: enc, shared: k.shared(dh, enc, public)}, nil
}

func (k *dhKEM) setupS(e encapsulated, _ []byte, cs *suite.Suite, prepared []byte) ([]byte, context, error) {
	return e.enc, schedule(cs, e.shared, prepared), nil
}

func (k *dhKEM) setupR(key *PrivateKey, enc, prepared []byte) (context, error) {
	dh, err := k.group.DH(key.secret, enc)
	if err != nil {
		return nil, err
	}
	return schedule(key.suite, k.shared(dh, enc, key.public), prepared), nil
}

// shared is ExtractAndExpand (§4.1): the shared secret. It wipes dh.
func (k *dhKEM) shared(dh, enc, public []byte) []byte {
	kemContext := make([]byte, 0, len(enc)+len(public))
	kemContext = append(append(kemContext, enc...), public...)
	prk := labeledExtract(k.kdf, k.suiteID, nil, "eae_prk", dh)
	shared := labeledExpand(k.kdf, k.suiteID, prk, "shared_secret", kemContext, k.kdf.Size())
	clear(dh)
	clear(prk)
	return shared
}

// schedule is KeySchedule in base mode (§5.1). It wipes the shared secret.
func schedule(cs *suite.Suite, shared, prepared []byte) context {
	suiteID := hpkeSuiteID(cs)
	secret := labeledExtract(cs.KDF(), suiteID, shared, "secret", nil)
	clear(shared)
	return &dhContext{cs: cs, suiteID: suiteID, secret: secret, schedule: prepared}
}

// prepare is key_schedule_context (§5.1): the mode and the hashes of the empty
// psk_id and of info.
func (k *dhKEM) prepare(cs *suite.Suite, info []byte) []byte {
	kdf, suiteID := cs.KDF(), hpkeSuiteID(cs)
	schedule := make([]byte, 1, 1+2*kdf.Size()) // mode_base = 0
	schedule = append(schedule, labeledExtract(kdf, suiteID, nil, "psk_id_hash", nil)...)
	return append(schedule, labeledExtract(kdf, suiteID, nil, "info_hash", info)...)
}

// hpkeSuiteID is suite_id of the key schedule (§5.1).
func hpkeSuiteID(cs *suite.Suite) string {
	id := []byte("HPKE")
	id = wire.AppendUint16(id, uint16(cs.KEM()))
	id = wire.AppendUint16(id, uint16(cs.KDF()))
	return string(wire.AppendUint16(id, uint16(cs.AEAD())))
}

// dhContext derives what is asked of it: a message uses key and nonce, an
// external commit only the exporter.
type dhContext struct {
	cs       *suite.Suite
	suiteID  string
	secret   []byte
	schedule []byte
}

// aead returns the AEAD and the nonce of the first and only message.
func (c *dhContext) aead() (cipher.AEAD, []byte, error) {
	kdf, algorithm := c.cs.KDF(), c.cs.AEAD()
	key := labeledExpand(kdf, c.suiteID, c.secret, "key", c.schedule, algorithm.KeySize())
	nonce := labeledExpand(kdf, c.suiteID, c.secret, "base_nonce", c.schedule, algorithm.NonceSize())
	clear(c.secret)
	a, err := algorithm.New(key)
	clear(key)
	return a, nonce, err
}

func (c *dhContext) seal(plaintext []byte) ([]byte, error) {
	a, nonce, err := c.aead()
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, nonce, plaintext, nil), nil
}

func (c *dhContext) open(ciphertext []byte) ([]byte, error) {
	a, nonce, err := c.aead()
	if err != nil {
		return nil, err
	}
	plaintext, err := a.Open(nil, nonce, ciphertext, nil)
	if err != nil {
		return nil, ErrOpen
	}
	return plaintext, nil
}

func (c *dhContext) export(exporterContext string, length int) ([]byte, error) {
	kdf := c.cs.KDF()
	exporter := labeledExpand(kdf, c.suiteID, c.secret, "exp", c.schedule, kdf.Size())
	clear(c.secret)
	out := labeledExpand(kdf, c.suiteID, exporter, "sec", []byte(exporterContext), length)
	clear(exporter)
	return out, nil
}

// labeledExtract is LabeledExtract (RFC 9180 §4).
func labeledExtract(kdf suite.KDF, suiteID string, salt []byte, label string, ikm []byte) []byte {
	var buf [160]byte
	b := append(buf[:0], "HPKE-v1"...)
	b = append(b, suiteID...)
	b = append(b, label...)
	b = append(b, ikm...)
	prk := kdf.Extract(salt, b)
	clear(b)
	return prk
}

// labeledExpand is LabeledExpand (RFC 9180 §4). Lengths are at most a few
// hashes here.
func labeledExpand(kdf suite.KDF, suiteID string, prk []byte, label string, info []byte, length int) []byte {
	var buf [256]byte
	b := wire.AppendUint16(buf[:0], uint16(length))
	b = append(b, "HPKE-v1"...)
	b = append(b, suiteID...)
	b = append(b, label...)
	b = append(b, info...)
	return kdf.Expand(prk, b, length)
}
