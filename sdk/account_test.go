package sdk_test

import (
	"bytes"
	"context"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// begin makes an account with somebody between it and the service.
func begin(t *testing.T, ctx context.Context, h *home, b *between, username string) (*person, error) {
	t.Helper()
	p := &person{t: t, path: filepath.Join(t.TempDir(), "begin.db"), seal: bytes.Repeat([]byte{7}, sdk.SealKeySize)}
	c := p.config()
	b.Transport, c.Transport = c.Transport, b
	e, words, err := sdk.Create(ctx, c, sdk.NewAccount{Server: h.url, Name: username, Username: username})
	if err != nil {
		must(t, c.Store.Close())
		return nil, err
	}
	t.Cleanup(func() { _ = e.Close() })
	p.Engine, p.words = e, words
	return p, nil
}

// TestAFailedBeginningLeavesTheNameFree: whatever else is refused while an account is
// made, and whenever its maker gives up, the username is nobody's.
func TestAFailedBeginningLeavesTheNameFree(t *testing.T) {
	h := newHome(t)
	for _, route := range []string{"POST /v1/keypackages", "POST /v1/rooms", "PUT /v1/snapshot"} {
		ctx, giveUp := context.WithCancel(t.Context())
		b := &between{answer: func(method, path string, _ url.Values) (int, string, []byte) {
			if method+" "+path == route {
				return 403, delivery.ProblemType, problem(t, delivery.Refuse(delivery.CodeRefused, "not today"))
			}
			return 0, "", nil
		}}
		if _, err := begin(t, ctx, h, b, "ada"); delivery.CodeOf(err) != delivery.CodeRefused {
			t.Errorf("%s refused: %v", route, err)
		}
		b.answer = func(method, path string, _ url.Values) (int, string, []byte) {
			if method+" "+path == route {
				giveUp()
			}
			return 0, "", nil
		}
		if _, err := begin(t, ctx, h, b, "ada"); err == nil {
			t.Errorf("%s: it goes on although it was given up", route)
		}
		giveUp()
	}
	if _, err := begin(t, t.Context(), h, &between{}, "ada"); err != nil {
		t.Errorf("the name is taken: %v", err)
	}
}

// TestATakenNameIsItsAccounts: once the name is being taken nothing that ends the
// context comes between it and the phrase.
func TestATakenNameIsItsAccounts(t *testing.T) {
	h := newHome(t)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	p, err := begin(t, ctx, h, &between{answer: func(method, path string, _ url.Values) (int, string, []byte) {
		if method+" "+path == "PUT /v1/profile" {
			giveUp()
		}
		return 0, "", nil
	}}, "ada")
	must(t, err)
	bob := newPerson(t, h, "bob")
	if id, err := bob.Find(t.Context(), "@ada"); err != nil || id != p.Identity() {
		t.Fatalf("@ada is %v: %v", id, err)
	}
	must(t, p.Sync(t.Context()))
}
