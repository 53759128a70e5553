package storetest

import (
	"reflect"
	"strings"
	"sync"

	"github.com/askucher/compax-core/delivery"
)

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
