package identity

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestParserBounds asks each parser for one thing that only one of its checks
// refuses.
func TestParserBounds(t *testing.T) {
	attestation := testCredential(t).Attestation().AppendTo(nil)
	revocation, err := Revoke(RevocationFields{Identity: publicOf(testKey("ada"))}, testKey("ada"))
	if err != nil {
		t.Fatal(err)
	}
	for name, parse := range map[string]func(change func([]byte) []byte) error{
		"attestation": func(f func([]byte) []byte) error { _, err := parseAttestation(f(attestation)); return err },
		"revocation":  func(f func([]byte) []byte) error { _, err := ParseRevocation(f(revocation.Bytes())); return err },
	} {
		if err := parse(func(b []byte) []byte { return b[:len(b)-1] }); !errors.Is(err, ErrFormat) {
			t.Errorf("short %s: %v", name, err)
		}
		if err := parse(func(b []byte) []byte { return append(bytes.Clone(b), 0) }); !errors.Is(err, ErrFormat) {
			t.Errorf("long %s: %v", name, err)
		}
		if err := parse(bytes.Clone); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := testUsername(t, nil)
	long := UnverifiedUsernameRecord{UsernameFields: r.Fields()}
	long.Profile.About = strings.Repeat("x", MaxUsernameRecord)
	if _, err := ParseUsernameRecord(append(long.appendTo(nil), long.Signature[:]...)); !errors.Is(err, ErrFormat) {
		t.Errorf("long username record: %v", err)
	}
	// Signed by the identity, and still not within the bounds.
	u := UnverifiedUsernameRecord{UsernameFields: r.Fields()}
	u.Username = "Not Normal"
	u.Signature = Signature(ed25519.Sign(testKey("ada"), u.appendTo(nil)))
	if _, err := u.Verify(); !errors.Is(err, ErrFormat) {
		t.Errorf("signed username outside the rules: %v", err)
	}
	f := r.Fields()
	f.Profile.DisplayName = "a\u2067b"
	if _, err := SignUsername(f, testKey("ada")); !errors.Is(err, ErrFormat) {
		t.Errorf("isolate in a name: %v", err)
	}
	f = r.Fields()
	f.Identity = PublicKey{1}
	if _, err := SignUsername(f, testKey("ada")); !errors.Is(err, ErrKey) {
		t.Errorf("username of a small-order identity: %v", err)
	}
	if _, err := Revoke(RevocationFields{Identity: PublicKey{1}}, testKey("ada")); !errors.Is(err, ErrKey) {
		t.Errorf("revocation by a small-order identity: %v", err)
	}
	phone := testKey("ada's phone")
	short := make([]byte, MinChallenge-1)
	if err := VerifyLogin(publicOf(phone), Home{}, short, Signature(ed25519.Sign(phone, LoginMessage(Home{}, short)))); !errors.Is(err, ErrFormat) {
		t.Errorf("a short challenge, well signed: %v", err)
	}
}

// TestEnvelopeHeaderKinds gives JSON values of the wrong kind.
func TestEnvelopeHeaderKinds(t *testing.T) {
	if _, err := ParseEnvelopeHeader(""); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "empty") {
		t.Errorf("empty: %v", err)
	}
	header, err := Seal(testKey("ada's phone"), testRequest())
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(header)
	text := string(raw)
	nonce := text[strings.Index(text, `"nonce":`):strings.Index(text, `,"signature"`)]
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, s := range map[string]string{
		"nonce is an object":  strings.Replace(text, nonce, `"nonce":{}`, 1),
		"nonce is text":       strings.Replace(text, nonce, `"nonce":"AAAA"`, 1),
		"nonce of text":       strings.Replace(text, nonce, `"nonce":["0",1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]`, 1),
		"nonce of 15":         strings.Replace(text, nonce, `"nonce":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]`, 1),
		"nonce of 17":         strings.Replace(text, nonce, `"nonce":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]`, 1),
		"an array":            `[` + text + `]`,
		"a number":            `5`,
		"a list of the same":  `[` + strings.NewReplacer(`":`, `",`).Replace(text[1:len(text)-1]) + `]`,
		"method is a number":  strings.Replace(text, `"POST"`, `5`, 1),
		"home is a number":    strings.Replace(text, `"0a0b0c"`, `101112`, 1),
		"time is an array":    strings.Replace(text, `1764000000`, `[1764000000]`, 1),
		"unknown is not JSON": strings.Replace(text, `{"device`, `{"v":x,"device`, 1),
		"above the limit":     strings.Replace(text, `{"device`, `{"v":"`+strings.Repeat("x", MaxEnvelopeHeader)+`","device`, 1),
	} {
		if _, err := ParseEnvelopeHeader(encode(s)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Just within the limit is read.
	padded := strings.Replace(text, `{"device`, `{"v":"`+strings.Repeat("x", MaxEnvelopeHeader*3/4-len(text)-8)+`","device`, 1)
	if _, err := ParseEnvelopeHeader(encode(padded)); err != nil {
		t.Errorf("%d bytes: %v", len(encode(padded)), err)
	}
	r := testRequest()
	r.Method = "PO ST"
	if _, err := Seal(testKey("ada's phone"), r); !errors.Is(err, ErrFormat) {
		t.Errorf("a space in the method: %v", err)
	}
}

// TestEnvelopeFarFuture would overflow the conversion to a time and come out as
// a moment ago.
func TestEnvelopeFarFuture(t *testing.T) {
	r := testRequest()
	for _, issued := range []uint64{1<<40 + 1, 1<<63 + 1_764_000_000} {
		r.IssuedAt = issued
		_, err := open(t, r, time.Unix(int64(issued), 0))
		if !errors.Is(err, ErrSkew) {
			t.Errorf("issued at %d: %v", issued, err)
		}
	}
}

// wrongSigner returns what Sign of a broken or dishonest key store might.
type wrongSigner struct {
	public crypto.PublicKey
	sig    []byte
	err    error
}

func (w wrongSigner) Public() crypto.PublicKey { return w.public }
func (w wrongSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return w.sig, w.err
}

func TestWrongSigners(t *testing.T) {
	good := testKey("ada's phone")
	pub := good.Public().(ed25519.PublicKey)
	p256, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Signer{
		"another curve":        p256,
		"a short public key":   wrongSigner{public: pub[:31]},
		"an error":             wrongSigner{public: pub, err: io.ErrUnexpectedEOF},
		"no signature":         wrongSigner{public: pub},
		"another's signature":  wrongSigner{public: pub, sig: ed25519.Sign(testKey("eve"), LoginMessage(Home{}, make([]byte, 32)))},
		"another message's":    wrongSigner{public: pub, sig: ed25519.Sign(good, []byte("x"))},
		"a signature too long": wrongSigner{public: pub, sig: make([]byte, 65)},
		"a small-order key":    wrongSigner{public: ed25519.PublicKey(make([]byte, 32)), sig: make([]byte, 64)},
	} {
		if _, err := SignLogin(Home{}, make([]byte, 32), s); !errors.Is(err, ErrSigner) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSuccessorOfAnotherIdentity(t *testing.T) {
	attest := func(identity, device string, role Role, version uint64) Credential {
		t.Helper()
		c, err := Attest(Attestation{Identity: publicOf(testKey(identity)), DevicePubkey: publicOf(testKey(device)), Role: role, Version: version}, testKey(identity), testKey(device))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	member := attest("ada", "phone", RoleMember, 1)
	if err := member.CheckSuccessor(attest("eve", "phone", RoleMember, 2)); !errors.Is(err, ErrKey) {
		t.Errorf("the same device key under another identity: %v", err)
	}
	signer := attest("bot", "backend", RoleBotSigner, 1)
	if err := signer.CheckBotSigner(attest("another bot", "backend", RoleBotSigner, 2)); !errors.Is(err, ErrKey) {
		t.Errorf("the signer of another bot: %v", err)
	}
	if err := attest("bot", "device", RoleMember, 0).CheckBotSigner(signer); !errors.Is(err, ErrFormat) {
		t.Errorf("a signer after a member: %v", err)
	}
	// One forged signature among good ones is found by its number.
	us := []UnverifiedCredential{member.Unverified(), signer.Unverified(), member.Unverified()}
	us[1].DeviceSignature[0] ^= 1
	if _, err := VerifyCredentials(us); !errors.Is(err, ErrSignature) || !strings.Contains(err.Error(), "credential 1") {
		t.Errorf("batch: %v", err)
	}
	for name, a := range map[string]Attestation{
		"role": {Identity: publicOf(testKey("ada")), DevicePubkey: publicOf(testKey("phone")), Role: 9},
		"id":   {Identity: publicOf(testKey("ada")), DevicePubkey: publicOf(testKey("phone")), DeviceID: DeviceID{1}},
	} {
		if _, err := AttestAsDevice(a, testKey("phone")); !errors.Is(err, ErrFormat) {
			t.Errorf("as device, %s: %v", name, err)
		}
		if _, err := AttestAsIdentity(UnverifiedCredential{Attestation: a}, testKey("ada")); !errors.Is(err, ErrFormat) {
			t.Errorf("as identity, %s: %v", name, err)
		}
	}
	if _, err := AttestAsIdentity(member.Unverified(), testKey("eve")); !errors.Is(err, ErrSigner) {
		t.Errorf("by another identity's key: %v", err)
	}
	if _, err := AttestAsIdentity(UnverifiedCredential{Attestation: member.Attestation()}, testKey("ada")); !errors.Is(err, ErrSignature) {
		t.Errorf("without the device's signature: %v", err)
	}
}

func TestQRForms(t *testing.T) {
	ada, bob := PublicKey(publicOf(testKey("ada"))), PublicKey(publicOf(testKey("bob")))
	shown := PairQR(ada, bob)
	for name, s := range map[string]string{
		"without the prefix": strings.TrimPrefix(shown, pairQRPrefix),
		"longer":             shown + "AA",
		"shorter":            shown[:len(shown)-3],
		"a line more":        shown + "\n",
		"lines within":       shown[:len(shown)-4] + "\n\n\n\n",
		"another alphabet":   shown[:len(shown)-1] + "+",
	} {
		if err := CheckPairQR(s, bob, ada); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The same digest under another room's id.
	code, err := RoomQR([16]byte{1}, []PublicKey{ada})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(code, roomQRPrefix))
	raw[0] = 2
	forged := roomQRPrefix + base64.RawURLEncoding.EncodeToString(raw)
	if err := CheckRoomQR(forged, [16]byte{1}, []PublicKey{ada}); !errors.Is(err, ErrQRMismatch) {
		t.Errorf("another room's id: %v", err)
	}
}
