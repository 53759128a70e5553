package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// everything changes all that a transaction can change.
func everything(tx delivery.RoomTx) error {
	e := message(10, 1, 0)
	e.Kind = delivery.KindCommit
	e.Blobs = []delivery.BlobID{blobID(1)}
	if _, err := tx.Append(e); err != nil {
		return err
	}
	if err := tx.Unhold([]byte("old")); err != nil {
		return err
	}
	a := delivery.Advance{Epoch: 1, Delta: delta(1), GroupInfo: info(1), Removed: []identity.DeviceID{deviceID(20)}}
	invite(30, 2)(&a)
	if err := tx.Advance(a); err != nil {
		return err
	}
	if err := tx.Hold(delivery.HeldProposal{Ref: []byte("new"), Epoch: 1}); err != nil {
		return err
	}
	next := roomID(9)
	return tx.SetStatus(delivery.RoomSucceeded, &next)
}

// prepared is a room for everything, and what it looks like.
func (k *kit) prepared() (delivery.RoomID, func() []any) {
	k.Helper()
	k.enrol(10)
	k.upload(1, 10, 100)
	id := k.room(1, 10, 20)
	k.with(id, func(tx delivery.RoomTx) error { return tx.Hold(delivery.HeldProposal{Ref: []byte("old")}) })
	return id, func() []any {
		k.Helper()
		_, errState := k.store.State(k.ctx, id, 1)
		_, errInfo := k.store.GroupInfo(k.ctx, id, 1)
		_, errWelcome := k.store.Welcome(k.ctx, id, 1, deviceID(30))
		var dup bool
		k.with(id, func(tx delivery.RoomTx) (err error) {
			_, dup, err = tx.Duplicate(deviceID(10), message(10, 1, 0).Hash)
			return err
		})
		return []any{
			must(k.store.Room(k.ctx, id))(k), k.log(id), must(k.store.Members(k.ctx, id))(k), must(k.store.Held(k.ctx, id))(k),
			must(k.store.PendingRelays(k.ctx, 10))(k), must(k.store.Blob(k.ctx, blobID(1)))(k), dup,
			errState != nil, errInfo != nil, errWelcome != nil,
		}
	}
}

var transactions = []contract{
	{"all of it or nothing: an error", func(k *kit) {
		id, look := k.prepared()
		before := look()
		mine := fmt.Errorf("mine: %w", errors.New("refused"))
		err := k.store.WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
			if err := everything(tx); err != nil {
				k.Errorf("everything: %v", err)
			}
			return mine
		})
		if err != mine { //nolint:errorlint // the port promises this very error
			k.Fatalf("the function's error came back as %v", err)
		}
		if after := look(); !reflect.DeepEqual(before, after) {
			k.Fatalf("something changed:\n%+v\n%+v", before, after)
		}
		k.with(id, everything)
		if after := look(); reflect.DeepEqual(before, after) {
			k.Fatal("nothing changed")
		}
	}},
	{"all of it or nothing: a panic", func(k *kit) {
		id, look := k.prepared()
		before := look()
		mine := errors.New("a panic of the test")
		func() {
			defer func() {
				if got := recover(); got != mine {
					k.Errorf("recovered %v", got)
				}
			}()
			_ = k.store.WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
				if err := everything(tx); err != nil {
					k.Errorf("everything: %v", err)
				}
				panic(mine)
			})
			k.Error("WithRoom returned")
		}()
		if after := look(); !reflect.DeepEqual(before, after) {
			k.Fatalf("something changed:\n%+v\n%+v", before, after)
		}
	}},
	{"a failing neighbour disturbs nobody", func(k *kit) {
		// Good, failing and panicking work side by side, so that a store which
		// commits in groups has them in one group.
		const each = 40
		good, bad := k.room(1, 10), k.room(2, 10)
		refused := errors.New("refused")
		var wg sync.WaitGroup
		var wrong atomic.Int32
		for n := range each {
			wg.Go(func() {
				if err := k.store.WithRoom(k.ctx, good, func(tx delivery.RoomTx) error {
					_, err := tx.Append(message(10, n, 0))
					return err
				}); err != nil {
					wrong.Add(1)
				}
			})
			wg.Go(func() {
				err := k.store.WithRoom(k.ctx, bad, func(tx delivery.RoomTx) error {
					if _, err := tx.Append(message(10, n, 0)); err != nil {
						return err
					}
					return refused
				})
				if !errors.Is(err, refused) {
					wrong.Add(1)
				}
			})
			wg.Go(func() {
				defer func() {
					if recover() == nil {
						wrong.Add(1)
					}
				}()
				_ = k.store.WithRoom(k.ctx, bad, func(tx delivery.RoomTx) error {
					if _, err := tx.Append(message(10, each+n, 0)); err != nil {
						return err
					}
					panic("a panic of the test")
				})
			})
		}
		wg.Wait()
		equal(k, "wrong answers", wrong.Load(), 0)
		equal(k, "good entries", len(k.log(good)), each)
		equal(k, "bad entries", len(k.log(bad)), 0)
	}},
	{"a transaction that changes nothing", func(k *kit) {
		id := k.room(1, 10)
		k.with(id, func(tx delivery.RoomTx) error {
			if r := tx.Room(); r.ID != id || r.NextSeq != 1 {
				return fmt.Errorf("row is %+v", r)
			}
			return nil
		})
	}},
	{"a transaction is over when its function returned", func(k *kit) {
		id := k.room(1, 10)
		var kept delivery.RoomTx
		k.with(id, func(tx delivery.RoomTx) error {
			kept = tx
			return nil
		})
		_, errAppend := kept.Append(message(10, 1, 0))
		_, _, errDuplicate := kept.Duplicate(deviceID(10), [32]byte{})
		_, errMember := kept.Member(deviceID(10))
		_, errProposals := kept.Proposals()
		for i, err := range []error{errAppend, errDuplicate, errMember, errProposals, kept.Hold(delivery.HeldProposal{}), kept.Unhold(),
			kept.Advance(delivery.Advance{Epoch: 1}), kept.SetStatus(delivery.RoomHealing, nil)} {
			if err == nil {
				k.Errorf("method %d worked", i)
			}
		}
		equal(k, "entries", len(k.log(id)), 0)
	}},
	{"a context that has ended begins nothing", func(k *kit) {
		id := k.room(1, 10)
		ctx, cancel := context.WithCancel(k.ctx)
		cancel()
		err := k.store.WithRoom(ctx, id, func(delivery.RoomTx) error {
			k.Error("the function ran")
			return nil
		})
		k.is(err, context.Canceled)
		k.is(k.store.Enrol(ctx, device(10), many), context.Canceled)
		_, err = k.store.Device(k.ctx, deviceID(10))
		k.is(err, delivery.ErrNotFound)
		_, err = k.store.Room(ctx, id)
		k.is(err, context.Canceled)
		_, err = k.store.Log(ctx, id, delivery.LogRange{})
		k.is(err, context.Canceled)
	}},
	{"waiting work can be taken back and does not happen", func(k *kit) {
		id := k.room(1, 10)
		inside, release := make(chan struct{}), make(chan struct{})
		first := make(chan error, 1)
		go func() {
			var once sync.Once
			first <- k.store.WithRoom(k.ctx, id, func(tx delivery.RoomTx) error {
				once.Do(func() { close(inside) })
				<-release // a function that blocks, as none should
				_, err := tx.Append(message(10, 1, 0))
				return err
			})
		}()
		<-inside
		ctx, cancel := context.WithTimeout(k.ctx, 20*time.Millisecond)
		defer cancel()
		err := k.store.WithRoom(ctx, id, func(tx delivery.RoomTx) error {
			_, err := tx.Append(message(10, 2, 0))
			return err
		})
		close(release)
		k.is(err, context.DeadlineExceeded)
		k.ok(<-first)
		k.append(id, message(10, 3, 0))
		entries := k.log(id)
		equal(k, "entries", len(entries), 2)
		equal(k, "second", entries[1].AcceptedMS, now+3)
	}},
	{"cancelled at any moment: nothing happened, or all did and it says so", func(k *kit) {
		id := k.room(1, 10)
		const tries = 60
		var wg sync.WaitGroup
		outcome := make([]error, tries)
		for n := range tries {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(k.ctx, time.Duration(n*20)*time.Microsecond)
				defer cancel()
				outcome[n] = k.store.WithRoom(ctx, id, func(tx delivery.RoomTx) error {
					_, err := tx.Append(message(10, n, 0))
					return err
				})
			})
		}
		wg.Wait()
		there := map[int64]bool{}
		for i, e := range k.log(id) {
			equal(k, "seq", e.Seq, uint64(i+1))
			there[e.AcceptedMS-now] = true
		}
		for n, err := range outcome {
			if (err == nil) != there[int64(n)] {
				k.Errorf("try %d says %v, entry there: %v", n, err, there[int64(n)])
			}
		}
	}},
}
