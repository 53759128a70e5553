package sdk_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// TestOnceAtEveryWrite edits, reacts, takes the reaction back, deletes and makes a
// room, loses power at each write in turn, and makes the same calls again with the
// same keys: each thing happened once.
func TestOnceAtEveryWrite(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "Once")
	must(t, err)
	ada.invite(room, bob)
	count := func(p *person, kind sdk.LineKind, after uint64) (n int) {
		t.Helper()
		must(t, p.Refresh(ctx, room))
		must(t, p.Store.View(ctx, func(tx sdk.Tx) error {
			all, err := tx.Lines(sdk.LineQuery{Room: room, After: after})
			for _, l := range all {
				if l.Kind == kind {
					n++
				}
			}
			return err
		}))
		return n
	}
	for _, kept := range []bool{false, true} {
		for n := 1; ; n++ {
			first, second := ada.say(room, "to be edited"), ada.say(room, "to be taken back")
			must(t, ada.Close())
			config := ada.config()
			f := &fuse{Store: config.Store, left: n, kept: kept}
			config.Store = f
			ada.Engine, err = sdk.Open(ctx, config)
			must(t, err)
			key := func(what byte) sdk.Key { return sdk.Key{byte(n), byte(n >> 8), what, map[bool]byte{true: 1}[kept], 9} }
			var made delivery.RoomID
			answers := map[string]sdk.Sent{}
			scenario := func() error {
				once := func(what byte) sdk.Once { return ada.Once(key(what)) }
				steps := []func() (sdk.Sent, error){
					func() (sdk.Sent, error) { return once(1).Edit(ctx, room, first.Seq, "edited") },
					func() (sdk.Sent, error) { return once(2).React(ctx, room, first.Seq, "👍") },
					func() (sdk.Sent, error) { return once(3).React(ctx, room, first.Seq, "🎈") },
					func() (sdk.Sent, error) { return once(4).React(ctx, room, first.Seq, "") },
					func() (sdk.Sent, error) { return once(5).Delete(ctx, room, second.Seq) },
				}
				for i, step := range steps {
					sent, err := step()
					if err != nil {
						return err
					}
					name := fmt.Sprint("step ", i)
					if before, again := answers[name]; again && i != 3 && before != sent {
						t.Errorf("write %d: %s answers %+v, then %+v", n, name, before, sent)
					}
					answers[name] = sent
				}
				id, err := once(6).NewRoomIn(ctx, sdk.Suites()[0], "made once")
				if err == nil && made != (delivery.RoomID{}) && made != id {
					t.Errorf("write %d: two rooms", n)
				}
				if err == nil {
					made = id
				}
				return err
			}
			err := scenario()
			if (err != nil) != f.blown || err != nil && !errors.Is(err, errCrash) {
				t.Fatalf("write %d, kept %v: blown %v and %v", n, kept, f.blown, err)
			}
			f.left = 0
			if f.blown {
				ada.restart()
			}
			for range 2 { // after the crash, and once more: each answers what it did
				if err := scenario(); err != nil {
					t.Fatalf("write %d, kept %v: again: %v", n, kept, err)
				}
			}
			chats, err := ada.Chats(ctx)
			must(t, err)
			if rooms := slices.DeleteFunc(chats, func(c sdk.Chat) bool { return c.Room.ID != made }); len(rooms) != 1 {
				t.Fatalf("write %d: the room is there %d times", n, len(rooms))
			}
			for _, p := range []*person{ada, bob} {
				for kind, want := range map[sdk.LineKind]int{sdk.LineEdit: 1, sdk.LineReaction: 2, sdk.LineUnreact: 2, sdk.LineDelete: 1, sdk.LineUnread: 0} {
					if got := count(p, kind, second.Seq); got != want {
						t.Fatalf("write %d, kept %v: %s has %d of %s, want %d", n, kept, p.Name(), got, kind, want)
					}
				}
			}
			if !f.blown {
				t.Logf("kept %v: %d writes", kept, n-1)
				break
			}
		}
	}
}

// TestOnlyMessagesAreAnswered: what has a number and is no message of a person is
// neither edited nor taken back nor commented, carries no file, and the error says
// what it is.
func TestOnlyMessagesAreAnswered(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "First")
	must(t, err)
	ada.invite(room, bob)
	_, err = ada.Rename(ctx, room, "Second")
	must(t, err)
	sent := ada.say(room, "a message")
	_, err = ada.React(ctx, room, sent.Seq, "👍")
	must(t, err)
	gone := ada.say(room, "taken back")
	_, err = ada.Delete(ctx, room, gone.Seq)
	must(t, err)
	last := ada.say(room, "the last")
	kinds := map[sdk.LineKind]bool{}
	for seq := uint64(1); seq <= last.Seq; seq++ {
		if seq == sent.Seq || seq == last.Seq {
			continue
		}
		l, err := ada.Message(ctx, room, seq)
		if !errors.Is(err, sdk.ErrNotMessage) && !errors.Is(err, sdk.ErrNoMessage) {
			t.Errorf("#%d, a %s: %v", seq, l.Kind, err)
		}
		kinds[l.Kind] = true
		for what, do := range map[string]func() error{
			"edit":   func() error { _, err := ada.Edit(ctx, room, seq, "x"); return err },
			"delete": func() error { _, err := ada.Delete(ctx, room, seq); return err },
			"react":  func() error { _, err := ada.React(ctx, room, seq, "x"); return err },
			"get":    func() error { _, err := ada.Attachment(ctx, room, seq); return err },
		} {
			if err := do(); !errors.Is(err, sdk.ErrNotMessage) && !errors.Is(err, sdk.ErrNoMessage) {
				t.Errorf("%s #%d, a %s: %v", what, seq, l.Kind, err)
			}
		}
	}
	for _, kind := range []sdk.LineKind{sdk.LineJoin, sdk.LineTitle, sdk.LineReaction, sdk.LineText, sdk.LineDelete} {
		if !kinds[kind] {
			t.Errorf("no %s was tried", kind)
		}
	}
	ada.reads(room, "a message", "the last")
}
