package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// at is a membership in a room with its interval.
func at(room delivery.RoomID, d, leaf int, from, until uint64) delivery.Membership {
	m := member(d, leaf)
	m.Room, m.From, m.Until = room, from, until
	return m
}

func (k *kit) members(id delivery.RoomID, want ...delivery.Membership) {
	k.Helper()
	if got := must(k.store.Members(k.ctx, id))(k); !reflect.DeepEqual(got, want) {
		k.Fatalf("members are %+v, want %+v", got, want)
	}
}

var roster = []contract{
	{"members from the creation, by leaf", func(k *kit) {
		r := newRoom(1)
		r.Members = []delivery.Membership{member(20, 5), member(10, 0), member(11, 3)}
		k.ok(k.store.CreateRoom(k.ctx, r))
		k.members(r.ID, at(r.ID, 10, 0, 0, 0), at(r.ID, 11, 3, 0, 0), at(r.ID, 20, 5, 0, 0))
	}},
	{"intervals follow the commits", func(k *kit) {
		id := k.room(1, 10)
		k.append(id, message(10, 1, 0))
		joined := k.commit(id, 10, func(a *delivery.Advance) { a.Added = []delivery.Membership{member(20, 1)} })
		k.append(id, message(20, 2, 1))
		left := k.commit(id, 10, func(a *delivery.Advance) { a.Removed = []identity.DeviceID{deviceID(20)} })
		back := k.commit(id, 10, func(a *delivery.Advance) { a.Added = []delivery.Membership{member(20, 2)} })
		got := must(k.store.Memberships(k.ctx, id, deviceID(20)))(k)
		want := []delivery.Membership{at(id, 20, 1, joined.Seq, left.Seq), at(id, 20, 2, back.Seq, 0)}
		if !reflect.DeepEqual(got, want) {
			k.Fatalf("intervals are %+v, want %+v", got, want)
		}
		k.members(id, at(id, 10, 0, 0, 0), at(id, 20, 2, back.Seq, 0))
		equal(k, "intervals of a stranger", len(must(k.store.Memberships(k.ctx, id, deviceID(99)))(k)), 0)
	}},
	{"out and in again in one commit", func(k *kit) {
		id := k.room(1, 10, 20)
		acc := k.commit(id, 10, func(a *delivery.Advance) {
			a.Removed = []identity.DeviceID{deviceID(20)}
			a.Added = []delivery.Membership{member(20, 1)}
		})
		k.members(id, at(id, 10, 0, 0, 0), at(id, 20, 1, acc.Seq, 0))
		equal(k, "intervals", len(must(k.store.Memberships(k.ctx, id, deviceID(20)))(k)), 2)
	}},
	{"an external commit moves a member to another leaf", func(k *kit) {
		id := k.room(1, 10, 20)
		k.commit(id, 20, func(a *delivery.Advance) { a.Updated = []delivery.Membership{member(20, 7)} })
		k.members(id, at(id, 10, 0, 0, 0), at(id, 20, 7, 0, 0))
	}},
	{"the transaction reads a membership", func(k *kit) {
		id := k.room(1, 10, 20)
		k.commit(id, 10, func(a *delivery.Advance) { a.Removed = []identity.DeviceID{deviceID(20)} })
		k.with(id, func(tx delivery.RoomTx) error {
			m, err := tx.Member(deviceID(10))
			if err != nil || m != at(id, 10, 0, 0, 0) {
				return fmt.Errorf("member is %+v, %v", m, err)
			}
			for _, d := range []int{20, 99} {
				if _, err := tx.Member(deviceID(d)); !errors.Is(err, delivery.ErrNotFound) {
					return fmt.Errorf("device %d: %v", d, err)
				}
			}
			return nil
		})
	}},
	{"a roster change that cannot be leaves nothing", func(k *kit) {
		for name, c := range map[string]struct {
			change func(*delivery.Advance)
			want   error
		}{
			"remove a stranger": {func(a *delivery.Advance) { a.Removed = []identity.DeviceID{deviceID(99)} }, delivery.ErrNotFound},
			"move a stranger":   {func(a *delivery.Advance) { a.Updated = []delivery.Membership{member(99, 3)} }, delivery.ErrNotFound},
			"add a member":      {func(a *delivery.Advance) { a.Added = []delivery.Membership{member(30, 2), member(10, 1)} }, delivery.ErrExists},
		} {
			id := k.room(len(name), 10, 20)
			for _, swallow := range []bool{false, true} {
				err := k.store.WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
					if _, err := tx.Append(message(10, 1, 0)); err != nil {
						return err
					}
					a := delivery.Advance{Epoch: 1, Delta: delta(1), GroupInfo: info(1)}
					c.change(&a)
					err := tx.Advance(a)
					if !errors.Is(err, c.want) {
						return fmt.Errorf("%s: Advance says %w", name, err)
					}
					if swallow {
						return nil // even then it must not commit
					}
					return err
				})
				k.is(err, c.want)
				equal(k, "epoch", must(k.store.Room(k.ctx, id))(k).Epoch, 0)
				equal(k, "entries", len(k.log(id)), 0)
				k.members(id, at(id, 10, 0, 0, 0), at(id, 20, 1, 0, 0))
			}
		}
	}},
	{"rooms of a device and of a person", func(k *kit) {
		a, b, c := k.room(1, 10, 20), k.room(2, 11), k.room(3, 10)
		k.commit(c, 10, func(a *delivery.Advance) {
			a.Removed = []identity.DeviceID{deviceID(10)}
			a.Added = []delivery.Membership{member(30, 1)}
		})
		want := []delivery.Membership{at(a, 10, 0, 0, 0)}
		if got := must(k.store.RoomsOf(k.ctx, deviceID(10)))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("rooms of the device: %+v, want %+v", got, want)
		}
		both := []delivery.RoomID{a, b}
		slices.SortFunc(both, func(x, y delivery.RoomID) int { return bytes.Compare(x[:], y[:]) })
		if got := must(k.store.RoomsOfIdentity(k.ctx, person(1)))(k); !reflect.DeepEqual(got, both) {
			k.Fatalf("rooms of the person: %v, want %v", got, both)
		}
		k.append(a, message(10, 1, 0))
		heads := map[delivery.RoomID]uint64{}
		for _, m := range want {
			heads[m.Room] = must(k.store.Room(k.ctx, m.Room))(k).NextSeq - 1
		}
		if got := must(k.store.HeadsOf(k.ctx, deviceID(10)))(k); !reflect.DeepEqual(got, heads) {
			k.Fatalf("heads %v, want %v", got, heads)
		}
		equal(k, "heads of nobody", len(must(k.store.HeadsOf(k.ctx, deviceID(99)))(k)), 0)
		equal(k, "rooms of nobody", len(must(k.store.RoomsOf(k.ctx, deviceID(99)))(k)), 0)
		equal(k, "rooms of no person", len(must(k.store.RoomsOfIdentity(k.ctx, person(9)))(k)), 0)
	}},
	{"rooms of a device, by room id", func(k *kit) {
		var want []delivery.RoomID
		for n := range 20 {
			want = append(want, k.room(n, 10, 11))
		}
		slices.SortFunc(want, func(x, y delivery.RoomID) int { return bytes.Compare(x[:], y[:]) })
		var got []delivery.RoomID
		for _, m := range must(k.store.RoomsOf(k.ctx, deviceID(10)))(k) {
			got = append(got, m.Room)
		}
		if !reflect.DeepEqual(got, want) {
			k.Fatal("the order is not by room id")
		}
		if got := must(k.store.RoomsOfIdentity(k.ctx, person(1)))(k); !reflect.DeepEqual(got, want) {
			k.Fatal("the order of a person's rooms is not by room id, each once")
		}
	}},
}

var states = []contract{
	{"a base and the deltas to each epoch", func(k *kit) {
		id := k.room(1, 10)
		for range 4 {
			k.commit(id, 10, nil)
		}
		for epoch := range uint64(5) {
			k.stateIs(id, epoch, 0, "base 0")
		}
		_, err := k.store.State(k.ctx, id, 5)
		k.is(err, delivery.ErrNotFound)
	}},
	{"rebase shortens without changing an answer", func(k *kit) {
		id := k.room(1, 10)
		for range 5 {
			k.commit(id, 10, nil)
		}
		k.ok(k.store.Rebase(k.ctx, id, 3, []byte("base 3")))
		for epoch := uint64(3); epoch <= 5; epoch++ {
			k.stateIs(id, epoch, 3, "base 3")
		}
		k.ok(k.store.Rebase(k.ctx, id, 3, []byte("base 3"))) // another instance had the same idea
		k.stateIs(id, 5, 3, "base 3")
		k.commit(id, 10, nil)
		k.stateIs(id, 6, 3, "base 3")
	}},
	{"rebase at the current epoch keeps the previous one", func(k *kit) {
		id := k.room(1, 10)
		for range 3 {
			k.commit(id, 10, nil)
		}
		k.ok(k.store.Rebase(k.ctx, id, 3, []byte("base 3")))
		k.stateIs(id, 3, 3, "base 3")
		k.stateIs(id, 2, 0, "base 0")
		k.commit(id, 10, nil)
		k.stateIs(id, 4, 3, "base 3")
		k.stateIs(id, 3, 3, "base 3")
	}},
	{"rebase keeps what an unacknowledged Welcome needs", func(k *kit) {
		id := k.room(1, 10)
		k.commit(id, 10, invite(20, 1))
		for range 4 {
			k.commit(id, 10, nil)
		}
		k.ok(k.store.Rebase(k.ctx, id, 5, []byte("base 5")))
		k.stateIs(id, 1, 0, "base 0")
		equal(k, "group info of the Welcome", string(must(k.store.GroupInfo(k.ctx, id, 1))(k)), string(info(1)))
		k.ok(k.store.AckWelcome(k.ctx, id, 1, deviceID(20)))
		k.stateIs(id, 5, 5, "base 5")
		k.stateIs(id, 4, 0, "base 0") // the previous epoch needs the old chain
		k.commit(id, 10, nil)
		k.ok(k.store.Rebase(k.ctx, id, 6, []byte("base 6")))
		k.stateIs(id, 6, 6, "base 6")
		k.stateIs(id, 5, 5, "base 5")
	}},
	{"rebase of an epoch that is not kept", func(k *kit) {
		id := k.room(1, 10)
		k.commit(id, 10, nil)
		k.is(k.store.Rebase(k.ctx, id, 2, []byte("future")), delivery.ErrNotFound)
		k.stateIs(id, 1, 0, "base 0")
	}},
	{"group info of the current and the previous epoch", func(k *kit) {
		id := k.room(1, 10)
		for epoch := uint64(1); epoch <= 4; epoch++ {
			k.commit(id, 10, nil)
			equal(k, "current", string(must(k.store.GroupInfo(k.ctx, id, epoch))(k)), string(info(epoch)))
			if epoch > 1 {
				equal(k, "previous", string(must(k.store.GroupInfo(k.ctx, id, epoch-1))(k)), string(info(epoch-1)))
			}
		}
		_, err := k.store.GroupInfo(k.ctx, id, 5)
		k.is(err, delivery.ErrNotFound)
	}},
	{"one commit for each epoch", func(k *kit) {
		id := k.room(1, 10)
		stores := k.instances()
		for epoch := uint64(1); epoch <= 5; epoch++ {
			var wg sync.WaitGroup
			errs := make([]error, 16)
			for i := range errs {
				wg.Go(func() {
					errs[i] = stores[i%len(stores)].WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
						e := message(10, int(epoch)*100+i, epoch-1)
						e.Kind = delivery.KindCommit
						if _, err := tx.Append(e); err != nil {
							return err
						}
						return tx.Advance(delivery.Advance{Epoch: epoch, Delta: delta(epoch), GroupInfo: info(epoch)})
					})
				})
			}
			wg.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else {
					k.is(err, delivery.ErrChanged)
				}
			}
			equal(k, "winners", won, 1)
			r := must(k.store.Room(k.ctx, id))(k)
			equal(k, "epoch", r.Epoch, epoch)
			equal(k, "next seq", r.NextSeq, epoch+1)
		}
	}},
	{"no epoch is skipped or repeated", func(k *kit) {
		id := k.room(1, 10)
		k.commit(id, 10, nil)
		for _, epoch := range []uint64{0, 1, 3} {
			k.is(k.store.WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
				return tx.Advance(delivery.Advance{Epoch: epoch, Delta: delta(epoch), GroupInfo: info(epoch)})
			}), delivery.ErrChanged)
		}
		equal(k, "epoch", must(k.store.Room(k.ctx, id))(k).Epoch, 1)
	}},
	{"a refused advance lets the transaction go on", func(k *kit) {
		id := k.room(1, 10)
		k.with(id, func(tx delivery.RoomTx) error {
			if err := tx.Advance(delivery.Advance{Epoch: 9}); !errors.Is(err, delivery.ErrChanged) {
				return fmt.Errorf("advance says %v", err)
			}
			_, err := tx.Append(message(10, 1, 0))
			return err
		})
		equal(k, "entries", len(k.log(id)), 1)
	}},
}

// stateIs checks a state: its base, and one delta for each epoch above it.
func (k *kit) stateIs(id delivery.RoomID, epoch, baseEpoch uint64, base string) {
	k.Helper()
	st, err := k.store.State(k.ctx, id, epoch)
	if err != nil {
		k.Fatalf("state of epoch %d: %v", epoch, err)
	}
	equal(k, "base epoch", st.BaseEpoch, baseEpoch)
	equal(k, "base", string(st.Base), base)
	equal(k, "deltas", len(st.Deltas), int(epoch-baseEpoch))
	for i, d := range st.Deltas {
		equal(k, "delta", string(d), string(delta(baseEpoch+uint64(i)+1)))
	}
}

// invite adds devices with a Welcome; leaf is the first one's.
func invite(first, leaf int, more ...int) func(*delivery.Advance) {
	return func(a *delivery.Advance) {
		a.Welcome = fmt.Appendf(nil, "welcome to %d", a.Epoch)
		for i, d := range append([]int{first}, more...) {
			a.Added = append(a.Added, member(d, leaf+i))
			a.Joiners = append(a.Joiners, delivery.Joiner{Ref: fmt.Appendf(nil, "ref %d", d), Device: deviceID(d)})
		}
	}
}

var welcomes = []contract{
	{"a Welcome is for its joiners only", func(k *kit) {
		id := k.room(1, 10)
		k.commit(id, 10, invite(20, 1, 21))
		for _, d := range []int{20, 21} {
			equal(k, "welcome", string(must(k.store.Welcome(k.ctx, id, 1, deviceID(d)))(k)), "welcome to 1")
		}
		for _, d := range []int{10, 99} {
			_, err := k.store.Welcome(k.ctx, id, 1, deviceID(d))
			k.is(err, delivery.ErrNotFound)
		}
		for _, epoch := range []uint64{0, 2} {
			_, err := k.store.Welcome(k.ctx, id, epoch, deviceID(20))
			k.is(err, delivery.ErrNotFound)
		}
	}},
	{"a commit owes each joiner a pointer, oldest first", func(k *kit) {
		a, b := k.room(1, 10), k.room(2, 10)
		k.append(a, message(10, 1, 0))
		first := k.commit(a, 10, invite(20, 1, 21))
		second := k.commit(b, 10, invite(20, 1))
		want := []delivery.Relay{
			{Room: a, Epoch: 1, Device: deviceID(20), Ref: []byte("ref 20"), StartSeq: first.Seq},
			{Room: a, Epoch: 1, Device: deviceID(21), Ref: []byte("ref 21"), StartSeq: first.Seq},
			{Room: b, Epoch: 1, Device: deviceID(20), Ref: []byte("ref 20"), StartSeq: second.Seq},
		}
		if got := must(k.store.PendingRelays(k.ctx, 10))(k); !reflect.DeepEqual(got, want) {
			k.Fatalf("owed %+v, want %+v", got, want)
		}
		equal(k, "with a limit", len(must(k.store.PendingRelays(k.ctx, 2))(k)), 2)
		k.ok(k.store.FinishRelay(k.ctx, want[1]))
		k.ok(k.store.FinishRelay(k.ctx, want[1])) // idempotent
		if got := must(k.store.PendingRelays(k.ctx, 10))(k); !reflect.DeepEqual(got, []delivery.Relay{want[0], want[2]}) {
			k.Fatalf("after one: %+v", got)
		}
		equal(k, "a relayed Welcome waits still", string(must(k.store.Welcome(k.ctx, a, 1, deviceID(21)))(k)), "welcome to 1")
	}},
	{"the last acknowledgement frees the Welcome", func(k *kit) {
		id := k.room(1, 10)
		k.commit(id, 10, invite(20, 1, 21))
		k.ok(k.store.AckWelcome(k.ctx, id, 1, deviceID(20)))
		k.ok(k.store.AckWelcome(k.ctx, id, 1, deviceID(20))) // idempotent
		k.ok(k.store.AckWelcome(k.ctx, id, 1, deviceID(99))) // nobody
		_, err := k.store.Welcome(k.ctx, id, 1, deviceID(20))
		k.is(err, delivery.ErrNotFound)
		equal(k, "the other's", string(must(k.store.Welcome(k.ctx, id, 1, deviceID(21)))(k)), "welcome to 1")
		equal(k, "relays", len(must(k.store.PendingRelays(k.ctx, 10))(k)), 1)
		k.ok(k.store.AckWelcome(k.ctx, id, 1, deviceID(21)))
		_, err = k.store.Welcome(k.ctx, id, 1, deviceID(21))
		k.is(err, delivery.ErrNotFound)
		equal(k, "relays after all", len(must(k.store.PendingRelays(k.ctx, 10))(k)), 0)
	}},
	{"reports of a commit count identities until the next epoch", func(k *kit) {
		id := k.room(1, 10, 20)
		k.commit(id, 10, nil)
		report := func(epoch uint64, who, want int) {
			k.Helper()
			equal(k, "identities", must(k.store.Report(k.ctx, id, epoch, person(who)))(k), want)
		}
		report(1, 1, 1)
		report(1, 1, 1)
		report(1, 2, 2)
		report(0, 3, 0)
		report(2, 3, 0)
		report(1, 3, 3)
		k.commit(id, 10, nil)
		report(1, 4, 0)
		report(2, 4, 1)
	}},
	{"a commit without joiners owes nothing", func(k *kit) {
		id := k.room(1, 10)
		k.commit(id, 10, func(a *delivery.Advance) { a.Added = []delivery.Membership{member(20, 1)} })
		equal(k, "relays", len(must(k.store.PendingRelays(k.ctx, 10))(k)), 0)
		_, err := k.store.Welcome(k.ctx, id, 1, deviceID(20))
		k.is(err, delivery.ErrNotFound)
	}},
	{"a refused commit owes nothing", func(k *kit) {
		id := k.room(1, 10)
		refused := errors.New("refused")
		k.is(k.store.WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
			a := delivery.Advance{Epoch: 1, Delta: delta(1), GroupInfo: info(1)}
			invite(20, 1)(&a)
			if err := tx.Advance(a); err != nil {
				return err
			}
			return refused
		}), refused)
		equal(k, "relays", len(must(k.store.PendingRelays(k.ctx, 10))(k)), 0)
		_, err := k.store.Welcome(k.ctx, id, 1, deviceID(20))
		k.is(err, delivery.ErrNotFound)
	}},
}
