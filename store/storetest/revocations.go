package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

func revocation(d int) delivery.StoredRevocation {
	return delivery.StoredRevocation{Identity: person(d / 10), Device: deviceID(d), Bytes: fmt.Appendf(nil, "revoked %d", d), RevokedMS: now + int64(d)}
}

var revocations = []contract{
	{"tombstones read back, oldest first", func(k *kit) {
		k.enrol(10, 11, 12)
		for _, d := range []int{12, 10, 20} { // 20 was never known here
			equal(k, "fresh", must(k.store.Revoke(k.ctx, revocation(d), many))(k), true)
		}
		got := must(k.store.Revocations(k.ctx, person(1)))(k)
		if want := []delivery.StoredRevocation{revocation(12), revocation(10)}; !reflect.DeepEqual(got, want) {
			k.Fatalf("tombstones are %+v", got)
		}
		if got := must(k.store.Revoked(k.ctx, person(2), deviceID(20)))(k); !reflect.DeepEqual(got, revocation(20)) {
			k.Fatalf("tombstone is %+v", got)
		}
		_, err := k.store.Revoked(k.ctx, person(1), deviceID(11))
		k.is(err, delivery.ErrNotFound)
	}},
	{"again is not fresh and changes nothing", func(k *kit) {
		k.enrol(10)
		must(k.store.Revoke(k.ctx, revocation(10), many))(k)
		again := revocation(10)
		again.Bytes = []byte("another signature")
		equal(k, "fresh", must(k.store.Revoke(k.ctx, again, many))(k), false)
		equal(k, "bytes", string(must(k.store.Revoked(k.ctx, person(1), deviceID(10)))(k).Bytes), "revoked 10")
	}},
	{"for good: no credential enrols it again", func(k *kit) {
		k.enrol(10)
		must(k.store.Revoke(k.ctx, revocation(10), many))(k)
		d := device(10)
		d.Version = 99
		k.is(k.store.Enrol(k.ctx, d, many), delivery.ErrRevoked)
		must(k.store.Revoke(k.ctx, revocation(11), many))(k)
		k.is(k.store.Enrol(k.ctx, device(11), many), delivery.ErrRevoked)
	}},
	{"a stranger's tombstone for a device says nothing about it", func(k *kit) {
		k.enrol(10)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		id := k.room(1, 10)
		forged := revocation(10)
		forged.Identity = person(6)
		equal(k, "fresh", must(k.store.Revoke(k.ctx, forged, many))(k), true)
		must(k.store.Device(k.ctx, deviceID(10)))(k)
		must(k.store.Session(k.ctx, seed("token", 1), now))(k)
		newer := device(10)
		newer.Version = 2
		k.ok(k.store.Enrol(k.ctx, newer, many))
		_, err := k.store.Revoked(k.ctx, person(1), deviceID(10))
		k.is(err, delivery.ErrNotFound)
		must(k.store.Revoked(k.ctx, person(6), deviceID(10)))(k)
		equal(k, "removals owed", len(must(k.store.RevokedMembers(k.ctx, delivery.Membership{}, 10))(k)), 0)
		equal(k, "the owner's own is fresh", must(k.store.Revoke(k.ctx, revocation(10), many))(k), true)
		_, err = k.store.Device(k.ctx, deviceID(10))
		k.is(err, delivery.ErrNotFound)
		equal(k, "members", len(must(k.store.Members(k.ctx, id))(k)), 1)
	}},
	{"removals that rooms owe", func(k *kit) {
		a, b := k.room(1, 10, 11), k.room(2, 11, 20)
		must(k.store.Revoke(k.ctx, revocation(11), many))(k)
		got := must(k.store.RevokedMembers(k.ctx, delivery.Membership{}, 10))(k)
		slices.SortFunc(got, func(x, y delivery.OwedRemoval) int { return int(x.Leaf) - int(y.Leaf) })
		if want := []delivery.OwedRemoval{{Membership: at(b, 11, 0, 0, 0)}, {Membership: at(a, 11, 1, 0, 0)}}; !reflect.DeepEqual(got, want) {
			k.Fatalf("owed %+v, want %+v", got, want)
		}
		must(k.store.Revoke(k.ctx, revocation(10), many))(k)
		must(k.store.Revoke(k.ctx, revocation(20), many))(k)
		var page []delivery.OwedRemoval
		var after delivery.Membership
		for range 4 {
			next := must(k.store.RevokedMembers(k.ctx, after, 1))(k)
			equal(k, "in a page of one", len(next), 1)
			after = next[0].Membership
			page = append(page, next[0])
		}
		equal(k, "behind the last", len(must(k.store.RevokedMembers(k.ctx, after, 10))(k)), 0)
		if all := must(k.store.RevokedMembers(k.ctx, delivery.Membership{}, 10))(k); !reflect.DeepEqual(page, all) {
			k.Fatalf("page by page %+v, at once %+v", page, all)
		}
		k.commit(a, 10, func(a *delivery.Advance) { a.Removed = []identity.DeviceID{deviceID(10)} })
		k.commit(b, 20, func(a *delivery.Advance) { a.Removed = []identity.DeviceID{deviceID(20)} })
		for _, id := range []delivery.RoomID{a, b} {
			k.commit(id, 10, func(a *delivery.Advance) { a.Removed = []identity.DeviceID{deviceID(11)} })
		}
		equal(k, "owed after the removal", len(must(k.store.RevokedMembers(k.ctx, delivery.Membership{}, 10))(k)), 0)
	}},
	{"a removal that is owed says where its room stands", func(k *kit) {
		a, b := k.room(1, 10, 11), k.room(2, 11, 20)
		must(k.store.Revoke(k.ctx, revocation(11), many))(k)
		k.commit(a, 10, func(*delivery.Advance) {})
		must(k.store.StartIncarnation(k.ctx, now, now, silent))(k)
		for _, o := range must(k.store.RevokedMembers(k.ctx, delivery.Membership{}, 10))(k) {
			r := must(k.store.Room(k.ctx, o.Room))(k)
			equal(k, "epoch", o.Epoch, r.Epoch)
			equal(k, "incarnation", o.Incarnation, r.Incarnation)
		}
		next := roomID(9)
		k.with(b, func(tx delivery.RoomTx) error { return tx.SetStatus(delivery.RoomSucceeded, &next) })
		k.reopen()
		got := must(k.store.RevokedMembers(k.ctx, delivery.Membership{}, 10))(k)
		if len(got) != 1 || got[0].Room != a || got[0].Epoch != 1 {
			k.Fatalf("owed after one room has a successor: %+v", got)
		}
	}},
	{"what the device had goes, what others have stays", func(k *kit) {
		k.enrol(10, 11)
		id := k.room(1, 10, 11)
		for i, d := range []int{10, 11} {
			must(k.store.OpenSession(k.ctx, session(i, d, 0, 1)))(k)
			k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(d, 1), lastResort(d, 2)}))
			_, _, err := k.store.PutMail(k.ctx, deviceID(d), delivery.MailItem{Kind: delivery.MailWelcome, Key: "a"})
			k.ok(err)
			k.ok(k.store.PutWrappedKey(k.ctx, delivery.WrappedKey{Device: deviceID(d), Generation: 1, Wrapped: []byte("k")}, 8))
			k.upload(2*d, d, 100)
			k.upload(2*d+1, d, 50)
			e := message(d, d, 0)
			e.Blobs = []delivery.BlobID{blobID(2 * d)}
			k.append(id, e)
		}
		equal(k, "fresh", must(k.store.Revoke(k.ctx, revocation(10), many))(k), true)

		for i, c := range []struct {
			d, want int
			there   bool
		}{{10, 0, false}, {11, 1, true}} {
			id := deviceID(c.d)
			_, err := k.store.Device(k.ctx, id)
			k.found(err, c.there)
			_, err = k.store.DeviceByKey(k.ctx, device(c.d).Key)
			k.found(err, c.there)
			_, err = k.store.Session(k.ctx, seed("token", i), now)
			k.found(err, c.there)
			_, err = k.store.PackageDevice(k.ctx, keyPackage(c.d, 1).Ref)
			k.found(err, c.there)
			equal(k, "mail", len(must(k.store.Mail(k.ctx, id, 0, 10))(k)), c.want)
			equal(k, "wrapped keys", len(must(k.store.WrappedKeys(k.ctx, id))(k)), c.want)
			n, last, err := k.store.CountKeyPackages(k.ctx, id, 1, now)
			k.ok(err)
			equal(k, "packages", n, c.want)
			equal(k, "last resort", last, c.there)
			_, err = k.store.Blob(k.ctx, blobID(2*c.d)) // an entry refers to it
			k.ok(err)
			_, err = k.store.Blob(k.ctx, blobID(2*c.d+1))
			k.found(err, c.there)
			k.loose(c.d, int64(50*c.want))
		}
		claimed := must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now))(k)
		equal(k, "claimed", len(claimed), 1)
		equal(k, "claimed of", claimed[0].Device, deviceID(11))
		equal(k, "devices", len(must(k.store.Devices(k.ctx, person(1)))(k)), 1)
		// Rosters stay: members remove leaves.
		equal(k, "members", len(must(k.store.Members(k.ctx, id))(k)), 2)
		// The bytes of its loose upload are to be deleted.
		swept := must(k.store.Sweep(k.ctx, delivery.SweepPlan{}))(k)
		if want := []delivery.BlobID{blobID(21)}; !reflect.DeepEqual(swept.Blobs, want) {
			k.Fatalf("blobs to delete: %v, want %v", swept.Blobs, want)
		}
	}},
	{"nothing comes back after it", func(k *kit) {
		k.enrol(10)
		must(k.store.Revoke(k.ctx, revocation(10), many))(k)
		_, err := k.store.OpenSession(k.ctx, session(1, 10, 0, 1))
		k.is(err, delivery.ErrNotFound)
		k.is(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(10, 1)}), delivery.ErrNotFound)
		k.is(k.store.PutWrappedKey(k.ctx, delivery.WrappedKey{Device: deviceID(10)}, 8), delivery.ErrNotFound)
		_, _, err = k.store.PutMail(k.ctx, deviceID(10), delivery.MailItem{Kind: delivery.MailWelcome})
		k.is(err, delivery.ErrNotFound)
	}},
	{"a revocation beside logins and packages leaves neither", func(k *kit) {
		k.enrol(10)
		stores := k.instances()
		var wg sync.WaitGroup
		for i := range 16 {
			s := stores[i%len(stores)]
			wg.Go(func() { _, _ = s.OpenSession(k.ctx, session(i, 10, 0, 1)) })
			wg.Go(func() { _ = s.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(10, i)}) })
			wg.Go(func() { _, _, _ = s.PutMail(k.ctx, deviceID(10), delivery.MailItem{Kind: delivery.MailLowKeys}) })
			wg.Go(func() { _ = s.Enrol(k.ctx, device(10), many) })
			if i == 8 {
				wg.Go(func() {
					if _, err := s.Revoke(k.ctx, revocation(10), many); err != nil {
						k.Errorf("revoke: %v", err)
					}
				})
			}
		}
		wg.Wait()
		_, err := k.store.Device(k.ctx, deviceID(10))
		k.is(err, delivery.ErrNotFound)
		for i := range 16 {
			_, err := k.store.Session(k.ctx, seed("token", i), now)
			k.is(err, delivery.ErrNotFound)
			_, err = k.store.PackageDevice(k.ctx, keyPackage(10, i).Ref)
			k.is(err, delivery.ErrNotFound)
		}
		equal(k, "mail", len(must(k.store.Mail(k.ctx, deviceID(10), 0, 100))(k)), 0)
	}},
}

// found demands success or ErrNotFound.
func (k *kit) found(err error, there bool) {
	k.Helper()
	if there {
		k.ok(err)
	} else {
		k.is(err, delivery.ErrNotFound)
	}
}
