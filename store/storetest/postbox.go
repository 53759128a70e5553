package storetest

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/askucher/compax-core/delivery"
)

var keyPackages = []contract{
	{"a claim takes one of each device, oldest first", func(k *kit) {
		k.enrol(10, 11, 20)
		for _, d := range []int{10, 11, 20} {
			k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(d, 1), keyPackage(d, 2)}))
		}
		first := must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now))(k)
		equal(k, "claimed", len(first), 2)
		for _, p := range first {
			want := keyPackage(10, 1)
			if p.Device == deviceID(11) {
				want = keyPackage(11, 1)
			}
			if !reflect.DeepEqual(p, want) {
				k.Fatalf("package is %+v, want %+v", p, want)
			}
		}
		second := must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now))(k)
		equal(k, "claimed", len(second), 2)
		equal(k, "claimed of nothing", len(must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now))(k)), 0)
		equal(k, "claimed of nobody", len(must(k.store.ClaimKeyPackages(k.ctx, person(9), 1, now))(k)), 0)
	}},
	{"suites are apart", func(k *kit) {
		k.enrol(10)
		p := keyPackage(10, 1)
		p.Suite = 3
		k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{p}))
		equal(k, "suite 1", len(must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now))(k)), 0)
		k.left(10, 3, 1, false)
		equal(k, "suite 3", len(must(k.store.ClaimKeyPackages(k.ctx, person(1), 3, now))(k)), 1)
	}},
	{"the last resort only when nothing else is left, again and again", func(k *kit) {
		k.enrol(10)
		k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{lastResort(10, 9), keyPackage(10, 1)}))
		k.left(10, 1, 1, true)
		for i, want := range []delivery.StoredKeyPackage{keyPackage(10, 1), lastResort(10, 9), lastResort(10, 9), lastResort(10, 9)} {
			got := must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now))(k)
			if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
				k.Fatalf("claim %d gives %+v", i, got)
			}
		}
		k.left(10, 1, 0, true)
	}},
	{"a new last resort replaces the old one of its suite", func(k *kit) {
		k.enrol(10)
		other := lastResort(10, 3)
		other.Suite = 3
		k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{lastResort(10, 1), other}))
		k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{lastResort(10, 2)}))
		got := must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now))(k)
		equal(k, "claimed", len(got), 1)
		equal(k, "ref", string(got[0].Ref), string(lastResort(10, 2).Ref))
		equal(k, "the other suite's", len(must(k.store.ClaimKeyPackages(k.ctx, person(1), 3, now))(k)), 1)
		equal(k, "whose the old one was", must(k.store.PackageDevice(k.ctx, lastResort(10, 1).Ref))(k), deviceID(10))
		k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{lastResort(10, 1)})) // a known ref does not come back
		got = must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now))(k)
		equal(k, "ref", string(got[0].Ref), string(lastResort(10, 2).Ref))
	}},
	{"known refs are ignored, claimed ones too", func(k *kit) {
		k.enrol(10)
		batch := []delivery.StoredKeyPackage{keyPackage(10, 1), keyPackage(10, 2)}
		k.ok(k.store.PublishKeyPackages(k.ctx, batch))
		k.ok(k.store.PublishKeyPackages(k.ctx, batch))
		k.left(10, 1, 2, false)
		must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now))(k)
		k.ok(k.store.PublishKeyPackages(k.ctx, append(batch, keyPackage(10, 3))))
		k.left(10, 1, 2, false)
	}},
	{"a batch is one device's, known and whole", func(k *kit) {
		k.enrol(10, 11)
		if err := k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(10, 1), keyPackage(11, 1)}); err == nil {
			k.Fatal("a batch of two devices was taken")
		}
		k.left(10, 1, 0, false)
		k.is(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(99, 1)}), delivery.ErrNotFound)
		k.ok(k.store.PublishKeyPackages(k.ctx, nil))
	}},
	{"expired packages are neither given nor counted", func(k *kit) {
		k.enrol(10)
		late := keyPackage(10, 2)
		late.NotAfterMS = now + 5000
		k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(10, 1), late, lastResort(10, 3)}))
		got := must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now+1000))(k)
		equal(k, "claimed", len(got), 1)
		equal(k, "ref", string(got[0].Ref), string(late.Ref))
		equal(k, "claimed after", len(must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now+1000))(k)), 0)
		n, last, err := k.store.CountKeyPackages(k.ctx, deviceID(10), 1, now+1000)
		k.ok(err)
		equal(k, "count", n, 0)
		equal(k, "last resort", last, false)
		k.left(10, 1, 1, true)
	}},
	{"whose a package is, claimed or not", func(k *kit) {
		k.enrol(10)
		k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(10, 1), keyPackage(10, 2)}))
		must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now))(k)
		for n := 1; n <= 2; n++ {
			equal(k, "device", must(k.store.PackageDevice(k.ctx, keyPackage(10, n).Ref))(k), deviceID(10))
		}
		_, err := k.store.PackageDevice(k.ctx, []byte("nobody's"))
		k.is(err, delivery.ErrNotFound)
	}},
	{"100 claims at once: each package once, the last resort only when empty", func(k *kit) {
		const packages, claims = 60, 100
		k.enrol(10, 11)
		for _, d := range []int{10, 11} {
			batch := []delivery.StoredKeyPackage{lastResort(d, 1000)}
			for n := range packages {
				batch = append(batch, keyPackage(d, n))
			}
			k.ok(k.store.PublishKeyPackages(k.ctx, batch))
		}
		stores := k.instances()
		var wg sync.WaitGroup
		got, errs := make([][]delivery.StoredKeyPackage, claims), make([]error, claims)
		for i := range claims {
			wg.Go(func() { got[i], errs[i] = stores[i%len(stores)].ClaimKeyPackages(k.ctx, person(1), 1, now) })
		}
		wg.Wait()
		times, resorts := map[string]int{}, 0
		for i := range claims {
			k.ok(errs[i])
			equal(k, "packages of a claim", len(got[i]), 2)
			for _, p := range got[i] {
				if p.LastResort {
					resorts++
				} else {
					times[string(p.Ref)]++
				}
			}
		}
		equal(k, "packages given", len(times), 2*packages)
		for ref, n := range times {
			if n != 1 {
				k.Fatalf("package %x was given %d times", ref, n)
			}
		}
		equal(k, "last resorts given", resorts, 2*(claims-packages))
	}},
}

// left checks what a device has left.
func (k *kit) left(d int, suite uint16, want int, lastResort bool) {
	k.Helper()
	n, last, err := k.store.CountKeyPackages(k.ctx, deviceID(d), suite, now)
	k.ok(err)
	equal(k, "packages left", n, want)
	equal(k, "last resort left", last, lastResort)
}

func (k *kit) put(d int, m delivery.MailItem) (uint64, bool) {
	k.Helper()
	id, put, err := k.store.PutMail(k.ctx, deviceID(d), m)
	k.ok(err)
	return id, put
}

var mailboxes = []contract{
	{"items read back in order, after an id, up to a limit", func(k *kit) {
		k.enrol(10, 11)
		var want []delivery.MailItem
		for n := 1; n <= 4; n++ {
			m := delivery.MailItem{
				Kind: delivery.MailWelcome, Room: roomID(n), Epoch: uint64(n), StartSeq: uint64(10 * n), Payload: []byte{byte(n)}, CreatedMS: now, Key: fmt.Sprint("k", n),
			}
			id, put := k.put(10, m)
			equal(k, "id", id, uint64(n))
			equal(k, "put", put, true)
			m.ID = id
			want = append(want, m)
		}
		if got := must(k.store.Mail(k.ctx, deviceID(10), 0, 10))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("mail is %+v, want %+v", got, want)
		}
		if got := must(k.store.Mail(k.ctx, deviceID(10), 1, 2))(k); !reflect.DeepEqual(got, want[1:3]) {
			k.Fatalf("page is %+v", got)
		}
		equal(k, "another's mail", len(must(k.store.Mail(k.ctx, deviceID(11), 0, 10))(k)), 0)
		id, _ := k.put(11, want[0])
		equal(k, "first id of another device", id, 1)
	}},
	{"a key is put once, even after it was acknowledged", func(k *kit) {
		k.enrol(10, 11)
		m := delivery.MailItem{Kind: delivery.MailAsk, Key: "same", Payload: []byte("1")}
		first, _ := k.put(10, m)
		m.Payload = []byte("2")
		again, put := k.put(10, m)
		equal(k, "put", put, false)
		equal(k, "id", again, first)
		items := must(k.store.Mail(k.ctx, deviceID(10), 0, 10))(k)
		equal(k, "items", len(items), 1)
		equal(k, "payload", string(items[0].Payload), "1")
		k.ok(k.store.AckMail(k.ctx, deviceID(10), []uint64{first}))
		_, put = k.put(10, m)
		equal(k, "put after the acknowledgement", put, false)
		_, put = k.put(11, m)
		equal(k, "put for another device", put, true)
		equal(k, "items", len(must(k.store.Mail(k.ctx, deviceID(10), 0, 10))(k)), 0)
	}},
	{"without a key nothing is compared", func(k *kit) {
		k.enrol(10)
		k.put(10, delivery.MailItem{Kind: delivery.MailLowKeys})
		_, put := k.put(10, delivery.MailItem{Kind: delivery.MailLowKeys})
		equal(k, "put", put, true)
	}},
	{"acknowledged items are gone, others stay, ids are not given again", func(k *kit) {
		k.enrol(10, 11)
		for range 3 {
			k.put(10, delivery.MailItem{Kind: delivery.MailRemoved})
		}
		k.put(11, delivery.MailItem{Kind: delivery.MailRemoved})
		k.ok(k.store.AckMail(k.ctx, deviceID(10), []uint64{1, 3, 99}))
		k.ok(k.store.AckMail(k.ctx, deviceID(10), []uint64{1})) // idempotent
		k.ok(k.store.AckMail(k.ctx, deviceID(10), nil))
		items := must(k.store.Mail(k.ctx, deviceID(10), 0, 10))(k)
		equal(k, "items", len(items), 1)
		equal(k, "id", items[0].ID, 2)
		equal(k, "another's", len(must(k.store.Mail(k.ctx, deviceID(11), 0, 10))(k)), 1)
		k.ok(k.store.AckMail(k.ctx, deviceID(10), []uint64{2}))
		id, _ := k.put(10, delivery.MailItem{Kind: delivery.MailRemoved})
		equal(k, "next id", id, 4)
	}},
	{"many putting one key at once put one item", func(k *kit) {
		k.enrol(10)
		stores := k.instances()
		var wg sync.WaitGroup
		ids, puts, errs := make([]uint64, 32), make([]bool, 32), make([]error, 32)
		for i := range ids {
			wg.Go(func() {
				ids[i], puts[i], errs[i] = stores[i%len(stores)].PutMail(k.ctx, deviceID(10), delivery.MailItem{Kind: delivery.MailWelcome, Key: "one"})
			})
		}
		wg.Wait()
		n := 0
		for i := range ids {
			k.ok(errs[i])
			equal(k, "id", ids[i], 1)
			if puts[i] {
				n++
			}
		}
		equal(k, "put", n, 1)
		equal(k, "items", len(must(k.store.Mail(k.ctx, deviceID(10), 0, 100))(k)), 1)
	}},
	{"ids ascend without a double under many writers", func(k *kit) {
		k.enrol(10)
		stores := k.instances()
		var wg sync.WaitGroup
		errs := make([]error, 32)
		for i := range errs {
			wg.Go(func() {
				_, _, errs[i] = stores[i%len(stores)].PutMail(k.ctx, deviceID(10), delivery.MailItem{Kind: delivery.MailWelcome, Key: fmt.Sprint(i)})
			})
		}
		wg.Wait()
		for _, err := range errs {
			k.ok(err)
		}
		for i, m := range must(k.store.Mail(k.ctx, deviceID(10), 0, 100))(k) {
			equal(k, "id", m.ID, uint64(i+1))
		}
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
