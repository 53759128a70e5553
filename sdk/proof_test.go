package sdk_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/sdk"
)

// broken answers for the service with a log whose next entry is a commit of its own
// making, behind what the device has read.
func broken(last sdk.Sent, more func(method, path string, query url.Values) (int, string, []byte)) func(string, string, url.Values) (int, string, []byte) {
	return func(method, path string, query url.Values) (int, string, []byte) {
		switch {
		case strings.HasSuffix(path, "/log"):
			forged := delivery.Entry{Seq: last.Seq + 1, Epoch: last.Epoch, Kind: delivery.KindCommit, AcceptedMS: 1, Bytes: []byte("no commit")}
			page := delivery.LogPage{Head: last.Seq + 1, First: 1, Entries: []delivery.Entry{forged}}
			return 200, delivery.BinaryType, page.AppendTo(nil)
		case strings.HasSuffix(path, "/report"):
			return 204, "", nil
		case more != nil:
			return more(method, path, query)
		}
		return 0, "", nil
	}
}

// stays reads the room and checks that the device refuses to go where it is shown,
// without a commit of its own.
func (p *person) stays(b *between, room delivery.RoomID, why string) {
	p.t.Helper()
	sent, before := b.commits.Load(), p.epoch(room)
	if err := p.Refresh(p.t.Context(), room); !errors.Is(err, sdk.ErrStuck) {
		p.t.Errorf("%s: reading ends with %v", why, err)
	}
	if b.commits.Load() != sent || p.epoch(room) != before {
		p.t.Errorf("%s: %d commits, epoch %d became %d", why, b.commits.Load()-sent, before, p.epoch(room))
	}
}

func (p *person) epoch(room delivery.RoomID) uint64 {
	p.t.Helper()
	r, err := p.RoomOf(p.t.Context(), room)
	must(p.t, err)
	return r.Epoch
}

// TestAttackUnknownDeviceAsProof: a commit cannot be read, and the present state is
// vouched for by a device that came since, genuine and of somebody known. It proves
// nothing; a device that was known before does, and so does no state that is old.
func TestAttackUnknownDeviceAsProof(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Proof")
	must(t, err)
	ada.invite(room, bob)
	must(t, ada.Refresh(ctx, room))
	b := ada.through()
	last := ada.say(room, "before")
	at := "/v1/rooms/" + room.String()
	info, old := b.get(ada, h.url, at+"/groupinfo"), b.get(ada, h.url, at+"/tree")
	bob.another(h, "tablet") // comes in by itself, so it signs the present state
	b.answer = broken(last, nil)
	ada.stays(b, room, "a device that came since")
	b.answer = broken(last, func(_, path string, _ url.Values) (int, string, []byte) {
		switch {
		case strings.HasSuffix(path, "/groupinfo"):
			return 200, delivery.BinaryType, info
		case strings.HasSuffix(path, "/tree"):
			return 200, delivery.BinaryType, old
		}
		return 0, "", nil
	})
	ada.stays(b, room, "an old state")

	// Bob's phone, which Ada knew, changes the chat.
	carl := newPerson(t, h, "carl")
	id, err := bob.Find(ctx, "@carl")
	must(t, err)
	must(t, bob.Add(ctx, room, id))
	b.answer = broken(last, nil)
	if err := ada.Refresh(ctx, room); err != nil && !errors.Is(err, client.ErrGarbage) {
		t.Fatal(err)
	}
	b.answer = nil
	must(t, carl.Accept(ctx, room))
	carl.say(room, "hello")
	if got := ada.read(room); got[len(got)-1] != "hello" {
		t.Errorf("ada reads %q", got)
	}
}

// trusting accepts every credential: what a service that makes up a room brings.
type trusting struct{ policy.Credentials }

func (trusting) ValidateCredential(_, _ *wire.LeafNode, _ time.Time) error { return nil }
func (trusting) ValidateMembers([]*wire.LeafNode, time.Time) error         { return nil }

// TestAttackMintedDevice: the service makes up a state of the room, signed by a
// device of its own that calls itself Bob's. It cannot attest it.
func TestAttackMintedDevice(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Minted")
	must(t, err)
	ada.invite(room, bob)
	must(t, ada.Refresh(ctx, room))
	b := ada.through()
	last := ada.say(room, "before")
	at := "/v1/rooms/" + room.String()
	var raw wire.MLSMessage
	must(t, wire.Unmarshal(b.get(ada, h.url, at+"/groupinfo"), &raw))
	genuine := raw.GroupInfo
	var devices delivery.DevicesResponse
	must(t, json.Unmarshal(b.get(ada, h.url, "/v1/identities/"+bob.Identity().String()+"/devices"), &devices))

	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	cs, err := suite.Lookup(genuine.GroupContext.CipherSuite)
	must(t, err)
	signer, err := cs.NewSignatureKey(key.Seed())
	must(t, err)
	c := mls.Config{Signers: []*suite.SignatureKey{signer}, Credentials: trusting{}, AppData: policy.ApplyUpdate}
	step, err := c.Create(mls.CreateParams{
		Random: rand.Reader, Now: time.Now(), CipherSuite: genuine.GroupContext.CipherSuite, GroupID: room[:], Extensions: genuine.GroupContext.Extensions,
		Leaf: mls.CreatorLeaf{
			Signer: signer, Credential: wire.BasicCredential(devices.Devices[0].Credential), Capabilities: policy.Capabilities(),
			Extensions: policy.LeafExtensions(), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		},
	})
	must(t, err)
	g := step.Next
	for g.Epoch() <= last.Epoch { // an epoch above any that Ada has seen
		commit, err := g.Commit(mls.CommitParams{Random: rand.Reader, Now: time.Now()})
		must(t, err)
		next, err := commit.Apply(g, time.Now())
		must(t, err)
		g = next.Next
	}
	forged, err := g.GroupInfo(false, nil)
	must(t, err)
	b.answer = broken(last, func(_, path string, _ url.Values) (int, string, []byte) {
		switch {
		case strings.HasSuffix(path, "/groupinfo"):
			return 200, delivery.BinaryType, forged
		case strings.HasSuffix(path, "/tree"):
			return 200, delivery.BinaryType, g.RatchetTree()
		}
		return 0, "", nil
	})
	sent := b.commits.Load()
	if err := ada.Refresh(ctx, room); !errors.Is(err, policy.ErrCredential) {
		t.Errorf("reading ends with %v", err)
	}
	if b.commits.Load() != sent || ada.epoch(room) != last.Epoch {
		t.Error("the device went into the room that was made up")
	}
	// It is the attestation alone that is missing: by RFC 9420 the state is sound.
	must(t, wire.Unmarshal(forged, &raw))
	unverified, err := tree.ParseBytes(cs, g.RatchetTree())
	must(t, err)
	if _, err := follower.Join(cs, raw.GroupInfo, unverified, follower.Options{Now: time.Now(), Credentials: trusting{}, AppData: policy.ApplyUpdate}); err != nil {
		t.Error(err)
	}
}

// TestAttackOwnCommitAsProof: the service takes a commit, loses the answer, and shows
// another commit in its place with the state that the device's own has made. While
// its commit is in flight the device does not replace its leaf.
func TestAttackOwnCommitAsProof(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	room, err := ada.NewRoom(ctx, "Flight")
	must(t, err)
	ada.invite(room, bob)
	must(t, ada.Refresh(ctx, room))
	id, err := ada.Find(ctx, "@carl")
	must(t, err)
	b := ada.through()
	last := ada.say(room, "before")
	b.lose = func(path string) bool { return strings.HasSuffix(path, "/append") }
	if err := ada.Add(ctx, room, id); !errors.Is(err, client.ErrOffline) {
		t.Fatalf("adding ends with %v", err)
	}
	b.lose, b.answer = nil, broken(last, nil)
	if err := ada.Refresh(ctx, room); delivery.CodeOf(err) != delivery.CodeRetry {
		t.Errorf("reading ends with %v", err)
	}
	if ada.epoch(room) != last.Epoch {
		t.Error("the device has left its epoch")
	}
	ada.restart() // what is in flight outlives the process
	b = ada.through()
	b.answer = broken(last, nil)
	if err := ada.Refresh(ctx, room); delivery.CodeOf(err) != delivery.CodeRetry {
		t.Errorf("reading ends with %v", err)
	}
	b.answer = nil
	must(t, ada.Refresh(ctx, room))
	if now := ada.epoch(room); now != last.Epoch+1 {
		t.Errorf("the device is in epoch %d", now)
	}
	must(t, carl.Accept(ctx, room))
	carl.say(room, "hello")
	ada.reads(room, "before", "hello")
}

// later opens a person's engine with a clock that is ahead, and somebody between it
// and the service.
func (p *person) later(by time.Duration) *between {
	p.t.Helper()
	must(p.t, p.Close())
	c := p.config()
	b := &between{Transport: c.Transport}
	c.Transport, c.Now = b, func() time.Time { return time.Now().Add(by) }
	e, err := sdk.Open(p.t.Context(), c)
	must(p.t, err)
	p.Engine = e
	return b
}

// TestAttackSaysThatMessagesAreGone: the service says that it no longer has what a
// device missed, which was here a moment ago. By its own clock the device knows
// better; when it really was away it comes back on the word of a known identity.
func TestAttackSaysThatMessagesAreGone(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Trimmed")
	must(t, err)
	ada.invite(room, bob)
	must(t, ada.Refresh(ctx, room))
	ada.say(room, "before")
	tablet := bob.another(h, "tablet")
	gone, err := json.Marshal((&delivery.Error{Code: delivery.CodeTrimmed, Detail: "past retention", Seq: 100}).Problem())
	must(t, err)
	trimmed := func(_, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, "/log") {
			return 410, delivery.ProblemType, gone
		}
		return 0, "", nil
	}
	b := ada.later(20 * 24 * time.Hour)
	b.answer = trimmed
	ada.stays(b, room, "after twenty days of thirty")
	b = ada.later(31 * 24 * time.Hour)
	b.answer = func(method, path string, q url.Values) (int, string, []byte) {
		if b.commits.Load() > 0 {
			return 0, "", nil
		}
		return trimmed(method, path, q)
	}
	must(t, ada.Refresh(ctx, room))
	if b.commits.Load() != 1 {
		t.Errorf("%d commits", b.commits.Load())
	}
	tablet.say(room, "welcome back")
	if got := ada.read(room); got[len(got)-1] != "welcome back" {
		t.Errorf("ada reads %q", got)
	}
}

// TestInvitationThatWaited: an invitation waited for longer than messages are kept.
// Opening it is not reading the chat to its end: who comes then has been away, and
// goes on by the word of an identity that it knows, on a device that came since.
func TestInvitationThatWaited(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Waited")
	must(t, err)
	must(t, ada.Add(ctx, room, bob.Identity()))
	tablet := ada.another(h, "tablet")
	tablet.say(room, "where are you")
	gone, err := json.Marshal((&delivery.Error{Code: delivery.CodeTrimmed, Detail: "past retention", Seq: 100}).Problem())
	must(t, err)
	b := bob.later(31 * 24 * time.Hour)
	b.answer = func(method, path string, _ url.Values) (int, string, []byte) {
		switch {
		case strings.HasSuffix(path, "/log") && b.commits.Load() == 0:
			return 410, delivery.ProblemType, gone
		case method == http.MethodPost && strings.HasSuffix(path, "/keypackages"):
			return 200, "application/json", []byte("{}") // the service's clock stands still: to it they are not valid yet
		}
		return 0, "", nil
	}
	must(t, bob.Accept(ctx, room))
	must(t, bob.Refresh(ctx, room))
	if b.commits.Load() != 1 {
		t.Errorf("%d commits", b.commits.Load())
	}
	tablet.say(room, "here you are")
	if got := bob.read(room); got[len(got)-1] != "here you are" {
		t.Errorf("bob reads %q", got)
	}
}
