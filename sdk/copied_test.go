package sdk_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/sdk"
)

// copied is a person over a copy of this one's profile, which may be in use, as with an
// image of a running machine: the copy holds the same keys, and the copy counter that
// the service knows. It is not opened yet.
func (p *person) copied() *person {
	p.t.Helper()
	twin := &person{t: p.t, path: filepath.Join(p.t.TempDir(), "twin.db"), seal: p.seal, words: p.words}
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(p.path + suffix)
		if os.IsNotExist(err) {
			continue
		}
		must(p.t, err)
		must(p.t, os.WriteFile(twin.path+suffix, b, 0o600))
	}
	return twin
}

// opens starts a process on a profile and gives what it warns of.
func (p *person) opens(edit func(*sdk.Config)) (warned *[]string) {
	p.t.Helper()
	c := p.config()
	warned = &[]string{}
	c.Warn = func(format string, args ...any) { *warned = append(*warned, fmt.Sprintf(format, args...)) }
	if edit != nil {
		edit(&c)
	}
	e, err := sdk.Open(p.t.Context(), c)
	must(p.t, err)
	p.Engine = e
	p.t.Cleanup(func() { _ = e.Close() })
	return warned
}

func warnsOfCopy(list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		return strings.Contains(s, "another copy of this profile") && strings.Contains(s, "link a device")
	})
}

// TestLiveCopies: two copies of a profile run at once, and neither the copy counter
// nor the machine tells. The log does: what the other one said is read and shown,
// nothing is sent under its keys, and the process that is cut off says so, keeps
// what it was to send, and sends it when it is started again.
func TestLiveCopies(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Copies")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "one")
	twin := ada.copied()
	ada.say(room, "two")
	ada.say(room, "three")
	epoch := ada.epoch(room)

	warned := twin.opens(nil)
	twin.say(room, "from the copy")
	if !warnsOfCopy(*warned) {
		t.Errorf("the copy warns of %q", *warned)
	}
	if twin.epoch(room) == epoch {
		t.Error("the copy has sent from the same leaf")
	}
	want := []string{"one", "two", "three", "from the copy"}
	twin.reads(room, want...)
	bob.reads(room, want...)

	for range 2 { // it stays so: of one process nothing comes any more
		_, err = ada.Send(ctx, room, sdk.Draft{Text: "kept", Key: sdk.Key{4}})
		if !errors.Is(err, client.ErrCopied) || !errors.Is(err, sdk.ErrKept) {
			t.Fatalf("the first one, cut off: %v", err)
		}
	}
	if err := ada.Follow(ctx); !errors.Is(err, client.ErrCopied) {
		t.Fatalf("listening while cut off: %v", err)
	}
	twin.say(room, "still the copy")

	must(t, ada.Close())
	warned = ada.opens(nil)
	sent, err := ada.Send(ctx, room, sdk.Draft{Text: "kept", Key: sdk.Key{4}})
	must(t, err)
	if sent.Seq == 0 || !warnsOfCopy(*warned) {
		t.Errorf("%+v, warned of %q", sent, *warned)
	}
	bob.reads(room, append(want, "still the copy", "kept")...)
	// What the copy said from its new place is for others: the first one says so.
	got := ada.read(room)
	if len(got) != 5 || !strings.Contains(got[3], "another copy of this profile") || got[4] != "kept" {
		t.Errorf("the first one reads %q", got)
	}
	if err := twin.Refresh(ctx, room); !errors.Is(err, client.ErrCopied) {
		t.Fatalf("the copy, cut off: %v", err)
	}
}

// TestCopyChangesTheRoom: what another copy changed this one cannot follow, as it has
// not made the keys. It comes in again, says what it misses, and finds the rooms that
// the other one came into.
func TestCopyChangesTheRoom(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	room, err := ada.NewRoom(ctx, "Changes")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "one")
	twin := ada.copied()
	ada.invite(room, carl)
	ada.say(room, "two")
	later, err := bob.NewRoom(ctx, "Later")
	must(t, err)
	bob.invite(later, ada)

	warned := twin.opens(nil)
	must(t, twin.Refresh(ctx, room))
	if !warnsOfCopy(*warned) {
		t.Errorf("the copy warns of %q", *warned)
	}
	lines, err := twin.History(ctx, room, 0, 0, true)
	must(t, err)
	gap := slices.IndexFunc(lines, func(l sdk.Line) bool { return l.Kind == sdk.LineGap })
	if gap < 0 || !strings.Contains(lines[gap].Cause, "another copy of this profile") {
		t.Errorf("no gap line in %+v", lines)
	}
	twin.say(room, "back")
	bob.reads(room, "one", "two", "back")
	must(t, twin.Sync(ctx))
	twin.say(later, "here too")
	bob.reads(later, "here too")
}

// between two reads of a long body something happens.
type slowly struct {
	io.Reader
	sent int
	then func()
}

func (s *slowly) Read(b []byte) (int, error) {
	if s.sent > 0 && s.then != nil {
		s.then()
		s.then = nil
	}
	n, err := s.Reader.Read(b[:min(len(b), 9000)])
	s.sent += n
	return n, err
}

// TestCopiesUnderOneKey: both copies seal under one generation before either can
// know of the other: the request of one is on its way while the other logs in and
// reads. Nobody else can open the later entry, so its sender says it again.
func TestCopiesUnderOneKey(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Race")
	must(t, err)
	ada.invite(room, bob)
	b := ada.through()
	ada.say(room, "one")
	twin := ada.copied()
	twin.opens(nil)
	look := func() { // the session begins with the first look, the second one is of it
		must(t, twin.Refresh(ctx, room))
		must(t, twin.Refresh(ctx, room))
	}
	b.body = func(path string, r io.Reader) io.Reader {
		if !strings.HasSuffix(path, "/append") {
			return r
		}
		return &slowly{Reader: r, then: look}
	}
	long := strings.Repeat("long ", 4000) // so that its first half reaches the service
	ada.say(room, long)
	twin.say(room, "under the same key")
	short := func(list []string) []string {
		for i, s := range list {
			list[i] = s[:min(len(s), 60)]
		}
		return list
	}
	if got := short(bob.read(room)); len(got) != 3 || got[2] != "!"+sdk.CauseKeyUsed[:59] {
		t.Fatalf("bob reads %q", got)
	}
	must(t, twin.Sync(ctx))
	if got := short(bob.read(room)); got[len(got)-1] != "under the same key" {
		t.Fatalf("bob reads %q", got)
	}
	if got := short(twin.read(room)); !slices.Contains(got, "!"+sdk.CauseCopy) || got[len(got)-1] != "under the same key" {
		t.Fatalf("the copy reads %q", got)
	}
}

// TestCopiedIsSaidUntilHeard: a copy learns at its login that it is one, also when the
// answer to that login is lost, or power is when the answer is written down: the next
// login, and the next process, know it.
func TestCopiedIsSaidUntilHeard(t *testing.T) {
	loses := func(c *sdk.Config) {
		c.Transport = &between{Transport: c.Transport, lose: once("/sessions")}
	}
	dies := func(kept bool) func(*sdk.Config) { // the first write is of the counter to come
		return func(c *sdk.Config) { c.Store = &fuse{Store: c.Store, left: 2, kept: kept} }
	}
	for name, first := range map[string]struct {
		edit func(*sdk.Config)
		ends bool // the process, at its login
	}{
		"the answer is lost": {loses, false}, "it is not written down": {dies(false), true}, "the machine ends after it": {dies(true), true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			ctx := t.Context()
			ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
			room, err := ada.NewRoom(ctx, "Told")
			must(t, err)
			ada.invite(room, bob)
			twin := ada.copied()
			ada.restart()
			must(t, ada.Refresh(ctx, room)) // the login after which the copy is behind
			epoch := ada.epoch(room)
			warned := twin.opens(first.edit)
			if err := twin.Refresh(ctx, room); err == nil {
				t.Fatal("the first login went well")
			}
			if first.ends {
				must(t, twin.Close())
				warned = twin.opens(nil)
			}
			twin.say(room, "from the copy")
			if twin.epoch(room) == epoch {
				t.Errorf("the copy has sent from the same leaf; it warned of %q", *warned)
			}
			bob.reads(room, "from the copy")
		})
	}
}

// once is true for the first request to a path that ends so.
func once(suffix string) func(path string) bool {
	var done atomic.Bool
	return func(path string) bool { return strings.HasSuffix(path, suffix) && done.CompareAndSwap(false, true) }
}
