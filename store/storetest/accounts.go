package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

var devices = []contract{
	{"an enrolled device is found by id and by key", func(k *kit) {
		k.enrol(10)
		want := device(10)
		if got := must(k.store.Device(k.ctx, want.ID))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("by id: %+v, want %+v", got, want)
		}
		if got := must(k.store.DeviceByKey(k.ctx, want.Key))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("by key: %+v, want %+v", got, want)
		}
		_, err := k.store.Device(k.ctx, deviceID(99))
		k.is(err, delivery.ErrNotFound)
		_, err = k.store.DeviceByKey(k.ctx, device(99).Key)
		k.is(err, delivery.ErrNotFound)
	}},
	{"the same credential again is no change", func(k *kit) {
		k.enrol(10)
		again := device(10)
		again.EnrolledMS, again.SeenMS = now+5, now+5
		k.ok(k.store.Enrol(k.ctx, again))
		equal(k, "enrolled", must(k.store.Device(k.ctx, again.ID))(k).EnrolledMS, now)
	}},
	{"a higher version replaces the credential and nothing else", func(k *kit) {
		k.enrol(10)
		newer := device(10)
		newer.Version, newer.Credential, newer.EnrolledMS = 5, []byte("newer"), now+5
		k.ok(k.store.Enrol(k.ctx, newer))
		want := device(10)
		want.Version, want.Credential = 5, newer.Credential
		if got := must(k.store.Device(k.ctx, want.ID))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("device is %+v, want %+v", got, want)
		}
		lower := device(10)
		lower.Version = 4
		k.is(k.store.Enrol(k.ctx, lower), delivery.ErrChanged)
		equivocal := newer
		equivocal.Credential = []byte("other content, same version")
		k.is(k.store.Enrol(k.ctx, equivocal), delivery.ErrChanged)
		if got := must(k.store.Device(k.ctx, want.ID))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("device is %+v, want %+v", got, want)
		}
	}},
	{"keys are never rewritten", func(k *kit) {
		k.enrol(10, 11)
		for name, d := range map[string]func(*delivery.Device){
			"another key":                   func(d *delivery.Device) { d.Key = seed("key", 99) },
			"another identity":              func(d *delivery.Device) { d.Identity = person(9) },
			"the key of another device":     func(d *delivery.Device) { d.Key = device(11).Key },
			"another id with the same key":  func(d *delivery.Device) { d.ID = deviceID(99) },
			"another id, identity, version": func(d *delivery.Device) { d.ID, d.Identity = deviceID(99), person(9) },
		} {
			forged := device(10)
			forged.Version = 9
			d(&forged)
			if err := k.store.Enrol(k.ctx, forged); err == nil {
				k.Errorf("%s was taken", name)
			} else {
				k.is(err, delivery.ErrExists)
			}
			if got := must(k.store.Device(k.ctx, deviceID(10)))(k); !reflect.DeepEqual(got, device(10)) {
				k.Fatalf("%s changed the row: %+v", name, got)
			}
		}
		_, err := k.store.Device(k.ctx, deviceID(99))
		k.is(err, delivery.ErrNotFound)
	}},
	{"a person's devices, by enrolment", func(k *kit) {
		k.enrol(13, 11, 20, 12)
		got := must(k.store.Devices(k.ctx, person(1)))(k)
		if want := []delivery.Device{device(13), device(11), device(12)}; !reflect.DeepEqual(got, want) {
			k.Fatalf("devices are %+v", got)
		}
		equal(k, "devices of a stranger", len(must(k.store.Devices(k.ctx, person(9)))(k)), 0)
	}},
	{"one key enrolled by many at once goes to one", func(k *kit) {
		var wg sync.WaitGroup
		errs := make([]error, 16)
		stores := k.instances()
		for i := range errs {
			wg.Go(func() {
				d := device(10 + i)
				d.Key = device(10).Key
				errs[i] = stores[i%len(stores)].Enrol(k.ctx, d)
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else {
				k.is(err, delivery.ErrExists)
			}
		}
		equal(k, "winners", won, 1)
	}},
}

// session opens a session of device d with token t.
func session(t, d int, have, want byte) delivery.NewSession {
	return delivery.NewSession{
		Token: seed("token", t), Device: deviceID(d), ExpiresMS: now + 1000, NowMS: now, Have: counter(have), Want: counter(want),
	}
}

// counter 0 is the zero counter of a first login.
func counter(n byte) (c [16]byte) {
	c[15] = n
	return c
}

var sessions = []contract{
	{"a session names its device until it ends", func(k *kit) {
		k.enrol(10)
		s := session(1, 10, 0, 1)
		equal(k, "copied", must(k.store.OpenSession(k.ctx, s))(k), false)
		got := must(k.store.Session(k.ctx, s.Token, now+999))(k)
		if want := (delivery.Session{Device: device(10), ExpiresMS: s.ExpiresMS}); !reflect.DeepEqual(got, want) {
			k.Fatalf("session is %+v, want %+v", got, want)
		}
		for _, at := range []int64{now + 1000, now + 5000} {
			_, err := k.store.Session(k.ctx, s.Token, at)
			k.is(err, delivery.ErrNotFound)
		}
		_, err := k.store.Session(k.ctx, seed("token", 99), now)
		k.is(err, delivery.ErrNotFound)
	}},
	{"an unknown device gets none", func(k *kit) {
		_, err := k.store.OpenSession(k.ctx, session(1, 10, 0, 1))
		k.is(err, delivery.ErrNotFound)
	}},
	{"a known token is refused and stays whose it was", func(k *kit) {
		k.enrol(10, 11)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		_, err := k.store.OpenSession(k.ctx, session(1, 11, 0, 1))
		k.is(err, delivery.ErrExists)
		equal(k, "device", must(k.store.Session(k.ctx, seed("token", 1), now))(k).Device.ID, deviceID(10))
	}},
	{"closing ends one session, and again is no error", func(k *kit) {
		k.enrol(10)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		must(k.store.OpenSession(k.ctx, session(2, 10, 1, 2)))(k)
		k.ok(k.store.CloseSession(k.ctx, seed("token", 1)))
		k.ok(k.store.CloseSession(k.ctx, seed("token", 1)))
		_, err := k.store.Session(k.ctx, seed("token", 1), now)
		k.is(err, delivery.ErrNotFound)
		must(k.store.Session(k.ctx, seed("token", 2), now))(k)
	}},
	{"the copy counter tells copies", func(k *kit) {
		k.enrol(10)
		for i, c := range []struct {
			have, want byte
			copied     bool
			why        string
		}{
			{0, 1, false, "first login"},
			{1, 2, false, "the device persisted 1"},
			{1, 2, false, "the same again: its answer was lost"},
			{2, 3, false, "and on"},
			{2, 7, true, "a copy of the disk still believes in 2"},
			{7, 8, false, "the copy is now the one that is known"},
			{3, 4, true, "the original notices"},
			{0, 5, true, "a disk from before the first login"},
			{5, 6, false, "and on"},
		} {
			copied := must(k.store.OpenSession(k.ctx, session(i, 10, c.have, c.want)))(k)
			if copied != c.copied {
				k.Fatalf("login %d (%s): copied is %v", i, c.why, copied)
			}
		}
	}},
	{"a refused login leaves the counter", func(k *kit) {
		k.enrol(10)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		_, err := k.store.OpenSession(k.ctx, session(1, 10, 1, 2)) // the token is taken
		k.is(err, delivery.ErrExists)
		equal(k, "copied", must(k.store.OpenSession(k.ctx, session(2, 10, 1, 3)))(k), false)
	}},
	{"of two copies logging in at once one is told", func(k *kit) {
		k.enrol(10)
		must(k.store.OpenSession(k.ctx, session(0, 10, 0, 1)))(k)
		const copies = 8
		stores := k.instances()
		var wg sync.WaitGroup
		copied, errs := make([]bool, copies), make([]error, copies)
		for i := range copies {
			wg.Go(func() {
				copied[i], errs[i] = stores[i%len(stores)].OpenSession(k.ctx, session(100+i, 10, 1, byte(10+i)))
			})
		}
		wg.Wait()
		untold := 0
		for i := range copies {
			k.ok(errs[i])
			if !copied[i] {
				untold++
			}
		}
		equal(k, "copies not told", untold, 1)
	}},
	{"use is noted once a minute", func(k *kit) {
		k.enrol(10)
		s := session(1, 10, 0, 1)
		s.ExpiresMS = now + 1_000_000
		must(k.store.OpenSession(k.ctx, s))(k)
		seen := func() int64 { return must(k.store.Device(k.ctx, deviceID(10)))(k).SeenMS }
		for _, c := range []struct{ at, want int64 }{
			{now + 59_999, now}, {now + 60_000, now + 60_000}, {now + 119_999, now + 60_000}, {now + 130_000, now + 130_000}, {now + 1, now + 130_000},
		} {
			must(k.store.Session(k.ctx, s.Token, c.at))(k)
			equal(k, fmt.Sprintf("seen after %d ms", c.at-now), seen(), c.want)
		}
	}},
	{"a login is use", func(k *kit) {
		k.enrol(10)
		s := session(1, 10, 0, 1)
		s.NowMS = now + 7
		must(k.store.OpenSession(k.ctx, s))(k)
		equal(k, "seen", must(k.store.Device(k.ctx, deviceID(10)))(k).SeenMS, now+7)
	}},
	{"a nonce is spent once", func(k *kit) {
		key, other := device(10).Key, device(11).Key
		equal(k, "first", must(k.store.UseNonce(k.ctx, key, counter(1), now))(k), true)
		equal(k, "replay", must(k.store.UseNonce(k.ctx, key, counter(1), now+99))(k), false)
		equal(k, "another nonce", must(k.store.UseNonce(k.ctx, key, counter(2), now))(k), true)
		equal(k, "another key", must(k.store.UseNonce(k.ctx, other, counter(1), now))(k), true)
	}},
	{"of many using one nonce at once one is fresh", func(k *kit) {
		stores := k.instances()
		var wg sync.WaitGroup
		fresh, errs := make([]bool, 32), make([]error, 32)
		for i := range fresh {
			wg.Go(func() {
				fresh[i], errs[i] = stores[i%len(stores)].UseNonce(k.ctx, device(10).Key, counter(1), now)
			})
		}
		wg.Wait()
		n := 0
		for i := range fresh {
			k.ok(errs[i])
			if fresh[i] {
				n++
			}
		}
		equal(k, "fresh", n, 1)
	}},
}

func revocation(d int) delivery.StoredRevocation {
	return delivery.StoredRevocation{Identity: person(d / 10), Device: deviceID(d), Bytes: fmt.Appendf(nil, "revoked %d", d), RevokedMS: now + int64(d)}
}

var revocations = []contract{
	{"tombstones read back, oldest first", func(k *kit) {
		k.enrol(10, 11, 12)
		for _, d := range []int{12, 10, 20} { // 20 was never known here
			equal(k, "fresh", must(k.store.Revoke(k.ctx, revocation(d)))(k), true)
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
		must(k.store.Revoke(k.ctx, revocation(10)))(k)
		again := revocation(10)
		again.Bytes = []byte("another signature")
		equal(k, "fresh", must(k.store.Revoke(k.ctx, again))(k), false)
		equal(k, "bytes", string(must(k.store.Revoked(k.ctx, person(1), deviceID(10)))(k).Bytes), "revoked 10")
	}},
	{"for good: no credential enrols it again", func(k *kit) {
		k.enrol(10)
		must(k.store.Revoke(k.ctx, revocation(10)))(k)
		d := device(10)
		d.Version = 99
		k.is(k.store.Enrol(k.ctx, d), delivery.ErrRevoked)
		must(k.store.Revoke(k.ctx, revocation(11)))(k)
		k.is(k.store.Enrol(k.ctx, device(11)), delivery.ErrRevoked)
	}},
	{"a stranger's tombstone for a device says nothing about it", func(k *kit) {
		k.enrol(10)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		id := k.room(1, 10)
		forged := revocation(10)
		forged.Identity = person(6)
		equal(k, "fresh", must(k.store.Revoke(k.ctx, forged))(k), true)
		must(k.store.Device(k.ctx, deviceID(10)))(k)
		must(k.store.Session(k.ctx, seed("token", 1), now))(k)
		newer := device(10)
		newer.Version = 2
		k.ok(k.store.Enrol(k.ctx, newer))
		_, err := k.store.Revoked(k.ctx, person(1), deviceID(10))
		k.is(err, delivery.ErrNotFound)
		must(k.store.Revoked(k.ctx, person(6), deviceID(10)))(k)
		equal(k, "removals owed", len(must(k.store.RevokedMembers(k.ctx, 10))(k)), 0)
		equal(k, "the owner's own is fresh", must(k.store.Revoke(k.ctx, revocation(10)))(k), true)
		_, err = k.store.Device(k.ctx, deviceID(10))
		k.is(err, delivery.ErrNotFound)
		equal(k, "members", len(must(k.store.Members(k.ctx, id))(k)), 1)
	}},
	{"removals that rooms owe", func(k *kit) {
		a, b := k.room(1, 10, 11), k.room(2, 11, 20)
		must(k.store.Revoke(k.ctx, revocation(11)))(k)
		got := must(k.store.RevokedMembers(k.ctx, 10))(k)
		slices.SortFunc(got, func(x, y delivery.Membership) int { return int(x.Leaf) - int(y.Leaf) })
		if want := []delivery.Membership{at(b, 11, 0, 0, 0), at(a, 11, 1, 0, 0)}; !reflect.DeepEqual(got, want) {
			k.Fatalf("owed %+v, want %+v", got, want)
		}
		equal(k, "with a limit", len(must(k.store.RevokedMembers(k.ctx, 1))(k)), 1)
		for _, id := range []delivery.RoomID{a, b} {
			k.commit(id, 10, func(a *delivery.Advance) { a.Removed = []identity.DeviceID{deviceID(11)} })
		}
		equal(k, "owed after the removal", len(must(k.store.RevokedMembers(k.ctx, 10))(k)), 0)
	}},
	{"what the device had goes, what others have stays", func(k *kit) {
		k.enrol(10, 11)
		id := k.room(1, 10, 11)
		for i, d := range []int{10, 11} {
			must(k.store.OpenSession(k.ctx, session(i, d, 0, 1)))(k)
			k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(d, 1), lastResort(d, 2)}))
			_, _, err := k.store.PutMail(k.ctx, deviceID(d), delivery.MailItem{Kind: delivery.MailWelcome, Key: "a"})
			k.ok(err)
			k.ok(k.store.PutWrappedKey(k.ctx, delivery.WrappedKey{Device: deviceID(d), Generation: 1, Wrapped: []byte("k")}))
			k.upload(2*d, d, 100)
			k.upload(2*d+1, d, 50)
			e := message(d, d, 0)
			e.Blobs = []delivery.BlobID{blobID(2 * d)}
			k.append(id, e)
		}
		equal(k, "fresh", must(k.store.Revoke(k.ctx, revocation(10)))(k), true)

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
			equal(k, "unreferenced bytes", must(k.store.BlobBytes(k.ctx, id))(k), int64(50*c.want))
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
		must(k.store.Revoke(k.ctx, revocation(10)))(k)
		_, err := k.store.OpenSession(k.ctx, session(1, 10, 0, 1))
		k.is(err, delivery.ErrNotFound)
		k.is(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(10, 1)}), delivery.ErrNotFound)
		k.is(k.store.PutWrappedKey(k.ctx, delivery.WrappedKey{Device: deviceID(10)}), delivery.ErrNotFound)
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
			wg.Go(func() { _ = s.Enrol(k.ctx, device(10)) })
			if i == 8 {
				wg.Go(func() {
					if _, err := s.Revoke(k.ctx, revocation(10)); err != nil {
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

var sealed = []contract{
	{"a snapshot is replaced by its version", func(k *kit) {
		id := person(1)
		version, bytes, err := k.store.Snapshot(k.ctx, id)
		k.ok(err)
		equal(k, "version without one", version, 0)
		equal(k, "bytes without one", len(bytes), 0)
		k.is(k.store.PutSnapshot(k.ctx, id, 1, []byte("x")), delivery.ErrChanged)
		k.ok(k.store.PutSnapshot(k.ctx, id, 0, []byte("one")))
		k.is(k.store.PutSnapshot(k.ctx, id, 0, []byte("x")), delivery.ErrChanged)
		k.ok(k.store.PutSnapshot(k.ctx, id, 1, []byte("two")))
		k.is(k.store.PutSnapshot(k.ctx, id, 1, []byte("x")), delivery.ErrChanged)
		k.is(k.store.PutSnapshot(k.ctx, id, 3, []byte("x")), delivery.ErrChanged)
		version, bytes, err = k.store.Snapshot(k.ctx, id)
		k.ok(err)
		equal(k, "version", version, 2)
		equal(k, "bytes", string(bytes), "two")
		version, _, err = k.store.Snapshot(k.ctx, person(2))
		k.ok(err)
		equal(k, "another's version", version, 0)
	}},
	{"of many replacing one version one wins", func(k *kit) {
		stores := k.instances()
		for version := range uint64(3) {
			var wg sync.WaitGroup
			errs := make([]error, 16)
			for i := range errs {
				wg.Go(func() { errs[i] = stores[i%len(stores)].PutSnapshot(k.ctx, person(1), version, []byte{byte(i)}) })
			}
			wg.Wait()
			winner := -1
			for i, err := range errs {
				if err == nil {
					equal(k, "an earlier winner", winner, -1)
					winner = i
				} else {
					k.is(err, delivery.ErrChanged)
				}
			}
			got, bytes, err := k.store.Snapshot(k.ctx, person(1))
			k.ok(err)
			equal(k, "version", got, version+1)
			equal(k, "bytes", int(bytes[0]), winner)
		}
	}},
	{"archive segments list by name and read with their bytes", func(k *kit) {
		put := func(n int, name, bytes string) {
			k.ok(k.store.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(n), Name: name, Size: len(bytes), CreatedMS: now, Sealed: []byte(bytes)}))
		}
		put(1, "b", "bb")
		put(1, "a", "a")
		put(1, "c", "ccc")
		put(2, "z", "other")
		put(1, "b", "replaced")
		list := must(k.store.Archive(k.ctx, person(1), "", 10))(k)
		want := []delivery.ArchiveSegment{
			{Identity: person(1), Name: "a", Size: 1, CreatedMS: now}, {Identity: person(1), Name: "b", Size: 8, CreatedMS: now}, {Identity: person(1), Name: "c", Size: 3, CreatedMS: now},
		}
		if !reflect.DeepEqual(list, want) {
			k.Fatalf("list is %+v", list)
		}
		page := must(k.store.Archive(k.ctx, person(1), "a", 1))(k)
		if !reflect.DeepEqual(page, want[1:2]) {
			k.Fatalf("page is %+v", page)
		}
		one := must(k.store.ArchiveSegment(k.ctx, person(1), "b"))(k)
		equal(k, "bytes", string(one.Sealed), "replaced")
		_, err := k.store.ArchiveSegment(k.ctx, person(2), "b")
		k.is(err, delivery.ErrNotFound)
	}},
	{"archive names are opaque bytes up to 128, in byte order", func(k *kit) {
		names := []string{"\x00\xff", "!", "Z", "a b", "a%", "a_b", "é", strings.Repeat("z", 128)}
		for _, n := range names {
			k.ok(k.store.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(1), Name: n, CreatedMS: now}))
		}
		k.found(k.store.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(1), Name: "a", CreatedMS: now}), true)
		if err := k.store.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(1), Name: strings.Repeat("z", 129)}); err == nil {
			k.Fatal("a name of 129 bytes was taken")
		}
		var got []string
		for _, s := range must(k.store.Archive(k.ctx, person(1), "", 100))(k) {
			got = append(got, s.Name)
		}
		want := []string{"\x00\xff", "!", "Z", "a", "a b", "a%", "a_b", strings.Repeat("z", 128), "é"}
		if !reflect.DeepEqual(got, want) {
			k.Fatalf("order is %q", got)
		}
	}},
	{"wrapped keys by generation", func(k *kit) {
		k.enrol(10, 11)
		for _, w := range []delivery.WrappedKey{
			{Device: deviceID(10), Generation: 2, Wrapped: []byte("two")}, {Device: deviceID(10), Generation: 1, Wrapped: []byte("one")},
			{Device: deviceID(11), Generation: 1, Wrapped: []byte("other")}, {Device: deviceID(10), Generation: 2, Wrapped: []byte("two again")},
		} {
			k.ok(k.store.PutWrappedKey(k.ctx, w))
		}
		want := []delivery.WrappedKey{{Device: deviceID(10), Generation: 1, Wrapped: []byte("one")}, {Device: deviceID(10), Generation: 2, Wrapped: []byte("two again")}}
		if got := must(k.store.WrappedKeys(k.ctx, deviceID(10)))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("keys are %+v", got)
		}
		k.is(k.store.PutWrappedKey(k.ctx, delivery.WrappedKey{Device: deviceID(99)}), delivery.ErrNotFound)
	}},
}

// keyPackage n of device d, suite 1.
func keyPackage(d, n int) delivery.StoredKeyPackage {
	ref, bytes := seed(fmt.Sprint("package ", d), n), seed(fmt.Sprint("package bytes ", d), n)
	return delivery.StoredKeyPackage{Ref: ref[:], Device: deviceID(d), Identity: person(d / 10), Suite: 1, Bytes: bytes[:], NotAfterMS: now + 1000}
}

func lastResort(d, n int) delivery.StoredKeyPackage {
	p := keyPackage(d, n)
	p.LastResort = true
	return p
}
