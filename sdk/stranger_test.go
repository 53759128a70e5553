package sdk_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
)

// TestAttackBorrowedUsername: a member says in a room, signed with their own key, that
// they are called as somebody else is. Nobody takes them for the other: neither by
// what is shown, nor by finding that name later.
func TestAttackBorrowedUsername(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, eve := newPerson(t, h, "ada"), newPerson(t, h, "eve")
	bob := newPerson(t, h, "bob")
	room, err := eve.NewRoom(ctx, "Mask")
	must(t, err)
	eve.invite(room, ada)
	node, err := eve.words.Account()
	must(t, err)
	key, err := node.Identity()
	must(t, err)
	rec, err := identity.SignUsername(identity.UsernameFields{
		Identity: eve.Identity(), Username: "bob", Version: 9, IssuedAt: 1, Profile: identity.PublicProfile{DisplayName: "Bob"},
	}, key)
	must(t, err)
	mask := content.Profile{Name: "Bob", Username: "bob", Record: rec.Bytes(), Version: 9}
	_, err = eve.Write(ctx, room, func(h content.Header) (content.Message, error) { return content.New(h, mask) })
	must(t, err)
	must(t, ada.Refresh(ctx, room))
	got, err := ada.Person(ctx, eve.Identity())
	must(t, err)
	if got.Name != "Bob" || got.Version != 9 {
		t.Fatalf("the profile was not read: %+v", got)
	}
	if got.Username != "eve" { // as the directory has it
		t.Errorf("Eve passes for @%s", got.Username)
	}
	if id, err := ada.Find(ctx, "@bob"); err != nil || id != bob.Identity() {
		t.Errorf("@bob is %v, %v", id, err)
	}
}

// TestPinsComeBack: a device that comes from the phrase knows whose a contact's username
// was. A service that gives it to somebody else meanwhile is found out.
func TestPinsComeBack(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, eve := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "eve")
	id, err := ada.Find(ctx, "@bob")
	must(t, err)
	_, err = ada.Direct(ctx, id)
	must(t, err)
	tablet := ada.another(h, "tablet")
	if got, err := tablet.Find(ctx, "@bob"); err != nil || got != bob.Identity() {
		t.Fatalf("@bob is %v, %v", got, err)
	}
	node, err := eve.words.Account()
	must(t, err)
	key, err := node.Identity()
	must(t, err)
	rec, err := identity.SignUsername(identity.UsernameFields{Identity: eve.Identity(), Username: "bob", Version: 9, IssuedAt: 1}, key)
	must(t, err)
	late := ada.another(h, "late") // has never asked for @bob itself
	b := late.through()
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, "/people") {
			return 200, "application/json", jsonOf(t, delivery.ProfilesResponse{Records: [][]byte{rec.Bytes()}})
		}
		return 0, "", nil
	}
	if got, err := late.Find(ctx, "@bob"); !errors.Is(err, sdk.ErrChanged) {
		t.Errorf("@bob is %v, %v", got, err)
	}
}

// TestCrashWhileAccepting: whoever loses power while accepting a stranger's invitation
// accepts it again, and the stranger is none any more.
func TestCrashWhileAccepting(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	for n := 1; ; n++ {
		bob := newPerson(t, h, fmt.Sprintf("bob%d", n))
		room, err := ada.NewRoom(ctx, "Accept")
		must(t, err)
		must(t, ada.Add(ctx, room, bob.Identity()))
		must(t, bob.Sync(ctx))
		must(t, bob.Close())
		config := bob.config()
		f := &fuse{Store: config.Store, left: n, kept: true}
		config.Store = f
		bob.Engine, err = sdk.Open(ctx, config)
		must(t, err)
		if err := bob.Accept(ctx, room); (err != nil) != f.blown {
			t.Fatalf("write %d: blown %v and %v", n, f.blown, err)
		}
		if !f.blown {
			return
		}
		bob.restart()
		must(t, bob.Accept(ctx, room))
		if p, err := bob.Person(ctx, ada.Identity()); err != nil || !p.Contact {
			t.Fatalf("write %d: after the crash Ada is %+v, %v", n, p, err)
		}
	}
}

// TestAttackBrokenThenRemoved: the log of one room cannot be followed, and this device
// is removed from it. That room is lost to it; its other rooms and its mail are not.
func TestAttackBrokenThenRemoved(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	bad, err := ada.NewRoom(ctx, "Bad")
	must(t, err)
	good, err := ada.NewRoom(ctx, "Good")
	must(t, err)
	ada.invite(bad, bob)
	ada.invite(good, bob)
	must(t, ada.Refresh(ctx, bad))
	b := bob.through()
	last := bob.say(bad, "before")
	must(t, ada.Remove(ctx, bad, bob.Identity()))
	ada.say(good, "still here")
	forged := broken(last, nil)
	b.answer = func(method, path string, query url.Values) (int, string, []byte) {
		if strings.Contains(path, bad.String()) {
			return forged(method, path, query)
		}
		return 0, "", nil
	}
	later, err := ada.NewRoom(ctx, "Later")
	must(t, err)
	must(t, ada.Add(ctx, later, bob.Identity()))
	for range 2 {
		must(t, bob.Sync(ctx))
	}
	lines, err := bob.History(ctx, good, 0, 0, false)
	must(t, err)
	if len(lines) != 1 || lines[0].Text != "still here" {
		t.Errorf("the good room has %+v", lines)
	}
	if r, err := bob.RoomOf(ctx, later); err != nil || r.ID != later {
		t.Errorf("the later room: %+v, %v", r, err)
	}
}

// TestProxySpeaksForACommit: the service takes a commit, and what stands before it says
// that it is away. The device does not know, so it keeps what it needs to go on with
// its own commit when it reads it in the log.
func TestProxySpeaksForACommit(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	room, err := ada.NewRoom(ctx, "Proxy")
	must(t, err)
	ada.invite(room, bob)
	must(t, ada.Refresh(ctx, room))
	id, err := ada.Find(ctx, "@carl")
	must(t, err)
	b := ada.through()
	last := ada.say(room, "before")
	b.spoil = func(path string) bool { return strings.HasSuffix(path, "/append") }
	if err := ada.Add(ctx, room, id); delivery.CodeOf(err) != delivery.CodeRetry {
		t.Fatalf("adding ends with %v", err)
	}
	b.spoil = nil
	ada.restart()
	b = ada.through()
	must(t, ada.Refresh(ctx, room))
	if now := ada.epoch(room); now != last.Epoch+1 || b.commits.Load() != 0 {
		t.Errorf("the device is in epoch %d after %d more commits", now, b.commits.Load())
	}
	must(t, carl.Accept(ctx, room))
	carl.say(room, "hello")
	ada.reads(room, "before", "hello")
	bob.reads(room, "before", "hello")
}

// TestCopyFoundWhileReading: this device learns that its profile was copied by a login in
// the middle of reading a room. What it reads then does not write over the note that
// its leaf has to be replaced. The process that this login cuts off notes it as well.
func TestCopyFoundWhileReading(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Copy")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "one")
	twin := ada.copied()
	twin.opens(nil)
	must(t, twin.Sync(ctx)) // its login swaps the counter
	bob.say(room, "two")
	b := ada.through() // logs in when it asks for the log
	ada.reads(room, "one", "two")
	r, err := ada.RoomOf(ctx, room)
	must(t, err)
	if r.Renew == "" {
		t.Fatal("the device has forgotten that its leaf has to be replaced")
	}
	if err := twin.Refresh(ctx, room); !errors.Is(err, client.ErrCopied) {
		t.Fatalf("the copy reads on: %v", err)
	}
	if r, err = twin.RoomOf(ctx, room); err != nil || r.Renew == "" {
		t.Errorf("the copy, cut off, has to replace its leaf: %q, %v", r.Renew, err)
	}
	ada.say(room, "three")
	if b.commits.Load() != 1 {
		t.Errorf("%d commits before the message", b.commits.Load())
	}
	if r, err = ada.RoomOf(ctx, room); err != nil || r.Renew != "" {
		t.Errorf("after the renewal: %q, %v", r.Renew, err)
	}
	bob.reads(room, "one", "two", "three")
}
