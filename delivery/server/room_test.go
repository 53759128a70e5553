package server

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls"
)

func TestPeopleTalk(t *testing.T) { eachSuite(t, peopleTalk) }

func peopleTalk(t *testing.T, w *world) {
	in := w.start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p...)
	agree(t, id, p...)
	p[0].say(id, "hello")
	p[1].sync(id)
	p[1].say(id, "héllo")
	for _, m := range []*member{p[0], p[2]} {
		m.sync(id)
	}
	if got := p[2].in(id).texts; !slices.Equal(got, []string{"hello", "héllo"}) {
		t.Errorf("%q", got)
	}
	h := p[0].head(id)
	if h.Epoch != 1 || h.LastSeq != 3 || h.FirstSeq != 1 || h.Kind != delivery.RoomGroup || h.Status != delivery.RoomOpen {
		t.Errorf("%+v", h)
	}
	// The removed one reads up to its removal and nothing after.
	room, err := policy.RoomOf(p[0].in(id).group.Context().Extensions)
	check(t, err)
	u, _ := room.Participants.Removing(false, p[2].owner.id)
	p[0].commit(id, mls.RemoveProposal(2), mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes()))
	p[0].say(id, "without eve")
	p[2].sync(id)
	page, err := p[2].log(id, p[2].in(id).seq)
	check(t, err)
	if len(page.Entries) != 0 || page.Head != 4 || p[2].in(id).group.Active() {
		t.Errorf("%+v", page)
	}
	_, err = p[2].post(id, delivery.AppendRequest{Entry: p[1].seal(id, "x")})
	wantCode(t, err, delivery.CodeNotFound)
	agree(t, id, p[:2]...)
	if got := p[1].in(id).texts; got[len(got)-1] != "without eve" {
		t.Errorf("%q", got)
	}
}

func TestSameBytesGetTheSameAnswer(t *testing.T) { eachSuite(t, sameBytesGetTheSameAnswer) }

func sameBytesGetTheSameAnswer(t *testing.T, w *world) {
	in, second := w.start(), w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	text := delivery.AppendRequest{Entry: p[0].seal(id, "once")}
	first, err := p[0].post(id, text)
	check(t, err)
	commit := request(p[0].prepare(id))
	won, err := p[0].post(id, commit)
	check(t, err)
	p[0].at = second
	for _, c := range []struct {
		r    delivery.AppendRequest
		want delivery.Accepted
	}{{text, first}, {commit, won}} {
		again, err := p[0].post(id, c.r)
		check(t, err)
		c.want.Duplicate = true
		if again != c.want {
			t.Errorf("got %+v, want %+v", again, c.want)
		}
	}
	if h := p[0].head(id); h.LastSeq != won.Seq {
		t.Errorf("the log went on to %d", h.LastSeq)
	}
	// Another device with the same bytes is another sender.
	_, err = p[1].post(id, commit)
	wantCode(t, err, delivery.CodeStaleEpoch)
}

func TestStaleEpoch(t *testing.T) { eachSuite(t, staleEpoch) }

func staleEpoch(t *testing.T, w *world) {
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	late := p[1].seal(id, "late")
	lateCommit := request(p[1].prepare(id))
	p[0].commit(id)
	_, err := p[1].post(id, delivery.AppendRequest{Entry: late})
	if e := wantCode(t, err, delivery.CodeStaleEpoch); e.Epoch != 2 || e.Seq != 2 {
		t.Errorf("%+v", e)
	}
	p[1].refused(id, lateCommit, delivery.CodeStaleEpoch)
	p[1].sync(id)
	p[1].say(id, "again")
}

func TestCommitFirst(t *testing.T) { eachSuite(t, commitFirst) }

func commitFirst(t *testing.T, w *world) {
	in := w.start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p...)
	_, err := p[2].propose(id, mls.SelfRemoveProposal())
	check(t, err)
	_, err = p[0].post(id, delivery.AppendRequest{Entry: p[0].seal(id, "not yet")})
	if e := wantCode(t, err, delivery.CodeCommitFirst); e.Epoch != 1 {
		t.Errorf("%+v", e)
	}
	if h := p[0].head(id); len(h.Proposals) != 1 || h.Proposals[0].Seq != 2 {
		t.Errorf("%+v", h)
	}
	// A commit that leaves the SelfRemove out is refused; one by who leaves, too.
	p[1].refused(id, request(p[1].prepare(id)), delivery.CodeRefused)
	p[0].commit(id)
	p[0].say(id, "now")
	agree(t, id, p[:2]...)
	if p[2].sync(id).group.Active() {
		t.Error("who left is still active")
	}
	if h := p[0].head(id); len(h.Proposals) != 0 {
		t.Errorf("%+v", h)
	}
}

func TestDirectRoomHasTwo(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "eve")
	id := p[0].create(delivery.RoomDirect, p[1])
	p[0].commit(id, p[0].adding(id, p[1].owner)...)
	p[1].join()
	agree(t, id, p[:2]...)
	add := mls.AddProposal(p[0].claim(id, p[2].owner.id)[0])
	p[0].refused(id, request(p[0].prepare(id, add)), delivery.CodeRefused)
	room, err := policy.RoomOf(p[0].in(id).group.Context().Extensions)
	check(t, err)
	u, _ := room.Participants.Adding(policy.RoleMember, "localhost", p[2].owner.id)
	p[0].refused(id, request(p[0].prepare(id, add, mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes()))), delivery.CodeRefused)
	p[0].refused(id, request(p[0].prepare(id, mls.RemoveProposal(1))), delivery.CodeRefused)
}

func TestCreateRoomAgainIsTheSameRoom(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob")
	_, body := p[0].creation(delivery.RoomGroup)
	for range 2 {
		_, err := p[0].call(delivery.RouteCreateRoom, body, "")
		check(t, err)
	}
	_, err := p[1].call(delivery.RouteCreateRoom, body, "")
	wantCode(t, err, delivery.CodeRefused) // another device's leaf
	id, _ := p[0].creation(delivery.RoomGroup)
	_, err = p[0].call(delivery.RouteAppend, (&delivery.AppendRequest{Entry: p[0].seal(id, "x")}).AppendTo(nil), "", id.String())
	wantCode(t, err, delivery.CodeNotFound)
}

func TestAnotherHomesRoom(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada")
	id, err := delivery.NewRoomID([3]byte{9, 9, 9}, bytes.NewReader(make([]byte, 16)))
	check(t, err)
	for _, route := range []string{delivery.RouteRoom, delivery.RouteLog, delivery.RouteGroupInfo, delivery.RouteTree} {
		_, err := p[0].call(route, nil, "", id.String())
		e := wantCode(t, err, delivery.CodeGoElsewhere)
		if *e.Home != [3]byte{9, 9, 9} {
			t.Errorf("sent to %s", e.Home)
		}
	}
	_, err = p[0].call(delivery.RouteAppend, nil, "", id.String())
	wantCode(t, err, delivery.CodeGoElsewhere)
}

// TestFurtherDeviceJoinsItself: a device of somebody who is in the room enters
// by external commit, honouring a SelfRemove that is held.
func TestFurtherDeviceJoinsItself(t *testing.T) { eachSuite(t, furtherDeviceJoinsItself) }

func furtherDeviceJoinsItself(t *testing.T, w *world) {
	in := w.start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p...)
	laptop := in.member(p[0].owner.attest(t, "laptop"))
	var rooms delivery.RoomsResponse
	check(t, laptop.json(delivery.RouteRooms, nil, &rooms))
	if len(rooms.Rooms) != 1 || rooms.Rooms[0].Room != id || rooms.Rooms[0].Member {
		t.Fatalf("%+v", rooms)
	}
	_, err := p[2].propose(id, mls.SelfRemoveProposal())
	check(t, err)
	laptop.refused(id, request(laptop.external(id)), delivery.CodeRefused) // leaves it out
	raw, err := laptop.call(delivery.RouteHeld, nil, "", id.String())
	check(t, err)
	held, err := delivery.ParseLogPage(raw)
	check(t, err)
	if len(held.Entries) != 1 {
		t.Fatalf("%+v", held)
	}
	check(t, laptop.enter(id, laptop.external(id, func(x *mls.ExternalJoinParams) { x.SelfRemoves = [][]byte{held.Entries[0].Bytes} })))
	laptop.say(id, "from the laptop")
	agree(t, id, p[0], p[1], laptop)
	// It reads from its join on, not what was before.
	page, err := laptop.log(id, 0)
	check(t, err)
	if page.Entries[0].Kind != delivery.KindApplication {
		t.Errorf("%+v", page.Entries[0])
	}
}

func TestResyncReplacesTheOwnLeaf(t *testing.T) { eachSuite(t, resyncReplacesTheOwnLeaf) }

func resyncReplacesTheOwnLeaf(t *testing.T, w *world) {
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	leaf := p[1].in(id).group.OwnLeaf()
	resync := func(x *mls.ExternalJoinParams) { x.Resync = &leaf }
	check(t, p[1].enter(id, p[1].external(id, resync)))
	p[1].say(id, "back")
	agree(t, id, p...)
	for range 2 {
		check(t, p[1].enter(id, p[1].external(id, resync)))
	}
	p[1].refused(id, request(p[1].external(id, resync)), delivery.CodeSlowDown)
}

func TestRevokedDeviceIsRemovedFromRooms(t *testing.T) { eachSuite(t, revokedDeviceIsRemovedFromRooms) }

func revokedDeviceIsRemovedFromRooms(t *testing.T, w *world) {
	in := w.start()
	p := in.people("ada", "bob")
	laptop := in.member(p[1].owner.attest(t, "laptop"))
	id := group(t, p...)
	check(t, laptop.enter(id, laptop.external(id)))
	for _, m := range p {
		m.sync(id)
	}
	ring := p[0].connect(t)
	r := laptop.revocation(t, p[1].owner)
	check(t, p[1].json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: r.Bytes()}, nil))
	if f, ok := ring.next().(*delivery.EntryFrame); !ok || f.Entry.Kind != delivery.KindProposal {
		t.Fatalf("%+v", f)
	}
	_, err := p[0].post(id, delivery.AppendRequest{Entry: p[0].seal(id, "x")})
	wantCode(t, err, delivery.CodeCommitFirst)
	// An external commit drops the Remove, and the home proposes it again.
	phone := in.member(p[0].owner.attest(t, "phone"))
	check(t, phone.enter(id, phone.external(id)))
	if f, ok := ring.next().(*delivery.EntryFrame); !ok || f.Entry.Kind != delivery.KindCommit {
		t.Fatalf("%+v", f)
	}
	if f, ok := ring.next().(*delivery.EntryFrame); !ok || f.Entry.Kind != delivery.KindProposal {
		t.Fatalf("%+v", f)
	}
	p[0].commit(id)
	p[0].say(id, "without the laptop")
	agree(t, id, p[0], p[1], phone)
	room, err := policy.RoomOf(p[1].in(id).group.Context().Extensions)
	check(t, err)
	if !room.Revocations.Covers(p[1].owner.id, laptop.id()) {
		t.Error("the revocation is not in the room")
	}
	owed, err := w.store.RevokedMembers(t.Context(), delivery.Membership{}, 10)
	check(t, err)
	if len(owed) != 0 {
		t.Errorf("still owed: %+v", owed)
	}
}

// TestSleepingRoomsHideNoRemoval: a room that holds its removal and has nobody
// awake to commit it stays owed; the removals of other rooms are proposed all the
// same.
func TestSleepingRoomsHideNoRemoval(t *testing.T) {
	w := newWorld(t)
	w.config.RemovalBatch = 1
	in := w.start()
	p := in.people("ada", "bob")
	laptop := in.member(p[1].owner.attest(t, "laptop"))
	var rooms []delivery.RoomID
	for range 4 {
		id := group(t, p...)
		check(t, laptop.enter(id, laptop.external(id)))
		rooms = append(rooms, id)
		for _, m := range p {
			m.sync(id)
		}
	}
	r := laptop.revocation(t, p[1].owner)
	check(t, p[1].json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: r.Bytes()}, nil))
	check(t, in.ProposeRemovals(t.Context()))
	for n, id := range rooms {
		if h := p[0].head(id); len(h.Proposals) != 1 {
			t.Errorf("room %d holds %d proposals", n, len(h.Proposals))
		}
	}
}

func TestTreeIsKeptForWhoHasNotJoined(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob")
	id := p[0].create(delivery.RoomGroup)
	p[0].commit(id, p[0].adding(id, p[1].owner)...)
	for range 3 {
		p[0].commit(id)
	}
	if got := p[1].join(); len(got) != 1 {
		t.Fatal("not joined")
	}
	agree(t, id, p...)
	// Acknowledged: the Welcome is gone, and with it what is kept for it.
	if _, err := in.w.store.Welcome(t.Context(), id, 1, p[1].id()); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("the Welcome is kept: %v", err)
	}
	_, err := p[1].call(delivery.RouteTree, nil, "?epoch=99", id.String())
	wantCode(t, err, delivery.CodeTrimmed)
}

func TestBlobsOfAnEntry(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p[:2]...)
	blob := p[0].blob(t, []byte("ciphertext"))
	_, err := p[1].call(delivery.RouteBlob, nil, "", blob.String())
	wantCode(t, err, delivery.CodeNotFound)
	_, err = p[0].post(id, delivery.AppendRequest{Entry: p[0].seal(id, "a photo"), Blobs: []delivery.BlobID{blob}})
	check(t, err)
	got, err := p[1].call(delivery.RouteBlob, nil, "", blob.String())
	check(t, err)
	if string(got) != "ciphertext" {
		t.Errorf("%q", got)
	}
	_, err = p[2].call(delivery.RouteBlob, nil, "", blob.String())
	wantCode(t, err, delivery.CodeNotFound)
	_, err = p[0].post(id, delivery.AppendRequest{Entry: p[0].seal(id, "x"), Blobs: []delivery.BlobID{{9}}})
	wantCode(t, err, delivery.CodeRefused)
	// The blob goes with its entry.
	in.w.clock.add(in.Retention + looseBlobs)
	check(t, in.Sweep(t.Context()))
	check(t, p[1].login())
	_, err = p[1].call(delivery.RouteBlob, nil, "", blob.String())
	wantCode(t, err, delivery.CodeNotFound)
	if _, err := in.w.blobs.Size(t.Context(), blob); err == nil {
		t.Error("the bytes stay")
	}
	_, err = p[1].log(id, p[1].in(id).seq)
	if e := wantCode(t, err, delivery.CodeTrimmed); e.Seq != 3 {
		t.Errorf("%+v", e)
	}
}

// TestOnlyReadersReferToABlob: an entry gives its room the blobs that it refers
// to, so who may not read one refers to none: knowing its id is not enough, also
// for who was in the room and is out.
func TestOnlyReadersReferToABlob(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p[:2]...)
	own := p[2].create(delivery.RoomGroup)
	blob := p[0].blob(t, []byte("ciphertext"))
	refer := func(m *member, room delivery.RoomID) error {
		_, err := m.post(room, delivery.AppendRequest{Entry: m.seal(room, "look"), Blobs: []delivery.BlobID{blob}})
		return err
	}
	before := w.fingerprint(t, own)
	wantCode(t, refer(p[2], own), delivery.CodeRefused)
	if w.fingerprint(t, own) != before {
		t.Error("a refused append changed the room")
	}
	_, err := p[2].call(delivery.RouteBlob, nil, "", blob.String())
	wantCode(t, err, delivery.CodeNotFound)
	check(t, refer(p[0], id))
	// A member forwards it by referring again.
	p[1].sync(id)
	bobs := p[1].create(delivery.RoomGroup)
	check(t, refer(p[1], bobs))
}

func TestListingsAndAsking(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p[:2]...)
	body := delivery.ListingBody{Room: id, Title: "Tea", About: "and biscuits"}
	wantCode(t, p[1].json(delivery.RouteList, body, nil, id.String()), delivery.CodeRefused)
	wantCode(t, p[2].json(delivery.RouteList, body, nil, id.String()), delivery.CodeNotFound)
	wantCode(t, p[2].json(delivery.RouteAsk, delivery.AskRequest{}, nil, id.String()), delivery.CodeNotFound)
	check(t, p[0].json(delivery.RouteList, body, nil, id.String()))
	raw, err := p[2].call(delivery.RouteListings, nil, "?query=biscuit")
	check(t, err)
	var l delivery.ListingsResponse
	check(t, unmarshal(raw, &l))
	if len(l.Listings) != 1 || l.Listings[0].Members != 2 {
		t.Fatalf("%+v", l)
	}
	ring := p[0].connect(t)
	check(t, p[2].json(delivery.RouteAsk, delivery.AskRequest{Note: "may I?"}, nil, id.String()))
	check(t, p[2].json(delivery.RouteAsk, delivery.AskRequest{Note: "may I?"}, nil, id.String()))
	if _, ok := ring.next().(*delivery.MailFrame); !ok {
		t.Error("no ring")
	}
	var mail delivery.MailResponse
	check(t, p[0].json(delivery.RouteMailbox, nil, &mail))
	asks := slices.DeleteFunc(mail.Items, func(v delivery.MailView) bool { return v.Kind != delivery.MailAsk })
	if len(asks) != 1 || !bytes.Contains(asks[0].Payload, []byte("may I?")) {
		t.Errorf("%+v", mail)
	}
	wantCode(t, p[1].json(delivery.RouteAsk, delivery.AskRequest{}, nil, id.String()), delivery.CodeConflict)
	check(t, p[0].json(delivery.RouteUnlist, nil, nil, id.String()))
	wantCode(t, p[2].json(delivery.RouteAsk, delivery.AskRequest{}, nil, id.String()), delivery.CodeNotFound)
}

func TestReportAndSuccession(t *testing.T) { eachSuite(t, reportAndSuccession) }

func reportAndSuccession(t *testing.T, w *world) {
	in := w.start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p...)
	a := p[0].commit(id)
	bad := delivery.ReportRequest{Seq: a.Seq, Epoch: 1, Reason: "path_secret"}
	check(t, p[1].json(delivery.RouteReport, bad, nil, id.String()))
	bad.Epoch = 7
	wantCode(t, p[1].json(delivery.RouteReport, bad, nil, id.String()), delivery.CodeBadRequest)

	p[1].sync(id)
	next := p[1].successor(id)
	succeed := func(m *member) error { return m.succeed(id, next) }
	wantCode(t, succeed(p[2]), delivery.CodeRefused) // not in the successor
	wantCode(t, succeed(p[1]), delivery.CodeRefused) // nobody closes a room of three on their own word
	bad.Epoch = 1
	check(t, p[2].json(delivery.RouteReport, bad, nil, id.String()))
	check(t, succeed(p[1])) // reported by half of the others
	check(t, succeed(p[1]))
	_, err := p[0].post(id, delivery.AppendRequest{Entry: p[0].seal(id, "x")})
	wantCode(t, err, delivery.CodeSucceeded)
	h := p[0].head(id)
	if h.Status != delivery.RoomSucceeded || h.Successor == nil || *h.Successor != next {
		t.Errorf("%+v", h)
	}
	_, err = p[2].log(id, 0)
	check(t, err)
}

func TestOnlyAnAdminClosesAWorkingRoom(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "eve", "joe", "kim")
	id := group(t, p...)
	wantCode(t, p[1].succeed(id, p[1].successor(id)), delivery.CodeRefused)
}

func TestEphemeralFramesPassThrough(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p[:2]...)
	from, to, stranger := p[0].connect(t), p[1].connect(t), p[2].connect(t)
	f := &delivery.Ephemeral{Room: id, Epoch: 1, Leaf: 0, Payload: []byte("typing")}
	forged := &delivery.Ephemeral{Room: id, Epoch: 1, Leaf: 1, Payload: []byte("forged")}
	late := &delivery.Ephemeral{Room: id, Epoch: 0, Leaf: 0, Payload: []byte("late")}
	for _, x := range []any{forged, late, f} {
		from.send(x)
	}
	stranger.send(&delivery.Ephemeral{Room: id, Epoch: 1, Leaf: 0, Payload: []byte("stranger")})
	got, ok := to.next().(*delivery.Ephemeral)
	if !ok || string(got.Payload) != "typing" {
		t.Errorf("%+v", got)
	}
}

func TestSocketCarriesEntriesAndCatchesUp(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	p[0].say(id, "one")
	k := p[1].connect(t, delivery.Cursor{Room: id, After: 1})
	if g, ok := k.next().(*delivery.Gap); !ok || g.Room != id || g.From != 1 {
		t.Fatalf("%+v", g)
	}
	a := p[0].say(id, "two")
	f, ok := k.next().(*delivery.EntryFrame)
	if !ok || f.Entry.Seq != a.Seq || f.Room != id || len(f.Entry.Bytes) == 0 {
		t.Fatalf("%+v", f)
	}
	p[1].sync(id)
}
