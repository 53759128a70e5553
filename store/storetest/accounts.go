package storetest

import (
	"fmt"
	"maps"
	"reflect"
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
		k.ok(k.store.Enrol(k.ctx, again, many))
		equal(k, "enrolled", must(k.store.Device(k.ctx, again.ID))(k).EnrolledMS, now)
	}},
	{"a higher version replaces the credential and nothing else", func(k *kit) {
		k.enrol(10)
		newer := device(10)
		newer.Version, newer.Credential, newer.EnrolledMS = 5, []byte("newer"), now+5
		k.ok(k.store.Enrol(k.ctx, newer, many))
		want := device(10)
		want.Version, want.Credential = 5, newer.Credential
		if got := must(k.store.Device(k.ctx, want.ID))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("device is %+v, want %+v", got, want)
		}
		lower := device(10)
		lower.Version = 4
		k.is(k.store.Enrol(k.ctx, lower, many), delivery.ErrChanged)
		equivocal := newer
		equivocal.Credential = []byte("other content, same version")
		k.is(k.store.Enrol(k.ctx, equivocal, many), delivery.ErrChanged)
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
			if err := k.store.Enrol(k.ctx, forged, many); err == nil {
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
	{"when devices were last seen, of as many as are asked for", func(k *kit) {
		var asked []identity.DeviceID
		var all []int
		for n := range 150 {
			asked = append(asked, deviceID(1000+n))
			if n%3 != 0 {
				all = append(all, 1000+n)
			}
		}
		k.enrol(all...)
		must(k.store.OpenSession(k.ctx, session(1, 1001, 0, 1)))(k)
		for _, n := range []int{0, 1, 63, 64, 65, 128, 150} {
			got := must(k.store.LastSeen(k.ctx, asked[:n]))(k)
			want := map[identity.DeviceID]int64{}
			for _, id := range asked[:n] {
				d, err := k.store.Device(k.ctx, id)
				if err == nil {
					want[id] = d.SeenMS
				} else {
					k.is(err, delivery.ErrNotFound)
				}
			}
			if len(want) != n-(n+2)/3 || !maps.Equal(got, want) {
				k.Fatalf("of %d devices %d were seen, want %d", n, len(got), len(want))
			}
		}
	}},
	{"a person's devices, by enrolment", func(k *kit) {
		k.enrol(13, 11, 20, 12)
		got := must(k.store.Devices(k.ctx, person(1)))(k)
		if want := []delivery.Device{device(13), device(11), device(12)}; !reflect.DeepEqual(got, want) {
			k.Fatalf("devices are %+v", got)
		}
		equal(k, "devices of a stranger", len(must(k.store.Devices(k.ctx, person(9)))(k)), 0)
	}},
	{"an identity has at most so many devices", func(k *kit) {
		most := delivery.DeviceBound{Devices: 2, Revocations: 100}
		k.ok(k.store.Enrol(k.ctx, device(10), most))
		k.ok(k.store.Enrol(k.ctx, device(11), most))
		k.is(k.store.Enrol(k.ctx, device(12), most), delivery.ErrLimit)
		_, err := k.store.Device(k.ctx, deviceID(12))
		k.is(err, delivery.ErrNotFound)
		k.ok(k.store.Enrol(k.ctx, device(20), most)) // another's do not count
		newer := device(11)
		newer.Version = 2
		k.ok(k.store.Enrol(k.ctx, device(11), most)) // nor what is there already
		k.ok(k.store.Enrol(k.ctx, newer, most))
		must(k.store.Revoke(k.ctx, revocation(10), most))(k)
		k.ok(k.store.Enrol(k.ctx, device(12), most))
	}},
	{"devices and revocations together are bounded, and an enrolled device is always revoked", func(k *kit) {
		most := delivery.DeviceBound{Devices: 100, Revocations: 4}
		for n := 10; n <= 12; n++ {
			k.ok(k.store.Enrol(k.ctx, device(n), most))
		}
		equal(k, "of one that never was", must(k.store.Revoke(k.ctx, revocation(19), most))(k), true)
		_, err := k.store.Revoke(k.ctx, revocation(18), most)
		k.is(err, delivery.ErrLimit)
		_, err = k.store.Revoked(k.ctx, person(1), deviceID(18))
		k.is(err, delivery.ErrNotFound)
		k.is(k.store.Enrol(k.ctx, device(13), most), delivery.ErrLimit)
		for n := 10; n <= 12; n++ {
			equal(k, "fresh", must(k.store.Revoke(k.ctx, revocation(n), most))(k), true)
			_, err := k.store.Device(k.ctx, deviceID(n))
			k.is(err, delivery.ErrNotFound)
		}
		k.is(k.store.Enrol(k.ctx, device(13), most), delivery.ErrLimit)
		equal(k, "fresh", must(k.store.Revoke(k.ctx, revocation(19), most))(k), false) // known ones are no more
		equal(k, "of another", must(k.store.Revoke(k.ctx, revocation(20), most))(k), true)
		equal(k, "revocations", len(must(k.store.Revocations(k.ctx, person(1)))(k)), 4)
	}},
	{"who enrols and revokes at once keeps within the bound", func(k *kit) {
		most := delivery.DeviceBound{Devices: 3, Revocations: 5}
		stores := k.instances()
		var wg sync.WaitGroup
		errs := make([]error, 32)
		for i := range errs {
			s := stores[i%len(stores)]
			wg.Go(func() {
				d := device(i)
				d.Identity = person(1)
				if i%4 < 2 {
					errs[i] = s.Enrol(k.ctx, d, most)
					return
				}
				_, errs[i] = s.Revoke(k.ctx, delivery.StoredRevocation{Identity: person(1), Device: d.ID, RevokedMS: now}, most)
			})
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil {
				k.is(err, delivery.ErrLimit)
			}
		}
		devices, revocations := len(must(k.store.Devices(k.ctx, person(1)))(k)), len(must(k.store.Revocations(k.ctx, person(1)))(k))
		if devices > most.Devices || devices+revocations != most.Revocations {
			k.Fatalf("%d devices and %d revocations", devices, revocations)
		}
	}},
	{"one key enrolled by many at once goes to one", func(k *kit) {
		var wg sync.WaitGroup
		errs := make([]error, 16)
		stores := k.instances()
		for i := range errs {
			wg.Go(func() {
				d := device(10 + i)
				d.Key = device(10).Key
				errs[i] = stores[i%len(stores)].Enrol(k.ctx, d, many)
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
		k.enrol(10, 11)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		must(k.store.OpenSession(k.ctx, session(2, 11, 0, 1)))(k)
		k.ok(k.store.CloseSession(k.ctx, seed("token", 1)))
		k.ok(k.store.CloseSession(k.ctx, seed("token", 1)))
		_, err := k.store.Session(k.ctx, seed("token", 1), now)
		k.is(err, delivery.ErrNotFound)
		must(k.store.Session(k.ctx, seed("token", 2), now))(k)
	}},
	{"a login ends the device's other sessions, and nobody else's", func(k *kit) {
		k.enrol(10, 11)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		must(k.store.OpenSession(k.ctx, session(2, 11, 0, 1)))(k)
		must(k.store.OpenSession(k.ctx, session(3, 10, 1, 2)))(k)
		_, err := k.store.Session(k.ctx, seed("token", 1), now)
		k.is(err, delivery.ErrNotFound)
		must(k.store.Session(k.ctx, seed("token", 2), now))(k)
		must(k.store.Session(k.ctx, seed("token", 3), now))(k)
		_, err = k.store.OpenSession(k.ctx, session(2, 10, 2, 3)) // the token is somebody else's
		k.is(err, delivery.ErrExists)
		must(k.store.Session(k.ctx, seed("token", 3), now))(k)
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
			{3, 9, true, "a copy again"},
			{3, 9, true, "its answer was lost, so it is told again"},
			{3, 9, true, "and again"},
			{9, 10, false, "it knows"},
			{9, 10, false, "and has nothing more to know when this answer is lost"},
		} {
			copied := must(k.store.OpenSession(k.ctx, session(i, 10, c.have, c.want)))(k)
			if copied != c.copied {
				k.Fatalf("login %d (%s): copied is %v", i, c.why, copied)
			}
		}
	}},
	{"who resumes leaves a copy its place", func(k *kit) {
		k.enrol(10)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		must(k.store.OpenSession(k.ctx, session(2, 10, 1, 2)))(k)
		for i := range 2 { // again changes nothing either
			late := session(3+i, 10, 1, 9)
			late.Resume = true
			equal(k, "copied", must(k.store.OpenSession(k.ctx, late))(k), true)
			_, err := k.store.Session(k.ctx, late.Token, now)
			k.is(err, delivery.ErrNotFound)
		}
		must(k.store.Session(k.ctx, seed("token", 2), now))(k)
		known := session(5, 10, 2, 3)
		known.Resume = true
		equal(k, "copied", must(k.store.OpenSession(k.ctx, known))(k), false)
		_, err := k.store.Session(k.ctx, seed("token", 2), now)
		k.is(err, delivery.ErrNotFound)
		must(k.store.Session(k.ctx, known.Token, now))(k)
	}},
	{"who resumes does not take the place of a copy whose answer was lost", func(k *kit) {
		k.enrol(10)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		equal(k, "copied", must(k.store.OpenSession(k.ctx, session(2, 10, 7, 8)))(k), true)
		same := session(3, 10, 7, 8)
		same.Resume = true
		equal(k, "copied", must(k.store.OpenSession(k.ctx, same))(k), true)
		_, err := k.store.Session(k.ctx, same.Token, now)
		k.is(err, delivery.ErrNotFound)
		must(k.store.Session(k.ctx, seed("token", 2), now))(k)
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
