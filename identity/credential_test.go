package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"
)

// testKey makes a key pair from a name.
func testKey(name string) ed25519.PrivateKey {
	seed := sha512.Sum512([]byte("identity test key " + name))
	return ed25519.NewKeyFromSeed(seed[:32])
}

func publicOf(k ed25519.PrivateKey) [32]byte { return [32]byte(k.Public().(ed25519.PublicKey)) }

func testAttestation() Attestation {
	return Attestation{
		Home:         Home{0x0a, 0x0b, 0x0c},
		Identity:     publicOf(testKey("ada")),
		DevicePubkey: publicOf(testKey("ada's phone")),
		DeviceHPKE:   DeviceHPKEKey{1, 2, 3},
		Version:      7,
		IssuedAt:     1_764_000_000,
	}
}

func testCredential(t *testing.T) Credential {
	t.Helper()
	c, err := Attest(testAttestation(), testKey("ada"), testKey("ada's phone"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCredentialRoundTrip(t *testing.T) {
	c := testCredential(t)
	if len(c.Bytes()) != CredentialSize {
		t.Fatalf("%d bytes, want %d", len(c.Bytes()), CredentialSize)
	}
	u, err := ParseCredential(c.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	again, err := u.Verify()
	if err != nil {
		t.Fatal(err)
	}
	if again != c {
		t.Error("a parsed credential differs from the one that was made")
	}
	a := c.Attestation()
	if a.DeviceID != DeriveDeviceID(a.Identity, a.DevicePubkey) {
		t.Error("Attest did not derive the device id")
	}
	if (Credential{}).Bytes() != nil || !(Credential{}).IsZero() {
		t.Error("the zero credential has bytes")
	}
}

func TestCredentialJSON(t *testing.T) {
	c := testCredential(t)
	text, err := json.Marshal(c.Unverified())
	if err != nil {
		t.Fatal(err)
	}
	var names map[string]json.RawMessage
	var inner map[string]json.RawMessage
	if err := json.Unmarshal(text, &names); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(names["attestation"], &inner); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"home", "identity", "device_id", "device_pubkey", "device_hpke", "role", "version", "issued_at"} {
		if inner[name] == nil {
			t.Errorf("the attestation lacks %q: %s", name, text)
		}
	}
	if string(inner["home"]) != `"0a0b0c"` || string(inner["role"]) != "0" || names["signature"] == nil || names["device_signature"] == nil {
		t.Errorf("unexpected form: %s", text)
	}
	var u UnverifiedCredential
	if err := json.Unmarshal(text, &u); err != nil {
		t.Fatal(err)
	}
	if v, err := u.Verify(); err != nil || v != c {
		t.Errorf("JSON round trip: %v", err)
	}
}

// TestCredentialEveryBit changes each bit: no changed credential verifies.
func TestCredentialEveryBit(t *testing.T) {
	good := testCredential(t).Bytes()
	for bit := range len(good) * 8 {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		u, err := ParseCredential(bad)
		if err == nil {
			_, err = u.Verify()
		}
		if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrKey) && !errors.Is(err, ErrSignature) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	for _, n := range []int{0, 1, CredentialSize - 1} {
		if _, err := ParseCredential(good[:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := ParseCredential(append(bytes.Clone(good), 0)); !errors.Is(err, ErrFormat) {
		t.Errorf("trailing byte: %v", err)
	}
}

func TestCredentialForged(t *testing.T) {
	good := testCredential(t).Unverified()
	resign := func(change func(*Attestation), identityKey, deviceKey ed25519.PrivateKey) UnverifiedCredential {
		u := good
		change(&u.Attestation)
		b := u.Attestation.AppendTo(nil)
		u.Signature = Signature(ed25519.Sign(identityKey, b))
		u.DeviceSignature = Signature(ed25519.Sign(deviceKey, b))
		return u
	}
	none := func(*Attestation) {}
	ada, phone, eve := testKey("ada"), testKey("ada's phone"), testKey("eve")
	small := [32]byte{1}
	for name, c := range map[string]struct {
		u    UnverifiedCredential
		want error
	}{
		"identity did not sign":     {resign(none, eve, phone), ErrSignature},
		"device did not sign":       {resign(none, ada, eve), ErrSignature},
		"signatures swapped":        {resign(none, phone, ada), ErrSignature},
		"device id not derived":     {resign(func(a *Attestation) { a.DeviceID[0] ^= 1 }, ada, phone), ErrFormat},
		"unknown role":              {resign(func(a *Attestation) { a.Role = 2 }, ada, phone), ErrFormat},
		"another's device key":      {resign(func(a *Attestation) { a.DevicePubkey = publicOf(eve) }, ada, phone), ErrFormat},
		"identity is a small order": {resign(func(a *Attestation) { a.Identity = small; a.DeviceID = DeriveDeviceID(small, a.DevicePubkey) }, ada, phone), ErrKey},
		"device is a small order":   {resign(func(a *Attestation) { a.DevicePubkey = small; a.DeviceID = DeriveDeviceID(a.Identity, small) }, ada, phone), ErrKey},
		"identity key as device": {resign(func(a *Attestation) {
			a.DevicePubkey = DevicePublicKey(a.Identity)
			a.DeviceID = DeriveDeviceID(a.Identity, a.DevicePubkey)
		}, ada, ada), ErrKey},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.u.Verify(); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			us := []UnverifiedCredential{good, c.u, good}
			if _, err := VerifyCredentials(us); !errors.Is(err, c.want) {
				t.Errorf("in a batch: %v, want %v", err, c.want)
			}
		})
	}
	if cs, err := VerifyCredentials([]UnverifiedCredential{good, good}); err != nil || cs[1].Unverified() != good {
		t.Errorf("a good batch: %v", err)
	}
}

func TestAttestRefusesWrongKeys(t *testing.T) {
	a := testAttestation()
	if _, err := Attest(a, testKey("eve"), testKey("ada's phone")); !errors.Is(err, ErrSigner) {
		t.Errorf("wrong identity key: %v", err)
	}
	if _, err := Attest(a, testKey("ada"), testKey("eve")); !errors.Is(err, ErrSigner) {
		t.Errorf("wrong device key: %v", err)
	}
	if _, err := Attest(a, nil, testKey("ada's phone")); !errors.Is(err, ErrSigner) {
		t.Errorf("no identity key: %v", err)
	}
	a.DeviceID = DeviceID{9}
	if _, err := Attest(a, testKey("ada"), testKey("ada's phone")); !errors.Is(err, ErrFormat) {
		t.Errorf("wrong device id: %v", err)
	}
}

func TestSuccessor(t *testing.T) {
	make := func(change func(*Attestation), device string) Credential {
		t.Helper()
		a := testAttestation()
		a.DevicePubkey = publicOf(testKey(device))
		change(&a)
		c, err := Attest(a, testKey("ada"), testKey(device))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old := make(func(*Attestation) {}, "ada's phone")
	for name, c := range map[string]struct {
		next Credential
		want error
	}{
		"the same":         {old, nil},
		"higher version":   {make(func(a *Attestation) { a.Version++; a.Home = Home{9, 9, 9} }, "ada's phone"), nil},
		"lower version":    {make(func(a *Attestation) { a.Version-- }, "ada's phone"), ErrStale},
		"same version":     {make(func(a *Attestation) { a.IssuedAt++ }, "ada's phone"), ErrEquivocation},
		"another device":   {make(func(a *Attestation) { a.Version++ }, "ada's tablet"), ErrKey},
		"another HPKE key": {make(func(a *Attestation) { a.Version++; a.DeviceHPKE[0]++ }, "ada's phone"), ErrKey},
		"another role":     {make(func(a *Attestation) { a.Version++; a.Role = RoleBotSigner }, "ada's phone"), ErrFormat},
	} {
		if err := old.CheckSuccessor(c.next); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}

	signer := make(func(a *Attestation) { a.Role = RoleBotSigner }, "backend")
	for name, c := range map[string]struct {
		next Credential
		want error
	}{
		"the same":             {signer, nil},
		"another, higher":      {make(func(a *Attestation) { a.Role = RoleBotSigner; a.Version++ }, "new backend"), nil},
		"another, same":        {make(func(a *Attestation) { a.Role = RoleBotSigner }, "new backend"), ErrEquivocation},
		"the leaked one again": {make(func(a *Attestation) { a.Role = RoleBotSigner; a.Version-- }, "old backend"), ErrStale},
		"a member":             {old, ErrFormat},
	} {
		if err := signer.CheckBotSigner(c.next); !errors.Is(err, c.want) {
			t.Errorf("bot signer, %s: %v, want %v", name, err, c.want)
		}
	}
}

func TestRevocation(t *testing.T) {
	c := testCredential(t)
	r, err := Revoke(RevocationFields{c.Identity(), c.DeviceID(), 1_764_000_001}, testKey("ada"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := ParseRevocation(r.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	again, err := u.Verify()
	if err != nil || again != r {
		t.Fatalf("round trip: %v", err)
	}
	if !again.Covers(c) {
		t.Error("the revocation does not cover its device")
	}
	for bit := range RevocationSize * 8 {
		bad := r.Bytes()
		bad[bit/8] ^= 1 << (bit % 8)
		u, err := ParseRevocation(bad)
		if err == nil {
			_, err = u.Verify()
		}
		if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrSignature) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	if _, err := ParseRevocation(r.Bytes()[1:]); !errors.Is(err, ErrFormat) {
		t.Errorf("short: %v", err)
	}
	// A device cannot revoke itself or another: only the identity can.
	if _, err := Revoke(r.Fields(), testKey("ada's phone")); !errors.Is(err, ErrSigner) {
		t.Errorf("signed by the device: %v", err)
	}
	var back UnverifiedRevocation
	text, err := json.Marshal(r.Unverified())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &back); err != nil || back != r.Unverified() {
		t.Errorf("JSON round trip of %s: %v", text, err)
	}
}

func TestLogin(t *testing.T) {
	home, challenge := Home{1, 2, 3}, bytes.Repeat([]byte{7}, ChallengeSize)
	phone := testKey("ada's phone")
	sig, err := SignLogin(home, challenge, phone)
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(LoginMessage(home, challenge[:2])); got != hex.EncodeToString([]byte("compax-login-v1"))+"010203"+"0707" {
		t.Errorf("login message %s", got)
	}
	if err := VerifyLogin(publicOf(phone), home, challenge, sig); err != nil {
		t.Error(err)
	}
	if err := VerifyLogin(publicOf(phone), Home{1, 2, 4}, challenge, sig); !errors.Is(err, ErrSignature) {
		t.Errorf("another home: %v", err)
	}
	if err := VerifyLogin(publicOf(phone), home, append([]byte{8}, challenge[1:]...), sig); !errors.Is(err, ErrSignature) {
		t.Errorf("another challenge: %v", err)
	}
	if err := VerifyLogin(publicOf(testKey("eve")), home, challenge, sig); !errors.Is(err, ErrSignature) {
		t.Errorf("another device: %v", err)
	}
	for _, n := range []int{0, MinChallenge - 1, MaxChallenge + 1} {
		if _, err := SignLogin(home, make([]byte, n), phone); !errors.Is(err, ErrFormat) {
			t.Errorf("challenge of %d bytes: %v", n, err)
		}
	}
}

func TestParseKeys(t *testing.T) {
	id := PublicKey(publicOf(testKey("ada")))
	if got, err := ParsePublicKey(id.String()); err != nil || got != id {
		t.Errorf("round trip: %v", err)
	}
	if _, err := ParsePublicKey("00" + id.String()); !errors.Is(err, ErrFormat) {
		t.Errorf("too long: %v", err)
	}
	if _, err := ParsePublicKey("zz" + id.String()[2:]); !errors.Is(err, ErrFormat) {
		t.Errorf("not hex: %v", err)
	}
	if _, err := ParsePublicKey(hex.EncodeToString(make([]byte, 32))); !errors.Is(err, ErrKey) {
		t.Errorf("small order: %v", err)
	}
	if h, err := ParseHome("0a0B0c"); err != nil || h != (Home{10, 11, 12}) {
		t.Errorf("home: %v %v", h, err)
	}
}
