package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// plenty is a bound on uploads that no test reaches.
const plenty = 1 << 40

func blobID(n int) delivery.BlobID {
	s := seed("blob", n)
	return delivery.BlobID(s[:16])
}

// upload makes a complete blob.
func (k *kit) upload(n, owner int, size int64) delivery.BlobID {
	k.Helper()
	id := blobID(n)
	k.ok(k.store.CreateBlob(k.ctx, delivery.BlobMeta{ID: id, Owner: deviceID(owner), Size: size, CreatedMS: now}, plenty))
	if size > 0 {
		k.ok(k.store.AdvanceBlob(k.ctx, id, 0, size))
	}
	return id
}

// share appends an entry of device d that refers to blobs.
func (k *kit) share(room delivery.RoomID, d, n int, ids ...delivery.BlobID) {
	k.Helper()
	e := message(d, n, must(k.store.Room(k.ctx, room))(k).Epoch)
	e.Blobs = ids
	k.append(room, e)
}

// loose demands that the unreferenced uploads of device d come to exactly want
// bytes: one more byte is just within a bound, or just over it.
func (k *kit) loose(d int, want int64) {
	k.Helper()
	m := delivery.BlobMeta{ID: blobID(1000), Owner: deviceID(d), Size: 1, CreatedMS: now}
	k.is(k.store.CreateBlob(k.ctx, m, want), delivery.ErrLimit)
	k.ok(k.store.CreateBlob(k.ctx, m, want+1))
	k.ok(k.store.DeleteBlob(k.ctx, m.ID))
}

func (k *kit) mayRead(id delivery.BlobID, d int, want bool) {
	k.Helper()
	equal(k, fmt.Sprintf("device %d may read", d), must(k.store.MayReadBlob(k.ctx, id, deviceID(d)))(k), want)
}

var blobs = []contract{
	{"an upload goes on where it stopped", func(k *kit) {
		m := delivery.BlobMeta{ID: blobID(1), Owner: deviceID(10), Size: 100, CreatedMS: now}
		k.ok(k.store.CreateBlob(k.ctx, m, plenty))
		k.is(k.store.CreateBlob(k.ctx, m, plenty), delivery.ErrExists)
		k.ok(k.store.AdvanceBlob(k.ctx, m.ID, 0, 60))
		k.is(k.store.AdvanceBlob(k.ctx, m.ID, 0, 40), delivery.ErrChanged)
		m.Received = 60
		equal(k, "meta", must(k.store.Blob(k.ctx, m.ID))(k), m)
		if err := k.store.AdvanceBlob(k.ctx, m.ID, 60, 101); err == nil {
			k.Fatal("it grew past its declared size")
		}
		if err := k.store.AdvanceBlob(k.ctx, m.ID, 60, 59); err == nil {
			k.Fatal("it shrank")
		}
		k.ok(k.store.AdvanceBlob(k.ctx, m.ID, 60, 100))
		equal(k, "complete", must(k.store.Blob(k.ctx, m.ID))(k).Complete(), true)
		k.share(k.room(1, 10), 10, 1, m.ID)
		equal(k, "references", must(k.store.Blob(k.ctx, m.ID))(k).Refs, 1)
		_, err := k.store.Blob(k.ctx, blobID(99))
		k.is(err, delivery.ErrNotFound)
		k.is(k.store.AdvanceBlob(k.ctx, blobID(99), 0, 1), delivery.ErrNotFound)
	}},
	{"of many going on at once one does", func(k *kit) {
		k.ok(k.store.CreateBlob(k.ctx, delivery.BlobMeta{ID: blobID(1), Owner: deviceID(10), Size: 100, CreatedMS: now}, plenty))
		stores := k.instances()
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wg.Go(func() { errs[i] = stores[i%len(stores)].AdvanceBlob(k.ctx, blobID(1), 0, int64(i+1)) })
		}
		wg.Wait()
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				equal(k, "received", must(k.store.Blob(k.ctx, blobID(1)))(k).Received, int64(i+1))
			} else {
				k.is(err, delivery.ErrChanged)
			}
		}
		equal(k, "winners", won, 1)
	}},
	{"an entry refers only to what exists and is complete", func(k *kit) {
		id := k.room(1, 10)
		k.ok(k.store.CreateBlob(k.ctx, delivery.BlobMeta{ID: blobID(1), Owner: deviceID(10), Size: 100, CreatedMS: now}, plenty))
		whole := k.upload(2, 10, 100)
		for _, refs := range [][]delivery.BlobID{{blobID(1)}, {blobID(99)}, {whole, blobID(1)}} {
			e := message(10, 1, 0)
			e.Blobs = refs
			k.is(k.store.WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
				_, err := tx.Append(e)
				return err
			}), delivery.ErrNotFound)
		}
		k.with(id, func(tx delivery.RoomTx) error { // and a refused one lets the transaction go on
			e := message(10, 1, 0)
			e.Blobs = []delivery.BlobID{whole, blobID(99)}
			if _, err := tx.Append(e); !errors.Is(err, delivery.ErrNotFound) {
				return fmt.Errorf("append says %v", err)
			}
			_, err := tx.Append(message(10, 2, 0))
			return err
		})
		equal(k, "entries", len(k.log(id)), 1)
		k.loose(10, 200)
	}},
	{"the owner may read, and members where an entry refers to it", func(k *kit) {
		a, b := k.room(1, 10, 20), k.room(2, 20, 30)
		id := k.upload(1, 10, 100)
		k.mayRead(id, 10, true)
		k.mayRead(id, 20, false)
		k.share(a, 10, 1, id)
		k.mayRead(id, 20, true)
		k.mayRead(id, 30, false)
		k.share(b, 20, 2, id) // forwarding refers again
		k.mayRead(id, 30, true)
		k.mayRead(id, 99, false)
		k.commit(b, 20, func(a *delivery.Advance) { a.Removed = []identity.DeviceID{deviceID(30)} })
		k.mayRead(id, 30, false)
		k.mayRead(blobID(99), 10, false)
	}},
	{"a referenced blob is not deleted", func(k *kit) {
		room := k.room(1, 10)
		id, loose := k.upload(1, 10, 100), k.upload(2, 10, 50)
		k.loose(10, 150)
		k.share(room, 10, 1, id, id) // named twice, referred to once
		k.loose(10, 50)
		k.is(k.store.DeleteBlob(k.ctx, id), delivery.ErrExists)
		k.ok(k.store.DeleteBlob(k.ctx, loose))
		k.is(k.store.DeleteBlob(k.ctx, loose), delivery.ErrNotFound)
		k.loose(10, 0)
		k.loose(99, 0)
	}},
	{"declared sizes count while an upload is under way", func(k *kit) {
		k.ok(k.store.CreateBlob(k.ctx, delivery.BlobMeta{ID: blobID(1), Owner: deviceID(10), Size: 1000, CreatedMS: now}, plenty))
		k.loose(10, 1000)
	}},
	{"an upload over the owner's bound is not begun", func(k *kit) {
		room := k.room(1, 10)
		sent := k.upload(1, 10, 60)
		k.upload(2, 11, 500) // another's do not count
		over := delivery.BlobMeta{ID: blobID(3), Owner: deviceID(10), Size: 41, CreatedMS: now}
		k.is(k.store.CreateBlob(k.ctx, over, 100), delivery.ErrLimit)
		_, err := k.store.Blob(k.ctx, over.ID)
		k.is(err, delivery.ErrNotFound)
		k.share(room, 10, 1, sent) // what an entry refers to does not count
		k.ok(k.store.CreateBlob(k.ctx, over, 100))
		k.is(k.store.CreateBlob(k.ctx, delivery.BlobMeta{ID: blobID(4), Owner: deviceID(10), Size: 1 << 62, CreatedMS: now}, 100), delivery.ErrLimit)
		k.is(k.store.CreateBlob(k.ctx, delivery.BlobMeta{ID: blobID(4), Owner: deviceID(10), Size: 1, CreatedMS: now}, 10), delivery.ErrLimit) // the bound was lowered
	}},
	{"uploads that begin at once keep within the bound together", func(k *kit) {
		stores := k.instances()
		var wg sync.WaitGroup
		errs := make([]error, 32)
		for i := range errs {
			wg.Go(func() {
				errs[i] = stores[i%len(stores)].CreateBlob(k.ctx, delivery.BlobMeta{ID: blobID(i), Owner: deviceID(10), Size: 10, CreatedMS: now}, 75)
			})
		}
		wg.Wait()
		begun := 0
		for _, err := range errs {
			if err == nil {
				begun++
			} else {
				k.is(err, delivery.ErrLimit)
			}
		}
		equal(k, "begun", begun, 7)
		k.loose(10, 70)
	}},
	{"a deletion beside an append: one of them wins", func(k *kit) {
		room := k.room(1, 10)
		stores := k.instances()
		for n := range 20 {
			id := k.upload(n, 10, 1)
			var wg sync.WaitGroup
			var errAppend, errDelete error
			wg.Go(func() {
				errAppend = stores[0].WithRoom(k.ctx, room, func(tx delivery.RoomTx) error {
					e := message(10, n, 0)
					e.Blobs = []delivery.BlobID{id}
					_, err := tx.Append(e)
					return err
				})
			})
			wg.Go(func() { errDelete = stores[len(stores)-1].DeleteBlob(k.ctx, id) })
			wg.Wait()
			switch {
			case errAppend == nil:
				k.is(errDelete, delivery.ErrExists)
				must(k.store.Blob(k.ctx, id))(k)
			default:
				k.is(errAppend, delivery.ErrNotFound)
				k.ok(errDelete)
			}
		}
	}},
}

func profile(n int, username string) delivery.Profile {
	return delivery.Profile{Identity: person(n), Username: username, Record: fmt.Appendf(nil, "record %d", n), Version: 1, PutMS: now}
}

func listing(n int, title, about string, listed int64) delivery.Listing {
	return delivery.Listing{Room: roomID(n), Title: title, About: about, Members: n, ListedMS: listed, ListedBy: person(n)}
}

var directory = []contract{
	{"a profile is found by identity and by name", func(k *kit) {
		want := profile(1, "ada")
		k.ok(k.store.PutProfile(k.ctx, want))
		if got := must(k.store.Profile(k.ctx, person(1)))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("profile is %+v", got)
		}
		if got := must(k.store.ProfileByUsername(k.ctx, "ada"))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("profile is %+v", got)
		}
		_, err := k.store.Profile(k.ctx, person(9))
		k.is(err, delivery.ErrNotFound)
		for _, name := range []string{"ad", "adaa", "", "Ada"} {
			_, err = k.store.ProfileByUsername(k.ctx, name)
			k.is(err, delivery.ErrNotFound)
		}
	}},
	{"a username is pinned to its first identity", func(k *kit) {
		k.ok(k.store.PutProfile(k.ctx, profile(1, "ada")))
		k.is(k.store.PutProfile(k.ctx, profile(2, "ada")), delivery.ErrExists)
		_, err := k.store.Profile(k.ctx, person(2))
		k.is(err, delivery.ErrNotFound)
		k.ok(k.store.PutProfile(k.ctx, profile(2, "bob")))
		steal := profile(2, "ada")
		steal.Version = 2
		k.is(k.store.PutProfile(k.ctx, steal), delivery.ErrExists)
		equal(k, "name", must(k.store.Profile(k.ctx, person(2)))(k).Username, "bob")
		equal(k, "owner", must(k.store.ProfileByUsername(k.ctx, "ada"))(k).Identity, person(1))
	}},
	{"only a higher version replaces", func(k *kit) {
		k.ok(k.store.PutProfile(k.ctx, profile(1, "ada")))
		k.is(k.store.PutProfile(k.ctx, profile(1, "ada")), delivery.ErrChanged)
		newer := profile(1, "lovelace")
		newer.Version, newer.Record = 7, []byte("newer")
		k.ok(k.store.PutProfile(k.ctx, newer))
		lower := newer
		lower.Version = 6
		k.is(k.store.PutProfile(k.ctx, lower), delivery.ErrChanged)
		_, err := k.store.ProfileByUsername(k.ctx, "ada")
		k.is(err, delivery.ErrNotFound)
		k.ok(k.store.PutProfile(k.ctx, profile(2, "ada"))) // the name is free again
	}},
	{"many people without a username", func(k *kit) {
		for n := 1; n <= 3; n++ {
			k.ok(k.store.PutProfile(k.ctx, profile(n, "")))
		}
		equal(k, "name", must(k.store.Profile(k.ctx, person(2)))(k).Username, "")
	}},
	{"of many taking one name at once one gets it", func(k *kit) {
		stores := k.instances()
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wg.Go(func() { errs[i] = stores[i%len(stores)].PutProfile(k.ctx, profile(i, "ada")) })
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
	{"search by prefix, in order", func(k *kit) {
		for n, name := range []string{"ada", "adam", "ad_x", "ad%y", "eve", "adá", "zz", ""} {
			k.ok(k.store.PutProfile(k.ctx, profile(n+1, name)))
		}
		names := func(prefix string, limit int) (list []string) {
			for _, p := range must(k.store.SearchProfiles(k.ctx, prefix, limit))(k) {
				list = append(list, p.Username)
			}
			return list
		}
		for _, c := range []struct {
			prefix string
			limit  int
			want   []string
		}{
			{"ad", 10, []string{"ad%y", "ad_x", "ada", "adam", "adá"}},
			{"ad", 2, []string{"ad%y", "ad_x"}},
			{"ad_", 10, []string{"ad_x"}},
			{"ad%", 10, []string{"ad%y"}},
			{"adam", 10, []string{"adam"}},
			{"adá", 10, []string{"adá"}},
			{"a", 10, nil},
			{"", 10, nil},
			{"xx", 10, nil},
		} {
			if got := names(c.prefix, c.limit); !reflect.DeepEqual(got, c.want) {
				k.Errorf("%q gives %q, want %q", c.prefix, got, c.want)
			}
		}
	}},
	{"a listing is put, replaced and deleted", func(k *kit) {
		l := listing(1, "Gardens", "about roses", now)
		picture := blobID(5)
		l.PictureID = &picture
		k.ok(k.store.PutListing(k.ctx, l))
		if got := must(k.store.Listing(k.ctx, l.Room))(k); !reflect.DeepEqual(got, l) {
			k.Fatalf("listing is %+v", got)
		}
		l.Title, l.PictureID, l.Members = "Parks", nil, 9
		k.ok(k.store.PutListing(k.ctx, l))
		if got := must(k.store.Listing(k.ctx, l.Room))(k); !reflect.DeepEqual(got, l) {
			k.Fatalf("listing is %+v", got)
		}
		equal(k, "found by the old title", len(must(k.store.Listings(k.ctx, "gardens", 10, 0))(k)), 0)
		k.ok(k.store.DeleteListing(k.ctx, l.Room))
		k.ok(k.store.DeleteListing(k.ctx, l.Room))
		_, err := k.store.Listing(k.ctx, l.Room)
		k.is(err, delivery.ErrNotFound)
	}},
	{"listings by a part of title or description, newest first", func(k *kit) {
		for n, c := range []struct{ title, about string }{
			{"Gardens", "roses and more"}, {"Ärzte", "100% music"}, {"Roses", ""}, {"under_score", "x"}, {"ПРИВЕТ", "мир"},
		} {
			k.ok(k.store.PutListing(k.ctx, listing(n, c.title, c.about, now+int64(n))))
		}
		titles := func(query string, limit, offset int) (list []string) {
			for _, l := range must(k.store.Listings(k.ctx, query, limit, offset))(k) {
				list = append(list, l.Title)
			}
			return list
		}
		for _, c := range []struct {
			query         string
			limit, offset int
			want          []string
		}{
			{"", 10, 0, []string{"ПРИВЕТ", "under_score", "Roses", "Ärzte", "Gardens"}},
			{"", 2, 1, []string{"under_score", "Roses"}},
			{"", 2, 5, nil},
			{"ROSES", 10, 0, []string{"Roses", "Gardens"}},
			{"ose", 10, 0, []string{"Roses", "Gardens"}},
			{"ärzte", 10, 0, []string{"Ärzte"}},
			{"привет", 10, 0, []string{"ПРИВЕТ"}},
			{"%", 10, 0, []string{"Ärzte"}},
			{"_", 10, 0, []string{"under_score"}},
			{"nothing", 10, 0, nil},
		} {
			if got := titles(c.query, c.limit, c.offset); !reflect.DeepEqual(got, c.want) {
				k.Errorf("%q %d %d gives %q, want %q", c.query, c.limit, c.offset, got, c.want)
			}
		}
	}},
}

var settings = []contract{
	{"set, read, replaced", func(k *kit) {
		_, err := k.store.Setting(k.ctx, "home")
		k.is(err, delivery.ErrNotFound)
		k.ok(k.store.PutSetting(k.ctx, "home", []byte("abc")))
		equal(k, "value", string(must(k.store.Setting(k.ctx, "home"))(k)), "abc")
		k.ok(k.store.PutSetting(k.ctx, "home", []byte("def")))
		k.ok(k.store.PutSetting(k.ctx, "other", nil))
		equal(k, "value", string(must(k.store.Setting(k.ctx, "home"))(k)), "def")
		equal(k, "empty value", len(must(k.store.Setting(k.ctx, "other"))(k)), 0)
	}},
	{"instances starting together agree", func(k *kit) {
		stores := k.instances()
		var wg sync.WaitGroup
		got, errs := make([][]byte, 32), make([]error, 32)
		for i := range got {
			wg.Go(func() { got[i], errs[i] = stores[i%len(stores)].InitSetting(k.ctx, "home", []byte{byte(i)}) })
		}
		wg.Wait()
		stands := must(k.store.Setting(k.ctx, "home"))(k)
		for i := range got {
			k.ok(errs[i])
			equal(k, "value", string(got[i]), string(stands))
		}
	}},
	{"the store says that it can take a write", func(k *kit) { k.ok(k.store.Ping(k.ctx)) }},
}
