package x509cred

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"slices"
	"strings"

	"github.com/askucher/compax-core/mls/wire"
)

// Credential returns the X.509 credential of a chain, the end entity first.
func Credential(chain ...*x509.Certificate) wire.Credential {
	c := wire.Credential{CredentialType: wire.CredentialTypeX509}
	for _, certificate := range chain {
		c.Certificates = append(c.Certificates, wire.Certificate{CertData: certificate.Raw})
	}
	return c
}

// Identifiers returns whom a certificate presents: the entries of its
// subjectAltName as "dns:", "email:", "uri:" and "ip:" with their value, sorted,
// none twice. Host names are in lower case. The subject's common name does not
// count.
func Identifiers(c *x509.Certificate) []string {
	var list []string
	for _, name := range c.DNSNames {
		list = append(list, "dns:"+strings.ToLower(name))
	}
	for _, address := range c.EmailAddresses {
		// The part before the at sign distinguishes case, the host does not.
		if at := strings.LastIndexByte(address, '@'); at >= 0 {
			address = address[:at] + strings.ToLower(address[at:])
		}
		list = append(list, "email:"+address)
	}
	for _, u := range c.URIs {
		list = append(list, "uri:"+u.String())
	}
	for _, ip := range c.IPAddresses {
		list = append(list, "ip:"+ip.String())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// oidEd448 is id-Ed448 (RFC 8410), which crypto/x509 does not know.
var oidEd448 = asn1.ObjectIdentifier{1, 3, 101, 113}

// SignatureKey returns the certificate's public key in the form of MLS
// (RFC 9420 §5.1.1). Keys that no cipher suite can use give [ErrKey].
func SignatureKey(c *x509.Certificate) (wire.SignaturePublicKey, error) {
	switch key := c.PublicKey.(type) {
	case ed25519.PublicKey:
		return wire.SignaturePublicKey(key), nil
	case *ecdsa.PublicKey:
		encoded, err := key.Bytes()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKey, err)
		}
		return encoded, nil
	}
	var info struct {
		Algorithm struct {
			Algorithm  asn1.ObjectIdentifier
			Parameters asn1.RawValue `asn1:"optional"`
		}
		PublicKey asn1.BitString
	}
	_, err := asn1.Unmarshal(c.RawSubjectPublicKeyInfo, &info)
	if err != nil || !info.Algorithm.Algorithm.Equal(oidEd448) ||
		len(info.Algorithm.Parameters.FullBytes) != 0 || info.PublicKey.BitLength != 57*8 {
		return nil, fmt.Errorf("%w: no cipher suite has its algorithm", ErrKey)
	}
	return info.PublicKey.Bytes, nil
}
