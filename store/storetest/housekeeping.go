package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// everythingOld lets a sweep take all that it may.
var everythingOld = delivery.SweepPlan{
	NowMS: 1 << 60, LogBefore: 1 << 60, ArchiveBefore: 1 << 60, UploadsBefore: 1 << 60, MailKeysBefore: 1 << 60, Limit: 1000,
}

// aged is an entry accepted at a time after now.
func aged(d, n int, ms int64) delivery.NewEntry {
	e := message(d, n, 0)
	e.AcceptedMS = now + ms
	return e
}

var sweeps = []contract{
	{"an empty plan drops nothing", func(k *kit) {
		k.enrol(10)
		id := k.room(1, 10)
		k.append(id, message(10, 1, 0))
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(10, 1)}))
		k.upload(1, 10, 10)
		if got := must(k.store.Sweep(k.ctx, delivery.SweepPlan{}))(k); !reflect.DeepEqual(got, delivery.SweepCounts{}) {
			k.Fatalf("swept %+v", got)
		}
	}},
	{"old entries go from the front, with their dedupe rows", func(k *kit) {
		a, b := k.room(1, 10), k.room(2, 10)
		for n := 1; n <= 5; n++ {
			k.append(a, aged(10, n, int64(n)*10))
		}
		k.append(b, aged(10, 1, 45))
		got := must(k.store.Sweep(k.ctx, delivery.SweepPlan{LogBefore: now + 30, Limit: 100}))(k)
		equal(k, "entries", got.Entries, 2)
		equal(k, "more", got.More, false)
		r := must(k.store.Room(k.ctx, a))(k)
		equal(k, "first seq", r.FirstSeq, 3)
		equal(k, "next seq", r.NextSeq, 6)
		entries := k.log(a)
		equal(k, "kept", len(entries), 3)
		equal(k, "first kept", entries[0].Seq, 3)
		equal(k, "other room", len(k.log(b)), 1)
		k.with(a, func(tx delivery.RoomTx) error {
			for n := 1; n <= 5; n++ {
				_, dup, err := tx.Duplicate(deviceID(10), message(10, n, 0).Hash)
				if err != nil || dup != (n >= 3) {
					return fmt.Errorf("entry %d: duplicate is %v, %v", n, dup, err)
				}
			}
			return nil
		})
	}},
	{"an emptied log goes on counting", func(k *kit) {
		id := k.room(1, 10)
		for n := 1; n <= 3; n++ {
			k.append(id, message(10, n, 0))
		}
		equal(k, "entries", must(k.store.Sweep(k.ctx, everythingOld))(k).Entries, 3)
		r := must(k.store.Room(k.ctx, id))(k)
		equal(k, "first seq", r.FirstSeq, 4)
		equal(k, "next seq", r.NextSeq, 4)
		equal(k, "entries", len(k.log(id)), 0)
		equal(k, "seq", k.append(id, message(10, 4, 0)).Seq, 4)
		k.reopen()
		equal(k, "seq", k.append(id, message(10, 5, 0)).Seq, 5)
		equal(k, "first kept", k.log(id)[0].Seq, 4)
		equal(k, "entries", must(k.store.Sweep(k.ctx, everythingOld))(k).Entries, 2)
	}},
	{"a wrong clock leaves no hole and blocks no other room", func(k *kit) {
		a, b := k.room(1, 10), k.room(2, 10)
		k.append(a, aged(10, 1, 10))
		k.append(a, aged(10, 2, 1_000_000)) // an hour ahead
		k.append(a, aged(10, 3, 20))
		k.append(b, aged(10, 4, 15))
		got := must(k.store.Sweep(k.ctx, delivery.SweepPlan{LogBefore: now + 100, Limit: 100}))(k)
		equal(k, "entries", got.Entries, 2)
		entries := k.log(a)
		equal(k, "kept", len(entries), 2)
		equal(k, "first kept", entries[0].Seq, 2)
		equal(k, "kept of the other", len(k.log(b)), 0)
	}},
	{"a limit cuts it short and the next calls finish", func(k *kit) {
		for n := range 3 {
			id := k.room(n, 10)
			for i := range 7 {
				k.append(id, aged(10, i, int64(n)))
			}
		}
		plan := everythingOld
		plan.Limit = 5
		var total int64
		for calls := 0; ; calls++ {
			got := must(k.store.Sweep(k.ctx, plan))(k)
			if got.Entries > 5 {
				k.Fatalf("a call took %d entries", got.Entries)
			}
			total += got.Entries
			if !got.More {
				break
			}
			if calls > 10 {
				k.Fatal("it does not end")
			}
		}
		equal(k, "entries", total, 21)
		for n := range 3 {
			equal(k, "kept", len(k.log(roomID(n))), 0)
		}
	}},
	{"a call takes one kind of rows to its limit, and appends come between two calls", func(k *kit) {
		k.enrol(10)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		id := k.room(1, 10)
		for n := 1; n <= 25; n++ {
			k.append(id, aged(10, n, 0))
		}
		plan := everythingOld
		plan.Limit = 10
		for i, want := range []delivery.SweepCounts{{Entries: 10, More: true}, {Entries: 10, More: true}} {
			if got := must(k.store.Sweep(k.ctx, plan))(k); !reflect.DeepEqual(got, want) {
				k.Fatalf("call %d swept %+v, want %+v", i+1, got, want)
			}
			equal(k, "first kept", k.log(id)[0].Seq, uint64(10*i+11))
			equal(k, "seq", k.append(id, aged(10, 100+i, 0)).Seq, uint64(26+i))
		}
		var got delivery.SweepCounts
		for more := true; more; {
			n := must(k.store.Sweep(k.ctx, plan))(k)
			got.Entries, got.Sessions, more = got.Entries+n.Entries, got.Sessions+n.Sessions, n.More
		}
		equal(k, "entries", got.Entries, 7)
		equal(k, "sessions", got.Sessions, 1)
	}},
	{"broken off it keeps what it did, and the next goes on", func(k *kit) {
		for n := range 40 {
			k.append(k.room(n, 10), message(10, 1, 0))
		}
		plan := everythingOld
		plan.Limit = 7
		ctx, cancel := context.WithCancel(k.ctx)
		gone := must(k.store.Sweep(ctx, plan))(k).Entries + must(k.store.Sweep(ctx, plan))(k).Entries
		cancel()
		n, err := k.store.Sweep(ctx, plan)
		k.is(err, context.Canceled)
		if !reflect.DeepEqual(n, delivery.SweepCounts{}) {
			k.Fatalf("broken off it swept %+v", n)
		}
		k.reopen()
		kept := int64(0)
		for n := range 40 {
			kept += int64(len(k.log(roomID(n))))
		}
		equal(k, "kept", kept, 40-gone)
		equal(k, "gone", gone, 14)
		for more := true; more; {
			n := must(k.store.Sweep(k.ctx, plan))(k)
			gone, more = gone+n.Entries, n.More
		}
		equal(k, "gone", gone, 40)
	}},
	{"blobs are named behind one that stays", func(k *kit) {
		var ids []delivery.BlobID
		for n := range 9 {
			ids = append(ids, k.upload(n, 10, 1))
		}
		slices.SortFunc(ids, func(x, y delivery.BlobID) int { return slices.Compare(x[:], y[:]) })
		plan := delivery.SweepPlan{UploadsBefore: now + 1, Limit: 4}
		var named []delivery.BlobID
		for more := true; more; {
			n := must(k.store.Sweep(k.ctx, plan))(k)
			if named = append(named, n.Blobs...); len(n.Blobs) > 0 {
				plan.BlobsAfter = n.Blobs[len(n.Blobs)-1]
			}
			more = n.More
		}
		if !slices.Equal(named, ids) {
			k.Fatalf("named %v, want %v", named, ids)
		}
	}},
	{"sessions, packages and nonces end by the clock", func(k *kit) {
		k.enrol(10, 11)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		later := session(2, 11, 0, 1)
		later.ExpiresMS = now + 5000
		must(k.store.OpenSession(k.ctx, later))(k)
		fresh := keyPackage(10, 3)
		fresh.NotAfterMS = now + 5000
		k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(10, 1), lastResort(10, 2), fresh}))
		must(k.store.UseNonce(k.ctx, device(10).Key, counter(1), now+1000))(k)
		must(k.store.UseNonce(k.ctx, device(10).Key, counter(2), now+5000))(k)
		got := must(k.store.Sweep(k.ctx, delivery.SweepPlan{NowMS: now + 1000, Limit: 100}))(k)
		if want := (delivery.SweepCounts{Sessions: 1, KeyPackages: 2, Nonces: 1}); !reflect.DeepEqual(got, want) {
			k.Fatalf("swept %+v, want %+v", got, want)
		}
		must(k.store.Session(k.ctx, later.Token, now))(k)
		_, err := k.store.PackageDevice(k.ctx, keyPackage(10, 1).Ref)
		k.is(err, delivery.ErrNotFound)
		must(k.store.PackageDevice(k.ctx, fresh.Ref))(k)
		equal(k, "a kept nonce", must(k.store.UseNonce(k.ctx, device(10).Key, counter(2), now))(k), false)
		equal(k, "a swept nonce", must(k.store.UseNonce(k.ctx, device(10).Key, counter(1), now))(k), true)
	}},
	{"mail keys after their acknowledgement, archive by age", func(k *kit) {
		k.enrol(10)
		for n := 1; n <= 3; n++ {
			k.put(10, delivery.MailItem{Kind: delivery.MailAsk, Key: fmt.Sprint(n), CreatedMS: now + int64(n)})
			k.ok(k.store.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(1), Name: fmt.Sprint(n), CreatedMS: now + int64(n)}, [32]byte{}, roomy))
		}
		k.ok(k.store.AckMail(k.ctx, deviceID(10), []uint64{1, 3}))
		plan := delivery.SweepPlan{MailKeysBefore: now + 3, ArchiveBefore: now + 3, Limit: 100}
		got := must(k.store.Sweep(k.ctx, plan))(k)
		if want := (delivery.SweepCounts{Mail: 1, Archive: 2}); !reflect.DeepEqual(got, want) {
			k.Fatalf("swept %+v, want %+v", got, want)
		}
		equal(k, "unacknowledged mail", len(must(k.store.Mail(k.ctx, deviceID(10), 0, 10))(k)), 1)
		_, put := k.put(10, delivery.MailItem{Kind: delivery.MailAsk, Key: "3", CreatedMS: now})
		equal(k, "a kept key", put, false)
		id, put := k.put(10, delivery.MailItem{Kind: delivery.MailAsk, Key: "1", CreatedMS: now})
		equal(k, "a swept key", put, true)
		equal(k, "its id", id, 4)
		equal(k, "archive", len(must(k.store.Archive(k.ctx, person(1), "", 10))(k)), 1)
	}},
	{"a blob dies with its last entry, and loose uploads by age", func(k *kit) {
		a, b := k.room(1, 10), k.room(2, 10)
		shared, twice, young, old := k.upload(1, 10, 1), k.upload(2, 10, 1), k.upload(3, 10, 1), k.upload(4, 10, 1)
		_ = young
		add := func(room delivery.RoomID, n int, ms int64, ids ...delivery.BlobID) {
			e := aged(10, n, ms)
			e.Blobs = ids
			k.append(room, e)
		}
		add(a, 1, 10, shared, twice)
		add(a, 2, 11, twice)
		add(b, 3, 50, shared)
		got := must(k.store.Sweep(k.ctx, delivery.SweepPlan{LogBefore: now + 20, Limit: 100}))(k)
		if want := []delivery.BlobID{twice}; !reflect.DeepEqual(got.Blobs, want) {
			k.Fatalf("dead blobs: %v, want %v", got.Blobs, want)
		}
		_, err := k.store.Blob(k.ctx, twice)
		k.is(err, delivery.ErrNotFound)
		k.mayRead(twice, 10, false)
		k.is(k.store.WithRoom(k.ctx, b, func(tx delivery.RoomTx) error {
			e := message(10, 9, 0)
			e.Blobs = []delivery.BlobID{twice}
			_, err := tx.Append(e)
			return err
		}), delivery.ErrNotFound)
		must(k.store.Blob(k.ctx, shared))(k)

		// Named again until the bytes are gone, and the id is not given again.
		again := must(k.store.Sweep(k.ctx, delivery.SweepPlan{UploadsBefore: now + 1, Limit: 100}))(k)
		want := []delivery.BlobID{twice, young, old}
		slices.SortFunc(want, func(x, y delivery.BlobID) int { return slices.Compare(x[:], y[:]) })
		if !reflect.DeepEqual(again.Blobs, want) {
			k.Fatalf("dead blobs: %v, want %v", again.Blobs, want)
		}
		k.is(k.store.CreateBlob(k.ctx, delivery.BlobMeta{ID: twice, Owner: deviceID(10), Size: 1, CreatedMS: now}, plenty), delivery.ErrExists)
		for _, id := range want {
			k.ok(k.store.DeleteBlob(k.ctx, id))
		}
		equal(k, "dead blobs", len(must(k.store.Sweep(k.ctx, delivery.SweepPlan{Limit: 100}))(k).Blobs), 0)
	}},
	{"a young upload stays", func(k *kit) {
		id := k.upload(1, 10, 1)
		equal(k, "dead blobs", len(must(k.store.Sweep(k.ctx, delivery.SweepPlan{UploadsBefore: now, Limit: 100}))(k).Blobs), 0)
		must(k.store.Blob(k.ctx, id))(k)
	}},
	{"it never touches the state of the current and the previous epoch, nor what a Welcome needs", func(k *kit) {
		id := k.room(1, 10)
		k.commit(id, 10, nil)
		k.commit(id, 10, invite(20, 1))
		for range 3 {
			k.commit(id, 10, nil)
		}
		k.ok(k.store.Rebase(k.ctx, id, 5, []byte("base 5")))
		must(k.store.Sweep(k.ctx, everythingOld))(k)
		for _, epoch := range []uint64{2, 4} {
			k.stateIs(id, epoch, 0, "base 0")
			equal(k, "group info", string(must(k.store.GroupInfo(k.ctx, id, epoch))(k)), string(info(epoch)))
		}
		k.stateIs(id, 5, 5, "base 5")
		equal(k, "group info", string(must(k.store.GroupInfo(k.ctx, id, 5))(k)), string(info(5)))
		equal(k, "welcome", string(must(k.store.Welcome(k.ctx, id, 2, deviceID(20)))(k)), "welcome to 2")
		equal(k, "relays", len(must(k.store.PendingRelays(k.ctx, 10))(k)), 1)
		equal(k, "members", len(must(k.store.Members(k.ctx, id))(k)), 2)
	}},
	{"a Welcome that nobody fetched is given up, and frees what it needed", func(k *kit) {
		id := k.room(1, 10)
		k.append(id, aged(10, 1, 10))
		k.with(id, func(tx delivery.RoomTx) error {
			if _, err := tx.Append(aged(10, 2, 20)); err != nil {
				return err
			}
			a := delivery.Advance{Epoch: 1, Delta: delta(1), GroupInfo: info(1)}
			invite(20, 1)(&a)
			return tx.Advance(a)
		})
		for epoch := uint64(2); epoch <= 4; epoch++ {
			k.with(id, func(tx delivery.RoomTx) error {
				return tx.Advance(delivery.Advance{Epoch: epoch, Delta: delta(epoch), GroupInfo: info(epoch)})
			})
		}
		k.ok(k.store.Rebase(k.ctx, id, 3, []byte("base 3")))
		k.stateIs(id, 1, 0, "base 0")
		got := must(k.store.Sweep(k.ctx, delivery.SweepPlan{WelcomesBefore: now + 20, Limit: 100}))(k)
		equal(k, "given up", got.Welcomes, 0)
		got = must(k.store.Sweep(k.ctx, delivery.SweepPlan{WelcomesBefore: now + 21, Limit: 100}))(k)
		equal(k, "given up", got.Welcomes, 1)
		if got.States == 0 {
			k.Fatal("no state was freed")
		}
		_, err := k.store.Welcome(k.ctx, id, 1, deviceID(20))
		k.is(err, delivery.ErrNotFound)
		_, err = k.store.State(k.ctx, id, 1)
		k.is(err, delivery.ErrNotFound)
		equal(k, "relays", len(must(k.store.PendingRelays(k.ctx, 10))(k)), 0)
		k.stateIs(id, 3, 3, "base 3")
		k.stateIs(id, 4, 3, "base 3")
		equal(k, "members", len(must(k.store.Members(k.ctx, id))(k)), 2)
	}},
}

// silent sets nothing with an incarnation.
func silent(delivery.Marker) (map[string][]byte, error) { return nil, nil }

var incarnations = []contract{
	{"every room jumps behind one marker", func(k *kit) {
		full, empty := k.room(1, 10), k.room(2, 10)
		succeeded, next := k.room(3, 10), roomID(4)
		for n := 1; n <= 3; n++ {
			k.append(full, message(10, n, 0))
		}
		k.commit(full, 10, nil)
		k.with(succeeded, func(tx delivery.RoomTx) error { return tx.SetStatus(delivery.RoomSucceeded, &next) })
		newest := int64(0)
		for _, id := range []delivery.RoomID{full, empty, succeeded} {
			newest = max(newest, must(k.store.Room(k.ctx, id))(k).ChangedMS)
		}
		restored := newest + 99
		m := must(k.store.StartIncarnation(k.ctx, 5, restored, silent))(k)
		equal(k, "the backup ends with", m.BackupMS, newest)
		equal(k, "jump", m, delivery.NewMarker(newest, restored))

		r := must(k.store.Room(k.ctx, full))(k)
		entries := k.log(full)
		equal(k, "entries", len(entries), 5)
		marker := entries[4]
		equal(k, "kind", marker.Kind, delivery.KindIncarnation)
		equal(k, "bytes", delivery.MarkerOf(marker), m)
		equal(k, "seq", marker.Seq, entries[3].Seq+1+m.Jump)
		equal(k, "accepted", marker.AcceptedMS, restored)
		equal(k, "epoch", marker.Epoch, 1)
		equal(k, "next seq", r.NextSeq, marker.Seq+1)
		equal(k, "first seq", r.FirstSeq, 1)
		equal(k, "status", r.Status, delivery.RoomHealing)
		equal(k, "incarnation", r.Incarnation, 1)
		equal(k, "changed", r.ChangedMS, restored)

		r = must(k.store.Room(k.ctx, empty))(k)
		marker = k.log(empty)[0]
		equal(k, "the marker of an empty log", marker.Seq, m.First(1))
		equal(k, "first seq", r.FirstSeq, 1) // a device at 0 has missed nothing
		equal(k, "next seq", r.NextSeq, marker.Seq+1)

		r = must(k.store.Room(k.ctx, succeeded))(k)
		equal(k, "status", r.Status, delivery.RoomSucceeded)
		equal(k, "successor", *r.Successor, next)
		equal(k, "entries", len(k.log(succeeded)), 1)

		// Appends go on behind it, and a sweep takes the marker like any entry.
		equal(k, "seq", k.append(empty, message(10, 1, 0)).Seq, marker.Seq+1)
		equal(k, "swept", must(k.store.Sweep(k.ctx, everythingOld))(k).Entries, 8)
		again := must(k.store.StartIncarnation(k.ctx, restored+100, restored+103, silent))(k)
		equal(k, "a backup of rooms that nobody used ends where it is said to", again, delivery.NewMarker(restored+100, restored+103))
		equal(k, "incarnation", must(k.store.Room(k.ctx, full))(k).Incarnation, 2)
	}},
	{"the settings of an incarnation stand with it or not at all", func(k *kit) {
		id := k.room(1, 10)
		k.append(id, message(10, 1, 0))
		k.enrol(10)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		k.ok(k.store.PutSetting(k.ctx, "old", []byte("stays")))
		k.ok(k.store.PutSetting(k.ctx, "seen", []byte("before")))
		before := must(k.store.Room(k.ctx, id))(k)
		broken := errors.New("cannot say")
		_, err := k.store.StartIncarnation(k.ctx, now, now, func(delivery.Marker) (map[string][]byte, error) {
			return map[string][]byte{"seen": []byte("halfway")}, broken
		})
		k.is(err, broken)
		k.reopen()
		equal(k, "the room", must(k.store.Room(k.ctx, id))(k), before)
		equal(k, "entries", len(k.log(id)), 1)
		must(k.store.Session(k.ctx, seed("token", 1), now))(k)
		equal(k, "a setting", string(must(k.store.Setting(k.ctx, "seen"))(k)), "before")

		var told delivery.Marker
		m := must(k.store.StartIncarnation(k.ctx, now, now+7, func(m delivery.Marker) (map[string][]byte, error) {
			told = m
			return map[string][]byte{"seen": m.Bytes(), "new": nil}, nil
		}))(k)
		k.reopen()
		equal(k, "what settings was told", told, m)
		equal(k, "replaced", string(must(k.store.Setting(k.ctx, "seen"))(k)), string(m.Bytes()))
		equal(k, "new and empty", len(must(k.store.Setting(k.ctx, "new"))(k)), 0)
		equal(k, "another", string(must(k.store.Setting(k.ctx, "old"))(k)), "stays")
	}},
	{"a room that a restore lost is made again", func(k *kit) {
		r := newRoom(1, 10)
		r.Incarnation, r.RestoredMS, r.Marker = 3, now+99, delivery.NewMarker(now, now+7)
		k.ok(k.store.CreateRoom(k.ctx, r))
		k.is(k.store.CreateRoom(k.ctx, r), delivery.ErrExists)
		got := must(k.store.Room(k.ctx, r.ID))(k)
		equal(k, "status", got.Status, delivery.RoomHealing)
		equal(k, "incarnation", got.Incarnation, 3)
		equal(k, "created", got.CreatedMS, now)
		equal(k, "changed", got.ChangedMS, now+99)
		entries := k.log(r.ID)
		equal(k, "entries", len(entries), 1)
		equal(k, "marker", entries[0].Seq, 1+r.Marker.Jump)
		equal(k, "bytes", delivery.MarkerOf(entries[0]), r.Marker)
		equal(k, "kind", entries[0].Kind, delivery.KindIncarnation)
		equal(k, "accepted", entries[0].AcceptedMS, now+99)
		equal(k, "first seq", got.FirstSeq, 1) // who has read nothing misses nothing
		equal(k, "next", k.append(r.ID, message(10, 1, 0)).Seq, entries[0].Seq+1)
		k.commit(r.ID, 10, invite(20, 1))
		equal(k, "members", len(must(k.store.Members(k.ctx, r.ID))(k)), 2)
		equal(k, "swept", must(k.store.Sweep(k.ctx, everythingOld))(k).Entries, 3)
	}},
	{"the GroupInfo of the present epoch is replaced", func(k *kit) {
		id := k.room(1, 10)
		k.commit(id, 10, func(a *delivery.Advance) { a.GroupInfo = nil })
		equal(k, "none", len(must(k.store.GroupInfo(k.ctx, id, 1))(k)), 0)
		k.with(id, func(tx delivery.RoomTx) error { return tx.SetGroupInfo([]byte("signed")) })
		equal(k, "this epoch", string(must(k.store.GroupInfo(k.ctx, id, 1))(k)), "signed")
		equal(k, "the one before", string(must(k.store.GroupInfo(k.ctx, id, 0))(k)), "info 0")
	}},
	{"sessions, ordinary packages and copy counters end", func(k *kit) {
		k.enrol(10)
		must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
		k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(10, 1), lastResort(10, 2)}))
		k.put(10, delivery.MailItem{Kind: delivery.MailLowKeys})
		must(k.store.Revoke(k.ctx, revocation(11), many))(k)
		must(k.store.StartIncarnation(k.ctx, now, now, silent))(k)
		_, err := k.store.Session(k.ctx, seed("token", 1), now)
		k.is(err, delivery.ErrNotFound)
		k.left(10, 1, 0, true)
		got := must(k.store.ClaimKeyPackages(k.ctx, person(1), 1, now))(k)
		equal(k, "claimed", len(got), 1)
		equal(k, "last resort", got[0].LastResort, true)
		// It may have been handed out after the backup: it must not come in again.
		k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(10, 1), keyPackage(10, 3)}))
		k.left(10, 1, 1, true)
		equal(k, "whose it was", must(k.store.PackageDevice(k.ctx, keyPackage(10, 1).Ref))(k), deviceID(10))
		equal(k, "copied, from any counter", must(k.store.OpenSession(k.ctx, session(2, 10, 77, 78)))(k), false)
		equal(k, "mail", len(must(k.store.Mail(k.ctx, deviceID(10), 0, 10))(k)), 1)
		must(k.store.Revoked(k.ctx, person(1), deviceID(11)))(k)
	}},
	{"members, states and proposals stay", func(k *kit) {
		id := k.room(1, 10)
		k.commit(id, 10, invite(20, 1))
		k.with(id, func(tx delivery.RoomTx) error {
			return tx.Hold(delivery.HeldProposal{Ref: []byte("a"), Epoch: 1, Must: true})
		})
		must(k.store.StartIncarnation(k.ctx, now, now, silent))(k)
		k.stateIs(id, 1, 0, "base 0")
		equal(k, "members", len(must(k.store.Members(k.ctx, id))(k)), 2)
		equal(k, "held", len(must(k.store.Held(k.ctx, id))(k)), 1)
		equal(k, "relays", len(must(k.store.PendingRelays(k.ctx, 10))(k)), 1)
		k.commit(id, 10, func(a *delivery.Advance) { a.Removed = []identity.DeviceID{deviceID(20)} })
	}},
}

// durable writes one of everything and says how to see it.
func (k *kit) durable() func() []any {
	k.Helper()
	k.enrol(10, 11)
	blob := k.upload(1, 10, 10)
	id := k.room(1, 10)
	k.share(id, 10, 1, blob)
	k.commit(id, 10, invite(20, 1))
	k.append(id, message(10, 2, 1))
	k.with(id, func(tx delivery.RoomTx) error { return tx.Hold(delivery.HeldProposal{Ref: []byte("a"), Epoch: 1}) })
	must(k.store.OpenSession(k.ctx, session(1, 10, 0, 1)))(k)
	must(k.store.Revoke(k.ctx, revocation(11), many))(k)
	must(k.store.UseNonce(k.ctx, device(10).Key, counter(1), now))(k)
	k.ok(k.store.PutSnapshot(k.ctx, person(1), 0, []byte("sealed")))
	k.ok(k.store.PutArchive(k.ctx, delivery.ArchiveSegment{Identity: person(1), Name: "a", Sealed: []byte("s"), CreatedMS: now}, [32]byte{}, roomy))
	k.ok(k.store.PutWrappedKey(k.ctx, delivery.WrappedKey{Device: deviceID(10), Generation: 1, Wrapped: []byte("w")}, 8))
	k.ok(k.store.PublishKeyPackages(k.ctx, []delivery.StoredKeyPackage{keyPackage(10, 1), lastResort(10, 2)}))
	k.put(10, delivery.MailItem{Kind: delivery.MailAsk, Key: "k", Payload: []byte("p"), CreatedMS: now})
	k.ok(k.store.PutProfile(k.ctx, profile(1, "ada")))
	k.ok(k.store.PutListing(k.ctx, listing(1, "t", "a", now)))
	k.ok(k.store.PutSetting(k.ctx, "home", []byte("abc")))
	return func() []any {
		k.Helper()
		version, snapshot, err := k.store.Snapshot(k.ctx, person(1))
		k.ok(err)
		n, last, err := k.store.CountKeyPackages(k.ctx, deviceID(10), 1, now)
		k.ok(err)
		_, errNonce := k.store.UseNonce(k.ctx, device(10).Key, counter(1), now)
		k.ok(errNonce)
		return []any{
			must(k.store.Room(k.ctx, id))(k), k.log(id), must(k.store.Members(k.ctx, id))(k), must(k.store.Held(k.ctx, id))(k),
			must(k.store.State(k.ctx, id, 1))(k), must(k.store.GroupInfo(k.ctx, id, 1))(k), must(k.store.Welcome(k.ctx, id, 1, deviceID(20)))(k),
			must(k.store.PendingRelays(k.ctx, 10))(k), must(k.store.Devices(k.ctx, person(1)))(k), must(k.store.Session(k.ctx, seed("token", 1), now))(k),
			must(k.store.Revocations(k.ctx, person(1)))(k), version, snapshot, must(k.store.ArchiveSegment(k.ctx, person(1), "a"))(k),
			must(k.store.WrappedKeys(k.ctx, deviceID(10)))(k), n, last, must(k.store.Mail(k.ctx, deviceID(10), 0, 10))(k),
			must(k.store.ProfileByUsername(k.ctx, "ada"))(k), must(k.store.Listing(k.ctx, roomID(1)))(k), must(k.store.Blob(k.ctx, blob))(k),
			must(k.store.MayReadBlob(k.ctx, blob, deviceID(20)))(k), must(k.store.Setting(k.ctx, "home"))(k),
		}
	}
}

var durability = []contract{
	{"a store opened again sees all", func(k *kit) {
		look := k.durable()
		before := look()
		k.reopen()
		if after := look(); !reflect.DeepEqual(before, after) {
			k.Fatalf("it changed:\n%+v\n%+v", before, after)
		}
		equal(k, "a spent nonce", must(k.store.UseNonce(k.ctx, device(10).Key, counter(1), now))(k), false)
	}},
	{"another instance sees what one acknowledged", func(k *kit) {
		stores := k.instances()
		id := k.room(1, 10)
		for n := range 20 {
			k.append(id, message(10, n, 0))
			got := must(stores[len(stores)-1].Log(k.ctx, id, delivery.LogRange{After: uint64(n)}))(k)
			equal(k, "entries", len(got), 1)
		}
	}},
	{"a closed store says so and changes nothing", func(k *kit) {
		id := k.room(1, 10)
		closed := k.store
		k.ok(closed.Close())
		k.ok(closed.Close()) // again is no error
		if err := closed.WithRoom(k.ctx, id, func(delivery.RoomTx) error { return nil }); err == nil {
			k.Error("a closed store ran a transaction")
		}
		if _, err := closed.Room(k.ctx, id); err == nil {
			k.Error("a closed store read a room")
		}
		if err := closed.Ping(k.ctx); err == nil {
			k.Error("a closed store says that it can take a write")
		}
	}},
	{"closing waits for what is under way", func(k *kit) {
		id := k.room(1, 10)
		inside, release, closed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		done := make(chan error, 1)
		go func() {
			first := true
			done <- k.store.WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
				if first {
					first = false
					close(inside)
					<-release
				}
				_, err := tx.Append(message(10, 1, 0))
				return err
			})
		}()
		<-inside
		go func() { closed <- k.store.Close() }()
		close(release)
		k.ok(<-done)
		k.ok(<-closed)
		k.store = k.another()
		equal(k, "entries", len(k.log(id)), 1)
	}},
}
