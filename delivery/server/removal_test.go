package server

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
)

// TestAttackEnteringPastARemoval: while a member's removal of somebody is held, no
// other device of theirs enters by external commit and makes it void; nobody else
// enters before it was committed.
func TestAttackEnteringPastARemoval(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "carl")
	id := group(t, p...)
	bobs, carls := in.member(p[1].owner.attest(t, "bob's laptop")), in.member(p[2].owner.attest(t, "carl's laptop"))
	_, err := p[0].propose(id, mls.RemoveProposal(p[1].in(id).group.OwnLeaf()))
	check(t, err)
	bobs.refused(id, request(bobs.external(id)), delivery.CodeRefused)
	leaf := p[1].in(id).group.OwnLeaf()
	p[1].refused(id, request(p[1].external(id, func(x *mls.ExternalJoinParams) { x.Resync = &leaf })), delivery.CodeRefused)
	early := carls.external(id)
	carls.refused(id, request(early), delivery.CodeCommitFirst)
	p[2].commit(id)
	_, err = bobs.call(delivery.RouteGroupInfo, nil, "", id.String())
	wantCode(t, err, delivery.CodeNotFound)
	check(t, carls.enter(id, carls.external(id)))
	agree(t, id, p[0], p[2], carls)
}

// TestAttackOneDeviceOfSomebody: neither an admin nor the account's own other
// device removes one device of several without its owner's revocation, by value or
// by reference, nor does who honours a SelfRemove leave the others in.
func TestAttackOneDeviceOfSomebody(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	laptop := in.member(p[1].owner.attest(t, "laptop"))
	check(t, laptop.enter(id, laptop.external(id)))
	p[0].sync(id)
	p[1].sync(id)
	phone, other := p[1].in(id).group.OwnLeaf(), laptop.in(id).group.OwnLeaf()
	p[0].refused(id, request(p[0].prepare(id, mls.RemoveProposal(phone))), delivery.CodeRefused)
	laptop.refused(id, request(laptop.prepare(id, mls.RemoveProposal(phone))), delivery.CodeRefused)
	for _, m := range []*member{p[0], laptop} {
		_, err := m.propose(id, mls.RemoveProposal(phone))
		wantCode(t, err, delivery.CodeRefused)
	}
	_, err := p[1].propose(id, mls.SelfRemoveProposal())
	check(t, err)
	p[0].sync(id)
	p[0].refused(id, request(p[0].prepare(id)), delivery.CodeRefused)
	p[0].commit(id, mls.RemoveProposal(other))
	if h := p[0].head(id); len(h.Proposals) != 0 {
		t.Errorf("%d proposals are held", len(h.Proposals))
	}
	if members, err := in.w.store.Members(t.Context(), id); err != nil || len(members) != 1 {
		t.Errorf("%d members, %v", len(members), err)
	}
}

// TestAttackRoomOfAnotherDomain: a room that calls itself one of another service's
// is not made.
func TestAttackRoomOfAnotherDomain(t *testing.T) {
	in := newWorld(t).start()
	ada := in.people("ada")[0]
	id, err := delivery.NewRoomID(testHome, rand.Reader)
	check(t, err)
	c := policy.Creation{Room: id, Kind: delivery.RoomGroup, Domain: "bank.example", SenderKey: in.SenderKey(), Creator: ada.owner.id, Suite: in.w.suite}
	x, err := c.Extensions()
	check(t, err)
	_, err = ada.call(delivery.RouteCreateRoom, ada.found(id, x), "")
	if e := wantCode(t, err, delivery.CodeRefused); !strings.Contains(e.Detail, "mimi://localhost/r/") {
		t.Errorf("the refusal says %q", e.Detail)
	}
	if _, err := in.w.store.Room(t.Context(), id); err == nil {
		t.Error("the room was made")
	}
}

// TestAttackCrowdedRoom: nobody lists more people in a room than the service allows,
// neither when it is made nor later, member or not. The refusal says how many.
func TestAttackCrowdedRoom(t *testing.T) {
	w := newWorld(t)
	w.config.MaxMembers = 3
	in := w.start()
	p := in.people("ada", "bob", "carl", "dora")
	crowd := func() []byte {
		_, body := p[0].creation(delivery.RoomGroup, p[1:]...)
		return body
	}
	_, err := p[0].call(delivery.RouteCreateRoom, crowd(), "")
	if e := wantCode(t, err, delivery.CodeRefused); !strings.Contains(e.Detail, "at most 3") {
		t.Errorf("the refusal says %q", e.Detail)
	}
	id := group(t, p[:2]...)
	room, err := policy.RoomOf(p[1].sync(id).group.Context().Extensions)
	check(t, err)
	list := func(people ...*member) delivery.AppendRequest {
		var ids []identity.PublicKey
		for _, m := range people {
			ids = append(ids, m.owner.id)
		}
		u, _ := room.Participants.Adding(policy.RoleMember, "localhost", ids...)
		return request(p[1].prepare(id, mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes())))
	}
	p[1].refused(id, list(p[2], p[3]), delivery.CodeRefused)
	_, err = p[1].post(id, list(p[2]))
	check(t, err)
}
