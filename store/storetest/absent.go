package storetest

import (
	"errors"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// absent is what each method answers about what is not there: nothing is made up, and
// nothing is made.
var absent = []contract{
	{"one thing that is not there is not found, a list of them is empty", func(k *kit) {
		k.answersOfNothing(delivery.RoomID{9}, deviceID(99), person(99))
	}},
	{"also where there are others", func(k *kit) {
		k.durable()
		k.answersOfNothing(roomID(77), deviceID(99), person(99))
	}},
}

func (k *kit) answersOfNothing(room delivery.RoomID, device identity.DeviceID, who identity.PublicKey) {
	k.Helper()
	blob := delivery.BlobID{99}
	s, ctx, unknown := k.store, k.ctx, delivery.ErrNotFound
	one := func(_ any, err error) error { return err }
	for _, c := range []struct {
		method string
		err    error
		want   error // nil: no error
	}{
		{"Room", one(s.Room(ctx, room)), unknown},
		{"WithRoom", s.WithRoom(ctx, room, func(delivery.RoomTx) error { k.Error("a room that is not there"); return nil }), unknown},
		{"Log", one(s.Log(ctx, room, delivery.LogRange{})), unknown},
		{"Memberships", one(s.Memberships(ctx, room, device)), unknown},
		{"Members", one(s.Members(ctx, room)), unknown},
		{"State", one(s.State(ctx, room, 0)), unknown},
		{"Rebase", s.Rebase(ctx, room, 0, []byte{1}), unknown},
		{"GroupInfo", one(s.GroupInfo(ctx, room, 0)), unknown},
		{"Held", one(s.Held(ctx, room)), unknown},
		{"Welcome", one(s.Welcome(ctx, room, 0, device)), unknown},
		{"Report", one(s.Report(ctx, room, 0, who)), unknown},
		{"FinishRelay", s.FinishRelay(ctx, delivery.Relay{Room: room, Device: device}), nil},
		{"AckWelcome", s.AckWelcome(ctx, room, 0, device), unknown},
		{"Device", one(s.Device(ctx, device)), unknown},
		{"DeviceByKey", one(s.DeviceByKey(ctx, identity.DevicePublicKey{99})), unknown},
		{"Session", one(s.Session(ctx, [32]byte{99}, now)), unknown},
		{"CloseSession", s.CloseSession(ctx, [32]byte{99}), nil},
		{"Revoked", one(s.Revoked(ctx, who, device)), unknown},
		{"ArchiveSegment", one(s.ArchiveSegment(ctx, who, "x")), unknown},
		{"PackageDevice", one(s.PackageDevice(ctx, []byte{99})), unknown},
		{"AckMail", s.AckMail(ctx, device, []uint64{1}), nil},
		{"Blob", one(s.Blob(ctx, blob)), unknown},
		{"AdvanceBlob", s.AdvanceBlob(ctx, blob, 0, 1), unknown},
		{"DeleteBlob", s.DeleteBlob(ctx, blob), unknown},
		{"Profile", one(s.Profile(ctx, who)), unknown},
		{"ProfileByUsername", one(s.ProfileByUsername(ctx, "nobody")), unknown},
		{"Listing", one(s.Listing(ctx, room)), unknown},
		{"DeleteListing", s.DeleteListing(ctx, room), nil},
		{"Setting", one(s.Setting(ctx, "nothing")), unknown},
	} {
		if !errors.Is(c.err, c.want) {
			k.Errorf("%s of nothing gives %v, want %v", c.method, c.err, c.want)
		}
	}
	equal(k, "RoomsOf", len(must(s.RoomsOf(ctx, device))(k)), 0)
	equal(k, "HeadsOf", len(must(s.HeadsOf(ctx, device))(k)), 0)
	equal(k, "RoomsOfIdentity", len(must(s.RoomsOfIdentity(ctx, who))(k)), 0)
	equal(k, "Devices", len(must(s.Devices(ctx, who))(k)), 0)
	equal(k, "LastSeen", len(must(s.LastSeen(ctx, []identity.DeviceID{device}))(k)), 0)
	equal(k, "Revocations", len(must(s.Revocations(ctx, who))(k)), 0)
	equal(k, "Archive", len(must(s.Archive(ctx, who, "", 10))(k)), 0)
	equal(k, "WrappedKeys", len(must(s.WrappedKeys(ctx, device))(k)), 0)
	equal(k, "ClaimKeyPackages", len(must(s.ClaimKeyPackages(ctx, who, 1, now))(k)), 0)
	equal(k, "Mail", len(must(s.Mail(ctx, device, 0, 10))(k)), 0)
	equal(k, "SearchProfiles", len(must(s.SearchProfiles(ctx, "zz", 10))(k)), 0)
	equal(k, "MayReadBlob", must(s.MayReadBlob(ctx, blob, device))(k), false)
	n, last, err := s.CountKeyPackages(ctx, device, 1, now)
	k.ok(err)
	equal(k, "CountKeyPackages", n, 0)
	equal(k, "a last resort", last, false)
	version, sealed, err := s.Snapshot(ctx, who)
	k.ok(err)
	equal(k, "Snapshot's version", version, 0)
	equal(k, "Snapshot", len(sealed), 0)
	_, err = s.Room(ctx, room)
	k.is(err, unknown)
	_, err = s.Device(ctx, device)
	k.is(err, unknown)
}
