package identity

import (
	"errors"
	"strings"
	"testing"
)

func TestPairSafetyNumber(t *testing.T) {
	ada, bob, eve := PublicKey(publicOf(testKey("ada"))), PublicKey(publicOf(testKey("bob"))), PublicKey(publicOf(testKey("eve")))
	n := PairSafetyNumber(ada, bob)
	if n != PairSafetyNumber(bob, ada) {
		t.Error("the two ends see different numbers")
	}
	if n == PairSafetyNumber(ada, eve) || n == PairSafetyNumber(bob, eve) {
		t.Error("another person has the same number")
	}
	groups := strings.Fields(n.String())
	if len(groups) != 12 || strings.Trim(strings.Join(groups, ""), "0123456789") != "" {
		t.Errorf("form: %s", n)
	}
	for _, g := range groups {
		if len(g) != 5 {
			t.Errorf("group %q", g)
		}
	}
}

func TestRoomSafetyNumber(t *testing.T) {
	ada, bob, eve := PublicKey(publicOf(testKey("ada"))), PublicKey(publicOf(testKey("bob"))), PublicKey(publicOf(testKey("eve")))
	room := [16]byte{1}
	number := func(room [16]byte, ids ...PublicKey) SafetyNumber {
		n, err := RoomSafetyNumber(room, ids)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := number(room, ada, bob)
	if n != number(room, bob, ada) {
		t.Error("the order of the roster changes the number")
	}
	if n == number(room, ada, bob, eve) || n == number(room, ada) || n == number([16]byte{2}, ada, bob) {
		t.Error("another roster or room has the same number")
	}
	if _, err := RoomSafetyNumber(room, nil); !errors.Is(err, ErrSafetyRoster) {
		t.Error(err)
	}
	if _, err := RoomSafetyNumber(room, []PublicKey{ada, bob, ada}); !errors.Is(err, ErrSafetyRoster) {
		t.Error(err)
	}
}

func TestSafetyQR(t *testing.T) {
	ada, bob, eve := PublicKey(publicOf(testKey("ada"))), PublicKey(publicOf(testKey("bob"))), PublicKey(publicOf(testKey("eve")))
	shown := PairQR(ada, bob)
	if err := CheckPairQR(shown, bob, ada); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		scanned    string
		own, other PublicKey
		want       error
	}{
		"shown by somebody else":     {PairQR(eve, bob), bob, ada, ErrQRMismatch},
		"they hold another key":      {PairQR(ada, eve), bob, ada, ErrQRMismatch},
		"own code scanned":           {PairQR(bob, ada), bob, ada, ErrQRMismatch},
		"another text":               {"https://example.org", bob, ada, ErrFormat},
		"cut":                        {shown[:len(shown)-1], bob, ada, ErrFormat},
		"line break inside the code": {shown[:20] + "\n" + shown[21:], bob, ada, ErrFormat},
	} {
		if err := CheckPairQR(c.scanned, c.own, c.other); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}

	room := [16]byte{1}
	code, err := RoomQR(room, []PublicKey{ada, bob})
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckRoomQR(code, room, []PublicKey{bob, ada}); err != nil {
		t.Error(err)
	}
	if err := CheckRoomQR(code, room, []PublicKey{ada, bob, eve}); !errors.Is(err, ErrQRMismatch) {
		t.Errorf("a ghost in the roster: %v", err)
	}
	if err := CheckRoomQR(code, [16]byte{2}, []PublicKey{ada, bob}); !errors.Is(err, ErrQRMismatch) {
		t.Errorf("another room: %v", err)
	}
	if err := CheckRoomQR(shown, room, []PublicKey{ada, bob}); !errors.Is(err, ErrFormat) {
		t.Errorf("a pair's code: %v", err)
	}
}
