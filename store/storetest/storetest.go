// Package storetest is the contract of [delivery.Store]: each sentence of the
// port is a test here, and every store runs all of them. What is not tested
// here is not promised. It is for tests only.
//
// Begin reading at [Run]. The tests stand in files by port; a test that needs
// several of them stands with the one it is about.
package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Opener opens the store at one place: empty at first, and after Close again
// with what was there.
type Opener func(ctx context.Context) (delivery.Store, error)

// Kind is a store under test.
type Kind struct {
	// Place makes an empty place that goes when the test ends.
	Place func(t testing.TB) Opener
	// Shared: several instances may have one place open at once.
	Shared bool
}

// Run runs the contract.
func Run(t *testing.T, kind Kind) {
	for _, group := range []struct {
		name  string
		tests []contract
	}{
		{"Rooms", rooms}, {"Append", appends}, {"Proposals", proposals}, {"Roster", roster}, {"State", states}, {"Welcome", welcomes},
		{"Transaction", transactions}, {"Devices", devices}, {"Sessions", sessions}, {"Revocation", revocations}, {"Sealed", sealed},
		{"KeyPackages", keyPackages}, {"Mailbox", mailboxes}, {"Blobs", blobs}, {"Directory", directory}, {"Settings", settings},
		{"Absent", absent}, {"Sweep", sweeps}, {"Incarnation", incarnations}, {"Durability", durability},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.tests {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					k := newKit(t, kind)
					c.test(k)
				})
			}
		})
	}
}

// contract is one sentence of the port.
type contract struct {
	name string
	test func(*kit)
}

// now is when the tests happen, in Unix milliseconds.
const now int64 = 1_790_000_000_000

// kit is a store in a test.
type kit struct {
	testing.TB
	kind  Kind
	open  Opener
	store delivery.Store
	ctx   context.Context
}

func newKit(t testing.TB, kind Kind) *kit {
	k := &kit{TB: t, kind: kind, open: kind.Place(t), ctx: t.Context()}
	k.store = k.another()
	return k
}

// another opens the place once more.
func (k *kit) another() delivery.Store {
	k.Helper()
	s, err := k.open(k.ctx)
	if err != nil {
		k.Fatalf("open: %v", err)
	}
	k.Cleanup(func() {
		if err := s.Close(); err != nil {
			k.Errorf("close: %v", err)
		}
	})
	return s
}

// instances are stores over the same place: two where the kind allows it.
func (k *kit) instances() []delivery.Store {
	if k.kind.Shared {
		return []delivery.Store{k.store, k.another()}
	}
	return []delivery.Store{k.store}
}

// reopen closes the store and opens it again.
func (k *kit) reopen() {
	k.Helper()
	k.ok(k.store.Close())
	k.store = k.another()
}

func (k *kit) ok(err error) {
	k.Helper()
	if err != nil {
		k.Fatalf("unexpected error: %v", err)
	}
}

// is demands that err is want.
func (k *kit) is(err, want error) {
	k.Helper()
	if !errors.Is(err, want) {
		k.Fatalf("error is %v, want %v", err, want)
	}
}

// must is k.ok for a call with one result.
func must[T any](v T, err error) func(*kit) T {
	return func(k *kit) T {
		k.Helper()
		k.ok(err)
		return v
	}
}

func equal[T comparable](k *kit, what string, got, want T) {
	k.Helper()
	if got != want {
		k.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// seed makes distinct bytes from words, the same in each run.
func seed(what string, n int) [32]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte(what), uint64(n)))
}

func roomID(n int) delivery.RoomID {
	s := seed("room", n)
	id := delivery.RoomID(s[:16])
	id[0], id[6], id[8] = delivery.RulesVersion, id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id
}

func deviceID(n int) identity.DeviceID {
	s := seed("device", n)
	return identity.DeviceID(s[:16])
}

// person is the identity of devices 10n to 10n+9.
func person(n int) identity.PublicKey { return seed("person", n) }

func device(n int) delivery.Device {
	cred := seed("credential", n)
	return delivery.Device{
		ID: deviceID(n), Identity: person(n / 10), Key: seed("key", n), Role: identity.RoleMember, Version: 1,
		Credential: cred[:], EnrolledMS: now, SeenMS: now,
	}
}

// many is a bound on devices and revocations that no test reaches.
var many = delivery.DeviceBound{Devices: 1000, Revocations: 1000}

// enrol makes devices known.
func (k *kit) enrol(ns ...int) {
	k.Helper()
	for _, n := range ns {
		k.ok(k.store.Enrol(k.ctx, device(n), many))
	}
}

func member(n, leaf int) delivery.Membership {
	return delivery.Membership{Device: deviceID(n), Identity: person(n / 10), Leaf: uint32(leaf)}
}

// room makes room n with devices as its members, in the order of the leaves.
func (k *kit) room(n int, members ...int) delivery.RoomID {
	k.Helper()
	r := newRoom(n, members...)
	k.ok(k.store.CreateRoom(k.ctx, r))
	return r.ID
}

func newRoom(n int, members ...int) delivery.NewRoom {
	r := delivery.NewRoom{ID: roomID(n), Kind: delivery.RoomGroup, CreatedMS: now, State: []byte("base 0"), GroupInfo: []byte("info 0")}
	for leaf, d := range members {
		r.Members = append(r.Members, member(d, leaf))
	}
	return r
}

// message is an application message of device d, distinct by n.
func message(d, n int, epoch uint64) delivery.NewEntry {
	body := seed("message", n)
	return delivery.NewEntry{
		Device: deviceID(d), Hash: sha256.Sum256(body[:]), Epoch: epoch, Kind: delivery.KindApplication, AcceptedMS: now + int64(n), Bytes: body[:],
	}
}

// append appends one entry in a transaction of its own.
func (k *kit) append(id delivery.RoomID, e delivery.NewEntry) delivery.Accepted {
	k.Helper()
	var acc delivery.Accepted
	k.with(id, func(tx delivery.RoomTx) (err error) {
		acc, err = tx.Append(e)
		return err
	})
	return acc
}

// with is WithRoom that must succeed.
func (k *kit) with(id delivery.RoomID, fn func(delivery.RoomTx) error) {
	k.Helper()
	k.ok(k.store.WithRoom(k.ctx, id, fn))
}

// commit appends a commit of device d and advances the room to the next epoch.
func (k *kit) commit(id delivery.RoomID, d int, change func(*delivery.Advance)) delivery.Accepted {
	k.Helper()
	var acc delivery.Accepted
	k.with(id, func(tx delivery.RoomTx) (err error) {
		r := tx.Room()
		e := message(d, int(r.NextSeq)*1000+int(r.Epoch), r.Epoch)
		e.Kind = delivery.KindCommit
		if acc, err = tx.Append(e); err != nil {
			return err
		}
		a := delivery.Advance{Epoch: r.Epoch + 1, Delta: delta(r.Epoch + 1), GroupInfo: info(r.Epoch + 1)}
		if change != nil {
			change(&a)
		}
		return tx.Advance(a)
	})
	return acc
}

func delta(epoch uint64) []byte { return binary.BigEndian.AppendUint64([]byte("delta"), epoch) }
func info(epoch uint64) []byte  { return binary.BigEndian.AppendUint64([]byte("info"), epoch) }

// log reads a whole log.
func (k *kit) log(id delivery.RoomID) []delivery.Entry {
	k.Helper()
	return must(k.store.Log(k.ctx, id, delivery.LogRange{}))(k)
}
