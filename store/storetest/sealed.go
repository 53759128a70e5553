package storetest

import (
	"bytes"
	"crypto/sha256"
	"reflect"
	"strings"
	"sync"

	"github.com/askucher/compax-core/delivery"
)

// roomy is a bound that no contract reaches.
var roomy = delivery.ArchiveBound{Segments: 1000, Bytes: 1 << 30}

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
		put := func(n int, name, bytes string, before ...string) {
			var replaces [32]byte
			for _, b := range before {
				replaces = sha256.Sum256([]byte(b))
			}
			k.ok(k.store.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(n), Name: name, Size: len(bytes), CreatedMS: now, Sealed: []byte(bytes)}, replaces, roomy))
		}
		put(1, "b", "bb")
		put(1, "a", "a")
		put(1, "c", "ccc")
		put(2, "z", "other")
		put(1, "b", "replaced", "bb")
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
			k.ok(k.store.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(1), Name: n, CreatedMS: now}, [32]byte{}, roomy))
		}
		k.found(k.store.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(1), Name: "a", CreatedMS: now}, [32]byte{}, roomy), true)
		if err := k.store.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(1), Name: strings.Repeat("z", 129)}, [32]byte{}, roomy); err == nil {
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
	{"a segment replaces what its writer read", func(k *kit) {
		put := func(bytes, before string) error {
			var replaces [32]byte
			if before != "" {
				replaces = sha256.Sum256([]byte(before))
			}
			return k.store.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(1), Name: "a", CreatedMS: now, Sealed: []byte(bytes)}, replaces, roomy)
		}
		k.is(put("one", "nothing"), delivery.ErrChanged)
		k.ok(put("one", ""))
		k.is(put("other", ""), delivery.ErrChanged)
		k.ok(put("one", "")) // asked again: the answer was lost
		k.ok(put("two", "one"))
		k.is(put("three", "one"), delivery.ErrChanged)
		equal(k, "bytes", string(must(k.store.ArchiveSegment(k.ctx, person(1), "a"))(k).Sealed), "two")
	}},
	{"of many replacing one segment one wins", func(k *kit) {
		stores := k.instances()
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wg.Go(func() {
				s := delivery.ArchiveSegment{Identity: person(1), Name: "a", CreatedMS: now, Sealed: []byte{byte(i)}}
				errs[i] = stores[i%len(stores)].PutArchive(k.ctx, s, [32]byte{}, roomy)
			})
		}
		wg.Wait()
		winners := 0
		for i, err := range errs {
			if err == nil {
				winners++
				equal(k, "bytes", int(must(k.store.ArchiveSegment(k.ctx, person(1), "a"))(k).Sealed[0]), i)
			} else {
				k.is(err, delivery.ErrChanged)
			}
		}
		equal(k, "winners", winners, 1)
	}},
	{"an archive stays within its bound, also when many write to it", func(k *kit) {
		most := delivery.ArchiveBound{Segments: 3, Bytes: 100}
		put := func(s delivery.Store, n int, name string, size int, before []byte) error {
			var replaces [32]byte
			if before != nil {
				replaces = sha256.Sum256(before)
			}
			return s.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(n), Name: name, CreatedMS: now, Sealed: bytes.Repeat([]byte(name), size)}, replaces, most)
		}
		k.ok(put(k.store, 1, "a", 60, nil))
		k.is(put(k.store, 1, "b", 41, nil), delivery.ErrLimit)
		k.ok(put(k.store, 1, "b", 40, nil))
		b := bytes.Repeat([]byte("b"), 40)
		k.is(put(k.store, 1, "b", 41, b), delivery.ErrLimit)
		k.ok(put(k.store, 1, "b", 10, b))
		k.ok(put(k.store, 1, "c", 1, nil))
		k.is(put(k.store, 1, "d", 1, nil), delivery.ErrLimit)
		k.ok(put(k.store, 2, "d", 1, nil))
		most = delivery.ArchiveBound{Segments: 1, Bytes: 1}
		k.ok(put(k.store, 1, "a", 59, bytes.Repeat([]byte("a"), 60))) // a bound that was lowered lets it shrink
		k.is(put(k.store, 1, "a", 60, bytes.Repeat([]byte("a"), 59)), delivery.ErrLimit)
		most = delivery.ArchiveBound{Segments: 5, Bytes: 1 << 20}
		stores := k.instances()
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wg.Go(func() { errs[i] = put(stores[i%len(stores)], 3, string(rune('a'+i)), 1, nil) })
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil {
				k.is(err, delivery.ErrLimit)
			}
		}
		equal(k, "segments", len(must(k.store.Archive(k.ctx, person(3), "", 100))(k)), 5)
	}},
	{"a device has so many wrapped keys and no more", func(k *kit) {
		k.enrol(10, 11)
		put := func(d, generation int) error {
			return k.store.PutWrappedKey(k.ctx, delivery.WrappedKey{Device: deviceID(d), Generation: uint64(generation), Wrapped: []byte("w")}, 2)
		}
		k.ok(put(10, 1))
		k.ok(put(10, 2))
		k.ok(put(10, 2))
		k.is(put(10, 3), delivery.ErrLimit)
		k.ok(put(11, 3))
		equal(k, "keys", len(must(k.store.WrappedKeys(k.ctx, deviceID(10)))(k)), 2)
	}},
	{"wrapped keys by generation", func(k *kit) {
		k.enrol(10, 11)
		for _, w := range []delivery.WrappedKey{
			{Device: deviceID(10), Generation: 2, Wrapped: []byte("two")}, {Device: deviceID(10), Generation: 1, Wrapped: []byte("one")},
			{Device: deviceID(11), Generation: 1, Wrapped: []byte("other")}, {Device: deviceID(10), Generation: 2, Wrapped: []byte("two again")},
		} {
			k.ok(k.store.PutWrappedKey(k.ctx, w, 8))
		}
		want := []delivery.WrappedKey{{Device: deviceID(10), Generation: 1, Wrapped: []byte("one")}, {Device: deviceID(10), Generation: 2, Wrapped: []byte("two again")}}
		if got := must(k.store.WrappedKeys(k.ctx, deviceID(10)))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("keys are %+v", got)
		}
		k.is(k.store.PutWrappedKey(k.ctx, delivery.WrappedKey{Device: deviceID(99)}, 8), delivery.ErrNotFound)
	}},
}
