package identity

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// FuzzParseRevocation: what is read is written again as it came, and what was not
// signed verifies under nobody's key.
func FuzzParseRevocation(f *testing.F) {
	a := testAttestation()
	r, err := Revoke(RevocationFields{a.Identity, a.DeviceID, 1_764_000_000}, testKey("ada"))
	if err != nil {
		f.Fatal(err)
	}
	good := r.Bytes()
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte(revocationDomain))
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := ParseRevocation(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("error of another kind: %v", err)
			}
			return
		}
		if !bytes.Equal((Revocation{u}).Bytes(), b) {
			t.Error("round trip differs")
		}
		if _, err := u.Verify(); err == nil && u.Identity == a.Identity && !bytes.Equal(b, good) {
			t.Error("a revocation that nobody signed verifies")
		}
	})
}

// FuzzParseUsernameRecord: what is read is written again as it came, and what
// verifies could be signed.
func FuzzParseUsernameRecord(f *testing.F) {
	a := testAttestation()
	r, err := SignUsername(UsernameFields{
		Identity: a.Identity, Version: 1, IssuedAt: 1_764_000_000, Username: "ada",
		Profile: PublicProfile{DisplayName: "Ada", About: "counts\ntwice"},
	}, testKey("ada"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(r.Bytes())
	f.Add(r.Bytes()[:len(usernameDomain)+32+8+8+2])
	f.Add([]byte(usernameDomain))
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := ParseUsernameRecord(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("error of another kind: %v", err)
			}
			return
		}
		if !bytes.Equal((UsernameRecord{u}).Bytes(), b) {
			t.Error("round trip differs")
		}
		if _, err := u.Verify(); err == nil && u.check() != nil {
			t.Error("what no one could sign verifies")
		}
	})
}

// FuzzQR: whatever a camera reads, only the code that was shown matches.
func FuzzQR(f *testing.F) {
	ada, bob := PublicKey(publicOf(testKey("ada"))), PublicKey(publicOf(testKey("bob")))
	room, people := [16]byte{1}, []PublicKey{ada, bob}
	pair := PairQR(ada, bob)
	crowd, err := RoomQR(room, people)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(pair)
	f.Add(crowd)
	f.Add(pairQRPrefix)
	f.Add(roomQRPrefix + pair[len(pairQRPrefix):])
	f.Fuzz(func(t *testing.T, scanned string) {
		for _, c := range []struct {
			shown string
			err   error
		}{{pair, CheckPairQR(scanned, bob, ada)}, {crowd, CheckRoomQR(scanned, room, people)}} {
			switch {
			case (c.err == nil) != (scanned == c.shown):
				t.Errorf("%q: %v", scanned, c.err)
			case c.err != nil && !errors.Is(c.err, ErrFormat) && !errors.Is(c.err, ErrQRMismatch):
				t.Errorf("error of another kind: %v", c.err)
			}
		}
	})
}

// FuzzText: whatever stands where a key, an id or a username belongs.
func FuzzText(f *testing.F) {
	a := testAttestation()
	f.Add(a.Identity.String())
	f.Add(a.DeviceID.String())
	f.Add("0a0b0c")
	f.Add("@Ada_1")
	f.Fuzz(func(t *testing.T, s string) {
		if k, err := ParsePublicKey(s); err == nil && (!strings.EqualFold(k.String(), s) || k.Check() != nil) {
			t.Errorf("identity %q", s)
		}
		if d, err := ParseDeviceID(s); err == nil && !strings.EqualFold(d.String(), s) {
			t.Errorf("device %q", s)
		}
		if h, err := ParseHome(s); err == nil && !strings.EqualFold(h.String(), s) {
			t.Errorf("home %q", s)
		}
		if name, err := NormalizeUsername(s); err == nil {
			if again, err := NormalizeUsername(name); err != nil || again != name {
				t.Errorf("username %q: %q, %v", name, again, err)
			}
		}
	})
}
