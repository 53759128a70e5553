package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/askucher/compax-core/sdk"
)

var errCrash = errors.New("the machine lost its power")

// fuse is a store that loses power at one of its writes: before it, or after it
// when kept is set. From then on nothing works any more.
type fuse struct {
	sdk.Store
	left  int  // writes until it blows; 0 = never
	kept  bool // the last write is durable
	blown bool
}

func (f *fuse) Update(ctx context.Context, do func(sdk.Tx) error) error {
	if f.blown {
		return errCrash
	}
	if f.left > 0 {
		if f.left--; f.left == 0 {
			f.blown = true
			if f.kept {
				if err := f.Store.Update(ctx, do); err != nil {
					return err
				}
			}
			return errCrash
		}
	}
	return f.Store.Update(ctx, do)
}

func (f *fuse) View(ctx context.Context, do func(sdk.Tx) error) error {
	if f.blown {
		return errCrash
	}
	return f.Store.View(ctx, do)
}

// TestCrashAtEveryWrite runs a device through receiving, sending and changing a
// room, and takes its power away at each write in turn, once before and once
// after it became durable. Started again it goes on: what was acknowledged is
// there once, for everybody, and nothing is unreadable.
func TestCrashAtEveryWrite(t *testing.T) {
	h := newHome(t)
	ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "Crash")
	must(t, err)
	ada.invite(room, bob)
	must(t, ada.Add(ctx, room, carl.Identity()))
	must(t, carl.Accept(ctx, room))
	member := true
	var want []string
	round := 0
	for _, kept := range []bool{false, true} {
		for n := 1; ; n++ {
			round++
			said := fmt.Sprintf("bob %d", round)
			bob.say(room, said)
			want = append(want, said)

			must(t, ada.Close())
			config := ada.config()
			f := &fuse{Store: config.Store, left: n, kept: kept}
			config.Store = f
			ada.Engine, err = sdk.Open(ctx, config)
			must(t, err)
			text := fmt.Sprintf("ada %d", round)
			scenario := func() error {
				if err := ada.Sync(ctx); err != nil {
					return err
				}
				if member {
					err = ada.Remove(ctx, room, carl.Identity())
				} else {
					err = ada.Add(ctx, room, carl.Identity())
				}
				if err != nil {
					return err
				}
				_, err := ada.Send(ctx, room, sdk.Draft{Text: text, Key: [16]byte{byte(round), byte(round >> 8), 1}})
				return err
			}
			err := scenario()
			if (err != nil) != f.blown {
				t.Fatalf("write %d, kept %v: blown %v and %v", n, kept, f.blown, err)
			}
			if err != nil && !errors.Is(err, errCrash) {
				t.Fatalf("write %d, kept %v: %v", n, kept, err)
			}
			if f.blown {
				ada.restart()
				if err := scenario(); err != nil {
					t.Fatalf("write %d, kept %v: after the crash: %v", n, kept, err)
				}
			}
			member = !member
			want = append(want, text)
			for _, p := range []*person{ada, bob} {
				if got := p.read(room); !slices.Equal(got, want) {
					t.Fatalf("write %d, kept %v: %s reads\n%q\nwant\n%q", n, kept, p.Name(), tail(got), tail(want))
				}
			}
			if !f.blown {
				t.Logf("kept %v: %d writes", kept, n-1)
				break
			}
		}
	}
}

func tail(list []string) []string { return list[max(0, len(list)-6):] }

// TestWhatAFailingStoreDoesNotHoldIsDoneAgain: the place of the reader, and leaving, are
// not taken for done because memory says so.
func TestWhatAFailingStoreDoesNotHoldIsDoneAgain(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	failed := 0
	failing := func(at int, do func() error) {
		t.Helper()
		f := &fuse{Store: bob.Store, left: at}
		bob.Store = f
		if err := do(); errors.Is(err, errCrash) {
			failed++
		} else {
			must(t, err)
		}
		bob.Store = f.Store // it works again
		must(t, do())
		bob.restart()
	}
	room := ada.room("Fuse")
	ada.invite(room, bob)
	sent := ada.say(room, "read me")
	must(t, bob.Refresh(ctx, room))
	failing(1, func() error { return bob.MarkRead(ctx, room, sent.Seq, false) })
	if rec, err := bob.RoomOf(ctx, room); err != nil || rec.Read != sent.Seq {
		t.Errorf("read up to %d: %v", rec.Read, err)
	}
	for at := 1; at <= 3; at++ {
		room := ada.room("Leave")
		ada.invite(room, bob)
		must(t, bob.Refresh(ctx, room))
		failing(at, func() error { return bob.Leave(ctx, room) })
		if got := bob.status(room); got != sdk.StatusLeft {
			t.Errorf("write %d failed: the room is %s", at, got)
		}
	}
	if failed < 3 {
		t.Errorf("only %d writes failed", failed)
	}
}
