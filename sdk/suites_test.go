package sdk_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
)

// TestRoomsOfEverySuite: people talk, a further device comes in by external
// commit, one is removed, and a copied profile is renewed, in each suite.
func TestRoomsOfEverySuite(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	for i, suite := range sdk.Suites() {
		t.Run(sdk.SuiteName(suite), func(t *testing.T) {
			ada, bob, cat := newPerson(t, h, fmt.Sprint("ada", i)), newPerson(t, h, fmt.Sprint("bob", i)), newPerson(t, h, fmt.Sprint("cat", i))
			room, err := ada.NewRoomIn(ctx, suite, "Suite")
			must(t, err)
			ada.invite(room, bob)
			ada.invite(room, cat)
			if got, err := bob.SuiteOf(ctx, room); err != nil || got != suite {
				t.Fatalf("the room is of suite %#04x (%v), wanted %#04x", uint16(got), err, uint16(suite))
			}
			ada.say(room, "one")
			bob.say(room, "two")
			cat.reads(room, "one", "two")

			second := &person{t: t, path: filepath.Join(t.TempDir(), "second.db"), seal: bytes.Repeat([]byte{9}, sdk.SealKeySize)}
			second.Engine, err = sdk.Restore(ctx, second.config(), h.url, bob.words)
			must(t, err)
			t.Cleanup(func() { _ = second.Close() })
			second.say(room, "from a second device")
			ada.reads(room, "one", "two", "from a second device")

			must(t, ada.Remove(ctx, room, cat.Identity()))
			ada.say(room, "without cat")
			bob.reads(room, "one", "two", "from a second device", "without cat")
			if _, err := cat.Send(ctx, room, sdk.Draft{Text: "still here"}); !errors.Is(err, sdk.ErrOut) {
				t.Fatalf("who was removed sends: %v", err)
			}

			// On another machine it is a copy: its leaf is renewed by a resync.
			must(t, bob.Close())
			c := bob.config()
			c.Host = "another host"
			bob.Engine, err = sdk.Open(ctx, c)
			must(t, err)
			bob.say(room, "resynced")
			ada.reads(room, "one", "two", "from a second device", "without cat", "resynced")

			direct, err := ada.DirectIn(ctx, suite, bob.Identity())
			must(t, err)
			must(t, bob.Accept(ctx, direct))
			ada.say(direct, "we two")
			bob.reads(direct, "we two")
			other := sdk.Suites()[(i+1)%len(sdk.Suites())]
			moved, err := ada.Succeed(ctx, direct, other, "")
			must(t, err)
			must(t, bob.Sync(ctx))
			ada.say(moved, "elsewhere")
			bob.reads(moved, "elsewhere")
			if found, err := bob.Direct(ctx, ada.Identity()); err != nil || found != moved {
				t.Fatalf("the direct chat is %s (%v), moved to %s", found, err, moved)
			}
			if got, err := bob.SuiteOf(ctx, moved); err != nil || got != other {
				t.Fatalf("the chat moved to suite %#04x (%v), wanted %#04x", uint16(got), err, uint16(other))
			}
		})
	}
}

func TestSuitesHaveNames(t *testing.T) {
	for text, want := range map[string]uint16{
		"": 1, "1": 1, "3": 3, "hybrid": 0xf0c0, "Hybrid": 0xf0c0, "MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519": 3,
	} {
		if got, err := sdk.ParseSuite(text); err != nil || uint16(got) != want {
			t.Errorf("%q is %#04x (%v), wanted %#04x", text, uint16(got), err, want)
		}
	}
	for _, text := range []string{"2", "0", "-1", "pq", "4", "MLS_256_DHKEMX448_AES256GCM_SHA512_Ed448"} {
		if got, err := sdk.ParseSuite(text); !errors.Is(err, sdk.ErrSuite) {
			t.Errorf("%q is taken for %#04x (%v)", text, uint16(got), err)
		}
	}
}

// TestNobodyOfTheSuite: somebody whose devices have published no key package of a
// room's suite cannot be added, and it is said why.
func TestNobodyOfTheSuite(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoomIn(ctx, 3, "Three")
	must(t, err)
	b := ada.through()
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if !strings.HasSuffix(path, "/keypackages/claim") {
			return 0, "", nil
		}
		raw, err := json.Marshal(delivery.ClaimResponse{Missing: []identity.DeviceID{bob.Device()}})
		must(t, err)
		return 200, "application/json", raw
	}
	err = ada.Add(ctx, room, bob.Identity())
	if !errors.Is(err, sdk.ErrSuite) || !errors.Is(err, sdk.ErrNobody) || !strings.Contains(err.Error(), sdk.SuiteName(3)) {
		t.Fatalf("adding somebody without a package of the suite: %v", err)
	}
	b.answer = nil
	ada.invite(room, bob)
}

// TestOlderProfileOffersEverySuite: a profile that has published packages of one
// suite alone publishes the others when it is used again; low ones are filled up.
func TestOlderProfileOffersEverySuite(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	b := ada.through()
	must(t, ada.Sync(ctx))
	count := func(suite uint16) (n delivery.KeyPackageCount) {
		t.Helper()
		must(t, json.Unmarshal(b.get(ada, h.url, fmt.Sprintf("/v1/keypackages?suite=%d", suite)), &n))
		return n
	}
	before := count(3)
	if before.Unclaimed < before.LowWater || !before.LastResort || count(0xf0c0).Unclaimed < before.LowWater {
		t.Fatalf("a new device has %+v and %+v", before, count(0xf0c0))
	}
	must(t, ada.Store.Update(ctx, func(tx sdk.Tx) error { return tx.Delete(sdk.TableSetting, "keypackages.0003") }))
	b.answer = func(method, path string, q url.Values) (int, string, []byte) {
		if method != "GET" || path != "/v1/keypackages" || q.Get("suite") != "3" {
			return 0, "", nil
		}
		return 200, "application/json", []byte(`{"suite":3,"unclaimed":0,"low_water":20}`)
	}
	must(t, ada.Sync(ctx))
	b.answer = nil
	if now := count(3); now.Unclaimed <= before.Unclaimed {
		t.Fatalf("it published nothing: %+v, before %+v", now, before)
	}
	n := count(1).Unclaimed
	must(t, ada.Sync(ctx))
	if count(1).Unclaimed != n {
		t.Fatal("packages of a suite that has enough were published again")
	}
}

// TestSuccessorRoom: a room changes its suite by moving. Its people, roles and
// settings come along; who did not know the mover is not asked about a stranger;
// nothing is said in the old room any more.
func TestSuccessorRoom(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, cat := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "cat")
	room, err := ada.NewRoom(ctx, "Moving")
	must(t, err)
	ada.invite(room, bob)
	ada.invite(room, cat)
	_, err = ada.Disappear(ctx, room, 3600)
	must(t, err)
	ada.say(room, "before")
	bob.reads(room, "before")
	if _, err := bob.Succeed(ctx, room, 3, "because"); delivery.CodeOf(err) != delivery.CodeRefused {
		t.Fatalf("somebody who is no admin moves the chat: %v", err)
	}

	// Whoever is interrupted goes on with the room that was begun.
	b := ada.through()
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, "/keypackages/claim") {
			return 503, "application/problem+json", []byte(`{"code":"retry","status":503}`)
		}
		return 0, "", nil
	}
	begun, err := ada.Succeed(ctx, room, 0xf0c0, "a stronger suite")
	if delivery.CodeOf(err) != delivery.CodeRetry && !errors.Is(err, client.ErrOffline) {
		t.Fatalf("interrupted: %v", err)
	}
	b.answer = nil
	next, err := ada.Succeed(ctx, room, 0xf0c0, "a stronger suite")
	must(t, err)
	if next != begun {
		t.Fatalf("it went on in %s after it had begun %s", next, begun)
	}
	if again, err := ada.Succeed(ctx, room, 3, ""); err != nil || again != next {
		t.Fatalf("moved again to %s (%v)", again, err)
	}

	must(t, bob.Sync(ctx))
	must(t, cat.Sync(ctx))
	must(t, bob.Refresh(ctx, next))
	if rec, err := bob.RoomOf(ctx, next); err != nil || rec.Title != "Moving" || rec.Disappear != 3600 {
		t.Fatalf("the new room is %+v (%v)", rec, err)
	}
	if old, err := bob.RoomOf(ctx, room); err != nil || old.Status != sdk.StatusSucceeded || old.Successor == nil || *old.Successor != next {
		t.Fatalf("the old room is %+v (%v)", old, err)
	}
	if got, err := cat.SuiteOf(ctx, next); err != nil || got != 0xf0c0 {
		t.Fatalf("the new room is of suite %#04x (%v)", uint16(got), err)
	}
	bob.say(next, "we moved")
	cat.reads(next, "we moved")
	if _, err := cat.Send(ctx, room, sdk.Draft{Text: "late"}); err == nil {
		t.Fatal("something is said in a room that has a successor")
	}
}

// TestSuccessorOfAStranger: a member whom another never met moves the room. The
// other follows without being asked, since the people are the same, but not into a
// room with further people.
func TestSuccessorOfAStranger(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, cat, dan := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "cat"), newPerson(t, h, "dan")
	var rooms []delivery.RoomID
	for range 2 {
		room, err := ada.NewRoom(ctx, "Moving")
		must(t, err)
		ada.invite(room, bob)
		ada.invite(room, cat)
		must(t, ada.Leave(ctx, room))
		must(t, bob.Sync(ctx)) // commits it: now everybody decides
		must(t, cat.Sync(ctx))
		rooms = append(rooms, room)
	}
	next, err := bob.Succeed(ctx, rooms[0], 3, "")
	must(t, err)
	must(t, cat.Sync(ctx))
	bob.say(next, "moved")
	cat.reads(next, "moved")

	// The same, with a room that bob has prepared for a stranger. The service does not
	// take it; cat does not either.
	trap, err := bob.NewRoom(ctx, "Trap")
	must(t, err)
	bob.invite(trap, dan)
	bob.names(rooms[1], trap)
	must(t, bob.Add(ctx, trap, cat.Identity()))
	must(t, cat.Sync(ctx))
	if _, err := cat.RoomOf(ctx, trap); !errors.Is(err, sdk.ErrRequest) {
		t.Fatalf("cat is in a room with a stranger, unasked: %v", err)
	}
}
