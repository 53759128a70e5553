package sdk_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

// TestAClockAnHourOff: a device whose clock is an hour wrong, either way, does all
// that others do, and messages bear the service's time; so does one whose clock
// jumps while it is here.
func TestAClockAnHourOff(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	right := newPerson(t, h, "right")
	for name, ahead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			right.t = t
			wrong := newPersonAhead(t, h, name, ahead)
			room, err := wrong.NewRoom(ctx, "Hours")
			must(t, err)
			wrong.invite(room, right)
			sent := wrong.say(room, "what time is it?")
			right.say(room, "the service's")
			wrong.reads(room, "what time is it?", "the service's")
			right.reads(room, "what time is it?", "the service's")
			for _, p := range []*person{wrong, right} {
				l, err := p.LineAt(ctx, room, sent.Seq)
				must(t, err)
				if off := time.Since(time.UnixMilli(l.TimeMS)); off.Abs() > 10*time.Minute {
					t.Errorf("%s shows a time that is off by %s", p.Name(), off)
				}
			}
			other, err := right.NewRoom(ctx, "Other")
			must(t, err)
			right.invite(other, wrong)
			wrong.say(other, "here too")

			wrong.ahead = -ahead // it jumps by two hours
			wrong.restart()
			wrong.say(room, "and now?")
			right.reads(room, "what time is it?", "the service's", "and now?")
			right.say(other, "the same")
			wrong.reads(other, "here too", "the same")
			again := &person{t: t, path: filepath.Join(t.TempDir(), "again.db"), seal: bytes.Repeat([]byte{9}, sdk.SealKeySize), ahead: ahead}
			again.Engine, err = sdk.Restore(ctx, again.config(), h.url, wrong.words)
			must(t, err)
			t.Cleanup(func() { _ = again.Close() })
			again.say(room, "from the phrase")
			right.reads(room, "what time is it?", "the service's", "and now?", "from the phrase")
		})
	}
}

// TestAClockMonthsOff: nobody can find out by a refusal alone that it was the
// clock; so the refusal is one that says to look at it, nothing is half made, and
// with the clock right the same works.
func TestAClockMonthsOff(t *testing.T) {
	h := newHome(t)
	for name, ahead := range map[string]time.Duration{"ahead": 150 * 24 * time.Hour, "behind": -150 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			p := &person{t: t, path: filepath.Join(t.TempDir(), name+".db"), seal: bytes.Repeat([]byte{7}, sdk.SealKeySize), ahead: ahead}
			config := p.config()
			_, _, err := sdk.Create(t.Context(), config, sdk.NewAccount{Server: h.url, Name: name, Username: name})
			var refusal *delivery.Error
			if !errors.As(err, &refusal) || refusal.Code != delivery.CodeBadRequest {
				t.Fatalf("an account by a clock that is months off: %v", err)
			}
			_ = config.Store.Close() // a failed Create may have closed it
			newPerson(t, h, name)    // the name is free
		})
	}
}
