package sdk_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// TestPhraseAfterARestoreWithoutAnyDevice: the service was restored and every device of
// an account is gone, in one chat everybody's. Who types the phrase is told that the
// chats are being put together, and is in them minutes later, whether the restore was a
// moment ago or long before.
func TestPhraseAfterARestoreWithoutAnyDevice(t *testing.T) {
	for name, since := range map[string]time.Duration{"a moment ago": 0, "a day ago": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			ctx := t.Context()
			ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
			alone, err := ada.NewRoom(ctx, "Alone")
			must(t, err)
			both, err := ada.NewRoom(ctx, "Both")
			must(t, err)
			ada.invite(both, bob)
			bob.say(both, "before")
			ada.say(alone, "a note")
			must(t, ada.Sync(ctx))
			_, err = ada.Archive(ctx)
			must(t, err)
			backup := h.backup()
			ada.say(alone, "lost with the device")
			must(t, ada.Close())
			must(t, bob.Close())
			h.stop()
			h.restore(backup)
			h.later.Store(int64(since))

			var told []string
			anew := &person{t: t, path: ada.path + ".new", seal: ada.seal, words: ada.words}
			c := anew.config()
			c.Warn = func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
			anew.Engine, err = sdk.Restore(ctx, c, h.url, ada.words)
			must(t, err)
			t.Cleanup(func() { _ = anew.Close() })
			if all := strings.Join(told, "\n"); strings.Count(all, "puts a chat together again") != 3 || strings.Contains(all, "faster") {
				t.Errorf("told %q", told) // of both chats, and of the account's own room
			}
			h.later.Store(int64(since + 20*time.Minute))
			must(t, anew.Sync(ctx))
			for room, want := range map[delivery.RoomID]string{alone: "a note", both: "before"} {
				if got := anew.read(room); len(got) != 1 || got[0] != want {
					t.Errorf("the chat reads %q, not %q", got, want)
				}
				anew.say(room, "after")
				anew.reads(room, want, "after")
			}
		})
	}
}

// TestPhraseOfAnAccountThatTheBackupLacks: what is gone with its last device is said to
// be gone.
func TestPhraseOfAnAccountThatTheBackupLacks(t *testing.T) {
	h := newHome(t)
	backup := h.backup()
	ada := newPerson(t, h, "ada")
	must(t, ada.Close())
	h.stop()
	h.restore(backup)
	anew := &person{t: t, path: ada.path + ".new", seal: ada.seal, words: ada.words}
	_, err := sdk.Restore(t.Context(), anew.config(), h.url, ada.words)
	if delivery.CodeOf(err) != delivery.CodeNotFound || !strings.Contains(err.Error(), "restored from a backup") {
		t.Errorf("restoring ends with %v", err)
	}
}
