package server

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// Numbers that a database cannot count to. Kept, they would come back negative, or
// not at all: a log read after -1 begins before its reader was there, and one row
// with such a version spoils every list that it is in.

// TestAttackLogAfterTheEnd: who came in late asks for what is after the last number.
func TestAttackLogAfterTheEnd(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "eve")
	id := group(t, p[0])
	p[0].say(id, "before eve")
	p[0].commit(id, p[0].adding(id, p[1].owner)...)
	p[1].join()
	for _, after := range []uint64{delivery.MaxNumber + 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64 - 1, math.MaxUint64} {
		page, err := p[1].log(id, after)
		if wantCode(t, err, delivery.CodeBadRequest); len(page.Entries) > 0 {
			t.Errorf("after %d: %d entries", after, len(page.Entries))
		}
	}
	if page, err := p[1].log(id, delivery.MaxNumber); err != nil || len(page.Entries) > 0 {
		t.Errorf("%d entries, %v", len(page.Entries), err)
	}
}

func TestAttackVersionsPastADatabase(t *testing.T) {
	in := newWorld(t).start()
	eve := newPerson("eve")
	d := eve.attest(t, "eve", func(a *identity.Attestation) { a.Version = math.MaxInt64 + 1 })
	d.at = in
	wantCode(t, d.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: d.cred.Bytes()}, nil), delivery.CodeBadRequest)

	m := in.member(eve.attest(t, "eve's next"))
	r, err := identity.SignUsername(identity.UsernameFields{Identity: eve.id, Username: "eve", Version: math.MaxInt64 + 1, IssuedAt: 1}, eve.key)
	check(t, err)
	wantCode(t, m.json(delivery.RouteSetProfile, delivery.ProfileBody{Record: r.Bytes()}, nil), delivery.CodeBadRequest)

	_, body := m.creation(delivery.RoomGroup)
	req, err := delivery.ParseCreateRoom(body)
	check(t, err)
	var info wire.MLSMessage
	check(t, wire.Unmarshal(req.GroupInfo, &info))
	info.GroupInfo.GroupContext.Epoch = math.MaxInt64 + 1
	req.GroupInfo = wire.Marshal(&info)
	_, err = m.call(delivery.RouteCreateRoom, req.AppendTo(nil), "")
	if e := wantCode(t, err, delivery.CodeBadRequest); !strings.Contains(e.Detail, "epoch") {
		t.Error(e)
	}
	for _, query := range []string{fmt.Sprintf("?after=%d", uint64(math.MaxUint64)), "?after=-1", "?after=1e3", "?after=18446744073709551616"} {
		_, err = m.call(delivery.RouteMailbox, nil, query)
		wantCode(t, err, delivery.CodeBadRequest)
	}
}
