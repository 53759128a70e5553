package suite

import (
	"errors"
	"fmt"
	"io"

	"github.com/askucher/compax-core/mls/wire"
)

// ErrKey: a key is not one of its algorithm: wrong size, not on the curve, not
// canonical, or of small order.
var ErrKey = errors.New("mls/suite: the key is not valid")

// Scheme is a signature algorithm with fixed encodings of its keys. The ones of
// the standard library are built in; [RegisterEd448] adds the missing one.
type Scheme interface {
	// Signer expands a private key that PublicKey accepted, once for many
	// signatures. The key must not change while sign is in use.
	Signer(private []byte) (sign func(message []byte) ([]byte, error), err error)
	// Verify reports whether signature is public's. Anything malformed is false.
	Verify(public, message, signature []byte) bool
	// PublicKey returns the public key of a private key, or [ErrKey].
	PublicKey(private []byte) ([]byte, error)
	// ValidatePublicKey returns [ErrKey] for a key that can verify nothing.
	ValidatePublicKey(public []byte) error
	// SeedSize is how many random bytes Generate takes.
	SeedSize() int
	// Generate makes a private key of SeedSize random bytes.
	Generate(seed []byte) (private []byte, err error)
}

// RegisterEd448 makes suites 4 and 6 known. Package suite448 calls it before
// main begins; nobody else needs to.
func RegisterEd448(s Scheme) {
	for _, t := range table {
		if t.kem == KEMX448 {
			t.scheme = s
		}
	}
}

// SignatureKey is a signature key pair of one suite, expanded for signing. It
// prints its public key only.
type SignatureKey struct {
	suite   *Suite
	private []byte
	public  wire.SignaturePublicKey
	sign    func(message []byte) ([]byte, error)
}

// NewSignatureKey reads a private key: the 32-byte seed for Ed25519, the
// 57-byte seed for Ed448, the scalar for ECDSA (big-endian, as long as the
// curve's order). The error wraps [ErrKey].
func (s *Suite) NewSignatureKey(private []byte) (*SignatureKey, error) {
	public, err := s.scheme.PublicKey(private)
	if err != nil {
		return nil, fmt.Errorf("signature private key of %s: %w", s.name, err)
	}
	k := &SignatureKey{suite: s, private: append([]byte(nil), private...), public: public}
	if k.sign, err = s.scheme.Signer(k.private); err != nil {
		return nil, fmt.Errorf("signature private key of %s: %w", s.name, err)
	}
	return k, nil
}

// GenerateSignatureKey makes a key pair from rand. The same bytes give the same
// pair.
func (s *Suite) GenerateSignatureKey(rand io.Reader) (*SignatureKey, error) {
	seed := make([]byte, s.scheme.SeedSize())
	if _, err := io.ReadFull(rand, seed); err != nil {
		return nil, fmt.Errorf("mls/suite: reading randomness for a signature key: %w", err)
	}
	private, err := s.scheme.Generate(seed)
	clear(seed)
	if err != nil {
		return nil, err
	}
	return s.NewSignatureKey(private)
}

// Public returns the public key. The caller must not change it.
func (k *SignatureKey) Public() wire.SignaturePublicKey { return k.public }

// Private returns the private key in the form that [Suite.NewSignatureKey]
// reads. The caller must not change it.
func (k *SignatureKey) Private() []byte { return k.private }

// Suite returns the suite of the key.
func (k *SignatureKey) Suite() *Suite { return k.suite }

// Format writes the public key whatever the verb is.
func (k SignatureKey) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "SignatureKey(public %x)", []byte(k.public))
}

// SignWithLabel signs content under a label of the registry of §17.6 (§5.1.2).
func (k *SignatureKey) SignWithLabel(label string, content []byte) ([]byte, error) {
	sig, err := k.sign(signContent(label, content))
	if err != nil {
		return nil, fmt.Errorf("mls/suite: signing %s: %w", label, err)
	}
	return sig, nil
}

// VerifyWithLabel reports whether signature is public's over content under
// label (§5.1.2). A malformed key or signature is simply wrong.
func (s *Suite) VerifyWithLabel(public []byte, label string, content, signature []byte) bool {
	return s.scheme.Verify(public, signContent(label, content), signature)
}

// ValidateSignaturePublicKey returns an error that wraps [ErrKey] when public
// is no key of the suite's signature algorithm (§5.1.1).
func (s *Suite) ValidateSignaturePublicKey(public []byte) error {
	if err := s.scheme.ValidatePublicKey(public); err != nil {
		return fmt.Errorf("signature public key of %s: %w", s.name, err)
	}
	return nil
}

// signContent encodes SignContent (§5.1.2).
func signContent(label string, content []byte) []byte {
	b := make([]byte, 0, len(labelPrefix)+len(label)+len(content)+8)
	return wire.AppendOpaque(appendLabel(b, label), content)
}
