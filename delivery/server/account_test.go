package server

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

func TestEnrolAndLogIn(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	var devices delivery.DevicesResponse
	check(t, d.json(delivery.RouteDevices, nil, &devices))
	if len(devices.Devices) != 1 || devices.Devices[0].Device != d.id() || !bytes.Equal(devices.Devices[0].Credential, d.cred.Bytes()) {
		t.Fatalf("%+v", devices)
	}
	// Again, and with a raised version; a lower one comes too late.
	check(t, d.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: d.cred.Bytes()}, nil))
	v2 := d.owner.attest(t, "ada", func(a *identity.Attestation) { a.Version = 2 })
	check(t, d.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: v2.cred.Bytes()}, nil))
	wantCode(t, d.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: d.cred.Bytes()}, nil), delivery.CodeConflict)

	check(t, d.json(delivery.RouteLogout, nil, nil))
	wantCode(t, d.json(delivery.RouteDevices, nil, nil), delivery.CodeLogIn)
	check(t, d.login())
	in.w.clock.add(31 * 24 * time.Hour)
	wantCode(t, d.json(delivery.RouteDevices, nil, nil), delivery.CodeLogIn)
}

// TestDeviceLimits: an identity has a bounded number of devices and revocations;
// the refusal says which, and what to do. A device that is enrolled is revoked
// however many there are.
func TestDeviceLimits(t *testing.T) {
	w := newWorld(t)
	w.config.MaxDevices, w.config.MaxRevocations = 2, 3
	in := w.start()
	ada := newPerson("ada")
	enrol := func(d *device) error {
		d.at = in
		return d.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: d.cred.Bytes()}, nil)
	}
	revoke := func(d *device) error {
		d.at = in
		return d.json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: d.revocation(t, ada).Bytes()}, nil)
	}
	phone, laptop, tablet, watch := ada.attest(t, "phone"), ada.attest(t, "laptop"), ada.attest(t, "tablet"), ada.attest(t, "watch")
	check(t, enrol(phone))
	check(t, enrol(laptop))
	if e := wantCode(t, enrol(tablet), delivery.CodeRefused); !strings.Contains(e.Detail, "at most 2 devices") || !strings.Contains(e.Detail, "revoke") {
		t.Errorf("the refusal says %q", e.Detail)
	}
	check(t, enrol(phone)) // known already
	check(t, revoke(laptop))
	check(t, enrol(tablet))
	// Two devices and one revocation: there is room for the devices' own alone.
	if e := wantCode(t, revoke(watch), delivery.CodeRefused); !strings.Contains(e.Detail, ": 3") {
		t.Errorf("the refusal says %q", e.Detail)
	}
	check(t, revoke(laptop)) // known already
	check(t, revoke(tablet))
	wantCode(t, enrol(watch), delivery.CodeRefused)
	check(t, revoke(phone))
	in.enrolled("bob") // others are not touched
}

func TestEnrolRefusesWhatIsNotAttested(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	signer := newPerson("bot").attest(t, "bot", func(a *identity.Attestation) { a.Role = identity.RoleBotSigner })
	wantCode(t, d.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: signer.cred.Bytes()}, nil), delivery.CodeRefused)
	flipped := newPerson("eve").attest(t, "eve").cred.Bytes()
	flipped[len(flipped)-1] ^= 1
	wantCode(t, d.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: flipped}, nil), delivery.CodeRefused)
	wantCode(t, d.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: flipped[:50]}, nil), delivery.CodeBadRequest)
	_, err := in.store.Device(context.Background(), signer.id())
	if err == nil {
		t.Error("a request signer is enrolled")
	}
}

// TestLoginChallenge: a challenge is this service's, fresh, for one device, and
// its answer is taken once.
func TestLoginChallenge(t *testing.T) {
	in := newWorld(t).start()
	d, other := in.enrolled("ada"), in.enrolled("bob")
	ask := func() []byte {
		var c delivery.ChallengeResponse
		check(t, d.json(delivery.RouteChallenge, delivery.ChallengeRequest{Device: d.id()}, &c))
		return c.Challenge
	}
	answer := func(who *device, challenge []byte, key ed25519.PrivateKey) delivery.SessionRequest {
		sig, err := identity.SignLogin(testHome, challenge, key)
		check(t, err)
		want := who.have
		want[1]++
		return delivery.SessionRequest{Device: who.id(), Challenge: challenge, Signature: sig[:], Have: who.have[:], Want: want[:]}
	}
	c := ask()
	wantCode(t, d.json(delivery.RouteLogin, answer(other, c, other.key), nil), delivery.CodeLogIn)
	wantCode(t, d.json(delivery.RouteLogin, answer(d, c, other.key), nil), delivery.CodeRefused)
	forged := bytes.Clone(c)
	forged[0] ^= 0x80
	wantCode(t, d.json(delivery.RouteLogin, answer(d, forged, d.key), nil), delivery.CodeLogIn)
	good := answer(d, c, d.key)
	check(t, d.json(delivery.RouteLogin, good, nil))
	wantCode(t, d.json(delivery.RouteLogin, good, nil), delivery.CodeLogIn)
	late := answer(d, ask(), d.key)
	in.w.clock.add(3 * time.Minute)
	wantCode(t, d.json(delivery.RouteLogin, late, nil), delivery.CodeLogIn)
}

func TestCopiedProfileIsTold(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	stolen := *d
	check(t, d.login())
	check(t, d.login())
	if err := stolen.login(); err == nil || err.Error() != "copied" {
		t.Fatalf("got %v", err)
	}
}

// TestEnvelope: a signed request stands for a session; attack 10 of the
// research: replay, also at another instance, skew, other target, other body,
// other home, malleated signature.
func TestEnvelope(t *testing.T) {
	w := newWorld(t)
	first, second := w.start(), w.start()
	w.clock.add(10 * time.Minute) // past the birth of the nonce store
	d := first.enrolled("ada")
	nonce := byte(0)
	send := func(in *instance, edit func(*identity.EnvelopeRequest), header func(string) string, target string, body string) error {
		nonce++
		r := identity.EnvelopeRequest{Home: testHome, Method: "POST", Target: "/v1/keypackages/claim", Body: []byte(body), IssuedAt: uint64(w.clock.Now().Unix()), Nonce: identity.Nonce{nonce}}
		if edit != nil {
			edit(&r)
		}
		h, err := identity.Seal(d.key, r)
		check(t, err)
		if header != nil {
			h = header(h)
		}
		req, err := http.NewRequest("POST", in.http.URL+target, strings.NewReader(body))
		check(t, err)
		req.Header.Set(delivery.HeaderEnvelope, h)
		_, err = do(req)
		return err
	}
	const target, body = "/v1/keypackages/claim", "{}"
	// {} names no room: what passes the envelope is refused for that.
	wantCode(t, send(first, nil, nil, target, body), delivery.CodeBadRequest)
	wantCode(t, send(second, nil, nil, target, body), delivery.CodeBadRequest)
	again := func(r *identity.EnvelopeRequest) { r.Nonce = identity.Nonce{1} }
	wantCode(t, send(first, again, nil, target, body), delivery.CodeRetry)
	wantCode(t, send(second, again, nil, target, body), delivery.CodeRetry)
	for name, edit := range map[string]func(*identity.EnvelopeRequest){
		"61 s late":  func(r *identity.EnvelopeRequest) { r.IssuedAt -= 61 },
		"61 s early": func(r *identity.EnvelopeRequest) { r.IssuedAt += 61 },
	} {
		if code := delivery.CodeOf(send(first, edit, nil, target, body)); code != delivery.CodeRetry {
			t.Errorf("%s: %s", name, code)
		}
	}
	wantCode(t, send(first, func(r *identity.EnvelopeRequest) { r.IssuedAt -= 60 }, nil, target, body), delivery.CodeBadRequest)
	for name, edit := range map[string]func(*identity.EnvelopeRequest){
		"other body":           func(r *identity.EnvelopeRequest) { r.Body = []byte("{ }") },
		"other method":         func(r *identity.EnvelopeRequest) { r.Method = "GET" },
		"other target":         func(r *identity.EnvelopeRequest) { r.Target = "/v1/keypackages" },
		"target with a query":  func(r *identity.EnvelopeRequest) { r.Target += "?x" },
		"percent-encoded path": func(r *identity.EnvelopeRequest) { r.Target = "/v1/key%70ackages/claim" },
	} {
		if code := delivery.CodeOf(send(first, edit, nil, target, body)); code != delivery.CodeLogIn {
			t.Errorf("%s: %s", name, code)
		}
	}
	wantCode(t, send(first, func(r *identity.EnvelopeRequest) { r.Home[0]++ }, nil, target, body), delivery.CodeGoElsewhere)
	if delivery.CodeOf(send(first, nil, func(h string) string { return h[:len(h)-8] }, target, body)) != delivery.CodeBadRequest {
		t.Error("a truncated header passed")
	}
	stranger := newPerson("eve").attest(t, "eve")
	d.key = stranger.key
	wantCode(t, send(first, nil, nil, target, body), delivery.CodeLogIn)
}

// TestEnvelopesFromBeforeTheNonceStore: what may have been used before the
// store remembered is refused as busy, and passes when signed anew.
func TestEnvelopesFromBeforeTheNonceStore(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	d := in.enrolled("ada")
	send := func() error {
		r := identity.EnvelopeRequest{Home: testHome, Method: "GET", Target: "/v1/devices", IssuedAt: uint64(w.clock.Now().Unix()), Nonce: identity.Nonce{byte(w.clock.Now().Unix())}}
		h, err := identity.Seal(d.key, r)
		check(t, err)
		req, err := http.NewRequest("GET", in.http.URL+"/v1/devices", nil)
		check(t, err)
		req.Header.Set(delivery.HeaderEnvelope, h)
		_, err = do(req)
		return err
	}
	wantCode(t, send(), delivery.CodeRetry)
	w.clock.add(identity.EnvelopeSkew + time.Second)
	check(t, send())
}

func TestRevocation(t *testing.T) {
	w := newWorld(t)
	first, second := w.start(), w.start()
	ada := newPerson("ada")
	phone, laptop := first.join(ada.attest(t, "phone")), second.join(ada.attest(t, "laptop"))
	sockets := []*connected{phone.connect(t), (&device{owner: ada, key: phone.key, cred: phone.cred, token: phone.token, at: second}).connect(t)}
	ring := laptop.connect(t)

	eve := newPerson("eve")
	foreign := phone.revocation(t, eve)
	wantCode(t, phone.json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: foreign.Bytes()}, nil), delivery.CodeRefused)
	check(t, phone.json(delivery.RouteDevices, nil, nil))

	r := phone.revocation(t, ada)
	check(t, laptop.json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: r.Bytes()}, nil))
	for i, k := range sockets {
		end, ok := k.next().(*delivery.End)
		if !ok || end.Code != delivery.CodeRevoked {
			t.Fatalf("socket %d got %+v", i, end)
		}
		if f := k.next(); f != nil {
			t.Errorf("socket %d goes on with %+v", i, f)
		}
	}
	wantCode(t, phone.json(delivery.RouteDevices, nil, nil), delivery.CodeLogIn)
	wantCode(t, phone.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: phone.cred.Bytes()}, nil), delivery.CodeRevoked)
	v9 := ada.attest(t, "phone", func(a *identity.Attestation) { a.Version = 9 })
	wantCode(t, phone.json(delivery.RouteEnrol, delivery.EnrolRequest{Credential: v9.cred.Bytes()}, nil), delivery.CodeRevoked)
	if _, ok := ring.next().(*delivery.MailFrame); !ok {
		t.Error("the sibling is not told")
	}
	var mail delivery.MailResponse
	check(t, laptop.json(delivery.RouteMailbox, nil, &mail))
	if len(mail.Items) != 1 || mail.Items[0].Kind != delivery.MailReissued {
		t.Errorf("%+v", mail)
	}
	var devices delivery.DevicesResponse
	check(t, laptop.json(delivery.RouteDevices, nil, &devices))
	if len(devices.Devices) != 1 || len(devices.Revocations) != 1 || !bytes.Equal(devices.Revocations[0], r.Bytes()) {
		t.Errorf("%+v", devices)
	}
	// Again is no fault: the first answer may have been lost.
	check(t, laptop.json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: r.Bytes()}, nil))
}

func TestSocketEndsWithItsSession(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	k := d.connect(t)
	check(t, d.json(delivery.RouteLogout, nil, nil))
	if end, ok := k.next().(*delivery.End); !ok || end.Code != delivery.CodeLogIn {
		t.Errorf("%+v", end)
	}
}

// TestLoginEndsTheOtherSessions: of two copies of a profile one speaks at a time,
// also at another instance, and the one that is cut off hears of it at once.
func TestLoginEndsTheOtherSessions(t *testing.T) {
	w := newWorld(t)
	in := w.start()
	first, other := in.enrolled("ada"), in.enrolled("bob")
	k := first.connect(t)
	check(t, first.json(delivery.RouteDevices, nil, nil)) // remembered by this instance
	second := *first
	check(t, second.login())
	wantCode(t, first.json(delivery.RouteDevices, nil, nil), delivery.CodeLogIn)
	if end, ok := k.next().(*delivery.End); !ok || end.Code != delivery.CodeLogIn {
		t.Errorf("%+v", end)
	}
	check(t, second.json(delivery.RouteDevices, nil, nil))
	check(t, other.json(delivery.RouteDevices, nil, nil))
}

// TestResumeOfACopyIsRefused: a process whose session was taken over by another copy
// of its profile asks for another: it is told, and the copy goes on.
func TestResumeOfACopyIsRefused(t *testing.T) {
	in := newWorld(t).start()
	first := in.enrolled("ada")
	check(t, first.login())
	second := *first
	check(t, second.login())
	resumed, err := first.resume()
	check(t, err)
	if !resumed.Copied || resumed.Token != "" || resumed.ExpiresMS != 0 {
		t.Errorf("%+v", resumed)
	}
	check(t, second.json(delivery.RouteDevices, nil, nil))
	resumed, err = second.resume()
	check(t, err)
	if resumed.Copied || resumed.Token == "" {
		t.Errorf("%+v", resumed)
	}
}

func TestSocketAuthenticatesInItsFirstFrame(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	for name, frame := range map[string]any{
		"no Hello":      &delivery.MailFrame{},
		"wrong token":   &delivery.Hello{Token: strings.Repeat("x", 43)},
		"no such token": &delivery.Hello{Token: ""},
	} {
		k := d.dial(t)
		k.send(frame)
		if end, ok := k.next().(*delivery.End); !ok || end.Code != delivery.CodeLogIn && end.Code != delivery.CodeBadRequest {
			t.Errorf("%s: %+v", name, end)
		}
	}
}

func TestDrainAsksSocketsToGo(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	k := d.connect(t)
	done := make(chan struct{})
	go func() {
		in.Drain(t.Context(), patience)
		close(done)
	}()
	if f, ok := k.next().(*delivery.Drain); !ok || f.WithinMS != uint32(patience.Milliseconds()) {
		t.Fatalf("%+v", f)
	}
	_, err := d.call(delivery.RouteReady, nil, "")
	if err == nil {
		t.Error("ready while draining")
	}
	check(t, k.conn.CloseNow())
	<-done
}

func TestAccountStores(t *testing.T) {
	in := newWorld(t).start()
	ada := newPerson("ada")
	d, other, eve := in.join(ada.attest(t, "one")), in.join(ada.attest(t, "two")), in.enrolled("eve")

	var snap delivery.SnapshotBody
	check(t, d.json(delivery.RouteSnapshot, nil, &snap))
	if snap.Version != 0 || snap.Sealed != nil {
		t.Errorf("%+v", snap)
	}
	wantCode(t, d.json(delivery.RouteSetSnap, delivery.SnapshotBody{Version: 0, Sealed: []byte("one")}, nil), delivery.CodeBadRequest)
	check(t, d.json(delivery.RouteSetSnap, delivery.SnapshotBody{Version: 0, Sealed: sealedAs(1, "one")}, nil))
	wantCode(t, other.json(delivery.RouteSetSnap, delivery.SnapshotBody{Version: 0, Sealed: sealedAs(1, "two")}, nil), delivery.CodeConflict)
	check(t, other.json(delivery.RouteSnapshot, nil, &snap))
	if snap.Version != 1 || !bytes.Equal(snap.Sealed, sealedAs(1, "one")) {
		t.Errorf("%+v", snap)
	}
	check(t, eve.json(delivery.RouteSnapshot, nil, &snap))

	_, err := d.call(delivery.RouteArchiveSet, []byte("sealed"), "", "room-1")
	wantCode(t, err, delivery.CodeBadRequest)
	_, err = d.call(delivery.RouteArchiveSet, sealedAs(1, "sealed"), "", "room-1")
	check(t, err)
	got, err := other.call(delivery.RouteArchiveGet, nil, "", "room-1")
	check(t, err)
	if !bytes.Equal(got, sealedAs(1, "sealed")) {
		t.Errorf("%q", got)
	}
	_, err = eve.call(delivery.RouteArchiveGet, nil, "", "room-1")
	wantCode(t, err, delivery.CodeNotFound)
	var list delivery.ArchiveResponse
	check(t, other.json(delivery.RouteArchive, nil, &list))
	if len(list.Segments) != 1 || list.Segments[0].Size != 18 {
		t.Errorf("%+v", list)
	}

	_, err = d.call(delivery.RouteWrap, []byte("wrapped"), "", other.id().String(), "1")
	check(t, err)
	_, err = d.call(delivery.RouteWrap, []byte("wrapped"), "", eve.id().String(), "1")
	wantCode(t, err, delivery.CodeNotFound)
	var keys delivery.WrappedKeysResponse
	check(t, other.json(delivery.RouteWrapped, nil, &keys))
	if len(keys.Keys) != 1 || string(keys.Keys[0].Wrapped) != "wrapped" {
		t.Errorf("%+v", keys)
	}
}

// sealedAs is something sealed under a generation of an archive key, for a service
// that cannot tell.
func sealedAs(generation uint64, text string) []byte {
	return append(delivery.AppendSealedHeader(nil, generation), text...)
}

// TestArchiveKeyOfBeforeARevocation: what is sealed under a key that a revoked
// device holds is refused, as snapshot and as history, also by a service that has
// lost the revocation.
func TestArchiveKeyOfBeforeARevocation(t *testing.T) {
	in := newWorld(t).start()
	ada := newPerson("ada")
	d, lost := in.join(ada.attest(t, "one")), in.join(ada.attest(t, "two"))
	put := func(version, generation uint64) error {
		return d.json(delivery.RouteSetSnap, delivery.SnapshotBody{Version: version, Sealed: sealedAs(generation, "s")}, nil)
	}
	segment := func(generation uint64, query, text string) error {
		_, err := d.call(delivery.RouteArchiveSet, sealedAs(generation, text), query, "n")
		return err
	}
	check(t, put(0, 1))
	check(t, segment(1, "", "one"))
	rev, err := identity.Revoke(identity.RevocationFields{Identity: ada.id, DeviceID: lost.id(), IssuedAt: 1}, ada.key)
	check(t, err)
	check(t, d.json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: rev.Bytes()}, nil))
	before := fmt.Sprintf("?replaces=%x", sha256.Sum256(sealedAs(1, "one")))
	wantCode(t, put(1, 1), delivery.CodeConflict)
	wantCode(t, segment(1, before, "two"), delivery.CodeConflict)
	check(t, put(1, 3))
	check(t, segment(2, before, "two"))
	wantCode(t, segment(2, before, "three"), delivery.CodeConflict)
	wantCode(t, segment(2, "?replaces=00", "three"), delivery.CodeBadRequest)
	wantCode(t, put(2, 2), delivery.CodeConflict)
	wantCode(t, put(2, 0), delivery.CodeBadRequest)
	check(t, put(2, 4))
}

// TestArchiveBounds: what an account keeps sealed is bounded in all, and the
// refusal says by what.
func TestArchiveBounds(t *testing.T) {
	w := newWorld(t)
	w.config.Limits.Archive = ArchiveLimits{Segments: 2, Bytes: 100, Snapshot: 30, Keys: 2}
	in := w.start()
	d := in.enrolled("ada")
	put := func(name string, size int) error {
		_, err := d.call(delivery.RouteArchiveSet, sealedAs(1, strings.Repeat("x", size-delivery.SealedHeaderSize)), "", name)
		return err
	}
	check(t, put("a", 60))
	err := put("b", 41)
	wantCode(t, err, delivery.CodeTooLarge)
	if !strings.Contains(err.Error(), "2 segments and 100 bytes") {
		t.Errorf("%v", err)
	}
	check(t, put("b", 40))
	wantCode(t, put("c", 20), delivery.CodeTooLarge)
	wantCode(t, d.json(delivery.RouteSetSnap, delivery.SnapshotBody{Sealed: sealedAs(1, strings.Repeat("x", 19))}, nil), delivery.CodeTooLarge)
	check(t, d.json(delivery.RouteSetSnap, delivery.SnapshotBody{Sealed: sealedAs(1, strings.Repeat("x", 18))}, nil))
	for n, want := range map[string]delivery.Code{"0": delivery.CodeBadRequest, "x": delivery.CodeBadRequest} {
		_, err := d.call(delivery.RouteWrap, []byte("w"), "", d.id().String(), n)
		wantCode(t, err, want)
	}
	for _, n := range []string{"1", "2", "2"} {
		_, err := d.call(delivery.RouteWrap, []byte("w"), "", d.id().String(), n)
		check(t, err)
	}
	_, err = d.call(delivery.RouteWrap, []byte("w"), "", d.id().String(), "3")
	wantCode(t, err, delivery.CodeTooLarge)
}

func TestDirectory(t *testing.T) {
	in := newWorld(t).start()
	ada, bob := in.enrolled("ada"), in.enrolled("bob")
	record := func(p person, name string, version uint64) []byte {
		r, err := identity.SignUsername(identity.UsernameFields{Identity: p.id, Username: name, Version: version, IssuedAt: 1}, p.key)
		check(t, err)
		return r.Bytes()
	}
	first := record(ada.owner, "ada_l", 1)
	check(t, ada.json(delivery.RouteSetProfile, delivery.ProfileBody{Record: first}, nil))
	check(t, ada.json(delivery.RouteSetProfile, delivery.ProfileBody{Record: first}, nil))
	wantCode(t, bob.json(delivery.RouteSetProfile, delivery.ProfileBody{Record: first}, nil), delivery.CodeRefused)
	wantCode(t, bob.json(delivery.RouteSetProfile, delivery.ProfileBody{Record: record(bob.owner, "ada_l", 1)}, nil), delivery.CodeConflict)
	check(t, bob.json(delivery.RouteSetProfile, delivery.ProfileBody{Record: record(bob.owner, "adam", 1)}, nil))
	find := func(query string) int {
		b, err := bob.call(delivery.RoutePeople, nil, query)
		check(t, err)
		return strings.Count(string(b), `"`) / 2
	}
	if n := find("?username=@Ada_L"); n != 2 { // "records" and one record
		t.Errorf("exact: %d", n)
	}
	if n := find("?prefix=ada"); n != 3 {
		t.Errorf("prefix: %d", n)
	}
	for _, bad := range []string{"", "?prefix=a", "?username=x&prefix=ad", "?username=!"} {
		_, err := bob.call(delivery.RoutePeople, nil, bad)
		wantCode(t, err, delivery.CodeBadRequest)
	}
	var one delivery.ProfileBody
	check(t, bob.json(delivery.RouteOnePerson, nil, &one, ada.owner.id.String()))
	if !bytes.Equal(one.Record, first) {
		t.Error("another record")
	}
}
