package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// Refusals of single requests, each by the check that is meant: many answer with the
// same code, so that the detail has to say why.

func wantRefusal(t testing.TB, name string, err error, code delivery.Code, why string) {
	t.Helper()
	var e *delivery.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Detail, why) {
		t.Errorf("%s: %v; want %s that says %q", name, err, code, why)
	}
}

// message is an MLSMessage of no use here.
func message() []byte {
	return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatWelcome, Welcome: &wire.Welcome{CipherSuite: 1}})
}

func TestPublicationIsRefused(t *testing.T) {
	in := newWorld(t).start()
	ada := in.member(newPerson("ada").attest(t, "ada"))
	publish := func(packages ...[]byte) error {
		return ada.json(delivery.RoutePublish, delivery.PublishRequest{Packages: packages}, nil)
	}
	good := ada.bundle()
	foreign := good.KeyPackage
	foreign.CipherSuite = 2
	ends := ada.now().Add(30*time.Minute + policy.MaxLifetime)
	late := ada.bundle(func(p *mls.KeyPackageParams) { p.NotBefore, p.NotAfter = ends.Add(-policy.MaxLifetime), ends })
	over := ada.bundle(func(p *mls.KeyPackageParams) { p.NotBefore, p.NotAfter = ada.now().Add(-time.Hour), ada.now() })
	phone := in.member(ada.owner.attest(t, "ada's phone"))
	for name, c := range map[string]struct {
		err  error
		code delivery.Code
		why  string
	}{
		"nothing":               {publish(), delivery.CodeBadRequest, "publish 1 to 100"},
		"too many":              {publish(make([][]byte, delivery.MaxKeyPackages+1)...), delivery.CodeBadRequest, "publish 1 to 100"},
		"another message":       {publish(message()), delivery.CodeBadRequest, "not an MLSMessage with a KeyPackage"},
		"a suite of no room":    {publish(wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatKeyPackage, KeyPackage: &foreign})), delivery.CodeRefused, "suite"},
		"my other device's":     {publish(phone.bundle().Message()), delivery.CodeRefused, "another device's"},
		"ends too late":         {publish(late.Message()), delivery.CodeBadRequest, "within 120 days"},
		"has ended":             {publish(over.Message()), delivery.CodeBadRequest, "does not verify"},
		"a number of no suite":  {once(ada, delivery.RouteKeyCount, nil, "?suite=65536"), delivery.CodeBadRequest, "not a cipher suite"},
		"nobody's packages":     {claimOf(ada, newPerson("nobody")), delivery.CodeNotFound, "no device of this identity"},
		"packages for no room":  {once(ada, delivery.RouteClaim, []byte(`{"suite":1}`), ""), delivery.CodeBadRequest, "names the room"},
		"packages of no suite":  {once(ada, delivery.RouteClaim, []byte(`{"suite":2}`), ""), delivery.CodeBadRequest, "no room has this cipher suite"},
		"mail without a number": {ada.json(delivery.RouteAck, delivery.AckRequest{IDs: []string{"0"}}, nil), delivery.CodeBadRequest, "not a number"},
		"no mail":               {ada.json(delivery.RouteAck, delivery.AckRequest{}, nil), delivery.CodeBadRequest, "1 to 1000"},
		"too much mail":         {ada.json(delivery.RouteAck, delivery.AckRequest{IDs: strings.Split(strings.Repeat("1,", 1000)+"1", ",")}, nil), delivery.CodeBadRequest, "1 to 1000"},
	} {
		wantRefusal(t, name, c.err, c.code, c.why)
	}
	// What one device may leave here of one suite.
	stored := make([]delivery.StoredKeyPackage, maxPackages)
	for i := range stored {
		stored[i] = delivery.StoredKeyPackage{
			Ref: fmt.Appendf(nil, "%032d", i), Device: ada.id(), Identity: ada.owner.id, Suite: uint16(in.w.suite), Bytes: []byte{1},
			NotAfterMS: ada.now().Add(time.Hour).UnixMilli(),
		}
	}
	check(t, in.w.store.PublishKeyPackages(t.Context(), stored))
	wantRefusal(t, "one more than may lie here", publish(good.Message()), delivery.CodeTooLarge, "at most 500")
	check(t, publish(ada.bundle(func(p *mls.KeyPackageParams) { p.LastResort = true }).Message()))
}

func once(d interface {
	call(pattern string, body []byte, query string, args ...string) ([]byte, error)
}, pattern string, body []byte, query string, args ...string) error {
	_, err := d.call(pattern, body, query, args...)
	return err
}

func claimOf(m *member, who person) error {
	room := m.create(delivery.RoomGroup)
	return m.json(delivery.RouteClaim, delivery.ClaimRequest{Identity: who.id, Suite: uint16(m.at.w.suite), Room: room}, nil)
}

func TestFoundingIsRefused(t *testing.T) {
	in := newWorld(t).start()
	ada, bob := in.member(newPerson("ada").attest(t, "ada")), in.member(newPerson("bob").attest(t, "bob"))
	post := func(m *member, body []byte) error { return once(m, delivery.RouteCreateRoom, body, "") }
	// edited is a sound request whose GroupInfo is changed, not signed again.
	edited := func(edit func(*wire.GroupInfo)) error {
		_, body := ada.creation(delivery.RoomGroup)
		req, err := delivery.ParseCreateRoom(body)
		check(t, err)
		var m wire.MLSMessage
		check(t, wire.Unmarshal(req.GroupInfo, &m))
		edit(m.GroupInfo)
		req.GroupInfo = wire.Marshal(&m)
		return post(ada, req.AppendTo(nil))
	}
	// founded makes a request of a group that is sound by RFC 9420.
	founded := func(edit func(*policy.Creation)) (delivery.RoomID, []byte) {
		id := newRoomID(t)
		c := policy.Creation{Room: id, Kind: delivery.RoomGroup, Domain: "localhost", SenderKey: in.SenderKey(), Creator: ada.owner.id, Suite: in.w.suite}
		edit(&c)
		x, err := c.Extensions()
		check(t, err)
		return id, ada.found(id, x)
	}
	_, otherHome := founded(func(c *policy.Creation) { c.SenderKey = bytes.Repeat([]byte{1}, 32) })
	_, withoutAda := founded(func(c *policy.Creation) { c.Creator = bob.owner.id })
	// Two are in it from the start.
	id, _ := founded(func(c *policy.Creation) { c.Others = []identity.PublicKey{bob.owner.id} })
	added, err := ada.in(id).group.Commit(mls.CommitParams{Now: ada.now(), Random: bytes.NewReader(make([]byte, 1<<12)), Proposals: []wire.Proposal{mls.AddProposal(&bob.bundle().KeyPackage)}})
	check(t, err)
	two, err := added.Apply(ada.in(id).group, ada.now())
	check(t, err)
	pair := (&delivery.CreateRoomRequest{GroupInfo: added.GroupInfo, Tree: two.Next.RatchetTree()}).AppendTo(nil)
	_, adas := ada.creation(delivery.RoomGroup)

	for name, c := range map[string]struct {
		err  error
		code delivery.Code
		why  string
	}{
		"another message":      {post(ada, (&delivery.CreateRoomRequest{GroupInfo: message(), Tree: []byte{0}}).AppendTo(nil)), delivery.CodeBadRequest, "not an MLSMessage with a GroupInfo"},
		"no room's id":         {edited(func(i *wire.GroupInfo) { i.GroupContext.GroupID = i.GroupContext.GroupID[1:] }), delivery.CodeBadRequest, "not a room id"},
		"nobody could come in": {edited(func(i *wire.GroupInfo) { i.Extensions = nil }), delivery.CodeBadRequest, "no external_pub"},
		"the tree in it": {edited(func(i *wire.GroupInfo) {
			i.Extensions = append(i.Extensions, wire.Extension{ExtensionType: wire.ExtensionTypeRatchetTree})
		}), delivery.CodeBadRequest, "beside the GroupInfo"},
		"not signed":         {edited(func(i *wire.GroupInfo) { i.Signature[0] ^= 1 }), delivery.CodeBadRequest, "does not verify"},
		"another home":       {post(ada, otherHome), delivery.CodeRefused, policy.ErrExtensions.Error()},
		"of others":          {post(ada, withoutAda), delivery.CodeRefused, policy.ErrRoster.Error()},
		"two from the start": {post(ada, pair), delivery.CodeRefused, "one leaf"},
		"another's leaf":     {post(bob, adas), delivery.CodeRefused, "another device's"},
	} {
		wantRefusal(t, name, c.err, c.code, c.why)
	}
	// The same again gets the same answer, another group of the same id none.
	room, body := ada.creation(delivery.RoomGroup)
	check(t, post(ada, body))
	check(t, post(ada, body))
	again := ada.found(room, ada.in(room).group.Context().Extensions)
	wantRefusal(t, "an id that is taken", post(ada, again), delivery.CodeConflict, "of this id exists")
}

func TestReportIsRefused(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p[:2]...)
	said := p[0].say(id, "hello")
	commit := p[0].commit(id)
	p[0].commit(id, p[0].adding(id, p[2].owner)...)
	p[2].join()
	report := func(m *member, seq, epoch uint64, reason string) error {
		return m.json(delivery.RouteReport, delivery.ReportRequest{Seq: seq, Epoch: epoch, Reason: reason}, nil, id.String())
	}
	check(t, report(p[1], commit.Seq, 1, "path_secret"))
	wantRefusal(t, "a long reason", report(p[1], commit.Seq, 1, strings.Repeat("x", 65)), delivery.CodeBadRequest, "a reason is")
	wantRefusal(t, "of before its time", report(p[2], commit.Seq, 1, "x"), delivery.CodeNotFound, "")
	wantRefusal(t, "nothing stands there", report(p[1], 100, 1, "x"), delivery.CodeBadRequest, "no commit of this epoch")
	wantRefusal(t, "a message", report(p[1], said.Seq, 1, "x"), delivery.CodeBadRequest, "no commit of this epoch")
	removal := p[0].commit(id, mls.RemoveProposal(1))
	check(t, report(p[1], commit.Seq, 1, "x")) // of when it was in
	wantRefusal(t, "by whom it removed", report(p[1], removal.Seq, removal.Epoch-1, "x"), delivery.CodeNotFound, "")
	check(t, report(p[2], removal.Seq, removal.Epoch-1, "x"))
}

func TestListingIsRefused(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob", "eve")
	id := group(t, p[:2]...)
	direct := p[0].create(delivery.RoomDirect, p[1])
	list := func(room delivery.RoomID, title, about string) error {
		return p[0].json(delivery.RouteList, delivery.ListingBody{Room: room, Title: title, About: about}, nil, room.String())
	}
	const bounds = "a title has 1 to 256 bytes"
	for name, err := range map[string]error{
		"no title": list(id, "", ""), "a long title": list(id, strings.Repeat("x", maxTitle+1), ""),
		"a long description": list(id, "x", strings.Repeat("x", maxAbout+1)),
	} {
		wantRefusal(t, name, err, delivery.CodeBadRequest, bounds)
	}
	wantRefusal(t, "a direct room", list(direct, "x", ""), delivery.CodeRefused, "only groups")
	check(t, p[0].json(delivery.RouteUnlist, nil, nil, id.String())) // listed or not
	for _, query := range []string{"?query=" + strings.Repeat("x", maxTitle+1), "?offset=100001"} {
		wantRefusal(t, query[:8], once(p[1], delivery.RouteListings, nil, query), delivery.CodeBadRequest, "too large")
	}
	room, err := policy.RoomOf(p[0].in(id).group.Context().Extensions)
	check(t, err)
	listed := room.Base
	listed.Discoverable = true
	u, _ := room.Participants.Adding(policy.RoleBanned, "localhost", p[2].owner.id)
	p[0].commit(id, mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes()), mls.AppDataUpdateProposal(policy.ComponentBasePolicy, listed.Bytes()))
	check(t, list(id, "x", "y"))
	ask := func(note string) error {
		return p[2].json(delivery.RouteAsk, delivery.AskRequest{Note: note}, nil, id.String())
	}
	wantRefusal(t, "a long note", ask(strings.Repeat("x", maxNote+1)), delivery.CodeBadRequest, "a note has")
	wantRefusal(t, "banned", ask("please"), delivery.CodeRefused, "may not join")
}

func TestAccountRequestsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.config.Limits.Archive.Keys, w.config.MaxLooseBlobs = 1, 100
	in := w.start()
	d := in.enrolled("ada")
	wrap := func(generation string, body []byte) error {
		return once(d, delivery.RouteWrap, body, "", d.id().String(), generation)
	}
	check(t, wrap("1", []byte("w")))
	segment := func(query, name string) error {
		return once(d, delivery.RouteArchiveSet, sealedAs(1, "x"), query, name)
	}
	login := func(edit func(*delivery.SessionRequest)) error {
		r := delivery.SessionRequest{Device: d.id(), Challenge: make([]byte, identity.ChallengeSize), Signature: make([]byte, identity.SignatureSize), Have: make([]byte, 16), Want: make([]byte, 16)}
		edit(&r)
		return d.json(delivery.RouteLogin, r, nil)
	}
	stranger := newPerson("nobody").attest(t, "nobody")
	stranger.at = in
	bob := in.enrolled("bob")
	named := func(d *device) error {
		r, err := identity.SignUsername(identity.UsernameFields{Identity: d.owner.id, Username: "ada_l", Version: 1, IssuedAt: 1}, d.owner.key)
		check(t, err)
		return d.json(delivery.RouteSetProfile, delivery.ProfileBody{Record: r.Bytes()}, nil)
	}
	check(t, named(d))
	for name, c := range map[string]struct {
		err  error
		code delivery.Code
		why  string
	}{
		"another's name":       {named(bob), delivery.CodeConflict, "the username is taken"},
		"a body for nothing":   {once(d, delivery.RouteDevices, []byte("x"), ""), delivery.CodeTooLarge, "at most 0"},
		"an empty snapshot":    {d.json(delivery.RouteSetSnap, delivery.SnapshotBody{}, nil), delivery.CodeBadRequest, "no generation"},
		"an empty segment":     {once(d, delivery.RouteArchiveSet, nil, "", "x"), delivery.CodeBadRequest, "no generation"},
		"a segment of no name": {once(d, delivery.RouteArchiveGet, nil, "", ""), delivery.CodeNotFound, ""},
		"a long name":          {segment("", strings.Repeat("x", delivery.MaxSegmentName+1)), delivery.CodeBadRequest, "1 to 128 bytes"},
		"a short hash":         {segment("?replaces="+strings.Repeat("0", 62), "x"), delivery.CodeBadRequest, "SHA-256"},
		"a long hash":          {segment("?replaces="+strings.Repeat("0", 66), "x"), delivery.CodeBadRequest, "SHA-256"},
		"an empty key":         {wrap("1", nil), delivery.CodeBadRequest, "an empty key"},
		"a key too many":       {wrap("2", []byte("w")), delivery.CodeTooLarge, "at most 1 keys"},
		"a key for nobody":     {once(d, delivery.RouteWrap, []byte("w"), "", stranger.id().String(), "1"), delivery.CodeNotFound, ""},
		"a long prefix":        {once(d, delivery.RoutePeople, nil, "?prefix="+strings.Repeat("x", identity.MaxUsername+1)), delivery.CodeBadRequest, "a prefix has"},
		"a short challenge":    {login(func(r *delivery.SessionRequest) { r.Challenge = r.Challenge[1:] }), delivery.CodeBadRequest, "wrong size"},
		"a short signature":    {login(func(r *delivery.SessionRequest) { r.Signature = r.Signature[1:] }), delivery.CodeBadRequest, "wrong size"},
		"a short counter":      {login(func(r *delivery.SessionRequest) { r.Have = r.Have[1:] }), delivery.CodeBadRequest, "wrong size"},
		"a short next counter": {login(func(r *delivery.SessionRequest) { r.Want = r.Want[1:] }), delivery.CodeBadRequest, "wrong size"},
		"not enrolled":         {stranger.login(), delivery.CodeNotFound, "enrol it first"},
	} {
		wantRefusal(t, name, c.err, c.code, c.why)
	}
	// Nobody has an unknown name, and that is no refusal.
	check(t, once(d, delivery.RoutePeople, nil, "?username=nobody"))
	older := newPerson("ada").attest(t, "ada", func(a *identity.Attestation) { a.Version = 0 })
	older.at = in
	wantRefusal(t, "an older attestation", older.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: older.cred.Bytes()}, nil), delivery.CodeConflict, "newer attestation")
	// A token counts behind its scheme.
	req, err := http.NewRequest("GET", in.http.URL+"/v1/devices", nil)
	check(t, err)
	req.Header.Set("Authorization", d.token)
	_, err = do(req)
	wantRefusal(t, "a token alone", err, delivery.CodeLogIn, "no session")
	// A blob goes on where it stands.
	var v delivery.BlobView
	check(t, d.json(delivery.RouteUpload, delivery.BlobRequest{Size: 10}, &v))
	err = d.json(delivery.RouteUpload, delivery.BlobRequest{Size: 1000}, nil)
	wantRefusal(t, "more than may lie loose", err, delivery.CodeTooLarge, "that no entry refers to")
	_, err = d.upload(v.ID, -1, strings.NewReader("x"))
	wantRefusal(t, "an offset below the beginning", err, delivery.CodeBadRequest, "is not a number")
}

// roomy is a medium with 1 TiB of place.
type roomy struct{ delivery.BlobStore }

func (roomy) Free(context.Context) (int64, error) { return 1 << 40, nil }

func TestBlobWithoutPlace(t *testing.T) {
	w := newWorld(t)
	w.config.MaxBlob, w.config.MaxLooseBlobs = 1<<50, 1<<50
	w.blobs = roomy{w.blobs}
	d := w.start().enrolled("ada")
	for size, full := range map[int64]bool{1 << 40: false, 1<<40 + 1: true} {
		err := d.json(delivery.RouteUpload, delivery.BlobRequest{Size: size}, nil)
		if !full {
			check(t, err)
		} else {
			wantRefusal(t, "no place", err, delivery.CodeFull, "disk is full")
		}
	}
}

// TestEnvelopeStandsForADevice: one of a member, and beside no second one.
func TestEnvelopeStandsForADevice(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	w.clock.add(10 * time.Minute)
	signer := newPerson("ada").attest(t, "bot", func(a *identity.Attestation) { a.Role = identity.RoleBotSigner })
	a := signer.cred.Attestation()
	check(t, w.store.Enrol(t.Context(), delivery.Device{
		ID: a.DeviceID, Identity: a.Identity, Key: a.DevicePubkey, Role: a.Role, Version: 1, Credential: signer.cred.Bytes(),
	}, in.deviceBound()))
	nonce := byte(0)
	send := func(d *device, method, target string, headers int) error {
		nonce++
		h, err := identity.Seal(d.key, identity.EnvelopeRequest{
			Home: testHome, Method: method, Target: target, IssuedAt: uint64(w.clock.Now().Unix()), Nonce: identity.Nonce{nonce},
		})
		check(t, err)
		req, err := http.NewRequest(method, in.http.URL+target, nil)
		check(t, err)
		for range headers {
			req.Header.Add(delivery.HeaderEnvelope, h)
		}
		_, err = do(req)
		return err
	}
	ada := in.enrolled("ada")
	check(t, send(ada, "GET", "/v1/devices", 1))
	wantRefusal(t, "two envelopes", send(ada, "GET", "/v1/devices", 2), delivery.CodeBadRequest, "more than one")
	wantRefusal(t, "a request signer", send(signer, "GET", "/v1/devices", 1), delivery.CodeRefused, "a member's device")
	wantRefusal(t, "no session to end", send(ada, "DELETE", "/v1/sessions", 1), delivery.CodeBadRequest, "no session to end")
}

// TestFaultsSayWhatToDo: what a store answers becomes one of the codes.
func TestFaultsSayWhatToDo(t *testing.T) {
	in := newWorld(t).start()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		code delivery.Code
		why  string
	}{
		{t.Context(), delivery.ErrNotFound, delivery.CodeNotFound, "no such thing"},
		{t.Context(), delivery.ErrFull, delivery.CodeFull, "disk is full"},
		{t.Context(), delivery.ErrLimit, delivery.CodeTooLarge, "over a limit"},
		{t.Context(), delivery.ErrRevoked, delivery.CodeRevoked, "revoked"},
		{t.Context(), delivery.ErrExists, delivery.CodeConflict, "exists already"},
		{t.Context(), delivery.ErrChanged, delivery.CodeConflict, "exists already"},
		{gone, errors.New("cut"), delivery.CodeRetry, "given up"},
		{t.Context(), errors.New("broken"), delivery.CodeRetry, "could not answer"},
	} {
		wantRefusal(t, c.err.Error(), in.refusal(&call{Context: c.ctx}, fmt.Errorf("store: %w", c.err)), c.code, c.why)
	}
}

// TestConfigIsRefused: what a service cannot be without.
func TestConfigIsRefused(t *testing.T) {
	w := newWorld(t)
	whole := Config{Store: w.store, Blobs: w.blobs, Bus: w.bus, Buckets: w.buckets, Home: testHome}
	for name, c := range map[string]struct {
		edit func(*Config)
		why  string
	}{
		"no store":       {func(c *Config) { c.Store = nil }, "are needed"},
		"no blobs":       {func(c *Config) { c.Blobs = nil }, "are needed"},
		"no bus":         {func(c *Config) { c.Bus = nil }, "are needed"},
		"no buckets":     {func(c *Config) { c.Buckets = nil }, "are needed"},
		"no home":        {func(c *Config) { c.Home = identity.Home{} }, "home label"},
		"no such rule":   {func(c *Config) { c.Rules = map[Rule]Mode{"x": ModeOn} }, "does not exist"},
		"no such mode":   {func(c *Config) { c.Rules = map[Rule]Mode{RuleSucceed: "x"} }, "not off, shadow or on"},
		"an empty mode ": {func(c *Config) { c.Rules = map[Rule]Mode{RuleSucceed: ""} }, "not off, shadow or on"},
	} {
		config := whole
		c.edit(&config)
		if err := func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			_, err = New(t.Context(), config)
			return err
		}(); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
