package x509cred

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func generate(t testing.TB) crypto.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue signs template with a's key, or with key itself when a is nil.
func issue(t testing.TB, a *authority, template *x509.Certificate, public crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(int64(len(template.Subject.CommonName)) + 1)
	if template.NotBefore.IsZero() {
		template.NotBefore, template.NotAfter = noon.Add(-time.Hour), noon.Add(time.Hour)
	}
	parent := template
	if a != nil {
		parent, key = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func newAuthority(t testing.TB, name string, parent *authority, change ...func(*x509.Certificate)) *authority {
	t.Helper()
	key := generate(t)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: noon.Add(-48 * time.Hour), NotAfter: noon.Add(48 * time.Hour),
	}
	for _, f := range change {
		f(template)
	}
	return &authority{cert: issue(t, parent, template, key.Public(), key), key: key}
}

// world is a root, an intermediate below it, and a member below that.
type world struct {
	root, middle *authority
	key          crypto.Signer
	end          *x509.Certificate
	v            Validator
}

func newWorld(t testing.TB, change ...func(*x509.Certificate)) *world {
	w := &world{root: newAuthority(t, "root", nil), key: generate(t)}
	w.middle = newAuthority(t, "middle", w.root)
	w.end = w.member(t, change...)
	w.v.Roots = x509.NewCertPool()
	w.v.Roots.AddCert(w.root.cert)
	return w
}

func (w *world) member(t testing.TB, change ...func(*x509.Certificate)) *x509.Certificate {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "member"}, KeyUsage: x509.KeyUsageDigitalSignature,
		DNSNames: []string{"a.example"}, EmailAddresses: []string{"ada@a.example"},
	}
	for _, f := range change {
		f(template)
	}
	return issue(t, w.middle, template, w.key.Public(), nil)
}

func leaf(key []byte, c wire.Credential) *wire.LeafNode {
	return &wire.LeafNode{SignatureKey: key, Credential: c}
}

func (w *world) leaf(chain ...*x509.Certificate) *wire.LeafNode {
	return leaf(w.key.Public().(ed25519.PublicKey), Credential(chain...))
}

// TestChains accepts a chain to the root, whole or completed by what the
// application holds, as leaf and as external sender.
func TestChains(t *testing.T) {
	w := newWorld(t)
	if err := w.v.ValidateCredential(w.leaf(w.end, w.middle.cert), nil, noon); err != nil {
		t.Error(err)
	}
	if err := w.v.ValidateCredential(w.leaf(w.end, w.middle.cert, w.root.cert), nil, noon); err != nil {
		t.Errorf("with the root in the chain: %v", err)
	}
	sender := wire.ExternalSender{SignatureKey: wire.SignaturePublicKey(w.key.Public().(ed25519.PublicKey)), Credential: Credential(w.end, w.middle.cert)}
	if err := w.v.ValidateExternalSender(&sender, noon); err != nil {
		t.Errorf("external sender: %v", err)
	}
	sender.SignatureKey = flip(sender.SignatureKey)
	if err := w.v.ValidateExternalSender(&sender, noon); !errors.Is(err, ErrKey) {
		t.Errorf("external sender with another key: %v", err)
	}
	if err := w.v.ValidateCredential(w.leaf(w.end), nil, noon); !errors.Is(err, ErrChain) {
		t.Errorf("without the intermediate: %v", err)
	}
	w.v.Intermediates = []*x509.Certificate{w.middle.cert}
	if err := w.v.ValidateCredential(w.leaf(w.end), nil, noon); err != nil {
		t.Errorf("with an intermediate that is known: %v", err)
	}
	// What travels survives the codec.
	var back wire.Credential
	c := Credential(w.end, w.middle.cert)
	if err := wire.Unmarshal(wire.Marshal(&c), &back); err != nil {
		t.Fatal(err)
	}
	if err := w.v.ValidateCredential(leaf(w.key.Public().(ed25519.PublicKey), back), nil, noon); err != nil {
		t.Error(err)
	}
}

func flip(b []byte) []byte {
	c := bytes.Clone(b)
	c[len(c)/2] ^= 1
	return c
}

// TestRefusals names each fault.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	key := []byte(w.key.Public().(ed25519.PublicKey))
	stranger := newWorld(t)
	good := Credential(w.end, w.middle.cert)
	tampered := Credential(w.end, w.middle.cert)
	tampered.Certificates[0].CertData = flip(w.end.Raw)
	tooMany := Credential(w.end)
	for range MaxCertificates {
		tooMany.Certificates = append(tooMany.Certificates, wire.Certificate{CertData: w.middle.cert.Raw})
	}
	large := Credential(w.member(t, func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Value: make([]byte, MaxCertificateSize)}}
	}), w.middle.cert)
	trailing := Credential(w.end, w.middle.cert)
	trailing.Certificates[0].CertData = append(bytes.Clone(w.end.Raw), 0)
	garbage := Credential(w.end, w.middle.cert)
	garbage.Certificates[1].CertData = []byte("garbage")

	signsNothing := w.member(t, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment })
	nameless := w.member(t, func(c *x509.Certificate) { c.DNSNames, c.EmailAddresses = nil, nil })
	critical := w.member(t, func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}}}
	})
	notCA := &authority{cert: w.end, key: w.key}
	below := issue(t, notCA, &x509.Certificate{Subject: pkix.Name{CommonName: "below"}, DNSNames: []string{"b.example"}}, w.key.Public(), nil)
	constrained := newAuthority(t, "constrained", w.root, func(c *x509.Certificate) {
		c.PermittedDNSDomainsCritical, c.PermittedDNSDomains = true, []string{"b.example"}
	})
	outside := issue(t, constrained, &x509.Certificate{Subject: pkix.Name{CommonName: "outside"}, DNSNames: []string{"a.example"}}, w.key.Public(), nil)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	withRSA := issue(t, w.middle, &x509.Certificate{Subject: pkix.Name{CommonName: "rsa"}, DNSNames: []string{"a.example"}}, rsaKey.Public(), nil)

	for _, c := range []struct {
		name string
		leaf *wire.LeafNode
		now  time.Time
		err  error
	}{
		{"basic credential", leaf(key, wire.BasicCredential([]byte("ada"))), noon, ErrCredentialType},
		{"no certificate", leaf(key, wire.Credential{CredentialType: wire.CredentialTypeX509}), noon, ErrCertificate},
		{"too many certificates", leaf(key, tooMany), noon, ErrCertificate},
		{"certificate too large", leaf(key, large), noon, ErrCertificate},
		{"bytes after a certificate", leaf(key, trailing), noon, ErrCertificate},
		{"garbage", leaf(key, garbage), noon, ErrCertificate},
		{"another signature key", leaf(flip(key), good), noon, ErrKey},
		{"no signature key", leaf(nil, good), noon, ErrKey},
		{"chain upside down", w.leaf(w.middle.cert, w.end), noon, ErrKey},
		{"key that may not sign", w.leaf(signsNothing, w.middle.cert), noon, ErrKey},
		{"RSA", w.leaf(withRSA, w.middle.cert), noon, ErrKey},
		{"root of others", leaf(stranger.key.Public().(ed25519.PublicKey), Credential(stranger.end, stranger.middle.cert, stranger.root.cert)), noon, ErrChain},
		{"intermediate of others", w.leaf(w.end, stranger.middle.cert), noon, ErrChain},
		{"issued by a member", w.leaf(below, w.end, w.middle.cert), noon, ErrChain},
		{"outside the name constraints", w.leaf(outside, constrained.cert), noon, ErrChain},
		{"unknown critical extension", w.leaf(critical, w.middle.cert), noon, ErrChain},
		{"not yet valid", w.leaf(w.end, w.middle.cert), noon.Add(-2 * time.Hour), ErrChain},
		{"expired", w.leaf(w.end, w.middle.cert), noon.Add(2 * time.Hour), ErrChain},
		{"no identifiers", w.leaf(nameless, w.middle.cert), noon, ErrIdentity},
	} {
		if err := w.v.ValidateCredential(c.leaf, nil, c.now); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
	if err := w.v.ValidateCredential(leaf(key, tampered), nil, noon); err == nil {
		t.Error("a changed certificate is accepted")
	}
	usage := w.v
	usage.ExtKeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection}
	client := w.member(t, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	if err := usage.ValidateCredential(w.leaf(client, w.middle.cert), nil, noon); !errors.Is(err, ErrChain) {
		t.Errorf("other extended key usage: %v", err)
	}
}

var (
	system      sync.Once
	systemWorld *world
)

// TestSystemRootsAreNeverAsked: without roots nothing is valid, even where the
// system trusts the very root.
func TestSystemRootsAreNeverAsked(t *testing.T) {
	t.Setenv("GODEBUG", "x509usefallbackroots=1")
	system.Do(func() { // a process may do it once, and -count runs tests again
		systemWorld = newWorld(t)
		x509.SetFallbackRoots(systemWorld.v.Roots)
	})
	w := systemWorld
	if _, err := w.end.Verify(x509.VerifyOptions{Intermediates: func() *x509.CertPool {
		p := x509.NewCertPool()
		p.AddCert(w.middle.cert)
		return p
	}(), CurrentTime: noon, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		t.Fatalf("the system is meant to trust the root, or this measures nothing: %v", err)
	}
	if err := new(Validator).ValidateCredential(w.leaf(w.end, w.middle.cert), nil, noon); !errors.Is(err, ErrChain) {
		t.Errorf("without roots: %v", err)
	}
}

// TestExpiredMembersDoNotStopJoiners: with no time given, what counts is that
// the certificate was once good.
func TestExpiredMembersDoNotStopJoiners(t *testing.T) {
	w := newWorld(t)
	if err := w.v.ValidateCredential(w.leaf(w.end, w.middle.cert), nil, time.Time{}); err != nil {
		t.Error(err)
	}
	stranger := newWorld(t)
	w.end = stranger.end
	if err := w.v.ValidateCredential(leaf(stranger.key.Public().(ed25519.PublicKey), Credential(stranger.end)), nil, time.Time{}); !errors.Is(err, ErrChain) {
		t.Errorf("no time, no root: %v", err)
	}
	before := w.member(t, func(c *x509.Certificate) { // older than its issuer
		c.NotBefore, c.NotAfter = noon.Add(-99*time.Hour), noon.Add(time.Hour)
	})
	if err := w.v.ValidateCredential(w.leaf(before, w.middle.cert), nil, time.Time{}); !errors.Is(err, ErrChain) {
		t.Errorf("older than its issuer: %v", err)
	}
}

// TestApplicationPolicies: identifiers, successors and revocation are the
// application's to judge.
func TestApplicationPolicies(t *testing.T) {
	w := newWorld(t)
	refusal := errors.New("not on the list")
	current := w.leaf(w.end, w.middle.cert)

	w.v.Accept = func(identifiers []string) error {
		if !slices.Contains(identifiers, "email:ada@a.example") {
			return refusal
		}
		return nil
	}
	other := w.leaf(w.member(t, func(c *x509.Certificate) { c.EmailAddresses = []string{"eve@a.example"} }), w.middle.cert)
	if err := w.v.ValidateCredential(current, nil, noon); err != nil {
		t.Error(err)
	}
	if err := w.v.ValidateCredential(other, nil, noon); !errors.Is(err, ErrIdentity) || !errors.Is(err, refusal) {
		t.Errorf("another person: %v", err)
	}
	w.v.Accept = nil

	renewed := w.leaf(w.member(t, func(c *x509.Certificate) { c.NotAfter, c.NotBefore = noon.Add(9*time.Hour), noon }), w.middle.cert)
	if err := w.v.ValidateCredential(renewed, current, noon); err != nil {
		t.Errorf("renewed: %v", err)
	}
	if err := w.v.ValidateCredential(renewed, current, noon.Add(8*time.Hour)); err != nil {
		t.Errorf("renewed after the old one expired: %v", err)
	}
	if err := w.v.ValidateCredential(other, current, noon); !errors.Is(err, ErrSuccessor) {
		t.Errorf("another person as successor: %v", err)
	}
	if err := w.v.ValidateCredential(current, leaf(current.SignatureKey, wire.BasicCredential([]byte("ada"))), noon); !errors.Is(err, ErrSuccessor) {
		t.Errorf("successor of a basic credential: %v", err)
	}
	w.v.Successor = func(before, after []string) error {
		if len(after) < len(before) {
			return refusal
		}
		return nil
	}
	if err := w.v.ValidateCredential(other, current, noon); err != nil {
		t.Errorf("a policy that allows it: %v", err)
	}
	fewer := w.leaf(w.member(t, func(c *x509.Certificate) { c.EmailAddresses = nil }), w.middle.cert)
	if err := w.v.ValidateCredential(fewer, current, noon); !errors.Is(err, ErrSuccessor) || !errors.Is(err, refusal) {
		t.Errorf("a policy that refuses it: %v", err)
	}

	for _, revoked := range []*x509.Certificate{w.end, w.middle.cert} {
		w.v.Revoked = func(c *x509.Certificate) bool { return c.Equal(revoked) }
		if err := w.v.ValidateCredential(current, nil, noon); !errors.Is(err, ErrRevoked) {
			t.Errorf("%s revoked: %v", revoked.Subject.CommonName, err)
		}
	}
	// A second way to the root that avoids the revoked certificate counts.
	again := &authority{key: w.middle.key}
	again.cert = issue(t, w.root, &x509.Certificate{
		Subject: pkix.Name{CommonName: "middle"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: noon.Add(-24 * time.Hour), NotAfter: noon.Add(24 * time.Hour),
	}, w.middle.key.Public(), nil)
	if err := w.v.ValidateCredential(w.leaf(w.end, w.middle.cert, again.cert), nil, noon); err != nil {
		t.Errorf("another chain without the revoked certificate: %v", err)
	}
}

// TestSignatureKeyOfEverySuite finds the key of each algorithm in MLS form.
func TestSignatureKeyOfEverySuite(t *testing.T) {
	w := newWorld(t)
	for id, curve := range map[wire.CipherSuite]elliptic.Curve{2: elliptic.P256(), 5: elliptic.P521(), 7: elliptic.P384()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		cert := issue(t, w.middle, &x509.Certificate{Subject: pkix.Name{CommonName: "ec"}, DNSNames: []string{"a.example"}}, key.Public(), nil)
		public, err := SignatureKey(cert)
		if err != nil {
			t.Fatal(err)
		}
		cs, err := suite.Lookup(id)
		if err != nil {
			t.Fatal(err)
		}
		scalar, err := key.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		own, err := cs.NewSignatureKey(scalar)
		if err != nil || !bytes.Equal(own.Public(), public) {
			t.Errorf("%v: %x, want %x (%v)", cs, public, own.Public(), err)
		}
		if err := w.v.ValidateCredential(leaf(public, Credential(cert, w.middle.cert)), nil, noon); err != nil {
			t.Errorf("%v: %v", cs, err)
		}
	}
	if public, err := SignatureKey(w.end); err != nil || !bytes.Equal(public, w.key.Public().(ed25519.PublicKey)) {
		t.Errorf("Ed25519: %x, %v", public, err)
	}
}

// TestEd448Certificate: crypto/x509 cannot read the key, and we can.
func TestEd448Certificate(t *testing.T) {
	w := newWorld(t)
	public := bytes.Repeat([]byte{0x44}, 57)
	der := resign(t, w, func(spki *publicKeyInfo) {
		spki.Algorithm.Algorithm = oidEd448
		spki.PublicKey = asn1.BitString{Bytes: public, BitLength: 57 * 8}
	})
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := SignatureKey(cert); err != nil || !bytes.Equal(got, public) {
		t.Errorf("%x, %v", got, err)
	}
	if err := w.v.ValidateCredential(leaf(public, Credential(cert, w.middle.cert)), nil, noon); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*publicKeyInfo){
		"56 bytes": func(k *publicKeyInfo) {
			k.Algorithm.Algorithm, k.PublicKey = oidEd448, asn1.BitString{Bytes: public[:56], BitLength: 56 * 8}
		},
		"with parameters": func(k *publicKeyInfo) {
			k.Algorithm.Algorithm, k.PublicKey = oidEd448, asn1.BitString{Bytes: public, BitLength: 57 * 8}
			k.Algorithm.Parameters = asn1.NullRawValue
		},
		"X448": func(k *publicKeyInfo) {
			k.Algorithm.Algorithm, k.PublicKey = asn1.ObjectIdentifier{1, 3, 101, 111}, asn1.BitString{Bytes: public, BitLength: 57 * 8}
		},
	} {
		cert, err := x509.ParseCertificate(resign(t, w, change))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := SignatureKey(cert); !errors.Is(err, ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type publicKeyInfo struct {
	Algorithm struct {
		Algorithm  asn1.ObjectIdentifier
		Parameters asn1.RawValue `asn1:"optional"`
	}
	PublicKey asn1.BitString
}

// resign changes the public key inside the member's certificate and has the
// intermediate sign the result.
func resign(t *testing.T, w *world, change func(*publicKeyInfo)) []byte {
	t.Helper()
	var info publicKeyInfo
	if _, err := asn1.Unmarshal(w.end.RawSubjectPublicKeyInfo, &info); err != nil {
		t.Fatal(err)
	}
	change(&info)
	spki, err := asn1.Marshal(info)
	if err != nil {
		t.Fatal(err)
	}
	var tbs asn1.RawValue
	if _, err := asn1.Unmarshal(w.end.RawTBSCertificate, &tbs); err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(tbs.Bytes, w.end.RawSubjectPublicKeyInfo)
	tbs.Bytes = slices.Concat(tbs.Bytes[:at], spki, tbs.Bytes[at+len(w.end.RawSubjectPublicKeyInfo):])
	tbs.FullBytes = nil
	encoded, err := asn1.Marshal(tbs)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := w.middle.key.Sign(nil, encoded, crypto.Hash(0))
	if err != nil {
		t.Fatal(err)
	}
	algorithm, err := asn1.Marshal(struct{ Algorithm asn1.ObjectIdentifier }{asn1.ObjectIdentifier{1, 3, 101, 112}})
	if err != nil {
		t.Fatal(err)
	}
	der, err := asn1.Marshal(struct {
		TBS       asn1.RawValue
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}{asn1.RawValue{FullBytes: encoded}, asn1.RawValue{FullBytes: algorithm}, asn1.BitString{Bytes: sig, BitLength: 8 * len(sig)}})
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestIdentifiers lists every kind of name, in one order.
func TestIdentifiers(t *testing.T) {
	w := newWorld(t, func(c *x509.Certificate) {
		c.DNSNames = []string{"B.example", "a.example", "b.example"}
		c.EmailAddresses = []string{"Ada@A.Example"}
		c.URIs = []*url.URL{{Scheme: "mimi", Host: "a.example", Path: "/u/ada"}}
		c.IPAddresses = []net.IP{net.ParseIP("192.0.2.7")}
	})
	want := []string{"dns:a.example", "dns:b.example", "email:Ada@a.example", "ip:192.0.2.7", "uri:mimi://a.example/u/ada"}
	if got := Identifiers(w.end); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzCredential validates arbitrary credentials: an error, never a panic.
func FuzzCredential(f *testing.F) {
	w := newWorld(f)
	good := Credential(w.end, w.middle.cert)
	f.Add(wire.Marshal(&good), []byte(w.key.Public().(ed25519.PublicKey)))
	f.Add([]byte{0, 1, 0}, []byte(nil))
	f.Fuzz(func(t *testing.T, data, key []byte) {
		var c wire.Credential
		if wire.Unmarshal(data, &c) != nil {
			return
		}
		err := w.v.ValidateCredential(leaf(key, c), nil, noon)
		if err == nil && (len(c.Certificates) == 0 || !bytes.Equal(c.Certificates[0].CertData, w.end.Raw)) {
			t.Fatal("a certificate that nobody issued is accepted")
		}
	})
}
