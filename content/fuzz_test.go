package content

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/askucher/compax-core/identity"
)

// FuzzDecodeDerived: what is read is written again as it came.
func FuzzDecodeDerived(f *testing.F) {
	good := Derived{
		ID: MessageID{1, 2}, HubAccepted: 1_764_000_000_000, GroupID: []byte("group"), SenderLeafIndex: 7,
		SenderClientURL: "mimi://a.example/d/x", SenderUserURL: "mimi://a.example/u/x", RoomURL: "mimi://a.example/r/x",
	}.Encode()
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(append(bytes.Clone(good), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := DecodeDerived(b)
		switch {
		case err == nil && !bytes.Equal(d.Encode(), b):
			t.Errorf("%x is written as %x", b, d.Encode())
		case err != nil && !errors.Is(err, ErrEncoding):
			t.Errorf("error of another kind: %v", err)
		}
	})
}

// FuzzURI: a URI that is read names one person or one room and nothing beside.
func FuzzURI(f *testing.F) {
	f.Add(UserURI("a.example", testIdentity(1)))
	f.Add(RoomURI("a.example", "01513d0e-0102-8304-8506-0708090a0b0c"))
	f.Add("mimi://a.example/u/x/r/y")
	f.Fuzz(func(t *testing.T, uri string) {
		if id, err := ParseUserURI(uri); err == nil {
			domain, _, _ := strings.Cut(strings.TrimPrefix(uri, "mimi://"), "/")
			if !strings.EqualFold(UserURI(domain, id), uri) || id == (identity.PublicKey{}) {
				t.Errorf("%q names %s", uri, id)
			}
		}
		if room, err := ParseRoomURI(uri); err == nil {
			domain, _, _ := strings.Cut(strings.TrimPrefix(uri, "mimi://"), "/")
			if RoomURI(domain, room) != uri {
				t.Errorf("%q names %q", uri, room)
			}
		}
	})
}

// FuzzOpenFile: what a service keeps under a file's URL opens as the file that was
// sealed, or not at all, and never as more than the limit.
func FuzzOpenFile(f *testing.F) {
	const limit = 3 * ChunkSize
	plain := bytes.Repeat([]byte("file"), 300)
	var files []External
	for i, known := range []bool{true, false} { // sealed as a whole and in a stream
		e, sealed := seal(f, plain, known)
		e.HashAlg, e.ContentHash = hashNone, nil // its author need not say it
		f.Add(i, e.Size, sealed)
		f.Add(i, uint64(0), sealed[:tagSize])
		files = append(files, e)
	}
	f.Fuzz(func(t *testing.T, which int, size uint64, sealed []byte) {
		e := files[uint(which)%uint(len(files))]
		e.Size = size
		var out bytes.Buffer
		err := e.Open(&out, bytes.NewReader(sealed), limit, NewAESGCM)
		if out.Len() > limit || out.Len() > len(sealed) {
			t.Errorf("%d bytes of %d come out", out.Len(), len(sealed))
		}
		if err == nil && !bytes.Equal(out.Bytes(), plain) {
			t.Errorf("%x opens as another file", sealed)
		}
		if err != nil && !errors.Is(err, ErrFile) && !errors.Is(err, ErrLimit) {
			t.Errorf("error of another kind: %v", err)
		}
	})
}
