package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/identity"
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

// TestAProfileIsChangedAgainAfterALostAnswer: the service took a change and nobody
// here knows. The next one goes over it, also from another device, and whoever asks
// meanwhile for the name gets one that was whole.
func TestAProfileIsChangedAgainAfterALostAnswer(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	second := ada.again(h)
	b := ada.through()
	b.lose = func(path string) bool { return path == "/v1/profile" }
	if err := ada.SetProfile(ctx, "Ada L.", "", "ada", nil); !errors.Is(err, client.ErrOffline) {
		t.Fatalf("a change whose answer is lost ends with %v", err)
	}
	if ada.Name() != "ada" {
		t.Errorf("the name is %q before anybody confirmed it", ada.Name())
	}
	b.lose = nil
	ada.restart()
	asked := make(chan string)
	go func() {
		defer close(asked)
		for range 1000 {
			if name := ada.Name(); name != "ada" && name != "Ada B." {
				asked <- name
			}
		}
	}()
	must(t, ada.SetProfile(ctx, "Ada B.", "Tea", "ada", nil))
	for name := range asked {
		t.Errorf("the name is %q", name)
	}
	must(t, second.SetProfile(ctx, "Ada K.", "Coffee", "ada_k", nil)) // it has not heard of the two
	id, err := bob.Find(ctx, "@ada_k")
	must(t, err)
	if p, err := bob.Person(ctx, id); err != nil || id != ada.Identity() || p.Name != "Ada K." {
		t.Errorf("bob finds %+v: %v", p, err)
	}
	for name, wrong := range map[string]string{"": "", strings.Repeat("a", identity.MaxDisplayName+1): "", "Ada": strings.Repeat("a", identity.MaxAbout+1)} {
		if err := second.SetProfile(ctx, name, wrong, "ada_k", nil); !errors.Is(err, identity.ErrFormat) {
			t.Errorf("a name of %d bytes, about of %d: %v", len(name), len(wrong), err)
		}
	}
	if second.Name() != "Ada K." {
		t.Errorf("what was refused is the name: %q", second.Name())
	}
	if name := ada.again(h).Name(); name != "Ada K." {
		t.Errorf("the phrase brings back %q", name)
	}
}

// TestASealKeyHasItsSize: a key that was cut or padded opens nothing and seals nothing.
func TestASealKeyHasItsSize(t *testing.T) {
	h := newHome(t)
	ada := newPerson(t, h, "ada")
	must(t, ada.Close())
	for _, size := range []int{0, 16, sdk.SealKeySize - 1, sdk.SealKeySize + 1} {
		c := ada.config()
		c.SealKey = bytes.Repeat([]byte{7}, size)
		if _, err := sdk.Open(t.Context(), c); !errors.Is(err, sdk.ErrSeal) {
			t.Errorf("a key of %d bytes: %v", size, err)
		}
		must(t, c.Store.Close())
	}
}

// TestNobodyIsTheirOwnOther: no chat with oneself, and who goes leaves.
func TestNobodyIsTheirOwnOther(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	if _, err := ada.Direct(ctx, ada.Identity()); !errors.Is(err, sdk.ErrYourself) {
		t.Errorf("a chat with oneself: %v", err)
	}
	if err := ada.Remove(ctx, ada.room("Tea"), ada.Identity()); !errors.Is(err, sdk.ErrYourself) {
		t.Errorf("removing oneself: %v", err)
	}
}

// TestADirectRoomIsNotPublic: whatever it is to be called.
func TestADirectRoomIsNotPublic(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.Direct(ctx, bob.Identity())
	must(t, err)
	for _, title := range []string{"", "We two"} {
		if err := ada.Publish(ctx, room, title, ""); !errors.Is(err, sdk.ErrDirect) {
			t.Errorf("%q: %v", title, err)
		}
	}
}

// TestANewDeviceIsSilentAboutWhatMovedOn: a room whose conversation goes on elsewhere
// cannot be entered, and nothing is wrong with that.
func TestANewDeviceIsSilentAboutWhatMovedOn(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room := ada.room("Tea")
	ada.invite(room, bob)
	next, err := ada.Succeed(ctx, room, sdk.Suites()[1], "")
	must(t, err)
	tablet := &person{t: t, path: filepath.Join(t.TempDir(), "tablet.db"), seal: bytes.Repeat([]byte{9}, sdk.SealKeySize), words: ada.words}
	c := tablet.config()
	c.Warn = func(format string, args ...any) { t.Errorf("it is told: "+format, args...) }
	tablet.Engine, err = sdk.Restore(ctx, c, h.url, ada.words)
	must(t, err)
	t.Cleanup(func() { _ = tablet.Close() })
	must(t, tablet.Sync(ctx))
	ada.say(next, "on we go")
	tablet.reads(next, "on we go")
}
