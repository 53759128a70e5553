package content

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
)

// TestDraftExamples reads every example of the draft: the CBOR decodes and
// encodes to the same bytes, the diagnostic notation says the same, and the id
// is the one that the draft prints.
func TestDraftExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata.Path(t, "mimi-content-examples"), "*.cbor"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 15 {
		t.Fatalf("%d examples, expected 15", len(files))
	}
	printed := regexp.MustCompile(`(?s)# message ID = h'([0-9a-f#\s]+)'`)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".cbor")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			edn, err := os.ReadFile(strings.TrimSuffix(file, ".cbor") + ".edn")
			if err != nil {
				t.Fatal(err)
			}
			notation := ednToCBOR(t, string(edn))
			if name == "implied-original" {
				testDerived(t, raw, notation)
				return
			}
			m, err := Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			again, err := m.Encode()
			if err != nil || !bytes.Equal(again, raw) {
				t.Errorf("encodes as %x, %v", again, err)
			}
			if !bytes.Equal(notation, raw) {
				t.Errorf("the notation says %x\nthe file %x", notation, raw)
			}
			id, err := m.ID()
			if err != nil {
				t.Fatal(err)
			}
			match := printed.FindSubmatch(edn)
			if match == nil {
				t.Fatal("the notation prints no message id")
			}
			want := strings.Map(func(r rune) rune {
				if strings.ContainsRune("# \n", r) {
					return -1
				}
				return r
			}, string(match[1]))
			if id.String() != want {
				t.Errorf("id %s, the draft prints %s", id, want)
			}
		})
	}
}

// testDerived reads the example of section 4.6. Its CBOR file carries an older
// message id than its notation and than the original message really has; all
// else is equal.
func testDerived(t *testing.T, raw, notation []byte) {
	t.Helper()
	const older = "01b0084467273cc43d6f0ebeac13eb84229c4fffe8f6c3594c905f47779e5a79"
	const id = "017ce54837404c3696e0c747b985cb172716d0ed0a3d249ca63ace7d82a096f4"
	for want, b := range map[string][]byte{older: raw, id: notation} {
		d, err := DecodeDerived(b)
		if err != nil {
			t.Fatal(err)
		}
		if d.ID.String() != want || d.HubAccepted != 1644387225019 || d.SenderLeafIndex != 4 ||
			d.RoomURL != "mimi://example.com/r/engineering_team" || d.SenderUserURL != "mimi://example.com/u/alice-smith" {
			t.Errorf("%+v", d)
		}
		if again := d.Encode(); !bytes.Equal(again, b) {
			t.Errorf("encodes as %x", again)
		}
	}
	olderBytes, _ := hex.DecodeString(older)
	idBytes, _ := hex.DecodeString(id)
	if !bytes.Equal(bytes.Replace(raw, olderBytes, idBytes, 1), notation) {
		t.Error("the file and the notation differ in more than the id")
	}
}
