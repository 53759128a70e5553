package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/sdk"
)

// watch notes what a device asks the service about a room.
func (b *between) watch(asked *[]string) {
	b.answer = func(method, path string, _ url.Values) (int, string, []byte) {
		if strings.Contains(path, "/rooms/") {
			*asked = append(*asked, method+" "+path)
		}
		return 0, "", nil
	}
}

// TestAttackRequestFetchesNothing: a stranger invites. Until the room is accepted
// the device asks the service for nothing of it, not even its tree, and knows all the
// same who invites, by a signature that the service cannot make.
func TestAttackRequestFetchesNothing(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Request")
	must(t, err)
	id, err := ada.Find(ctx, "@bob")
	must(t, err)
	b := bob.through()
	var asked []string
	b.watch(&asked)
	must(t, ada.Add(ctx, room, id))
	must(t, bob.Sync(ctx))
	requests, err := bob.Requests(ctx)
	must(t, err)
	if len(requests) != 1 || requests[0].From != ada.Identity() || len(requests[0].People) != 2 {
		t.Fatalf("requests %+v", requests)
	}
	for _, a := range asked {
		if strings.Contains(a, room.String()) {
			t.Errorf("before it was accepted the device asked for %s", a)
		}
	}
	must(t, bob.Accept(ctx, room))
	ada.say(room, "hello")
	bob.reads(room, "hello")
	// A second room by the same person needs no consent.
	next, err := ada.NewRoom(ctx, "Known")
	must(t, err)
	must(t, ada.Add(ctx, next, id))
	must(t, bob.Sync(ctx))
	if bob.status(next) != sdk.StatusOpen {
		t.Errorf("the room of a contact is %s", bob.status(next))
	}
}

// TestAttackInvitationByARevokedDevice: the service passes on what a device commits that
// its owner revoked. Who knows of the revocation is not even asked.
func TestAttackInvitationByARevokedDevice(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	node, err := ada.words.Account()
	must(t, err)
	key, err := node.Identity()
	must(t, err)
	r, err := identity.Revoke(identity.RevocationFields{Identity: ada.Identity(), DeviceID: ada.Device(), IssuedAt: 1}, key)
	must(t, err)
	before := ada.room("Before")
	ada.adds(before, bob.Identity())
	if !bob.waiting(before) {
		t.Fatal("a stranger's invitation is not shown")
	}
	must(t, bob.Store.Update(ctx, func(tx sdk.Tx) error {
		return tx.Put(sdk.TableRevoked, ada.Identity().String()+"/"+ada.Device().String(), r.Bytes())
	}))
	after := ada.room("After")
	ada.adds(after, bob.Identity())
	if bob.waiting(after) {
		t.Error("a revoked device invites")
	}
	if err := bob.Accept(ctx, before); !errors.Is(err, policy.ErrRevoked) || !errors.Is(err, sdk.ErrNoRoom) {
		t.Errorf("accepting what it made before: %v", err)
	}
	if bob.waiting(before) { // it can never be accepted
		t.Error("it waits still")
	}
}

// TestInvitationThatWaitedForTooLong: the key package that an invitation is for has ended
// and was forgotten. Accepting says so once, the invitation is gone, and the next one works.
func TestInvitationThatWaitedForTooLong(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room := ada.room("Waits")
	ada.adds(room, bob.Identity())
	if !bob.waiting(room) {
		t.Fatal("the invitation is not shown")
	}
	b := bob.through()
	b.answer = answers("/tree", 503, delivery.ProblemType, problem(t, delivery.Refuse(delivery.CodeRetry, "later")))
	err := bob.Accept(ctx, room)
	b.answer = nil
	if delivery.CodeOf(err) != delivery.CodeRetry || !bob.waiting(room) {
		t.Errorf("what the service does not answer now: %v", err)
	}
	requests, err := bob.Requests(ctx)
	must(t, err)
	var m wire.MLSMessage
	must(t, wire.Unmarshal(requests[0].Welcome, &m))
	must(t, bob.Store.Update(ctx, func(tx sdk.Tx) (err error) {
		for _, s := range m.Welcome.Secrets {
			err = errors.Join(err, tx.Delete(sdk.TableBundle, fmt.Sprintf("%x", []byte(s.NewMember))))
		}
		return err
	}))
	if err := bob.Accept(ctx, room); !errors.Is(err, sdk.ErrNoRoom) || bob.waiting(room) {
		t.Errorf("without its key package: %v", err)
	}
	must(t, ada.Remove(ctx, room, bob.Identity()))
	ada.adds(room, bob.Identity())
	must(t, bob.Accept(ctx, room))
	ada.say(room, "at last")
	if got := bob.read(room); got[len(got)-1] != "at last" {
		t.Errorf("bob reads %q", got)
	}
}

// locked is a store that cannot read key packages while it is locked.
type locked struct {
	sdk.Store
	now bool
}

type lockedTx struct{ sdk.Tx }

var errLocked = errors.New("database is locked")

func (l *locked) View(ctx context.Context, do func(sdk.Tx) error) error {
	return l.Store.View(ctx, func(tx sdk.Tx) error {
		if l.now {
			tx = lockedTx{tx}
		}
		return do(tx)
	})
}

func (l lockedTx) Get(t sdk.Table, key string) ([]byte, error) {
	if t == sdk.TableBundle {
		return nil, errLocked
	}
	return l.Tx.Get(t, key)
}

// TestInvitationOutlivesAFault: a store that fails for a moment, and a service that shows
// a tree that does not fit, cost nobody an invitation, when it comes and when it is accepted.
func TestInvitationOutlivesAFault(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	rooms := []delivery.RoomID{ada.room("One"), ada.room("Another")}
	store, b := &locked{}, &between{}
	must(t, bob.Close())
	bob.opens(func(c *sdk.Config) {
		store.Store, b.Transport = c.Store, c.Transport
		c.Store, c.Transport = store, b
	})
	for _, room := range rooms {
		ada.adds(room, bob.Identity())
	}
	store.now = true
	if err := bob.ReadMail(ctx); !errors.Is(err, errLocked) {
		t.Errorf("reading the mail: %v", err)
	}
	store.now = false
	for _, room := range rooms {
		if !bob.waiting(room) {
			t.Fatal("an invitation is lost")
		}
	}
	store.now = true
	if err := bob.Accept(ctx, rooms[0]); !errors.Is(err, errLocked) || errors.Is(err, sdk.ErrNoRoom) {
		t.Errorf("accepting: %v", err)
	}
	store.now = false
	must(t, bob.Accept(ctx, rooms[1]))
	other := b.get(bob, h.url, "/v1/rooms/"+rooms[1].String()+"/tree")
	b.answer = answers("/tree", 200, delivery.BinaryType, other)
	if err := bob.Accept(ctx, rooms[0]); err == nil || errors.Is(err, sdk.ErrNoRoom) {
		t.Errorf("with another room's tree: %v", err)
	}
	b.answer = nil
	must(t, bob.Accept(ctx, rooms[0]))
	ada.say(rooms[0], "welcome")
	bob.reads(rooms[0], "welcome")
}

// waiting reports whether a room waits as a request.
func (p *person) waiting(room delivery.RoomID) bool {
	p.t.Helper()
	must(p.t, p.Sync(p.t.Context()))
	list, err := p.Requests(p.t.Context())
	must(p.t, err)
	for _, q := range list {
		if q.Room == room {
			return true
		}
	}
	return false
}

// succession is a room of Ada, its admin, Bob and Carl, in which Carl knows Bob alone,
// and Bob's wish to go on elsewhere.
func succession(t *testing.T) (h *home, ada, bob, carl *person, room delivery.RoomID) {
	t.Helper()
	h = newHome(t)
	ada, bob, carl = newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	room, err := ada.NewRoom(t.Context(), "Old")
	must(t, err)
	ada.invite(room, bob)
	ada.invite(room, carl)
	return h, ada, bob, carl, room
}

func (p *person) names(room, next delivery.RoomID) {
	p.t.Helper()
	_, err := p.Write(p.t.Context(), room, func(h content.Header) (content.Message, error) {
		return content.New(h, content.Successor{Room: next.String(), Reason: "test"})
	})
	must(p.t, err)
}

// room makes a room.
func (p *person) room(title string) delivery.RoomID {
	p.t.Helper()
	id, err := p.NewRoom(p.t.Context(), title)
	must(p.t, err)
	return id
}

// refusedIn writes into a room that goes on elsewhere.
func (p *person) refusedIn(room delivery.RoomID) {
	p.t.Helper()
	if _, err := p.Send(p.t.Context(), room, sdk.Draft{Text: "where to?"}); err == nil {
		p.t.Fatal("something is said in a room that has a successor")
	}
}

func (p *person) adds(room delivery.RoomID, who ...identity.PublicKey) {
	p.t.Helper()
	for _, id := range who {
		must(p.t, p.Add(p.t.Context(), room, id))
	}
}

// TestAttackSuccessorByTheServiceAlone: the service says that a room goes on in
// another one, into which somebody invites. Unless an admin said so in the old room,
// or a device known there made the new one for its very people, it waits for consent as
// any other.
func TestAttackSuccessorByTheServiceAlone(t *testing.T) {
	for name, invites := range map[string]func(h *home, bob *person, room delivery.RoomID, carl, ada identity.PublicKey) delivery.RoomID{
		"by a stranger": func(h *home, _ *person, _ delivery.RoomID, carl, _ identity.PublicKey) delivery.RoomID {
			mallory := newPerson(h.t, h, "mallory")
			next := mallory.room("Old")
			mallory.adds(next, carl)
			return next
		},
		"with a stranger": func(h *home, bob *person, room delivery.RoomID, carl, ada identity.PublicKey) delivery.RoomID {
			mallory := newPerson(h.t, h, "mallory")
			next := bob.room("Old")
			bob.names(room, next) // he is no admin, so that says nothing
			bob.adds(next, ada, mallory.Identity(), carl)
			return next
		},
		"without somebody": func(_ *home, bob *person, room delivery.RoomID, carl, _ identity.PublicKey) delivery.RoomID {
			next := bob.room("Old")
			bob.names(room, next)
			bob.adds(next, carl)
			return next
		},
		"by a device that is new": func(h *home, bob *person, _ delivery.RoomID, carl, ada identity.PublicKey) delivery.RoomID {
			second := bob.another(h, "second")
			next := second.room("Old")
			second.adds(next, ada, carl)
			return next
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, ada, bob, carl, room := succession(t)
			b := carl.through()
			must(t, carl.Refresh(t.Context(), room))
			next := invites(h, bob, room, carl.Identity(), ada.Identity())
			b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
				switch path {
				case "/v1/rooms/" + room.String() + "/log":
					page := delivery.LogPage{First: 1}
					return 200, delivery.BinaryType, page.AppendTo(nil)
				case "/v1/rooms/" + room.String() + "/append":
					return 410, delivery.ProblemType, problem(t, &delivery.Error{Code: delivery.CodeSucceeded, Detail: "go on elsewhere"})
				case "/v1/rooms/" + room.String():
					return 200, "application/json", jsonOf(t, delivery.RoomHead{Room: room, Kind: delivery.RoomGroup, Status: delivery.RoomSucceeded, Successor: &next})
				}
				return 0, "", nil
			}
			carl.refusedIn(room)
			if r, err := carl.RoomOf(t.Context(), room); err != nil || r.Successor == nil || *r.Successor != next || r.Named {
				t.Fatalf("%+v, %v", r, err)
			}
			if !carl.waiting(next) {
				t.Error("it was entered without asking")
			}
		})
	}
}

// TestSuccessorIsEntered: an admin named it in the old room, though it is somebody else
// who brings people there.
func TestSuccessorIsEntered(t *testing.T) {
	_, ada, bob, carl, room := succession(t)
	ctx := t.Context()
	next := ada.room("New")
	ada.names(room, next)
	ada.adds(next, bob.Identity())
	must(t, bob.Sync(ctx))
	must(t, carl.Refresh(ctx, room))
	bob.adds(next, carl.Identity())
	must(t, carl.Sync(ctx))
	if carl.status(next) != sdk.StatusOpen {
		t.Errorf("the successor is %s", carl.status(next))
	}
}

// TestAttackSuccessorWithOtherRules: an admin named it, and somebody is admin there who
// was not. Who is invited decides.
func TestAttackSuccessorWithOtherRules(t *testing.T) {
	_, ada, bob, carl, room := succession(t)
	ctx := t.Context()
	next := bob.room("New") // of which he is the admin
	ada.names(room, next)
	must(t, carl.Refresh(ctx, room))
	bob.adds(next, ada.Identity(), carl.Identity())
	if !carl.waiting(next) {
		t.Errorf("it was entered without asking")
	}
}

// TestSuccessorKeepsUp: who moves the room was interrupted, and meanwhile more was
// decided in it: somebody came, somebody was removed, a device was revoked. All of it
// holds in the successor, which the service would not take otherwise.
func TestSuccessorKeepsUp(t *testing.T) {
	h, ada, bob, carl, room := succession(t)
	ctx := t.Context()
	lost := bob.another(h, "lost")
	must(t, lost.Sync(ctx))
	must(t, ada.Sync(ctx))
	b := ada.through()
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, "/succeed") {
			return 503, delivery.ProblemType, problem(t, delivery.Refuse(delivery.CodeRetry, "later"))
		}
		return 0, "", nil
	}
	begun, err := ada.Succeed(ctx, room, 0, "")
	if delivery.CodeOf(err) != delivery.CodeRetry && !errors.Is(err, client.ErrOffline) {
		t.Fatalf("interrupted: %v", err)
	}
	b.answer = nil
	dan := newPerson(t, h, "dan")
	must(t, ada.Remove(ctx, room, carl.Identity()))
	ada.invite(room, dan)
	must(t, bob.Revoke(ctx, lost.Device(), &bob.words))
	next, err := ada.Succeed(ctx, room, 0, "")
	must(t, err)
	if next != begun {
		t.Fatalf("it went on in %s after it had begun %s", next, begun)
	}
	dan.say(next, "all there")
	bob.reads(next, "all there")
	if _, err := carl.Send(ctx, next, sdk.Draft{Text: "still here"}); !errors.Is(err, sdk.ErrOut) {
		t.Errorf("who was removed meanwhile sends: %v", err)
	}
	members, err := ada.Members(ctx, next)
	must(t, err)
	for _, m := range members {
		for _, d := range m.Devices {
			if d == lost.Device() {
				t.Error("a revoked device is in the successor")
			}
		}
	}
}

// TestSuccessorOfTheSamePeopleIsEntered: what is said in the old room cannot be read
// any more; a device that was known there makes the new one for the same people.
func TestSuccessorOfTheSamePeopleIsEntered(t *testing.T) {
	_, ada, bob, carl, room := succession(t)
	ctx := t.Context()
	must(t, ada.Leave(ctx, room))
	must(t, bob.Sync(ctx)) // commits it: now everybody decides
	b := carl.through()
	must(t, carl.Refresh(ctx, room))
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if path == "/v1/rooms/"+room.String()+"/log" {
			page := delivery.LogPage{First: 1}
			return 200, delivery.BinaryType, page.AppendTo(nil)
		}
		return 0, "", nil
	}
	next, err := bob.Succeed(ctx, room, 0, "for a test")
	must(t, err)
	carl.refusedIn(room)
	must(t, carl.Sync(ctx))
	if r, err := carl.RoomOf(ctx, room); err != nil || r.Named {
		t.Fatalf("%+v, %v", r, err)
	}
	if carl.status(next) != sdk.StatusOpen {
		t.Errorf("the successor is %s", carl.status(next))
	}
}
