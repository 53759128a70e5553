// Package x509cred checks X.509 credentials of MLS (RFC 9420 §5.3): that the
// end-entity certificate holds exactly the leaf's signature key, that its chain
// leads to a root the application trusts, and that who it names may be there.
//
// It stands apart from package mls because crypto/x509 pulls in the network
// packages. A [Validator] is what package mls/tree calls a
// CredentialValidator; groups get it injected. It fetches nothing: no missing
// certificates, no revocation lists, never the system's roots. Time is a
// parameter.
//
// Begin reading at Validator.
package x509cred

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/askucher/compax-core/mls/wire"
)

// What can be wrong with a credential. Errors of a [Validator] wrap one of
// these; those for [ErrChain] and [ErrCertificate] wrap the cause as well, whose
// text can hold names from the certificates: a server reports the variable only.
var (
	// ErrCredentialType: the credential is not of the type x509.
	ErrCredentialType = errors.New("x509cred: not an X.509 credential")
	// ErrCertificate: no certificate, too many or too large ones, or one that
	// does not parse.
	ErrCertificate = errors.New("x509cred: the certificates cannot be read")
	// ErrKey: the end-entity certificate is for another key than the leaf's
	// signature_key, or its key may not sign.
	ErrKey = errors.New("x509cred: the certificate is not for the signature key")
	// ErrChain: the certificate does not chain to a trusted root at the time
	// asked for.
	ErrChain = errors.New("x509cred: the certificate does not chain to a trusted root")
	// ErrRevoked: the application's Revoked refused a certificate of the chain.
	ErrRevoked = errors.New("x509cred: a certificate of the chain is revoked")
	// ErrIdentity: the certificate presents no identifier, or none that the
	// application accepts.
	ErrIdentity = errors.New("x509cred: the identifiers of the certificate are not accepted")
	// ErrSuccessor: the certificate may not follow the one it replaces.
	ErrSuccessor = errors.New("x509cred: not a successor of the credential it replaces")
)

const (
	// MaxCertificates is how many certificates a credential may have.
	MaxCertificates = 8
	// MaxCertificateSize is how large each may be, in bytes.
	MaxCertificateSize = 16 << 10
)

// Validator checks X.509 credentials. Its fields must not change while it is in
// use; then it is safe for concurrent use.
type Validator struct {
	// Roots are the trust anchors. Without any, nothing is valid: the
	// system's roots are never asked.
	Roots *x509.CertPool
	// Intermediates are certificates that all peers are known to have, which
	// a chain may omit. May be nil.
	Intermediates []*x509.Certificate
	// ExtKeyUsages are the extended key usages of which the chain must allow
	// one; empty allows any.
	ExtKeyUsages []x509.ExtKeyUsage
	// Accept compares presented identifiers, in the form of [Identifiers],
	// with the application's reference identifiers (§5.3.1). Its error is
	// wrapped with ErrIdentity. Nil accepts every non-empty set.
	Accept func(identifiers []string) error
	// Successor decides whether presented identifiers may follow others
	// (§5.3.1). Its error is wrapped with ErrSuccessor. Nil demands the same
	// set.
	Successor func(before, after []string) error
	// Revoked reports whether the application knows a certificate as revoked.
	// It is asked for every certificate of a chain but the root, and a
	// revoked one makes the chain useless. Nil knows none.
	Revoked func(*x509.Certificate) bool
}

// ValidateCredential checks a leaf's credential and, when previous is not nil,
// that it may replace that leaf's. A zero now asks whether the credential was
// valid when its certificate began: so an expired member is no obstacle to
// those who join (§5.3.2).
func (v *Validator) ValidateCredential(leaf, previous *wire.LeafNode, now time.Time) error {
	after, err := v.validate(&leaf.Credential, leaf.SignatureKey, now)
	if err != nil || previous == nil {
		return err
	}
	// The old certificate was validated when it came in, and may have expired
	// since: only whom it names matters.
	old, err := parse(&previous.Credential)
	if err != nil {
		return fmt.Errorf("%w: the replaced one: %w", ErrSuccessor, err)
	}
	before := Identifiers(old[0])
	if v.Successor != nil {
		if err := v.Successor(before, after); err != nil {
			return fmt.Errorf("%w: %w", ErrSuccessor, err)
		}
		return nil
	}
	if !slices.Equal(before, after) {
		return fmt.Errorf("%w: it presents other identifiers", ErrSuccessor)
	}
	return nil
}

// ValidateExternalSender checks the credential of an external sender
// (§12.1.8.1) like a leaf's.
func (v *Validator) ValidateExternalSender(sender *wire.ExternalSender, now time.Time) error {
	_, err := v.validate(&sender.Credential, sender.SignatureKey, now)
	return err
}

// validate returns the identifiers that a valid credential presents.
func (v *Validator) validate(c *wire.Credential, key wire.SignaturePublicKey, now time.Time) ([]string, error) {
	certificates, err := parse(c)
	if err != nil {
		return nil, err
	}
	end := certificates[0]
	public, err := SignatureKey(end)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(public, key) {
		return nil, fmt.Errorf("%w: it holds another one", ErrKey)
	}
	if end.KeyUsage != 0 && end.KeyUsage&x509.KeyUsageDigitalSignature == 0 {
		return nil, fmt.Errorf("%w: its key usage does not include digital signatures", ErrKey)
	}
	if err := v.chain(certificates, now); err != nil {
		return nil, err
	}
	identifiers := Identifiers(end)
	if len(identifiers) == 0 {
		return nil, fmt.Errorf("%w: it presents none", ErrIdentity)
	}
	if v.Accept != nil {
		if err := v.Accept(identifiers); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrIdentity, err)
		}
	}
	return identifiers, nil
}

// chain verifies that certificates[0] chains to a root, without a revoked
// certificate on the way.
func (v *Validator) chain(certificates []*x509.Certificate, now time.Time) error {
	end := certificates[0]
	if v.Roots == nil {
		return fmt.Errorf("%w: no root is trusted", ErrChain)
	}
	if now.IsZero() {
		now = end.NotBefore
	}
	options := x509.VerifyOptions{
		Roots:         v.Roots,
		Intermediates: x509.NewCertPool(),
		CurrentTime:   now,
		KeyUsages:     v.ExtKeyUsages,
	}
	if len(options.KeyUsages) == 0 {
		options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	}
	for _, c := range certificates[1:] {
		options.Intermediates.AddCert(c)
	}
	for _, c := range v.Intermediates {
		options.Intermediates.AddCert(c)
	}
	chains, err := end.Verify(options)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrChain, err)
	}
	if v.Revoked == nil {
		return nil
	}
	for _, chain := range chains {
		if !slices.ContainsFunc(chain[:max(1, len(chain)-1)], v.Revoked) {
			return nil
		}
	}
	return ErrRevoked
}

// parse reads the certificates of a credential, the end entity first.
func parse(c *wire.Credential) ([]*x509.Certificate, error) {
	if c.CredentialType != wire.CredentialTypeX509 {
		return nil, fmt.Errorf("%w: its type is %d", ErrCredentialType, c.CredentialType)
	}
	if n := len(c.Certificates); n == 0 || n > MaxCertificates {
		return nil, fmt.Errorf("%w: there are %d, and 1 to %d are allowed", ErrCertificate, n, MaxCertificates)
	}
	certificates := make([]*x509.Certificate, len(c.Certificates))
	for i := range c.Certificates {
		data := c.Certificates[i].CertData
		if len(data) > MaxCertificateSize {
			return nil, fmt.Errorf("%w: number %d has %d bytes, and %d are allowed", ErrCertificate, i, len(data), MaxCertificateSize)
		}
		var err error
		if certificates[i], err = x509.ParseCertificate(data); err != nil {
			return nil, fmt.Errorf("%w: number %d: %w", ErrCertificate, i, err)
		}
	}
	return certificates, nil
}
