package identity

import (
	"bytes"
	"errors"
	"testing"
)

func testWrappedKey(t testing.TB) WrappedKey {
	t.Helper()
	c := testAttestation()
	k, err := SignWrappedKey(WrappedKeyFields{c.Identity, c.DeviceID, 7, []byte("sealed to the device")}, testKey("ada"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestWrappedKey(t *testing.T) {
	k := testWrappedKey(t)
	u, err := ParseWrappedKey(k.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	again, err := u.Verify()
	if err != nil || !bytes.Equal(again.Bytes(), k.Bytes()) || again.Fields().Generation != 7 {
		t.Fatalf("round trip: %v", err)
	}
	for bit := range len(k.Bytes()) * 8 {
		bad := k.Bytes()
		bad[bit/8] ^= 1 << (bit % 8)
		u, err := ParseWrappedKey(bad)
		if err == nil {
			_, err = u.Verify()
		}
		if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrSignature) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	for n := range len(k.Bytes()) {
		if _, err := ParseWrappedKey(k.Bytes()[:n]); !errors.Is(err, ErrFormat) {
			t.Fatalf("cut to %d: %v", n, err)
		}
	}
	// Whoever can reach a device's HPKE key is not the account.
	if _, err := SignWrappedKey(k.Fields(), testKey("ada's phone")); !errors.Is(err, ErrSigner) {
		t.Errorf("signed by the device: %v", err)
	}
	for _, f := range []WrappedKeyFields{
		{k.Fields().Identity, k.Fields().DeviceID, 0, []byte("x")}, {k.Fields().Identity, k.Fields().DeviceID, 1, nil},
		{k.Fields().Identity, k.Fields().DeviceID, 1, make([]byte, MaxWrappedSecret+1)},
	} {
		if _, err := SignWrappedKey(f, testKey("ada")); !errors.Is(err, ErrFormat) {
			t.Errorf("generation %d, %d bytes: %v", f.Generation, len(f.Sealed), err)
		}
	}
}

func FuzzParseWrappedKey(f *testing.F) {
	f.Add(testWrappedKey(f).Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := ParseWrappedKey(b)
		if err == nil && !bytes.Equal((WrappedKey{u}).Bytes(), b) {
			t.Error("round trip differs")
		}
	})
}
