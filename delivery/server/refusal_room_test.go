package server

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// TestEntryIsRefused: what is no entry of the room, or not this device's.
func TestEntryIsRefused(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "eve")
	id, other := group(t, p[:2]...), group(t, p[0], p[1])
	laptop := in.member(p[1].owner.attest(t, "laptop"))
	entry := func(m *wire.MLSMessage) delivery.AppendRequest { return delivery.AppendRequest{Entry: wire.Marshal(m)} }
	changed := func(r delivery.AppendRequest, edit func(*wire.MLSMessage)) delivery.AppendRequest {
		var m wire.MLSMessage
		check(t, wire.Unmarshal(r.Entry, &m))
		edit(&m)
		out := entry(&m)
		out.GroupInfo, out.Welcome = r.GroupInfo, r.Welcome
		return out
	}
	text := func() delivery.AppendRequest { return delivery.AppendRequest{Entry: p[0].seal(id, "x")} }
	with := func(r delivery.AppendRequest, edit func(*delivery.AppendRequest)) delivery.AppendRequest {
		edit(&r)
		return r
	}
	commit := func() delivery.AppendRequest { return request(p[0].prepare(id)) }
	proposed, err := p[0].in(id).group.Propose(mls.ProposeParams{Random: rand.Reader, Now: p[0].now(), Proposal: mls.SelfRemoveProposal()})
	check(t, err)
	proposal := delivery.AppendRequest{Entry: proposed.Message}
	foreign := p[2].bundle().KeyPackage // never published
	listing, _ := policyRoom(t, p[0], id).Participants.Adding(policy.RoleMember, "localhost", p[2].owner.id)
	unpublished := request(p[0].prepare(id, mls.AddProposal(&foreign), mls.AppDataUpdateProposal(policy.ComponentParticipants, listing.Bytes())))
	withTree := commit()
	var info wire.MLSMessage
	check(t, wire.Unmarshal(withTree.GroupInfo, &info))
	info.GroupInfo.Extensions = append(info.GroupInfo.Extensions, wire.Extension{ExtensionType: wire.ExtensionTypeRatchetTree})
	withTree.GroupInfo = wire.Marshal(&info)

	for name, c := range map[string]struct {
		by   *member
		r    delivery.AppendRequest
		code delivery.Code
		why  string
	}{
		"of another room":            {p[0], delivery.AppendRequest{Entry: p[0].seal(other, "x")}, delivery.CodeBadRequest, "of another group"},
		"a message with a Welcome":   {p[0], with(text(), func(r *delivery.AppendRequest) { r.Welcome = message() }), delivery.CodeBadRequest, "with a commit only"},
		"a message with a GroupInfo": {p[0], with(text(), func(r *delivery.AppendRequest) { r.GroupInfo = message() }), delivery.CodeBadRequest, "with a commit only"},
		"a commit with blobs":        {p[0], with(commit(), func(r *delivery.AppendRequest) { r.Blobs = []delivery.BlobID{{1}} }), delivery.CodeBadRequest, "no blobs"},
		"a Welcome that is none":     {p[0], with(commit(), func(r *delivery.AppendRequest) { r.Welcome = r.GroupInfo }), delivery.CodeBadRequest, "with a Welcome"},
		"a GroupInfo that is none":   {p[0], with(commit(), func(r *delivery.AppendRequest) { r.GroupInfo = message() }), delivery.CodeBadRequest, "the GroupInfo of the new epoch"},
		"a GroupInfo with the tree":  {p[0], withTree, delivery.CodeBadRequest, "carries the tree"},
		"a commit by another":        {p[1], commit(), delivery.CodeRefused, "not signed by this device's leaf"},
		"a commit of a blank leaf":   {p[0], changed(commit(), func(m *wire.MLSMessage) { m.PublicMessage.Content.Sender.LeafIndex = 9 }), delivery.CodeRefused, "not signed by this device's leaf"},
		"a commit by nobody": {p[0], changed(commit(), func(m *wire.MLSMessage) {
			m.PublicMessage.Content.Sender = wire.Sender{SenderType: wire.SenderTypeExternal}
		}), delivery.CodeRefused, "joining devices commit"},
		"a forged proposal":          {p[0], changed(proposal, func(m *wire.MLSMessage) { m.PublicMessage.Auth.Signature[0] ^= 1 }), delivery.CodeBadRequest, "not valid"},
		"an unpublished package":     {p[0], unpublished, delivery.CodeRefused, "was not published here"},
		"an unknown blob":            {p[0], with(text(), func(r *delivery.AppendRequest) { r.Blobs = []delivery.BlobID{{9}} }), delivery.CodeRefused, "a blob that the entry refers to"},
		"entering as another":        {p[1], request(laptop.external(id)), delivery.CodeRefused, "adds another device"},
		"a message of who is not in": {p[2], text(), delivery.CodeNotFound, "no such room"},
	} {
		if e := c.by.refusedWith(id, c.r, c.code); !strings.Contains(e.Detail, c.why) {
			t.Errorf("%s: %q, want %q", name, e.Detail, c.why)
		}
	}
	p[0].say(id, "and it goes on")
}

func policyRoom(t *testing.T, m *member, id delivery.RoomID) *policy.Room {
	t.Helper()
	room, err := policy.RoomOf(m.in(id).group.Context().Extensions)
	check(t, err)
	return room
}

// moving is a store in which a room moves on between the check of a request and the
// lock that it is written under.
type moving struct {
	delivery.Store
	mu   sync.Mutex
	next func() // guarded by mu; once
}

func (m *moving) WithRoom(ctx context.Context, id delivery.RoomID, fn func(delivery.RoomTx) error) error {
	m.mu.Lock()
	first := m.next
	m.next = nil
	m.mu.Unlock()
	if first != nil {
		first()
	}
	return m.Store.WithRoom(ctx, id, fn)
}

func (m *moving) before(next func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = next
}

// besides gives an instance whose store moves, beside one that moves it.
func besides(t *testing.T) (w *world, checked, other *instance, store *moving) {
	w = newWorld(t)
	w.still = true
	other = w.start()
	plain := w.store
	store = &moving{Store: plain}
	w.store = store
	checked = w.start()
	w.store = plain
	return w, checked, other, store
}

// TestAttackBetweenCheckAndLock: what was checked against proposals that are not held
// any more, or before others came, is checked again.
func TestAttackBetweenCheckAndLock(t *testing.T) {
	_, checked, other, store := besides(t)
	p := other.people("ada", "bob")
	id := group(t, p...)
	leave := func() {
		_, err := p[1].propose(id, mls.SelfRemoveProposal())
		check(t, err)
	}
	commit := request(p[0].prepare(id))
	p[0].at = checked
	store.before(leave)
	_, err := p[0].post(id, commit)
	wantRefusal(t, "past a removal that came meanwhile", err, delivery.CodeRefused, policy.ErrLeftOut.Error())

	// As many are held, and another one.
	p[0].at = other
	id = group(t, p...)
	update, err := p[1].in(id).group.ProposeUpdate(mls.ProposeParams{Random: rand.Reader, Now: p[1].now()}, mls.LeafChange{})
	check(t, err)
	_, err = p[1].post(id, delivery.AppendRequest{Entry: update.Message})
	check(t, err)
	p[0].sync(id)
	commit = request(p[0].prepare(id))
	p[0].at = checked
	store.before(leave)
	_, err = p[0].post(id, commit)
	wantRefusal(t, "with an update that went meanwhile", err, delivery.CodeBadRequest, "unknown proposal")
}

// TestAttackSuccessorBetweenCheckAndLock: a room goes on in the successor that keeps
// what it has decided when it is closed.
func TestAttackSuccessorBetweenCheckAndLock(t *testing.T) {
	for name, meanwhile := range map[string]func(ada, bob *member, id delivery.RoomID){
		"somebody leaves": func(_, bob *member, id delivery.RoomID) {
			_, err := bob.propose(id, mls.SelfRemoveProposal())
			check(t, err)
		},
		"somebody rises": func(ada, bob *member, id delivery.RoomID) {
			u, _ := policyRoom(t, ada, id).Participants.Assigning(policy.RoleAdmin, bob.owner.id)
			ada.commit(id, mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes()))
		},
	} {
		_, checked, other, store := besides(t)
		p := other.people("ada", "bob")
		id := group(t, p...)
		next := p[0].successor(id)
		p[0].at = checked
		store.before(func() {
			p[0].at = other
			meanwhile(p[0], p[1], id)
			p[0].at = checked
		})
		wantRefusal(t, name, p[0].succeed(id, next), delivery.CodeRefused, policy.ErrSuccession.Error())
		if h := p[1].head(id); h.Status != delivery.RoomOpen {
			t.Errorf("%s: the room is closed: %+v", name, h)
		}
	}
}

// TestAttackSuccessionByWhoLeaves: whose removal is held closes no room.
func TestAttackSuccessionByWhoLeaves(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	next := p[0].successor(id)
	_, err := p[0].propose(id, mls.SelfRemoveProposal())
	check(t, err)
	wantRefusal(t, "who leaves", p[0].succeed(id, next), delivery.CodeRefused, policy.ErrUnderRemoval.Error())
}

// TestOfferIsRefused: an offered entry is what it says, or is passed over.
func TestOfferIsRefused(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	in, saved := w.save(t, in, p...)
	p[0].say(id, "one")
	p[1].sync(id)
	kept := p[1].kept(id, 1)
	in = w.lose(t, in, saved, p...)
	before := w.fingerprint(t, id)
	for name, edit := range map[string]func(*delivery.KeptEntry){
		"a seq past all":   func(e *delivery.KeptEntry) { e.Seq = delivery.MaxNumber + 1 },
		"another epoch":    func(e *delivery.KeptEntry) { e.Epoch = 0 },
		"another kind":     func(e *delivery.KeptEntry) { e.Kind = delivery.KindProposal },
		"of another group": func(e *delivery.KeptEntry) { e.Bytes = message() },
	} {
		e := kept[0]
		edit(&e)
		got, err := p[0].offerAll(id, delivery.HealRequest{Entries: []delivery.KeptEntry{e}, More: true})
		check(t, err)
		if got.Taken != 0 || w.fingerprint(t, id) != before {
			t.Errorf("%s: %+v", name, got)
		}
	}
	got, err := p[0].offerAll(id, delivery.HealRequest{Entries: kept, More: true})
	check(t, err)
	if got.Taken != 1 {
		t.Errorf("%+v", got)
	}
	// Also once what is between is given up: what has no seq never had one.
	w.clock.add(in.HealWindow / 9)
	before = w.fingerprint(t, id)
	fresh := kept[0]
	fresh.Seq, fresh.Bytes = delivery.MaxNumber+1, p[0].seal(id, "never said")
	got, err = p[0].offerAll(id, delivery.HealRequest{Entries: []delivery.KeptEntry{fresh}, More: true})
	check(t, err)
	if got.Dropped != 1 || w.fingerprint(t, id) != before {
		t.Errorf("a seq past all: %+v", got)
	}
}

// TestOfferToARoomThatOpened: nothing is put where it stood before a restore once the
// room has gone on.
func TestOfferToARoomThatOpened(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	in, saved := w.save(t, in, p...)
	p[0].say(id, "one")
	p[1].sync(id)
	kept := p[1].kept(id, 1)
	w.lose(t, in, saved, p...)
	plain := w.store
	store := &moving{Store: plain}
	w.store = store
	checked := w.start()
	w.store = plain
	p[1].at = checked
	store.before(func() {
		check(t, plain.WithRoom(t.Context(), id, func(tx delivery.RoomTx) error { return tx.SetStatus(delivery.RoomOpen, nil) }))
	})
	got, err := p[1].offerAll(id, delivery.HealRequest{Entries: kept})
	check(t, err)
	if got.Taken != 0 || got.Status != delivery.RoomOpen {
		t.Errorf("%+v", got)
	}
}

// TestStoredStateIsWhatWasAsked: a store that mixes rooms up is found out.
func TestStoredStateIsWhatWasAsked(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	w.store = mixed{w.store}
	second := w.start()
	if _, err := second.readState(t.Context(), id, 1); err == nil || !strings.Contains(err.Error(), "epoch 0, not 1") {
		t.Errorf("a state of another epoch: %v", err)
	}
	if _, err := second.held(t.Context(), id); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("a proposal that is none: %v", err)
	}
}

// mixed is a store that answers with something else.
type mixed struct{ delivery.Store }

func (m mixed) State(ctx context.Context, id delivery.RoomID, epoch uint64) (delivery.StoredState, error) {
	return m.Store.State(ctx, id, epoch-1)
}

func (m mixed) Held(context.Context, delivery.RoomID) ([]delivery.HeldProposal, error) {
	return []delivery.HeldProposal{{Ref: []byte{1}, Bytes: message()}}, nil
}

// TestAudienceIsOfItsEpoch: who was in a room in one epoch says nothing of another.
func TestAudienceIsOfItsEpoch(t *testing.T) {
	var a audience
	a.init(100)
	id, ada := newRoomID(t), newPerson("ada").attest(t, "ada").id()
	a.put(&listeners{room: id, epoch: 3, devices: []identity.DeviceID{ada}})
	for epoch, want := range map[uint64]bool{2: false, 3: true, 4: false} {
		if a.has(id, epoch, ada) != want {
			t.Errorf("epoch %d: in it: %v", epoch, !want)
		}
	}
}

// TestStoppingInstanceTakesNoSocket: neither by a request that comes later nor by one
// that was on its way.
func TestStoppingInstanceTakesNoSocket(t *testing.T) {
	w := newWorld(t)
	w.still = true
	in := w.start()
	in.draining.Store(true)
	d := in.enrolled("ada")
	_, err := d.call(delivery.RouteConnect, nil, "")
	wantRefusal(t, "later", err, delivery.CodeRetry, "is stopping")
	var s sockets
	s.init()
	s.closing = true
	if e := s.add(&socket{}); e == nil || e.Code != delivery.CodeRetry {
		t.Errorf("on its way: %v", e)
	}
	if (&socket{s: in.Server, pongs: 2}).ping(t.Context()) {
		t.Error("a socket that left two pings unanswered lives")
	}
}

// TestDocumentNeedsEveryOperation: a route that nobody described is an error.
func TestDocumentNeedsEveryOperation(t *testing.T) {
	op := operations[delivery.RouteInfo]
	delete(operations, delivery.RouteInfo)
	defer func() { operations[delivery.RouteInfo] = op }()
	if _, err := openAPI("x", "y"); err == nil || !strings.Contains(err.Error(), "is not described") {
		t.Errorf("%v", err)
	}
}

// TestHealingBeginsAfterARestoreOnly: a store that was never restored waits for nobody.
func TestHealingBeginsAfterARestoreOnly(t *testing.T) {
	w := newWorld(t)
	check(t, BeginHealing(t.Context(), w.store, w.clock.Now()))
	r, err := incarnation(t.Context(), w.store)
	if err != nil || r.n != 0 || r.since.UnixMilli() != 0 {
		t.Errorf("%v, %v", r, err)
	}
}

// TestHomeWaitsForARoomThatHeals: the home's own proposals open no room, however long
// nobody came.
func TestHomeWaitsForARoomThatHeals(t *testing.T) {
	w := newWorld(t)
	w.still = true
	in := w.start()
	p := in.people("ada", "bob")
	laptop := in.member(p[1].owner.attest(t, "laptop"))
	id := group(t, p...)
	check(t, laptop.enter(id, laptop.external(id)))
	in, saved := w.save(t, in, p...)
	in = w.lose(t, in, saved, p...)
	r := laptop.revocation(t, p[1].owner)
	check(t, p[1].json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: r.Bytes()}, nil))
	for range 3 { // the first is when somebody begins
		w.clock.add(in.HealWindow + time.Second)
		check(t, in.ProposeRemovals(t.Context()))
		if room, err := w.store.Room(t.Context(), id); err != nil || room.Status != delivery.RoomHealing {
			t.Errorf("%+v, %v", room, err)
		}
	}
}

// TestRemovalIsProposedOnce: not of who is out, nor while it is held.
func TestRemovalIsProposedOnce(t *testing.T) {
	w := newWorld(t)
	w.still = true
	in := w.start()
	p := in.people("ada", "bob")
	laptop := in.member(p[1].owner.attest(t, "laptop"))
	id := group(t, p...)
	check(t, laptop.enter(id, laptop.external(id)))
	r := laptop.revocation(t, p[1].owner)
	check(t, p[1].json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: r.Bytes()}, nil))
	check(t, in.ProposeRemovals(t.Context()))
	f, err := in.follow(t.Context(), id)
	check(t, err)
	for name, device := range map[string]identity.DeviceID{"held": laptop.id(), "of who is out": {1}} {
		m := delivery.Membership{Room: id, Device: device, Identity: p[1].owner.id}
		if _, _, err := in.removal(t.Context(), f, m, r.Bytes()); !errors.Is(err, errHeldAlready) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResyncRateCanBeOff: a rule that is off refuses nobody.
func TestResyncRateCanBeOff(t *testing.T) {
	for mode, code := range map[Mode]delivery.Code{ModeOff: "", ModeOn: delivery.CodeSlowDown} {
		w := newWorld(t)
		w.config.Rules = map[Rule]Mode{RuleResyncRate: mode}
		in := w.start()
		ada := in.people("ada")[0]
		id := group(t, ada)
		f, err := in.follow(t.Context(), id)
		check(t, err)
		for range 20 {
			err = in.resyncRate(t.Context(), f, &incoming{room: id, device: delivery.Device{ID: ada.id()}})
		}
		if delivery.CodeOf(err) != code {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// TestOfferedGroupInfo: it counts where the room has none, and is one then.
func TestOfferedGroupInfo(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	in, saved := w.save(t, in, p...)
	p[0].commit(id)
	p[1].sync(id)
	kept := p[1].kept(id, 1)
	w.lose(t, in, saved, p...)
	_, err := p[0].offerAll(id, delivery.HealRequest{GroupInfo: message(), More: true}) // it has one of this epoch
	check(t, err)
	_, err = p[0].offerAll(id, delivery.HealRequest{Entries: kept, GroupInfo: message(), More: true})
	wantRefusal(t, "another message", err, delivery.CodeBadRequest, "not an MLSMessage with a GroupInfo")
}

// TestBlobReaderStaysInside: neither before a blob's first byte nor behind its last.
func TestBlobReaderStaysInside(t *testing.T) {
	in := newWorld(t).start()
	r := &blobReader{ctx: t.Context(), s: in.Server, id: delivery.BlobID{1}, size: 10}
	if _, err := r.Seek(-1, io.SeekStart); err == nil {
		t.Error("sought before the beginning")
	}
	r.offset = 10
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	r.offset = 0
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, delivery.ErrNotFound) || r.err == nil {
		t.Errorf("bytes that are gone: %v", err)
	}
}
