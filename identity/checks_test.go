package identity

import (
	"crypto"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

// silent is a signer that must not be asked.
type silent struct {
	crypto.Signer
	asked bool
}

func (s *silent) Sign(rand io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	s.asked = true
	return s.Signer.Sign(rand, message, opts)
}

// TestNothingUnfitIsSigned: a signature cannot be taken back, so that the
// identity's key is not asked before what it would sign was looked at.
func TestNothingUnfitIsSigned(t *testing.T) {
	whole, err := AttestAsDevice(testAttestation(), testKey("ada's phone"))
	if err != nil {
		t.Fatal(err)
	}
	whole.Attestation.DeviceID = DeviceID{1}
	s := &silent{Signer: testKey("ada")}
	if _, err := AttestAsIdentity(whole, s); err == nil || s.asked {
		t.Errorf("an attestation of another device id: %v, signed: %v", err, s.asked)
	}
	f := testWrappedKey(t).Fields()
	f.Identity = PublicKey{1} // of small order
	if _, err := SignWrappedKey(f, s); !errors.Is(err, ErrKey) || s.asked {
		t.Errorf("a wrapped key of no identity: %v, signed: %v", err, s.asked)
	}
}

// TestWrappedKeyFields: what is well cut but says what it cannot.
func TestWrappedKeyFields(t *testing.T) {
	good := testWrappedKey(t).Bytes()
	const generation = len(wrappedKeyDomain) + 32 + 16
	none := append([]byte(nil), good...)
	binary.BigEndian.PutUint64(none[generation:], 0)
	long := append([]byte(nil), good[:generation+8]...)
	long = binary.BigEndian.AppendUint16(long, MaxWrappedSecret+1)
	long = append(long, make([]byte, MaxWrappedSecret+1+SignatureSize)...)
	for name, b := range map[string][]byte{"generation 0": none, "a secret that is too long": long, "a byte more": append(good, 0)} {
		if _, err := ParseWrappedKey(b); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestQRWithLineBreaks: a decoder of base64 skips them, so that a text of the
// right length can hold fewer bytes.
func TestQRWithLineBreaks(t *testing.T) {
	full := base64.RawURLEncoding.EncodedLen(16 + 64)
	for breaks := range 5 {
		for _, mark := range []string{"\n", "\r"} {
			scanned := roomQRPrefix + strings.Repeat("A", full-breaks) + strings.Repeat(mark, breaks)
			err := CheckRoomQR(scanned, [16]byte{}, []PublicKey{publicOf(testKey("ada"))})
			if breaks > 0 && !errors.Is(err, ErrFormat) || breaks == 0 && !errors.Is(err, ErrQRMismatch) {
				t.Errorf("%d of %q: %v", breaks, mark, err)
			}
		}
	}
}
