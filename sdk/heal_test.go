package sdk_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/store/sqlite"
)

// TestRestoredFromBeforeTheRoom: accounts, a room and a file in it are newer than
// the backup. The room's creator brings the room back, the members what was said in
// it, and the file is there because its bytes are.
func TestRestoredFromBeforeTheRoom(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada := newPerson(t, h, "ada")
	backup := h.backup()
	bob := newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Since the backup")
	must(t, err)
	ada.invite(room, bob)
	data := make([]byte, 100_000)
	_, _ = rand.Read(data)
	f := &sdk.File{Name: "film.bin", Type: "application/octet-stream", Size: int64(len(data)), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	sent, err := ada.Send(ctx, room, sdk.Draft{Text: "Look", File: f})
	must(t, err)
	bob.say(room, "I see")
	ada.say(room, "and more")
	a, err := bob.Attachment(ctx, room, sent.Seq)
	must(t, err)
	h.stop()
	blobs := filepath.Join("server", "blobs")
	must(t, os.RemoveAll(filepath.Join(backup, blobs)))
	must(t, os.CopyFS(filepath.Join(backup, blobs), os.DirFS(filepath.Join(h.dir, blobs))))
	h.restore(backup)

	must(t, bob.Sync(ctx)) // too early: nobody has made the room again
	must(t, ada.Sync(ctx)) // she has not read yet what bob said
	for _, p := range []*person{bob, ada} {
		p.restart() // the wait before it asks again is a process's own
		must(t, p.Sync(ctx))
	}
	members, err := ada.Members(ctx, room)
	must(t, err)
	if len(members) != 2 {
		t.Errorf("%d members", len(members))
	}
	for _, p := range []*person{ada, bob} {
		var sealed, plain bytes.Buffer
		must(t, p.Download(ctx, a, 0, &sealed, nil))
		must(t, a.Open(&plain, &sealed, a.Size, content.NewAESGCM))
		if !bytes.Equal(plain.Bytes(), data) {
			t.Error("the file is another one")
		}
		if got := p.read(room); len(got) != 3 {
			t.Errorf("%q", got)
		}
	}
}

// TestHealedByWhoKeptItLonger: what one device read and forgot another one kept, and
// brings it back. Who forgot it has read it all the same: it is no second entry under
// a used key.
func TestHealedByWhoKeptItLonger(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Kept")
	must(t, err)
	ada.invite(room, bob)
	backup := h.backup()
	ada.say(room, "one")
	ada.say(room, "two")
	bob.reads(room, "one", "two")
	bob.ahead = 31 * 24 * time.Hour
	must(t, bob.Sync(ctx)) // forgets what is past retention
	bob.ahead = 0
	must(t, bob.Store.View(ctx, func(tx sdk.Tx) error {
		return tx.Scan(sdk.TableRaw, room.String()+"/", "", func(key string, _ []byte) (bool, error) {
			t.Errorf("%s is kept", key)
			return true, nil
		})
	}))
	h.stop()
	h.restore(backup)

	for range 3 { // the room opens when both have said what they kept
		must(t, ada.Refresh(ctx, room))
		must(t, bob.Refresh(ctx, room))
	}
	ada.say(room, "three")
	bob.reads(room, "one", "two", "three")
	bob.restart()
	bob.reads(room, "one", "two", "three")
}

// TestWhatFitsNowhereIsToldOnce: a message whose epoch nobody can bring back is offered
// as long as the room waits, and told of once.
func TestWhatFitsNowhereIsToldOnce(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	room, err := ada.NewRoom(ctx, "Nowhere")
	must(t, err)
	ada.invite(room, bob)
	must(t, ada.Sync(ctx))
	must(t, bob.Sync(ctx))
	backup := h.backup()
	ada.invite(room, carl)
	ada.say(room, "of the next epoch")
	must(t, bob.Sync(ctx))
	for _, p := range []*person{ada, bob} {
		must(t, p.Store.Update(ctx, func(tx sdk.Tx) error { return forgetCommits(tx, room) }))
	}
	h.stop()
	// A log of which nothing is left opens by the clock alone.
	store, err := sqlite.Open(ctx, filepath.Join(backup, "server", "compax.db"))
	must(t, err)
	now := time.Now().UnixMilli()
	_, err = store.Sweep(ctx, delivery.SweepPlan{NowMS: now, LogBefore: now + 1})
	must(t, err)
	must(t, store.Close())
	h.restore(backup)

	must(t, ada.Close())
	c := ada.config()
	var told []string
	c.Warn = func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	ada.Engine, err = sdk.Open(ctx, c)
	must(t, err)
	for range 4 {
		must(t, bob.Refresh(ctx, room))
		must(t, ada.Refresh(ctx, room))
	}
	nowhere := 0
	for _, what := range told {
		if strings.Contains(what, "fit nowhere") {
			nowhere++
		}
	}
	if nowhere != 1 {
		t.Errorf("told %d times: %q", nowhere, told)
	}
}

// forgetCommits takes the commits that a device kept of a room away.
func forgetCommits(tx sdk.Tx, room delivery.RoomID) error {
	var keys []string
	err := tx.Scan(sdk.TableRaw, room.String()+"/", "", func(key string, raw []byte) (bool, error) {
		if len(raw) > 16 && delivery.EntryKind(raw[16]) == delivery.KindCommit {
			keys = append(keys, key)
		}
		return true, nil
	})
	for _, key := range keys {
		err = errors.Join(err, tx.Delete(sdk.TableRaw, key))
	}
	return err
}

// TestRestoredWithARevocationOfSomebodyElsesDevice: the restored service refuses it,
// and the rest is brought back all the same.
func TestRestoredWithARevocationOfSomebodyElsesDevice(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	bob := newPerson(t, h, "bob")
	backup := h.backup()
	ada := newPerson(t, h, "ada")
	node, err := ada.words.Account()
	must(t, err)
	signer, err := node.Identity()
	must(t, err)
	foreign, err := identity.Revoke(identity.RevocationFields{Identity: ada.Identity(), DeviceID: bob.Device(), IssuedAt: 1}, signer)
	must(t, err)
	key := ada.Identity().String() + "/" + bob.Device().String()
	must(t, ada.Store.Update(ctx, func(tx sdk.Tx) error { return tx.Put(sdk.TableRevoked, key, foreign.Bytes()) }))
	h.stop()
	h.restore(backup)

	must(t, ada.Sync(ctx))
	must(t, ada.Store.View(ctx, func(tx sdk.Tx) error {
		if raw, err := tx.Get(sdk.TableRevoked, key); err != nil || raw != nil {
			t.Errorf("kept %d bytes, %v", len(raw), err)
		}
		return nil
	}))
	bob.invite(bob.room("After"), ada) // her key packages are there again
}

// TestRevocationIsToldAfterARestoreThatWasReadOnce: a device reads in every chat that the
// service was restored, and each time the connection breaks before it has said which devices of its
// account were revoked. It says so the next time, and after a start as well.
func TestRevocationIsToldAfterARestoreThatWasReadOnce(t *testing.T) {
	for name, restart := range map[string]bool{"the same process": false, "started anew": true} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			ctx := t.Context()
			ada := newPerson(t, h, "ada")
			room := ada.room("Owed")
			phone := ada.another(h, "phone")
			must(t, ada.Sync(ctx))
			backup := h.backup()
			must(t, ada.Revoke(ctx, phone.Device(), nil))
			h.stop()
			h.restore(backup)
			must(t, phone.Sync(ctx)) // the service knows nothing of it
			b := ada.through()
			b.answer = answers("/revocations", 503, delivery.ProblemType, problem(t, delivery.Refuse(delivery.CodeRetry, "later")))
			if err := ada.Refresh(ctx, room); delivery.CodeOf(err) != delivery.CodeRetry {
				t.Fatalf("the revocation is not told: %v", err)
			}
			for range 4 { // the account's own room, too
				_ = ada.Sync(ctx)
			}
			b.answer = nil
			if restart {
				ada.restart()
			}
			must(t, ada.Sync(ctx))
			if err := phone.Sync(ctx); !errors.Is(err, sdk.ErrRevoked) {
				t.Errorf("the revoked device reads on: %v", err)
			}
		})
	}
}

// forget lets a device forget entries that are past retention, as if it were later.
func (p *person) forget() {
	p.t.Helper()
	p.ahead = 31 * 24 * time.Hour
	must(p.t, p.Sync(p.t.Context()))
	p.ahead = 0
}

// TestRestoredToBeforeAForgottenChange: a change is newer than the backup, and everybody
// has read and forgotten it. The room opens before it; whoever was further comes in
// again there, and all are in one epoch.
func TestRestoredToBeforeAForgottenChange(t *testing.T) {
	for name, changes := range map[string]int{"the room is behind": 0, "the room has another change of the epoch": 1, "the room has gone further": 2} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			ctx := t.Context()
			ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
			room, err := ada.NewRoom(ctx, "Fork")
			must(t, err)
			ada.invite(room, bob)
			ada.invite(room, carl)
			ada.say(room, "before")
			for _, p := range []*person{bob, carl} {
				p.reads(room, "before")
			}
			backup := h.backup()
			tablet := bob.another(h, "tablet") // carl never hears of it
			must(t, ada.Refresh(ctx, room))
			must(t, bob.Refresh(ctx, room))
			if ada.epoch(room) <= carl.epoch(room) {
				t.Fatal("nothing was changed")
			}
			ada.forget()
			bob.forget()
			tablet.forget()
			h.stop()
			h.restore(backup)

			for _, p := range []*person{carl, ada, bob} {
				must(t, p.Refresh(ctx, room)) // the last one opens it
			}
			for range changes {
				dora := newPerson(t, h, fmt.Sprintf("dora%d", carl.epoch(room)))
				must(t, carl.Add(ctx, room, dora.Identity()))
			}
			for range 2 {
				for _, p := range []*person{ada, bob, carl} {
					must(t, p.Refresh(ctx, room))
				}
			}
			want, a, err := ada.EpochAuthenticator(ctx, room)
			must(t, err)
			for _, p := range []*person{bob, carl} {
				if got, b, err := p.EpochAuthenticator(ctx, room); err != nil || got != want || !bytes.Equal(a, b) {
					t.Errorf("epochs %d and %d, %v", got, want, err)
				}
			}
			ada.say(room, "after")
			bob.reads(room, "before", "after")
			carl.reads(room, "before", "after")
		})
	}
}

// TestAttackRestoredWithSomebodyRemoved: the forgotten change removed somebody. Nobody
// who knows that goes back to where she is in the chat, however the service came there.
func TestAttackRestoredWithSomebodyRemoved(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, eve := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "eve")
	room, err := ada.NewRoom(ctx, "Rollback")
	must(t, err)
	ada.invite(room, bob)
	ada.invite(room, eve)
	must(t, bob.Refresh(ctx, room))
	must(t, ada.Refresh(ctx, room))
	backup := h.backup()
	must(t, ada.Remove(ctx, room, eve.Identity()))
	must(t, bob.Refresh(ctx, room))
	ada.forget()
	bob.forget()
	h.stop()
	h.restore(backup)

	must(t, eve.Refresh(ctx, room))
	must(t, ada.Refresh(ctx, room))
	b := bob.through()
	if err := bob.Refresh(ctx, room); !errors.Is(err, sdk.ErrStuck) {
		t.Errorf("the room is read with %v", err)
	}
	if _, err := bob.Send(ctx, room, sdk.Draft{Text: "without Eve"}); !errors.Is(err, sdk.ErrStuck) {
		t.Errorf("sending ends with %v", err)
	}
	if b.commits.Load() != 0 {
		t.Error("the device went back to the state with Eve")
	}
	must(t, eve.Refresh(ctx, room))
	if got := eve.read(room); len(got) != 0 {
		t.Errorf("eve reads %q", got)
	}
}
