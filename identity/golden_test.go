package identity

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
)

// The golden files hold the byte layouts that other programs rely on. They are
// made from fixed keys by this test itself:
//
//	go test ./identity -run TestGolden -update
//
// and testdata/independent.mjs makes the same bytes with Node's crypto alone,
// written from the description of the layouts and not from this code.
var update = flag.Bool("update", false, "write the golden files anew")

func goldenValues(t *testing.T) map[string]string {
	t.Helper()
	c := testCredential(t)
	revocation, err := Revoke(RevocationFields{c.Identity(), c.DeviceID(), 1_764_000_001}, testKey("ada"))
	if err != nil {
		t.Fatal(err)
	}
	login, err := SignLogin(Home{0x0a, 0x0b, 0x0c}, bytes.Repeat([]byte{7}, ChallengeSize), testKey("ada's phone"))
	if err != nil {
		t.Fatal(err)
	}
	post, err := Seal(testKey("ada's phone"), testRequest())
	if err != nil {
		t.Fatal(err)
	}
	get := testRequest()
	get.Method, get.Target, get.Body = "GET", "/info", nil
	getHeader, err := Seal(testKey("ada's phone"), get)
	if err != nil {
		t.Fatal(err)
	}
	ada, bob := PublicKey(publicOf(testKey("ada"))), PublicKey(publicOf(testKey("bob")))
	roomNumber, err := RoomSafetyNumber([16]byte{1, 2, 3}, []PublicKey{ada, bob})
	if err != nil {
		t.Fatal(err)
	}
	roomQR, err := RoomQR([16]byte{1, 2, 3}, []PublicKey{ada, bob})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"credential":      hex.EncodeToString(c.Bytes()),
		"revocation":      hex.EncodeToString(revocation.Bytes()),
		"login":           login.String(),
		"envelope-post":   post,
		"envelope-get":    getHeader,
		"username-record": hex.EncodeToString(testUsername(t, nil).Bytes()),
		"safety-pair":     PairSafetyNumber(ada, bob).String(),
		"safety-room":     roomNumber.String(),
		"qr-pair":         PairQR(ada, bob),
		"qr-room":         roomQR,
	}
}

func TestGolden(t *testing.T) {
	for name, got := range goldenValues(t) {
		path := filepath.Join("testdata", "golden", name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != strings.TrimSpace(string(want)) {
			t.Errorf("%s changed: other programs, stored rooms and files rely on it\n got %s\nwant %s", name, got, want)
		}
	}
}

// TestIndependent runs testdata/independent.mjs and compares every value.
func TestIndependent(t *testing.T) {
	node := testdata.Program(t, "node", "install Node.js 18 or newer")
	out, err := exec.Command(node, filepath.Join("testdata", "independent.mjs")).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var theirs map[string]string
	if err := json.Unmarshal(out, &theirs); err != nil {
		t.Fatal(err)
	}
	ours := goldenValues(t)
	for name, want := range ours {
		if theirs[name] != want {
			t.Errorf("%s\nhere        %s\nindependent %s", name, want, theirs[name])
		}
	}
	if len(theirs) != len(ours) {
		t.Errorf("the independent program makes %d values, this test %d", len(theirs), len(ours))
	}
}
