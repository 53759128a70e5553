package storetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"

	"github.com/askucher/compax-core/delivery"
)

var rooms = []contract{
	{"created room reads back", func(k *kit) {
		id := k.room(1, 10, 20)
		r := must(k.store.Room(k.ctx, id))(k)
		want := delivery.Room{ID: id, NextSeq: 1, FirstSeq: 1, Kind: delivery.RoomGroup, Status: delivery.RoomOpen, CreatedMS: now, ChangedMS: now}
		if !reflect.DeepEqual(r, want) {
			k.Fatalf("room is %+v, want %+v", r, want)
		}
		equal(k, "entries", len(k.log(id)), 0)
		equal(k, "group info", string(must(k.store.GroupInfo(k.ctx, id, 0))(k)), "info 0")
		equal(k, "state", string(must(k.store.State(k.ctx, id, 0))(k).Base), "base 0")
	}},
	{"a room may begin at a later epoch", func(k *kit) {
		r := newRoom(1, 10)
		r.Epoch, r.Kind = 7, delivery.RoomDirect
		k.ok(k.store.CreateRoom(k.ctx, r))
		got := must(k.store.Room(k.ctx, r.ID))(k)
		equal(k, "epoch", got.Epoch, 7)
		equal(k, "kind", got.Kind, delivery.RoomDirect)
		equal(k, "base epoch", must(k.store.State(k.ctx, r.ID, 7))(k).BaseEpoch, 7)
		_, err := k.store.State(k.ctx, r.ID, 6)
		k.is(err, delivery.ErrNotFound)
	}},
	{"a taken id is refused and the first room stays", func(k *kit) {
		id := k.room(1, 10)
		second := newRoom(1, 20)
		second.State = []byte("other")
		k.is(k.store.CreateRoom(k.ctx, second), delivery.ErrExists)
		equal(k, "state", string(must(k.store.State(k.ctx, id, 0))(k).Base), "base 0")
		members := must(k.store.Members(k.ctx, id))(k)
		equal(k, "members", len(members), 1)
		equal(k, "member", members[0].Device, deviceID(10))
	}},
	{"a room with one device twice is refused whole", func(k *kit) {
		r := newRoom(1, 10, 10)
		k.is(k.store.CreateRoom(k.ctx, r), delivery.ErrExists)
		_, err := k.store.Room(k.ctx, r.ID)
		k.is(err, delivery.ErrNotFound)
	}},
	{"one of many creating the same room wins", func(k *kit) {
		var wg sync.WaitGroup
		errs := make([]error, 16)
		stores := k.instances()
		for i := range errs {
			wg.Go(func() { errs[i] = stores[i%len(stores)].CreateRoom(k.ctx, newRoom(1, 10+i)) })
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
		equal(k, "members", len(must(k.store.Members(k.ctx, roomID(1)))(k)), 1)
	}},
	{"an unknown room is not found by any method", func(k *kit) {
		id := roomID(404)
		k.is(k.store.WithRoom(k.ctx, id, func(delivery.RoomTx) error {
			k.Error("the function ran")
			return nil
		}), delivery.ErrNotFound)
		_, errRoom := k.store.Room(k.ctx, id)
		_, errLog := k.store.Log(k.ctx, id, delivery.LogRange{})
		_, errMembers := k.store.Members(k.ctx, id)
		_, errMemberships := k.store.Memberships(k.ctx, id, deviceID(1))
		_, errState := k.store.State(k.ctx, id, 0)
		_, errInfo := k.store.GroupInfo(k.ctx, id, 0)
		_, errHeld := k.store.Held(k.ctx, id)
		_, errWelcome := k.store.Welcome(k.ctx, id, 0, deviceID(1))
		_, errReport := k.store.Report(k.ctx, id, 0, person(1))
		for _, err := range []error{errReport, errRoom, errLog, errMembers, errMemberships, errState, errInfo, errHeld, errWelcome,
			k.store.Rebase(k.ctx, id, 0, nil), k.store.AckWelcome(k.ctx, id, 0, deviceID(1))} {
			k.is(err, delivery.ErrNotFound)
		}
		k.ok(k.store.FinishRelay(k.ctx, delivery.Relay{Room: id}))
	}},
	{"status and successor", func(k *kit) {
		id, next := k.room(1, 10), roomID(2)
		k.with(id, func(tx delivery.RoomTx) error {
			if err := tx.SetStatus(delivery.RoomHealing, nil); err != nil {
				return err
			}
			if tx.Room().Status != delivery.RoomHealing {
				return errors.New("the row in the transaction does not show the new status")
			}
			return nil
		})
		equal(k, "status", must(k.store.Room(k.ctx, id))(k).Status, delivery.RoomHealing)
		if err := k.store.WithRoom(k.ctx, id, func(tx delivery.RoomTx) error { return tx.SetStatus(delivery.RoomOpen, &next) }); err == nil {
			k.Fatal("an open room took a successor")
		}
		k.with(id, func(tx delivery.RoomTx) error { return tx.SetStatus(delivery.RoomSucceeded, &next) })
		k.reopen()
		r := must(k.store.Room(k.ctx, id))(k)
		equal(k, "status", r.Status, delivery.RoomSucceeded)
		if r.Successor == nil || *r.Successor != next {
			k.Fatalf("successor is %v", r.Successor)
		}
	}},
}

var appends = []contract{
	{"entries get seqs from 1 and read back as they were", func(k *kit) {
		id := k.room(1, 10)
		for n := 1; n <= 3; n++ {
			acc := k.append(id, message(10, n, 0))
			equal(k, "accepted", acc, delivery.Accepted{Seq: uint64(n), Epoch: 0, AcceptedMS: now + int64(n)})
		}
		for i, e := range k.log(id) {
			m := message(10, i+1, 0)
			want := delivery.Entry{Seq: uint64(i + 1), Kind: delivery.KindApplication, AcceptedMS: m.AcceptedMS, Bytes: m.Bytes}
			if !reflect.DeepEqual(e, want) {
				k.Fatalf("entry is %+v, want %+v", e, want)
			}
		}
		r := must(k.store.Room(k.ctx, id))(k)
		equal(k, "next seq", r.NextSeq, 4)
		equal(k, "first seq", r.FirstSeq, 1)
		equal(k, "changed", r.ChangedMS, now+3)
	}},
	{"several entries in one transaction", func(k *kit) {
		id := k.room(1, 10)
		k.with(id, func(tx delivery.RoomTx) error {
			for n := 1; n <= 5; n++ {
				acc, err := tx.Append(message(10, n, 0))
				if err != nil {
					return err
				}
				if r := tx.Room(); acc.Seq != uint64(n) || r.NextSeq != uint64(n+1) || r.ChangedMS != acc.AcceptedMS {
					return fmt.Errorf("entry %d got seq %d, the row is %+v", n, acc.Seq, r)
				}
			}
			return nil
		})
		equal(k, "entries", len(k.log(id)), 5)
	}},
	{"rooms count apart", func(k *kit) {
		a, b := k.room(1, 10), k.room(2, 10)
		k.append(a, message(10, 1, 0))
		k.append(a, message(10, 2, 0))
		equal(k, "first seq of the other room", k.append(b, message(10, 1, 0)).Seq, 1)
	}},
	{"the same bytes of the same device are found again", func(k *kit) {
		id := k.room(1, 10, 20)
		m := message(10, 1, 0)
		first := k.append(id, m)
		k.append(id, message(10, 2, 0))
		k.commit(id, 20, nil) // the epoch moves on: the answer stays
		k.with(id, func(tx delivery.RoomTx) error {
			acc, dup, err := tx.Duplicate(m.Device, m.Hash)
			if err != nil || !dup {
				return fmt.Errorf("duplicate = %v, %v", dup, err)
			}
			first.Duplicate = true
			if acc != first {
				return fmt.Errorf("answer is %+v, want the first, %+v", acc, first)
			}
			if _, dup, err := tx.Duplicate(deviceID(20), m.Hash); dup || err != nil {
				return fmt.Errorf("another device's bytes = %v, %v", dup, err)
			}
			if _, dup, err := tx.Duplicate(m.Device, message(10, 3, 0).Hash); dup || err != nil {
				return fmt.Errorf("other bytes = %v, %v", dup, err)
			}
			return nil
		})
		other := k.room(2, 10)
		k.with(other, func(tx delivery.RoomTx) error {
			if _, dup, err := tx.Duplicate(m.Device, m.Hash); dup || err != nil {
				return fmt.Errorf("another room = %v, %v", dup, err)
			}
			return nil
		})
	}},
	{"a duplicate is seen inside the transaction too", func(k *kit) {
		id := k.room(1, 10)
		k.with(id, func(tx delivery.RoomTx) error {
			m := message(10, 1, 0)
			if _, err := tx.Append(m); err != nil {
				return err
			}
			if acc, dup, err := tx.Duplicate(m.Device, m.Hash); !dup || acc.Seq != 1 || err != nil {
				return fmt.Errorf("duplicate = %+v %v %v", acc, dup, err)
			}
			return nil
		})
	}},
	{"a retried commit gets its first answer", func(k *kit) {
		id := k.room(1, 10)
		e := message(10, 1, 0)
		e.Kind = delivery.KindCommit
		var first delivery.Accepted
		k.with(id, func(tx delivery.RoomTx) (err error) {
			if first, err = tx.Append(e); err != nil {
				return err
			}
			return tx.Advance(delivery.Advance{Epoch: 1, Delta: delta(1), GroupInfo: info(1)})
		})
		equal(k, "epoch after the commit", first.Epoch, 1)
		k.with(id, func(tx delivery.RoomTx) error {
			acc, dup, err := tx.Duplicate(e.Device, e.Hash)
			if err != nil || !dup || acc.Seq != first.Seq || acc.Epoch != 1 {
				return fmt.Errorf("answer is %+v %v %v", acc, dup, err)
			}
			return nil
		})
		equal(k, "epoch of the entry", k.log(id)[0].Epoch, 0)
	}},
	{"32 writers leave no gap and no double", func(k *kit) {
		const writers, each = 32, 20
		id := k.room(1, 10)
		stores := k.instances()
		var wg sync.WaitGroup
		accepted := make([][]delivery.Accepted, writers)
		errs := make([]error, writers)
		for w := range writers {
			wg.Go(func() {
				for n := range each {
					err := stores[w%len(stores)].WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
						acc, err := tx.Append(message(10, w*1000+n, 0))
						if err == nil {
							accepted[w] = append(accepted[w][:n:n], acc)
						}
						return err
					})
					if err != nil {
						errs[w] = err
						return
					}
				}
			})
		}
		wg.Wait()
		k.ok(errors.Join(errs...))
		entries := k.log(id)
		equal(k, "entries", len(entries), writers*each)
		for i, e := range entries {
			equal(k, "seq", e.Seq, uint64(i+1))
		}
		for w := range writers {
			for n, acc := range accepted[w] {
				if want := message(10, w*1000+n, 0).Bytes; !bytes.Equal(entries[acc.Seq-1].Bytes, want) {
					k.Fatalf("seq %d does not hold what was acknowledged with it", acc.Seq)
				}
				if n > 0 && acc.Seq <= accepted[w][n-1].Seq {
					k.Fatalf("writer %d: seq %d after %d", w, acc.Seq, accepted[w][n-1].Seq)
				}
			}
		}
	}},
	{"readers beside writers never see a gap", func(k *kit) {
		id := k.room(1, 10)
		const total = 200
		done := make(chan error, 1)
		go func() {
			for n := range total {
				if err := k.store.WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
					_, err := tx.Append(message(10, n, 0))
					return err
				}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for seen := uint64(0); seen < total; {
			room := must(k.store.Room(k.ctx, id))(k)
			page := must(k.store.Log(k.ctx, id, delivery.LogRange{After: seen}))(k)
			for _, e := range page {
				if e.Seq != seen+1 {
					k.Fatalf("read %d after %d", e.Seq, seen)
				}
				seen = e.Seq
			}
			if seen+1 < room.NextSeq {
				k.Fatalf("the row promised %d, the log read after it ends at %d", room.NextSeq-1, seen)
			}
			select {
			case err := <-done:
				k.ok(err)
				done <- nil
			default:
			}
		}
		k.ok(<-done)
	}},
	{"ranges", func(k *kit) {
		id := k.room(1, 10)
		for n := 1; n <= 10; n++ {
			k.append(id, message(10, n, 0))
		}
		for _, c := range []struct {
			r        delivery.LogRange
			from, to uint64 // 0 = empty
		}{
			{delivery.LogRange{}, 1, 10},
			{delivery.LogRange{After: 4}, 5, 10},
			{delivery.LogRange{After: 4, Upto: 7}, 5, 7},
			{delivery.LogRange{Upto: 3}, 1, 3},
			{delivery.LogRange{Limit: 4}, 1, 4},
			{delivery.LogRange{After: 8, Limit: 4}, 9, 10},
			{delivery.LogRange{MaxBytes: 96}, 1, 3},
			{delivery.LogRange{MaxBytes: 95}, 1, 2},
			{delivery.LogRange{MaxBytes: 1}, 1, 1},
			{delivery.LogRange{After: 5, MaxBytes: 33}, 6, 6},
			{delivery.LogRange{After: 10}, 0, 0},
			{delivery.LogRange{After: 99}, 0, 0},
			{delivery.LogRange{After: math.MaxInt64 + 1}, 0, 0},
			{delivery.LogRange{After: math.MaxUint64}, 0, 0},
			{delivery.LogRange{After: 4, Upto: math.MaxUint64}, 5, 10},
			{delivery.LogRange{After: 5, Upto: 5}, 0, 0},
		} {
			got := must(k.store.Log(k.ctx, id, c.r))(k)
			want := int(c.to) - int(c.from) + 1
			if c.from == 0 {
				want = 0
			}
			if len(got) != want || want > 0 && (got[0].Seq != c.from || got[want-1].Seq != c.to) {
				k.Fatalf("%+v gives %d entries %+v, want %d to %d", c.r, len(got), got, c.from, c.to)
			}
		}
	}},
	{"a page is bounded without being asked", func(k *kit) {
		id := k.room(1, 10)
		big := make([]byte, 1<<20)
		k.with(id, func(tx delivery.RoomTx) error {
			for n := range 6 {
				big[0] = byte(n)
				e := message(10, n, 0)
				e.Bytes, e.Hash = bytes.Clone(big), sha256.Sum256(big)
				if _, err := tx.Append(e); err != nil {
					return err
				}
			}
			return nil
		})
		equal(k, "entries in MaxLogPage", len(k.log(id)), delivery.MaxLogPage>>20)
	}},
	{"an entry of the largest size", func(k *kit) {
		id := k.room(1, 10)
		e := message(10, 1, 0)
		e.Bytes = bytes.Repeat([]byte{0xa5}, delivery.MaxEntry)
		e.Hash = sha256.Sum256(e.Bytes)
		k.append(id, e)
		got := k.log(id)
		if len(got) != 1 || !bytes.Equal(got[0].Bytes, e.Bytes) {
			k.Fatal("it did not come back as it was")
		}
	}},
}

var proposals = []contract{
	{"held proposals read back, oldest first", func(k *kit) {
		id := k.room(1, 10)
		a := delivery.HeldProposal{Ref: []byte("a"), Seq: 1, Proposer: 0, Must: true, Bytes: []byte("remove")}
		b := delivery.HeldProposal{Ref: []byte("b"), Seq: 2, Proposer: delivery.NoLeaf, Bytes: []byte("add")}
		k.with(id, func(tx delivery.RoomTx) error {
			if err := tx.Hold(a); err != nil {
				return err
			}
			return tx.Hold(b)
		})
		want := []delivery.HeldProposal{a, b}
		if got := must(k.store.Held(k.ctx, id))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("held %+v, want %+v", got, want)
		}
		k.with(id, func(tx delivery.RoomTx) error {
			got, err := tx.Proposals()
			if err == nil && !reflect.DeepEqual(got, want) {
				err = fmt.Errorf("in the transaction: %+v", got)
			}
			return err
		})
	}},
	{"a known ref is refused and the transaction goes on", func(k *kit) {
		id := k.room(1, 10)
		k.with(id, func(tx delivery.RoomTx) error {
			if err := tx.Hold(delivery.HeldProposal{Ref: []byte("a"), Bytes: []byte("1")}); err != nil {
				return err
			}
			if err := tx.Hold(delivery.HeldProposal{Ref: []byte("a"), Bytes: []byte("2")}); !errors.Is(err, delivery.ErrExists) {
				return fmt.Errorf("the second says %v", err)
			}
			_, err := tx.Append(message(10, 1, 0))
			return err
		})
		held := must(k.store.Held(k.ctx, id))(k)
		equal(k, "held", len(held), 1)
		equal(k, "bytes", string(held[0].Bytes), "1")
		equal(k, "entries", len(k.log(id)), 1)
	}},
	{"the same ref in another room is another proposal", func(k *kit) {
		for n := range 2 {
			k.with(k.room(n, 10), func(tx delivery.RoomTx) error { return tx.Hold(delivery.HeldProposal{Ref: []byte("a")}) })
		}
	}},
	{"only of the current epoch", func(k *kit) {
		id := k.room(1, 10)
		k.is(k.store.WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
			return tx.Hold(delivery.HeldProposal{Ref: []byte("a"), Epoch: 1})
		}), delivery.ErrChanged)
	}},
	{"unhold forgets some and ignores unknown ones", func(k *kit) {
		id := k.room(1, 10)
		k.with(id, func(tx delivery.RoomTx) error {
			return errors.Join(tx.Hold(delivery.HeldProposal{Ref: []byte("a")}), tx.Hold(delivery.HeldProposal{Ref: []byte("b")}))
		})
		k.with(id, func(tx delivery.RoomTx) error { return tx.Unhold([]byte("a"), []byte("zzz")) })
		held := must(k.store.Held(k.ctx, id))(k)
		equal(k, "held", len(held), 1)
		equal(k, "ref", string(held[0].Ref), "b")
	}},
	{"a commit drops all", func(k *kit) {
		id, other := k.room(1, 10), k.room(2, 10)
		for _, id := range []delivery.RoomID{id, other} {
			k.with(id, func(tx delivery.RoomTx) error { return tx.Hold(delivery.HeldProposal{Ref: []byte("a"), Must: true}) })
		}
		k.commit(id, 10, nil)
		equal(k, "held", len(must(k.store.Held(k.ctx, id))(k)), 0)
		equal(k, "held in the other room", len(must(k.store.Held(k.ctx, other))(k)), 1)
	}},
}
