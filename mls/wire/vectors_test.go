package wire

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
)

// TestVectorsDeserialization reads every length header of the official
// deserialization vectors and writes it back.
func TestVectorsDeserialization(t *testing.T) {
	type vector struct {
		Header string `json:"vlbytes_header"`
		Length int    `json:"length"`
	}
	cases := testdata.Vectors[vector](t, "deserialization.json")
	for i, c := range cases {
		testdata.Ran(t, "deserialization.json", 0)
		header, err := hex.DecodeString(c.Header)
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(header)
		if n := r.Varint(); n != c.Length || r.Finish() != nil {
			t.Errorf("case %d: %s reads as %d (%v), want %d", i, c.Header, n, r.Finish(), c.Length)
		}
		if b := AppendVarint(nil, c.Length); !bytes.Equal(b, header) {
			t.Errorf("case %d: %d writes as %x, want %s", i, c.Length, b, c.Header)
		}
	}
	t.Logf("%d cases", len(cases))
}

// TestVectorsMessages decodes every structure of the official messages vectors
// and encodes it again to the same bytes; a flipped bit, a missing and an extra
// byte never give the same bytes back unnoticed.
func TestVectorsMessages(t *testing.T) {
	cases := testdata.Vectors[map[string]string](t, "messages.json")
	message := func() codec { return new(MLSMessage) }
	types := map[string]func() codec{
		"mls_welcome":                       message,
		"mls_group_info":                    message,
		"mls_key_package":                   message,
		"ratchet_tree":                      func() codec { return new(RatchetTree) },
		"group_secrets":                     func() codec { return new(GroupSecrets) },
		"add_proposal":                      func() codec { return new(Add) },
		"update_proposal":                   func() codec { return new(Update) },
		"remove_proposal":                   func() codec { return new(Remove) },
		"pre_shared_key_proposal":           func() codec { return new(PreSharedKey) },
		"re_init_proposal":                  func() codec { return new(ReInit) },
		"external_init_proposal":            func() codec { return new(ExternalInit) },
		"group_context_extensions_proposal": func() codec { return new(GroupContextExtensions) },
		"commit":                            func() codec { return new(Commit) },
		"public_message_application":        message,
		"public_message_proposal":           message,
		"public_message_commit":             message,
		"private_message":                   message,
	}
	count := 0
	for i, c := range cases {
		testdata.Ran(t, "messages.json", 0)
		if len(c) != len(types) {
			t.Fatalf("case %d has %d fields, want %d", i, len(c), len(types))
		}
		for name, text := range c {
			fresh, known := types[name]
			if !known {
				t.Fatalf("case %d: unknown field %s", i, name)
			}
			data, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			v := fresh()
			if err := Unmarshal(data, v); err != nil {
				t.Errorf("case %d, %s: %v", i, name, err)
				continue
			}
			if !bytes.Equal(Marshal(v), data) {
				t.Errorf("case %d, %s: encodes differently", i, name)
			}
			if err := Unmarshal(data[:len(data)-1], fresh()); err == nil {
				t.Errorf("case %d, %s: accepted without its last byte", i, name)
			}
			if err := Unmarshal(append(bytes.Clone(data), 0), fresh()); err == nil {
				t.Errorf("case %d, %s: accepted with a byte after it", i, name)
			}
			flipped := bytes.Clone(data)
			flipped[(i*31)%len(data)] ^= 1 << (i % 8)
			v = fresh()
			if err := Unmarshal(flipped, v); err == nil && !bytes.Equal(Marshal(v), flipped) {
				t.Errorf("case %d, %s: flipped bit decodes but encodes differently", i, name)
			}
			count++
		}
	}
	t.Logf("%d cases, %d structures", len(cases), count)
}
