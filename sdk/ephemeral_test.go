package sdk

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"github.com/askucher/compax-core/identity/phrase"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// lobby is a hall whose people hear frames, by a clock that the test moves.
type lobby struct {
	*hall
	who   []*Engine
	clock time.Time
}

func newLobby(t *testing.T, people int) *lobby {
	t.Helper()
	h := &lobby{clock: time.UnixMilli(1_790_000_000_000)}
	for range people {
		h.who = append(h.who, newOwner(t).device())
	}
	h.hall = newHall(t, delivery.RoomGroup, h.who[0], h.who[1:]...)
	for _, e := range h.who {
		e.Now = func() time.Time { return h.clock }
		h.enter(e, h.groups[e])
	}
	return h
}

// of is the group of a person.
func (h *lobby) of(who int) *mls.Group { return h.groups[h.who[who]] }

// enter puts a group into an engine's room, as the end of a turn does.
func (h *lobby) enter(e *Engine, g *mls.Group) {
	h.t.Helper()
	s, err := newState(g)
	must(h.t, err)
	r := e.rooms[h.room]
	if r == nil {
		r = emptyRoom()
		r.rec = Room{ID: h.room, Kind: delivery.RoomGroup, Status: StatusOpen}
		e.rooms[h.room] = r
	}
	r.state = s
	e.publish(r)
}

// frame is what a device says now.
func (h *lobby) frame(from int, kind uint16) *delivery.Ephemeral {
	h.t.Helper()
	e := h.who[from]
	l := e.liveOf(h.room)
	v, ok := l.keyed()
	if !ok {
		h.t.Fatal("the room is closed to frames")
	}
	payload, err := sealEphemeral(rand.Reader, v.secret, e.device, v.at, l.stamp(h.clock.UnixMilli()), kind)
	must(h.t, err)
	return &delivery.Ephemeral{Room: h.room, Epoch: v.at.epoch, Leaf: v.at.leaf, Payload: payload}
}

// accept is the verdict of a device.
func (h *lobby) accept(at int, f *delivery.Ephemeral) (identity.PublicKey, uint16, error) {
	m, kind, err := h.who[at].liveOf(h.room).accept(f, h.clock.UnixMilli())
	return m.Identity, kind, err
}

func (h *lobby) refuses(at int, f *delivery.Ephemeral, want error, what string) {
	h.t.Helper()
	if _, _, err := h.accept(at, f); !errors.Is(err, want) {
		h.t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestFramesSayWhoAndWhat(t *testing.T) {
	h := newLobby(t, 3)
	before := records(h.of(1))
	sizes := map[int]bool{}
	nonces := map[string]bool{}
	for _, kind := range []uint16{frameTyping, frameTypingEnd, frameOnline, frameOffline, 999} {
		f := h.frame(0, kind)
		who, got, err := h.accept(1, f)
		if err != nil || who != h.who[0].account.Identity || got != kind {
			t.Errorf("kind %d arrives as %d from %s: %v", kind, got, who, err)
		}
		sizes[len(f.Payload)], nonces[string(f.Payload[:ephemeralNonce])] = true, true
	}
	if len(sizes) != 1 {
		t.Errorf("frames have sizes %v: the service could tell kinds apart", sizes)
	}
	if len(nonces) != 5 {
		t.Errorf("%d nonces for 5 frames", len(nonces))
	}
	if !bytes.Equal(before, records(h.of(1))) {
		t.Error("frames changed the stored group")
	}
}

// records is the whole stored state of a group.
func records(g *mls.Group) (out []byte) {
	for _, r := range g.Records() {
		out = append(append(append(out, r.Key...), 0), r.Value...)
	}
	return out
}

// A version to come may say more behind the kind, and kinds that are not known here.
func TestFramesOfLaterVersions(t *testing.T) {
	h := newLobby(t, 2)
	e := h.who[0]
	v, _ := e.liveOf(h.room).keyed()
	longer := h.sealed(v, frameTyping, 200, e)
	if _, kind, err := h.accept(1, longer); err != nil || kind != frameTyping {
		t.Errorf("a longer body: %d %v", kind, err)
	}
	h.who[1].hearFrame(h.frame(0, 999))
	if all, _ := h.who[1].heard.now(h.clock); len(all) != 0 {
		t.Errorf("an unknown kind does %v", all)
	}
	h.refuses(1, h.sealed(v, frameTyping, 600, e), errFrameForm, "more than a frame may have")
}

// sealed is a frame by hand: any leaf's key, any body, anybody's signature.
func (h *lobby) sealed(v epochView, kind uint16, body int, signer *Engine) *delivery.Ephemeral {
	h.t.Helper()
	return h.sealedAt(v, kind, body, signer, h.who[0].liveOf(h.room).stamp(h.clock.UnixMilli()))
}

func (h *lobby) sealedAt(v epochView, kind uint16, body int, signer *Engine, timeMS uint64) *delivery.Ephemeral {
	h.t.Helper()
	head := make([]byte, ephemeralNonce)
	_, err := rand.Read(head)
	must(h.t, err)
	head = binary.BigEndian.AppendUint64(head, timeMS)
	text := binary.BigEndian.AppendUint16(nil, kind)
	text = append(text, make([]byte, body-2)...)
	outside := v.at.associated(head)
	sig, err := signer.device.Sign(nil, slices.Concat(outside, text), noHash)
	must(h.t, err)
	key, err := v.secret.leafKey(v.at.leaf)
	must(h.t, err)
	aead, err := chacha20poly1305.NewX(key)
	must(h.t, err)
	payload := append(slices.Clone(head), aead.Seal(nil, head[:ephemeralNonce], slices.Concat(sig, text), outside)...)
	return &delivery.Ephemeral{Room: v.at.room, Epoch: v.at.epoch, Leaf: v.at.leaf, Payload: payload}
}

// TestAttackForgedFrames: whoever can write to the socket, the service or a member,
// cannot say anything in another's name, nor anything twice, late or elsewhere.
func TestAttackForgedFrames(t *testing.T) {
	h := newLobby(t, 3)
	ada, bob, eve := 0, 1, 2
	other := newLobby(t, 2)
	good := h.frame(ada, frameTyping)
	change := func(f func(x *delivery.Ephemeral)) *delivery.Ephemeral {
		x := *good
		x.Payload = bytes.Clone(good.Payload)
		f(&x)
		return &x
	}
	h.refuses(bob, change(func(x *delivery.Ephemeral) { x.Epoch++ }), errFrameForm, "another epoch")
	h.refuses(bob, change(func(x *delivery.Ephemeral) { x.Epoch-- }), errFrameForm, "the epoch before")
	h.refuses(bob, change(func(x *delivery.Ephemeral) { x.Room = other.room }), errFrameForm, "another room")
	h.refuses(bob, change(func(x *delivery.Ephemeral) { x.Leaf = 7 }), errFrameSigner, "a leaf that is nobody's")
	h.refuses(bob, change(func(x *delivery.Ephemeral) { x.Leaf = h.of(eve).OwnLeaf() }), errFrameSeal, "another member's leaf")
	h.refuses(bob, change(func(x *delivery.Ephemeral) { x.Leaf = h.of(bob).OwnLeaf() }), errFrameForm, "the own leaf")
	h.refuses(bob, change(func(x *delivery.Ephemeral) { x.Payload = nil }), errFrameForm, "no payload")
	h.refuses(bob, change(func(x *delivery.Ephemeral) { x.Payload = x.Payload[:ephemeralMin-1] }), errFrameForm, "a cut payload")
	for i := range good.Payload {
		h.clock = h.clock.Add(time.Second) // not one of too many
		x := change(func(x *delivery.Ephemeral) { x.Payload[i] ^= 1 })
		if _, _, err := h.accept(bob, x); err == nil {
			t.Errorf("byte %d of the payload does not count", i)
		}
	}
	h.clock = time.UnixMilli(1_790_000_000_000)

	// A member has every key of the epoch, and not the signature key of another.
	v, _ := h.who[eve].liveOf(h.room).keyed()
	v.at.leaf = h.of(ada).OwnLeaf()
	h.clock = h.clock.Add(2 * time.Second)
	h.refuses(bob, h.sealed(v, frameTyping, ephemeralBody, h.who[eve]), errFrameSigner, "a member in another's name")
	// What a device signed elsewhere is no frame here.
	w, _ := other.who[0].liveOf(other.room).keyed()
	w.at.leaf = h.of(ada).OwnLeaf()
	foreign := h.sealed(w, frameTyping, ephemeralBody, h.who[ada])
	foreign.Room, foreign.Epoch = h.room, good.Epoch
	h.refuses(bob, foreign, errFrameSeal, "a frame of another room")

	// Delayed, early, repeated.
	late := h.frame(ada, frameTyping)
	h.clock = h.clock.Add(frameAge + time.Second)
	h.refuses(bob, late, errFrameTime, "a frame that was held back")
	h.refuses(bob, h.sealedAt(mustView(h, ada), frameTyping, ephemeralBody, h.who[ada], uint64(h.clock.Add(frameAge+time.Millisecond).UnixMilli())), errFrameTime, "a frame of the future")
	h.refuses(bob, h.sealedAt(mustView(h, ada), frameTyping, ephemeralBody, h.who[ada], 1<<63), errFrameTime, "a time that no number holds")
	first, second := h.frame(ada, frameTyping), h.frame(ada, frameTypingEnd)
	if _, _, err := h.accept(bob, second); err != nil {
		t.Fatal(err)
	}
	h.refuses(bob, second, errFrameTime, "a frame twice")
	h.refuses(bob, first, errFrameTime, "a frame from before the last one")
	if _, _, err := h.accept(bob, h.frame(ada, frameTyping)); err != nil {
		t.Errorf("after all of it an honest frame is refused: %v", err)
	}
}

func mustView(h *lobby, who int) epochView {
	v, ok := h.who[who].liveOf(h.room).keyed()
	if !ok {
		h.t.Fatal("the room is closed to frames")
	}
	return v
}

// TestAttackFrameOfTheRemoved: who was removed knows the keys of the epoch before
// and nothing of the next; neither counts any more.
func TestAttackFrameOfTheRemoved(t *testing.T) {
	h := newLobby(t, 3)
	ada, bob, eve := 0, 1, 2
	h.who[bob].hearFrame(h.frame(eve, frameTyping))
	if all, _ := h.who[bob].heard.now(h.clock); len(all) != 1 {
		t.Fatalf("Eve types: %v", all)
	}
	state, err := newState(h.of(ada))
	must(t, err)
	u, _ := state.policy.Participants.Removing(false, h.who[eve].account.Identity)
	now := h.now
	c, err := h.of(ada).Commit(mls.CommitParams{Random: rand.Reader, Now: now, Proposals: []wire.Proposal{
		mls.RemoveProposal(h.of(eve).OwnLeaf()), mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes()),
	}})
	must(t, err)
	got, err := h.of(bob).Process(c.Message, mls.ProcessParams{Now: now})
	must(t, err)
	old := h.frame(eve, frameTyping)
	h.enter(h.who[bob], got.(*mls.StagedCommit).Next)
	if all, _ := h.who[bob].heard.now(h.clock); len(all) != 0 {
		t.Errorf("who was removed still does %v", all)
	}
	h.refuses(bob, old, errFrameForm, "the epoch before")
	old.Epoch++
	h.refuses(bob, old, errFrameSigner, "the leaf that is gone")
	old.Leaf = h.of(ada).OwnLeaf()
	h.refuses(bob, old, errFrameSeal, "the old key under another leaf")

	// The removed device itself sends and takes nothing.
	out, err := h.of(eve).Process(c.Message, mls.ProcessParams{Now: now})
	must(t, err)
	h.enter(h.who[eve], out.(*mls.StagedCommit).Next)
	if _, ok := h.who[eve].liveOf(h.room).keyed(); ok {
		t.Error("who was removed may still say something")
	}
}

// TestAttackFrameFlood: a member that says more than a person can costs the others
// next to nothing, and keeps nobody else from being heard.
func TestAttackFrameFlood(t *testing.T) {
	h := newLobby(t, 3)
	accepted := 0
	for range 1000 {
		_, _, err := h.accept(1, h.frame(2, frameTyping))
		switch {
		case err == nil:
			accepted++
		case !errors.Is(err, errFrameFlood):
			t.Fatal(err)
		}
	}
	if accepted != frameBurst {
		t.Errorf("%d frames of one moment were taken, want %d", accepted, frameBurst)
	}
	if _, _, err := h.accept(1, h.frame(0, frameTyping)); err != nil {
		t.Errorf("somebody else is not heard: %v", err)
	}
	h.clock = h.clock.Add(2 * time.Second)
	if _, _, err := h.accept(1, h.frame(2, frameTyping)); err != nil {
		t.Errorf("two seconds later it is still not heard: %v", err)
	}
	if n := len(h.who[1].liveOf(h.room).peers); n > 2 {
		t.Errorf("%d peers are remembered of 2", n)
	}
	unknown := h.frame(2, frameTyping)
	unknown.Room[15] ^= 1
	rooms := len(h.who[1].rooms)
	h.who[1].hearFrame(unknown)
	if len(h.who[1].rooms) != rooms {
		t.Error("a frame made a room")
	}
}

func TestTypingEndsByItself(t *testing.T) {
	h := newLobby(t, 2)
	bob, ada := h.who[1], h.who[0].account.Identity
	bob.hearFrame(h.frame(0, frameTyping))
	if got := bob.TypingIn(h.room); !slices.Equal(got, []identity.PublicKey{ada}) {
		t.Fatalf("who types: %v", got)
	}
	h.clock = h.clock.Add(typingFor - time.Millisecond)
	if len(bob.TypingIn(h.room)) != 1 {
		t.Error("typing ended early")
	}
	h.clock = h.clock.Add(time.Millisecond)
	if got := bob.TypingIn(h.room); len(got) != 0 {
		t.Errorf("typing goes on by itself: %v", got)
	}
	bob.hearFrame(h.frame(0, frameOnline))
	h.clock = h.clock.Add(onlineFor - time.Millisecond)
	if len(bob.OnlineIn(h.room)) != 1 {
		t.Error("presence ended early")
	}
	bob.hearFrame(h.frame(0, frameOffline))
	if len(bob.OnlineIn(h.room)) != 0 {
		t.Error("presence did not end when it was said")
	}
}

// A clock that was an hour ahead and is set right is heard again at once.
func TestFramesAfterTheClockWasSetBack(t *testing.T) {
	h := newLobby(t, 2)
	right := h.clock
	h.clock = right.Add(time.Hour)
	early := h.frame(0, frameTyping)
	h.clock = right
	h.refuses(1, early, errFrameTime, "a frame of a clock that is an hour ahead")
	if _, _, err := h.accept(1, h.frame(0, frameTyping)); err != nil {
		t.Errorf("set right it is not heard: %v", err)
	}
	first, second := h.frame(0, frameTyping), h.frame(0, frameTypingEnd) // in one millisecond
	for _, f := range []*delivery.Ephemeral{first, second} {
		if _, _, err := h.accept(1, f); err != nil {
			t.Error(err)
		}
	}
}

func TestLargeRoomsAreToldNothing(t *testing.T) {
	h := newLobby(t, 3)
	v := mustView(h, 0)
	if !v.sayable(3) || v.sayable(2) {
		t.Error("three people: said to at most three, and not to at most two")
	}
	v.silent = true
	if v.sayable(3) {
		t.Error("a leaf that is about to be replaced speaks")
	}
	alone := newLobby(t, 1)
	if v := mustView(alone, 0); v.sayable(10) {
		t.Error("somebody alone in a room speaks")
	}
}

func TestFrameSecretsDoNotPrint(t *testing.T) {
	h := newLobby(t, 2)
	v := mustView(h, 0)
	for _, text := range printed(v, &v, v.secret, h.who[0].rooms[h.room].live.secret) {
		for _, plain := range []string{fmt.Sprint(*v.secret.key), fmt.Sprintf("%x", *v.secret.key)} {
			if strings.Contains(text, strings.Trim(plain, "[]")) {
				t.Errorf("the key stands in %s", text)
			}
		}
	}
}

func FuzzEphemeral(f *testing.F) {
	secret := ephemeralSecret{new([ephemeralSecretSize]byte)}
	o := origin{room: delivery.RoomID{1}, epoch: 7, leaf: 3}
	key := leafKeyForFuzz(f)
	good, err := sealEphemeral(bytes.NewReader(make([]byte, ephemeralNonce)), secret, key, o, 1000, frameTyping)
	if err != nil {
		f.Fatal(err)
	}
	public := identity.DevicePublicKey(key.PublicBytes())
	f.Add(good) // the same in each of the fuzzer's processes
	f.Add([]byte{})
	f.Add(make([]byte, ephemeralMin))
	f.Add(make([]byte, ephemeralMax+1))
	f.Fuzz(func(t *testing.T, payload []byte) {
		u, err := parseEphemeral(payload)
		if err != nil {
			if !errors.Is(err, errFrameForm) {
				t.Fatalf("%v", err)
			}
			return
		}
		_ = u.timeMS()
		kind, err := u.open(secret, o, public)
		if err == nil && (!bytes.Equal(payload, good) || kind != frameTyping) {
			t.Fatalf("%x opens as kind %d", payload, kind)
		}
	})
}

// noHash: Ed25519 signs the message itself.
const noHash = crypto.Hash(0)

func leafKeyForFuzz(f *testing.F) phrase.Key {
	key, err := phrase.KeyFromSeed(bytes.Repeat([]byte{5}, 32))
	if err != nil {
		f.Fatal(err)
	}
	return key
}

func printed(values ...any) (out []string) {
	for _, v := range values {
		out = append(out, fmt.Sprintf("%v", v), fmt.Sprintf("%+v", v), fmt.Sprintf("%x", v))
	}
	return out
}
